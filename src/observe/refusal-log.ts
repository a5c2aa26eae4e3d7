import type { Deps } from '../deps.ts';
import type { ErrorCode } from '../errors.ts';

/** The time that one line covers. */
const PERIOD_MS = 60_000;

/**
 * Refusals in the normal course of the protocol: a session has ended, or a client looks for an event stream. The end of
 * HTTP+SSE has a log of its own.
 */
const USUAL: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'ERR_SESSION_UNKNOWN',
  'ERR_SESSION_CLOSED',
  'ERR_HTTP_METHOD',
  'ERR_HTTP_GONE',
]);

/** Returns true if a refusal needs nobody's attention. A failure of a server is told where it happens. */
export function isUsualRefusal(reason: ErrorCode): boolean {
  return USUAL.has(reason) || reason.startsWith('ERR_UPSTREAM_');
}

/** Logs how many requests were refused, in one line a minute, however many come. */
export class RefusalLog {
  readonly #deps: Pick<Deps, 'log' | 'clock'>;
  /** The number of requests refused since the last line, by the code of the reason. */
  readonly #counts = new Map<ErrorCode, number>();
  #cancelLine: (() => void) | undefined;

  constructor(deps: Pick<Deps, 'log' | 'clock'>) {
    this.#deps = deps;
  }

  refused(reason: ErrorCode): void {
    if (isUsualRefusal(reason)) return;
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    this.#cancelLine ??= this.#deps.clock.after(PERIOD_MS, () => this.#write('in the last minute'));
  }

  /** Logs what has been refused since the last line. */
  close(): void {
    if (this.#counts.size > 0) this.#write('before the end');
  }

  #write(when: string): void {
    this.#cancelLine?.();
    this.#cancelLine = undefined;
    const counts = [...this.#counts].sort(([, a], [, b]) => b - a);
    this.#counts.clear();
    const total = counts.reduce((sum, [, count]) => sum + count, 0);
    const reasons = counts.map(([code, count]) => `${count} × ${code}`).join(', ');
    const requests = total === 1 ? '1 request was' : `${total} requests were`;
    this.#deps.log.warn({ refused: Object.fromEntries(counts) }, `${requests} refused ${when}: ${reasons}`);
  }
}
