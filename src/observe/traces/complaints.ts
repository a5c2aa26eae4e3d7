/** Logs the loss of spans. An unreachable collector costs spans and an occasional log line. */
import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { escapeHidden } from '../../printable.ts';

const PERIOD_MS = 60_000;
/** Limit of the texts of the SDK, which may include a collector's own words, in characters. */
const MAX_REASON_LENGTH = 200;

/**
 * - `starting`: each problem with the settings is logged.
 * - `open`: the next complaint is logged.
 * - `silent`: a complaint was logged less than a minute ago.
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

/** Returns the reason why an export failed, without the text of the collector's response. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'spans are lost: the export failed';
  const { code, message } = error as NodeJS.ErrnoException & { readonly code?: string | number };
  // The SDK stores the HTTP status of the response in `code`.
  if (typeof code === 'number') return `spans are lost: the collector answered ${code}`;
  return `spans are lost: ${typeof code === 'string' ? code : message}`;
}
