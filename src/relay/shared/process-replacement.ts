import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import { logFailure } from '../log-failure.ts';
import type { UpstreamLink } from '../ports.ts';
import { dialRefusalOf, type Readiness } from '../readiness.ts';

/**
 * Sees to it that processes which replace each other never run at the same time: one that has a port, a lock or a
 * database to itself would keep the next one from starting, again and again while it is being ended.
 */
export class ProcessReplacement {
  readonly #clock: Clock;
  /** Counts the processes that are ending, or that have left others of their group behind. */
  #ending = 0;
  #next: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True: the next process may start. */
  get isClear(): boolean {
    return this.#ending === 0;
  }

  /** Called when the process of this link serves no more: the next one waits until nothing of it runs. */
  awaitExit({ process }: UpstreamLink): void {
    if (process === undefined) return;
    this.#ending += 1;
    void process.gone.then(() => {
      this.#ending -= 1;
      this.#proceed();
    });
  }

  /** Calls `start` after the pause and once `isClear`; one caller at a time. Returns what cancels it. */
  after(pauseMs: number, start: () => void): () => void {
    const cancelPause = this.#clock.after(pauseMs, () => {
      this.#next = start;
      this.#proceed();
    });
    return () => {
      cancelPause();
      this.#next = undefined;
    };
  }

  #proceed(): void {
    if (!this.isClear) return;
    const next = this.#next;
    this.#next = undefined;
    next?.();
  }
}

/** Pause before a server that ended is started again; a dialer that knows better says so. */
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 30_000;
/** A remote server that asks for more patience gets it, up to this: meanwhile nobody is served, if it is back or not. */
const MAX_RETRY_AFTER_MS = 300_000;

/**
 * Decides how long to wait before the next start. The dialer sees processes come and go, but not that a running one
 * refuses every handshake; so the pause grows here, too, while none succeeds.
 */
export class RestartPause {
  #pauseMs = FIRST_PAUSE_MS;

  /** A handshake succeeded. */
  served(): void {
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  next(reason: BridgeError, readiness: Readiness): number {
    const { retryAfterMs } = dialRefusalOf(readiness) ?? reason;
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2);
    // Rounded up: a timer that fires early would find the dialer unwilling once more.
    return Math.ceil(Math.min(retryAfterMs ?? pauseMs, MAX_RETRY_AFTER_MS));
  }
}

/**
 * A shared server is gone, or did not come. What was lost, and why, the link that lost it has said; of a server that did
 * not start, perhaps nobody else is told.
 */
export function logEnd(log: Logger, reason: BridgeError, wasServing: boolean): void {
  if (wasServing) log.info({ code: reason.code }, 'the shared server has ended; it starts again when it is needed');
  else logFailure(log, reason, 'the shared server did not start');
}
