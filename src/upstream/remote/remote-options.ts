import type { Logger } from 'pino';
import type { RemoteTimeouts } from '../../config.ts';
import type { Deps } from '../../deps.ts';
import type { HttpClient } from '../../http/client/client.ts';
import type { SessionCookies } from '../../http/client/cookies.ts';
import type { CallerHeaders } from './caller-headers.ts';

/** What every dialer of a remote server is made from. */
export interface RemoteDialerOptions {
  /** The URL of the server, without userinfo. */
  readonly url: URL;
  /** Closed with the dialer. */
  readonly http: HttpClient;
  readonly timeouts: RemoteTimeouts;
  readonly maxMessageBytes: number;
  readonly deps: Deps;
}

/** What all requests of one link have in common. */
export interface RemoteEnvironment {
  readonly http: HttpClient;
  readonly url: URL;
  readonly cookies: SessionCookies;
  readonly caller: CallerHeaders;
  readonly timeouts: RemoteTimeouts;
  readonly maxMessageBytes: number;
  readonly log: Logger;
}
