/** Who a request comes from. Implemented for tokens and for access tokens of an OAuth issuer; asked by the HTTP server. */
import type { IncomingMessage } from 'node:http';
import type { BridgeError } from '../../errors.ts';

/** Everybody's name where nobody is asked for one. No authenticated caller can have it. */
export const ANONYMOUS = 'anonymous';

export type AuthVerdict =
  /** The name says who authenticated the caller, too: equal names are the same caller. */
  | { readonly kind: 'principal'; readonly principal: string }
  | { readonly kind: 'refused'; readonly refusal: AuthRefusal };

export interface AuthRefusal {
  readonly error: BridgeError;
  /** For `WWW-Authenticate`; undefined: another credential would not help. */
  readonly challenge: string | undefined;
}

export interface Authenticator {
  /** Calls `decided` once: before it returns where that can be told at once, later where keys have to be fetched. */
  authenticate(request: IncomingMessage, decided: (verdict: AuthVerdict) => void): void;
}

/** Lets everybody in, for a server that only this machine can reach or that the user opened to all. */
export const LETS_ANYONE_IN: Authenticator = {
  authenticate: (_request, decided) => decided({ kind: 'principal', principal: ANONYMOUS }),
};

// ---- The seam to the JWT library, which is loaded only where it is used.

export type JwtOutcome =
  | { readonly kind: 'principal'; readonly principal: string }
  /** Whoever sent it has to get another. */
  | { readonly kind: 'invalid'; readonly reason: string }
  /** Good, but not for this. */
  | { readonly kind: 'scope' }
  /** Nobody can tell now; nobody comes in either. */
  | { readonly kind: 'unavailable'; readonly error: BridgeError };

export interface JwtVerifier {
  /** Calls `done` once, before it returns for a token that was seen a moment ago. */
  verify(token: string, done: (outcome: JwtOutcome) => void): void;
}
