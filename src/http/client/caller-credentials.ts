import type { Credentials } from './credentials.ts';
import type { RequestHeaders } from './http-call.ts';

/** Credentials that differ between the callers of the bridge. */
export interface CallerCredentials {
  /** Returns the credentials of the caller that the forwarded headers name. Called several times for each request. */
  of(forwarded: RequestHeaders['forwarded']): Credentials;
  /** Ends renewals. May be called more than once. */
  close(): void;
}
