/**
 * Finds out who sent a request. Implemented for tokens handed out by the user and for access tokens of an OAuth issuer;
 * called by the HTTP server.
 */
import type { IncomingMessage } from 'node:http';
import type { BridgeError } from '../../errors.ts';

/** The principal of all callers where no authentication is configured. No authenticated caller can have it. */
export const ANONYMOUS = 'anonymous';

export type AuthVerdict =
  /** The name includes who authenticated the caller, so equal names are the same caller. */
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

/** Accepts every request, for a server that only this machine can reach or that the user has opened to all. */
export const ALLOW_ANYONE: Authenticator = {
  authenticate: (_request, decided) => decided({ kind: 'principal', principal: ANONYMOUS }),
};

// ---- The interface to the JWT library, which is loaded only where it is used.

export type JwtOutcome =
  | { readonly kind: 'principal'; readonly principal: string }
  /** The caller has to get another token. */
  | { readonly kind: 'invalid'; readonly reason: string }
  /** The token is valid, but lacks a scope. */
  | { readonly kind: 'scope' }
  /** The token cannot be checked now, so it is not accepted. */
  | { readonly kind: 'unavailable'; readonly error: BridgeError };

export interface JwtVerifier {
  /**
   * Calls `done` once, before it returns for a token that was seen a moment ago. The token must be made for one of these
   * audiences.
   */
  verify(token: string, audiences: readonly string[], done: (outcome: JwtOutcome) => void): void;
}
