import type { IncomingMessage } from 'node:http';
import type { Authenticator, AuthRefusal } from './authenticator.ts';

/** Who sent each request under way: found out before anything else is done with it, asked by whoever serves it. */
export class Callers {
  readonly #authenticator: Authenticator;
  readonly #principals = new WeakMap<IncomingMessage, string>();

  constructor(authenticator: Authenticator) {
    this.#authenticator = authenticator;
  }

  /** Calls `decided` once, at once where possible; undefined: welcome. */
  identify(request: IncomingMessage, decided: (refusal: AuthRefusal | undefined) => void): void {
    this.#authenticator.authenticate(request, (verdict) => {
      if (verdict.kind === 'refused') return decided(verdict.refusal);
      this.#principals.set(request, verdict.principal);
      decided(undefined);
    });
  }

  /** Throws for a request that was not let in: serving it would be a bug. */
  readonly principalOf = (request: IncomingMessage): string => {
    const principal = this.#principals.get(request);
    if (principal === undefined) throw new Error('a request is served that was not let in');
    return principal;
  };
}
