/**
 * What the requests of a link to a remote server have in common: options, headers of the client that pass, and whether
 * the server was in reach when it was last asked.
 */
import type { Logger } from 'pino';
import type { RemoteTimeouts } from '../../config/remote.ts';
import type { Clock, Deps } from '../../deps.ts';
import type { BridgeError } from '../../errors.ts';
import type { HttpClient } from '../../http/client/client.ts';
import type { SessionCookies } from '../../http/client/cookies.ts';
import { traceHeadersOf } from '../../mcp/classify/trace-context.ts';
import type { Exchange, Lane } from '../../relay/exchange.ts';
import type { Readiness } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import type { EnvelopeScanner } from '../../wire/scan-envelope.ts';
import type { IdWarnings } from '../answer-ids.ts';

/** What every dialer of a remote server is made from. */
export interface RemoteDialerOptions {
  /** The URL of the server, without userinfo. */
  readonly url: URL;
  /** Closed with the dialer. */
  readonly http: HttpClient;
  readonly timeouts: RemoteTimeouts;
  readonly maxMessageBytes: number;
  readonly tracing: RemoteTracing;
  /** Reads the envelopes of all answers. */
  readonly scanner: EnvelopeScanner;
  readonly deps: Deps;
}

/** What a request says of its trace in its `_meta`, headers say too, or they do not. */
export type RemoteTracing = 'in-headers' | 'off';

/** What all requests of one link have in common. */
export interface RemoteEnvironment {
  readonly http: HttpClient;
  readonly url: URL;
  readonly cookies: SessionCookies;
  /** Reads the envelopes of all answers. */
  readonly scanner: EnvelopeScanner;
  readonly timeouts: RemoteTimeouts;
  readonly maxMessageBytes: number;
  readonly tracing: RemoteTracing;
  /** Those of the server, whichever link notices. */
  readonly idWarnings: IdWarnings;
  readonly log: Logger;
}

/** What all requests of a link have in common that lasts for a session. */
export interface SessionEnvironment extends RemoteEnvironment {
  readonly caller: CallerHeaders;
}

/** The headers of a message, with those of its trace where they are wanted. */
export function tracedHeaders(
  { tracing }: Pick<RemoteEnvironment, 'tracing'>,
  headers: Readonly<Record<string, string>>,
  frame: Frame,
): Readonly<Record<string, string>> {
  return tracing === 'off' ? headers : { ...headers, ...traceHeadersOf(frame) };
}

/**
 * What the user lets pass of the HTTP requests of a link's client. Each request of the client carries its own values.
 * What no request causes, as streams, answers and the end of the session, carries those of the latest one: a token may
 * be renewed in the middle of a session.
 */
export class CallerHeaders {
  #latest: Lane['headers'] = undefined;

  get latest(): Lane['headers'] {
    return this.#latest;
  }

  /** A message is about to be sent. */
  note(frame: Frame, exchange: Exchange | undefined): void {
    if (exchange !== undefined && frame.kind === 'request') this.#latest = exchange.lane.headers;
  }

  /** The headers that go with this message. */
  of(frame: Frame, exchange: Exchange | undefined): Lane['headers'] {
    return exchange !== undefined && frame.kind === 'request' ? exchange.lane.headers : this.#latest;
  }
}

/** A failure counts for so long: nobody tries in between, and the server may be back. */
const MEMORY_MS = 10_000;

/** Does the failure say that there is no server, or none that can be understood? */
export function isOutOfReach({ code }: BridgeError): boolean {
  return code === 'ERR_UPSTREAM_CONNECT' || code === 'ERR_UPSTREAM_UNREADABLE';
}

/** Whether a server could be reached when it was last tried, for readiness. */
export class Reachability {
  readonly #clock: Clock;
  #failure: { readonly error: BridgeError; readonly atMs: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It answered, or could not be reached. */
  note(error: BridgeError | undefined): void {
    this.#failure = error === undefined ? undefined : { error, atMs: this.#clock.now() };
  }

  readiness(): Readiness {
    const failure = this.#failure;
    if (failure === undefined || this.#clock.now() - failure.atMs > MEMORY_MS) return { state: 'ready' };
    return { state: 'unproven', error: failure.error };
  }
}
