/** State shared by the requests of a link to a remote server: options, and forwarded headers of the client. */
import type { Logger } from 'pino';
import type { RemoteTimeouts } from '../../config/remote.ts';
import type { Deps } from '../../deps.ts';
import type { HttpClient } from '../../http/client/client.ts';
import type { SessionCookies } from '../../http/client/cookies.ts';
import type { Credentials } from '../../http/client/credentials.ts';
import { traceHeadersOf } from '../../mcp/classify/trace-context.ts';
import type { Call, Lane } from '../../relay/call.ts';
import type { MessageTaps } from '../../relay/message-tap.ts';
import type { Frame } from '../../wire/frame.ts';
import type { EnvelopeScanner } from '../../wire/scan-envelope.ts';
import type { IdWarnings } from '../answer-ids.ts';
import type { CreateGuard, CreateLifeCheck } from '../connection.ts';
import type { Reachability } from '../resilience/reachability.ts';

/** Options of every dialer of a remote server. */
export interface RemoteConnectorOptions {
  /** The URL of the server, without userinfo. */
  readonly url: URL;
  /** Closed with the dialer. */
  readonly http: HttpClient;
  readonly timeouts: RemoteTimeouts;
  readonly maxMessageBytes: number;
  readonly tracing: RemoteTracing;
  /** Reads the envelopes of all answers. */
  readonly scanner: EnvelopeScanner;
  /** Shared by all dialers of the server. */
  readonly reachability: Reachability;
  /** Closed with the dialer. */
  readonly credentials?: Pick<Credentials, 'close'> | undefined;
  /** Checks the connections of sessions. Default: nothing does. */
  readonly createLifeCheck?: CreateLifeCheck | undefined;
  /** Decides which messages pass. Default: all do. */
  readonly createGuard?: CreateGuard | undefined;
  /** Sees what passes between the bridge and the server. Default: nothing is recorded. */
  readonly taps?: MessageTaps | undefined;
  readonly deps: Deps;
}

/** `in-headers` copies the trace context from a request's `_meta` into HTTP headers. */
export type RemoteTracing = 'in-headers' | 'off';

/** Options shared by all requests to one server. */
export interface ServerEnvironment {
  readonly http: HttpClient;
  readonly url: URL;
  /** Reads the envelopes of all answers. */
  readonly scanner: EnvelopeScanner;
  readonly timeouts: RemoteTimeouts;
  readonly maxMessageBytes: number;
  readonly tracing: RemoteTracing;
  /** Warnings about the server's ids, shared by all its links. */
  readonly idWarnings: IdWarnings;
  readonly log: Logger;
}

/** Options shared by all requests of one link. */
export interface RemoteEnvironment extends ServerEnvironment {
  readonly cookies: SessionCookies;
  readonly caller: CallerHeaders;
}

/** Returns the headers of a message, with those of its trace if tracing is on. */
export function tracedHeaders(
  { tracing }: Pick<RemoteEnvironment, 'tracing'>,
  headers: Readonly<Record<string, string>>,
  frame: Frame,
): Readonly<Record<string, string>> {
  return tracing === 'off' ? headers : { ...headers, ...traceHeadersOf(frame) };
}

/**
 * Headers of the client's HTTP requests that the user lets pass. Each request of the client carries its own. Streams,
 * answers and the end of the session, which belong to no request, carry those of the latest request, because a token
 * may be renewed during a session.
 */
export class CallerHeaders {
  #latest: Lane['headers'];

  /** @param initial headers that are forwarded before the first request */
  constructor(initial: Lane['headers'] = undefined) {
    this.#latest = initial;
  }

  get latest(): Lane['headers'] {
    return this.#latest;
  }

  /** Call this before a message is sent. */
  note(frame: Frame, call: Call | undefined): void {
    if (call !== undefined && frame.kind === 'request') this.#latest = call.lane.headers;
  }

  /** Returns the forwarded headers for this message. */
  of(frame: Frame, call: Call | undefined): Lane['headers'] {
    return call !== undefined && frame.kind === 'request' ? call.lane.headers : this.#latest;
  }
}
