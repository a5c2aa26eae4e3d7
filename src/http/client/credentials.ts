import type { BridgeError } from '../../errors.ts';
import type { AuthChallenge } from './auth-challenge.ts';

/** The credentials that the server is shown. */
export interface Credentials {
  /** The value of `Authorization` for a request that leaves now; undefined: none. Throws BridgeError ERR_UPSTREAM_AUTH. */
  authorization(): string | undefined;
  /** Undefined: they are not renewed by the bridge. */
  readonly renewal: CredentialRenewal | undefined;
  /** Ends renewals. May be called twice. */
  close(): void;
}

/** Credentials that the bridge gets by itself. Every request asks, so the usual answers cost no promise. */
export interface CredentialRenewal {
  /**
   * A renewal is under way, which may take as long as a user needs. Time limits for the server do not run meanwhile.
   */
  readonly isUnderWay: boolean;
  /**
   * Called before a request leaves. Settles when better credentials are there or cannot be had; never rejects.
   * Undefined: there is nothing to wait for.
   */
  beforeRequest(): Promise<void> | undefined;
  /** The server has taken a request with this value of `Authorization`. */
  accepted(authorization: string): void;
  /** The server has refused a request. Undefined: nothing can be done about it. Never rejects. */
  refused(refusal: CredentialRefusal): Promise<RenewalOutcome> | undefined;
}

export interface CredentialRefusal {
  readonly status: 401 | 403;
  readonly challenge: AuthChallenge;
  /** The value of `Authorization` that the server refused. */
  readonly authorization: string | undefined;
  /** Where the refusal came from; undefined: from a proxy, or the connection is gone. */
  readonly peerAddress: string | undefined;
}

export type RenewalOutcome =
  /** There are other credentials now, and the request is worth sending again. */
  | { readonly kind: 'renewed' }
  /** The server offers no way to get any, so its refusal stands. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly error: BridgeError };
