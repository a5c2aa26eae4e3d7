import type { Logger } from 'pino';
import type { Deps } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import { READY, type Readiness } from '../../relay/readiness.ts';
import { Trials } from './trials.ts';

/** True if the failure means that there is no server, or none that can be understood. */
export function isOutOfReach({ code, data }: BridgeError): boolean {
  return code === 'ERR_UPSTREAM_CONNECT' || code === 'ERR_UPSTREAM_UNREADABLE' || data?.phase === 'connect';
}

export interface ReachabilityOptions {
  /** The server's address, as it may be shown. */
  readonly name: string;
  /**
   * Tries the server once, and notes the outcome. Rejects if the server is out of reach. Undefined if nobody asks
   * whether the server is ready, so that it is tried only for clients.
   */
  readonly attempt: ((signal: AbortSignal) => Promise<void>) | undefined;
  readonly deps: Pick<Deps, 'clock' | 'log'>;
}

interface Failure {
  readonly error: BridgeError;
  /** Time of the first failure after the server was last reached, by the clock of the bridge. */
  readonly sinceMs: number;
}

/**
 * Says if a remote server could be reached when it was last tried, over any of its connections. A failure counts until
 * the server answers again. See docs/internals/decisions/0018-lifetimes.md.
 */
export class Reachability {
  readonly #name: string;
  readonly #log: Logger;
  readonly #clock: Deps['clock'];
  readonly #trials: Trials | undefined;
  #failure: Failure | undefined;

  constructor({ name, attempt, deps }: ReachabilityOptions) {
    const { clock, log } = deps;
    this.#name = name;
    this.#log = log;
    this.#clock = clock;
    this.#trials = attempt && new Trials({ attempt, clock });
  }

  /** Notes a failure to reach the server, or undefined if it answered. */
  note(error: BridgeError | undefined): void {
    if (error !== undefined) {
      this.#failure = { error, sinceMs: this.#failure?.sinceMs ?? this.#clock.now() };
      this.#trials?.failed();
      return;
    }
    const failure = this.#failure;
    if (failure === undefined) return;
    this.#failure = undefined;
    this.#trials?.served();
    const seconds = Math.round((this.#clock.now() - failure.sinceMs) / 1000);
    this.#log.info(`The server at ${this.#name} answers again, after ${seconds} s.`);
  }

  readiness(): Readiness {
    const failure = this.#failure;
    return failure === undefined ? READY : { state: 'failing', ...failure, dialing: 'allowed' };
  }

  close(): void {
    this.#trials?.close();
  }
}
