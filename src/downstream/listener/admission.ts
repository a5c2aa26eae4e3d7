import type { IncomingMessage } from 'node:http';
import type { BridgeError } from '../../errors.ts';
import type { Authenticator, AuthRefusal } from '../../http/auth/authenticator.ts';
import { identifyCaller } from '../../http/auth/callers.ts';
import type { AccessPolicy } from '../../http/server/access-policy.ts';

export type Verdict =
  | { readonly kind: 'admitted' }
  /** Its Host, Origin or Sec-Fetch-Site tells that it must not be answered, not even to say why to a web page. */
  | { readonly kind: 'foreign'; readonly error: BridgeError }
  /** It does not say who calls, or not convincingly. */
  | { readonly kind: 'unauthenticated'; readonly refusal: AuthRefusal };

/** For whom something is served: for everybody who comes by a name of this server, or for callers who show who they are. */
export type Audience = 'anybody' | Authenticator;

const ADMITTED: Verdict = { kind: 'admitted' };

/**
 * Decides who is served. Every request that a listener takes passes here before anything else is read of it, whether it is
 * answered, upgraded or only asked about.
 */
export class Admission {
  readonly #policy: AccessPolicy;

  constructor(policy: AccessPolicy) {
    this.#policy = policy;
  }

  /**
   * Calls `decided` once, at once where possible: keys of an issuer may have to be fetched. An admitted caller's name is
   * with its request from then on (http/auth/callers.ts).
   */
  admit(request: IncomingMessage, audience: Audience, decided: (verdict: Verdict) => void): void {
    const error = this.#policy.check(request);
    if (error !== undefined) return decided({ kind: 'foreign', error });
    if (audience === 'anybody') return decided(ADMITTED);
    audience.authenticate(request, (verdict) => {
      if (verdict.kind === 'refused') return decided({ kind: 'unauthenticated', refusal: verdict.refusal });
      identifyCaller(request, verdict.principal);
      decided(ADMITTED);
    });
  }

  /**
   * Admits a request that another replica has passed on. That replica has found out who its caller is, and has judged its
   * Host by the names that it answers to.
   */
  admitPassed(request: IncomingMessage, caller: string): Verdict {
    identifyCaller(request, caller);
    return ADMITTED;
  }
}
