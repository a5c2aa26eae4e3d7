import type { Deps } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import { isLoginError } from '../../http/login/login-error.ts';

/** A client that is not let in tries again at once, in another era or another way; after so long it is another attempt. */
export const REPEATED_MS = 60_000;

/**
 * Says in the log why a server that has never been there cannot be used, as its clients are told: who runs the bridge may
 * have no client in sight. That it wants credentials is said once for all their attempts, which cannot change it.
 */
export class FirstFailures {
  readonly #deps: Pick<Deps, 'clock' | 'log'>;
  #last: { readonly message: string; readonly atMs: number } | undefined;

  constructor(deps: Pick<Deps, 'clock' | 'log'>) {
    this.#deps = deps;
  }

  tell(error: BridgeError): void {
    // The login has said it.
    if (isLoginError(error)) return;
    const { clock, log } = this.#deps;
    const { message, code } = error;
    const nowMs = clock.now();
    const last = code === 'ERR_UPSTREAM_AUTH' ? this.#last : undefined;
    const isRepeated = last?.message === message && nowMs - last.atMs < REPEATED_MS;
    log[isRepeated ? 'debug' : 'warn']({ code }, message);
    if (!isRepeated) this.#last = { message, atMs: nowMs };
  }
}
