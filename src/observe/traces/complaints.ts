/** What is said when spans are lost. A collector that is gone costs spans, and a line of the log now and then. */
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { escapeHidden } from '../../printable.ts';

const PERIOD_MS = 60_000;
/** Characters of what the SDK, and through it a collector, says. */
const MAX_REASON_LENGTH = 200;

/**
 * - `starting`: what is wrong with the settings is told line by line.
 * - `open`: the next complaint is told.
 * - `silent`: one was told less than a minute ago.
 */
type State = 'starting' | 'open' | 'silent' | 'closed';

export class Complaints {
  readonly #log: Logger;
  readonly #clock: Clock;
  #state: State = 'starting';
  #cancel: () => void = () => {};

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  started(): void {
    this.#state = 'open';
  }

  tell(reason: string): void {
    if (this.#state === 'silent' || this.#state === 'closed') return;
    this.#log.warn(`traces: ${escapeHidden(reason.slice(0, MAX_REASON_LENGTH))}`);
    if (this.#state === 'starting') return;
    this.#state = 'silent';
    this.#cancel = this.#clock.after(PERIOD_MS, () => {
      this.#state = 'open';
    });
  }

  close(): void {
    this.#state = 'closed';
    this.#cancel();
  }
}

/** Why an export failed, without what a collector wrote in its answer. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'spans are lost: the export failed';
  const { code, message } = error as NodeJS.ErrnoException & { readonly code?: string | number };
  // The SDK puts the status of the response there.
  if (typeof code === 'number') return `spans are lost: the collector answered ${code}`;
  return `spans are lost: ${typeof code === 'string' ? code : message}`;
}
