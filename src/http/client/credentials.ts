import type { BridgeError } from '../../errors.ts';
import type { AuthChallenge } from './auth-challenge.ts';

/** What shows the server who we are. */
export interface Credentials {
  /** The value of `Authorization` for a request that leaves now; undefined: none. Throws BridgeError ERR_UPSTREAM_AUTH. */
  authorization(): string | undefined;
  /** Undefined: somebody else renews them, if at all. */
  readonly renewal: CredentialRenewal | undefined;
  /** Nothing is renewed any more. May be called twice. */
  close(): void;
}

/** Credentials that we get by ourselves. Asked by every request, so the usual answers cost no promise. */
export interface CredentialRenewal {
  /** Something is under way that may take as long as a user needs; time limits that count on less have to wait. */
  readonly isUnderWay: boolean;
  /** Before a request leaves: settles when better credentials are there, or are not to be had. Never rejects. */
  beforeRequest(): Promise<void> | undefined;
  /** The server has taken a request with this value of `Authorization`. */
  accepted(authorization: string): void;
  /** The server has refused a request. Undefined: nothing can be done about it. Never rejects. */
  refused(refusal: CredentialRefusal): Promise<RenewalOutcome> | undefined;
}

export interface CredentialRefusal {
  readonly status: 401 | 403;
  readonly challenge: AuthChallenge;
  /** What was shown to the server. */
  readonly authorization: string | undefined;
  /** Where the refusal came from; undefined: from a proxy, or the connection is gone. */
  readonly peerAddress: string | undefined;
}

export type RenewalOutcome =
  /** There are others now; the request is worth sending again. */
  | { readonly kind: 'renewed' }
  /** The server offers no way to get any: what it said stands. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly error: BridgeError };
