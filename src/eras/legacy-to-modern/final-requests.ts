import type { Clock } from '../../deps.ts';
import type { Asker } from './upstream-requests.ts';

/** How long the link stays open for the server to answer that it has withdrawn what the client left behind. */
const FINAL_REQUESTS_MS = 2_000;

/**
 * The last requests of a session whose client is gone. The link stays open until each was answered, whatever with: a
 * request that is cut off may never have been sent.
 */
export class FinalRequests implements Asker {
  readonly #done: () => void;
  readonly #stopTimer: () => void;
  #open: number;

  /** `done`: the link can be let go; called once. */
  constructor(requests: number, clock: Clock, done: () => void) {
    this.#open = requests;
    this.#done = done;
    this.#stopTimer = clock.after(FINAL_REQUESTS_MS, () => this.#end());
  }

  answered(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#end();
  }

  withdrawn(): void {
    this.answered();
  }

  notified(): void {}

  /** Stops waiting for the answers. May be called twice. */
  abandon(): void {
    this.#open = 0;
    this.#stopTimer();
  }

  #end(): void {
    this.abandon();
    this.#done();
  }
}
