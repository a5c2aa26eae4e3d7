import type { Clock } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import type { Readiness } from '../../relay/ports.ts';

/** A failure counts for so long: nobody tries in between, and the server may be back. */
const MEMORY_MS = 10_000;

/** Does the failure say that there is no server, or none that can be understood? */
export function isOutOfReach({ code }: BridgeError): boolean {
  return code === 'ERR_UPSTREAM_CONNECT' || code === 'ERR_UPSTREAM_UNREADABLE';
}

/** Whether a server could be reached when it was last tried, for readiness. */
export class Reachability {
  readonly #clock: Clock;
  #failure: { readonly error: BridgeError; readonly atMs: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It answered, or could not be reached. */
  note(error: BridgeError | undefined): void {
    this.#failure = error === undefined ? undefined : { error, atMs: this.#clock.now() };
  }

  readiness(): Readiness {
    const failure = this.#failure;
    if (failure === undefined || this.#clock.now() - failure.atMs > MEMORY_MS) return { state: 'ready' };
    return { state: 'unproven', error: failure.error };
  }
}
