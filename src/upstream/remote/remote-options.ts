import type { Logger } from 'pino';
import type { RemoteTimeouts } from '../../config/remote.ts';
import type { Deps } from '../../deps.ts';
import type { HttpClient } from '../../http/client/client.ts';
import type { SessionCookies } from '../../http/client/cookies.ts';
import { traceHeadersOf } from '../../mcp/classify/trace-context.ts';
import type { Frame } from '../../wire/frame.ts';
import type { CallerHeaders } from './caller-headers.ts';

/** What every dialer of a remote server is made from. */
export interface RemoteDialerOptions {
  /** The URL of the server, without userinfo. */
  readonly url: URL;
  /** Closed with the dialer. */
  readonly http: HttpClient;
  readonly timeouts: RemoteTimeouts;
  readonly maxMessageBytes: number;
  readonly tracing: RemoteTracing;
  readonly deps: Deps;
}

/** What a request says of its trace in its `_meta`, headers say too, or they do not. */
export type RemoteTracing = 'in-headers' | 'off';

/** What all requests of one link have in common. */
export interface RemoteEnvironment {
  readonly http: HttpClient;
  readonly url: URL;
  readonly cookies: SessionCookies;
  readonly caller: CallerHeaders;
  readonly timeouts: RemoteTimeouts;
  readonly maxMessageBytes: number;
  readonly tracing: RemoteTracing;
  readonly log: Logger;
}

/** The headers of a message, with those of its trace where they are wanted. */
export function tracedHeaders(
  { tracing }: Pick<RemoteEnvironment, 'tracing'>,
  headers: Readonly<Record<string, string>>,
  frame: Frame,
): Readonly<Record<string, string>> {
  return tracing === 'off' ? headers : { ...headers, ...traceHeadersOf(frame) };
}
