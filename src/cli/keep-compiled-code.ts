/** When the code that was compiled is kept for the next start. */
import type { Clock } from '../deps.ts';
import type { ProcessEvents } from './lifecycle.ts';

/** By then most clients have come; long after, V8 has thrown away what only the start needed. */
export const KEEP_AFTER_MS = 10_000;

/** Keeps it some time after the start, or when the process ends before that. */
export function keepOnce(
  keep: () => void,
  { clock, events }: { readonly clock: Clock; readonly events: ProcessEvents },
): void {
  let isKept = false;
  const once = (): void => {
    if (isKept) return;
    isKept = true;
    keep();
  };
  clock.after(KEEP_AFTER_MS, once);
  events.on('exit', once);
}
