import type { Credentials } from './credentials.ts';
import type { RequestHeaders } from './http-call.ts';

/** Credentials that each caller of the bridge has of its own. */
export interface CallerCredentials {
  /** Those of the caller whose request has let these headers pass. Called several times for each request. */
  of(forwarded: RequestHeaders['forwarded']): Credentials;
  /** Ends renewals. May be called twice. */
  close(): void;
}
