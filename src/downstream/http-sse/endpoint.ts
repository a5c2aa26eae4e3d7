import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { traceContextOf } from '../../http/headers.ts';
import { respondError } from '../../http/server/respond.ts';
import type { TraceContext } from '../../mcp/vocabulary/meta.ts';
import { OLDEST_REVISION, type Revision } from '../../mcp/vocabulary/revisions.ts';
import type { Lane } from '../../relay/call.ts';
import type { CallerEnvironment, ClientListener, DownstreamPeer } from '../../relay/ports.ts';
import type { Relay } from '../../relay/relay.ts';
import type { SessionRegistry } from '../../relay/sessions/session-registry.ts';
import { Frame } from '../../wire/frame.ts';
import { encodeEvent, encodeEvents } from '../../wire/sse-encode.ts';
import { faultAnswer, refusalOfBatch } from '../batch.ts';
import { type EventStreamOwner, EventStreamWriter } from '../http/event-stream-writer.ts';
import { type PostedMessages, readInTurn, TurnGate, type TurnLimits } from '../http/read-post.ts';
import type { LiveStreams } from '../http/response-writer.ts';
import type { HttpRoute } from '../listener/http-server.ts';
import type { Sunset } from './sunset.ts';

/**
 * Body of each 202 response: early clients of the C# SDK take a response without this word for an error. A string is
 * written together with the headers.
 */
const ACCEPTED = 'Accepted';
const ACCEPTED_HEADERS = { 'Content-Type': 'text/plain', 'Content-Length': ACCEPTED.length };
export const SESSION_PARAMETER = 'sessionId';

export interface HttpSseEndpointOptions {
  readonly sessions: SessionRegistry;
  readonly live: LiveStreams;
  readonly deps: Deps;
  /** Limits of POST bodies. */
  readonly bodies: TurnLimits;
  /** The headers that pass to a remote server with every message of a session, by the GET that opened it. */
  readonly headersOf: (request: IncomingMessage) => Lane['headers'];
  /** Returns the name of the caller of an admitted request. A session belongs to the caller that opened it. */
  readonly principalOf: (request: IncomingMessage) => string;
  /** Returns the environment variables that the caller's server process gets from headers (`--map-header`). */
  readonly environmentOf: (request: IncomingMessage) => CallerEnvironment | undefined;
  /** Returns the path of the POST endpoint as clients see it through proxies. */
  readonly announcedMessagePath: (request: IncomingMessage) => string;
  /** Returns the URL of Streamable HTTP for this client. */
  readonly streamableUrl: (request: IncomingMessage) => string;
  /** Announced end of this transport; undefined: none is announced. */
  readonly sunset: Sunset | undefined;
}

interface OpenSession {
  readonly peer: HttpSsePeer;
  readonly relay: Relay;
}

/**
 * The transport of 2024-11-05: a GET opens the session and its only stream, whose first event names the URL for
 * POSTs; answers travel on the stream. [spec 2024-11-05 basic/transports#http-with-sse]
 */
export class HttpSseEndpoint {
  readonly #options: HttpSseEndpointOptions;
  /** Responses to POSTs whose messages were taken in this turn of the event loop. */
  #taken: ServerResponse[] = [];

  constructor(options: HttpSseEndpointOptions) {
    this.#options = options;
  }

  readonly openStream: HttpRoute = (request, response) => {
    const { sunset } = this.#options;
    sunset?.announce(request, response);
    // Clients that try Streamable HTTP first take a 405 as the sign of an older server, and then open the stream by
    // GET. [spec 2025-11-25 transports#backwards-compatibility]
    if (request.method !== 'GET') return refuseMethod(response, 'GET', this.#options.streamableUrl(request));
    const { sessions, live, headersOf, principalOf, environmentOf } = this.#options;
    const principal = principalOf(request);
    const over = sunset?.refusalOf(request);
    if (over !== undefined) {
      sessions.refuse({ transport: 'http-sse', principal }, over);
      return respondError(response, over);
    }
    const headers = headersOf(request);
    const messagePath = this.#options.announcedMessagePath(request);
    try {
      sessions.open(
        (id, listener) => {
          const peer = new HttpSsePeer({ response, live, listener, headers });
          peer.announce(`${messagePath}?${SESSION_PARAMETER}=${id}`);
          return peer;
        },
        { transport: 'http-sse', era: 'legacy', principal, environment: environmentOf(request) },
      );
    } catch (thrown) {
      const error = toBridgeError(thrown);
      if (error.code === 'ERR_INTERNAL') this.#options.deps.log.error({ err: error.cause }, error.message);
      respondError(response, error);
    }
  };

  readonly takeMessage: HttpRoute = (request, response, query) => {
    const { sunset } = this.#options;
    sunset?.announce(request, response);
    if (request.method !== 'POST') return refuseMethod(response, 'POST', this.#options.streamableUrl(request));
    const id = query.get(SESSION_PARAMETER);
    const find = () => this.#find(id, this.#options.principalOf(request));
    const session = find();
    const over = sunset?.refusalOf(request);
    if (over !== undefined) {
      respondError(response, over);
      // A session that is still open after the sunset ends at its client's next message.
      if (!(session instanceof BridgeError)) session.relay.close(over);
      return;
    }
    if (session instanceof BridgeError) return respondError(response, session);
    readInTurn({
      request,
      response,
      limits: this.#options.bodies,
      gate: session.peer.gate,
      // The session may have ended while the message waited or was read.
      accepted: (messages) => this.#accept(messages, find(), response),
    });
  };

  #accept(messages: PostedMessages, found: OpenSession | BridgeError, response: ServerResponse): void {
    if (found instanceof BridgeError) return respondError(response, found);
    const { peer, relay } = found;
    const items = messages.kind === 'message' ? [messages.frame] : messages.items;
    const refusal = messages.kind === 'batch' ? refusalOfBatch(items, peer.revision) : undefined;
    if (refusal !== undefined) return respondError(response, refusal);
    if (messages.kind === 'batch') relay.batched();
    const traceHeaders = traceContextOf(response.req.headers);
    const lane = traceHeaders === undefined ? peer : new TracedLane(peer, traceHeaders);
    for (const item of items) {
      if (item instanceof Frame) relay.fromClient(item, lane);
      else peer.send(faultAnswer(item));
    }
    if (this.#taken.length === 0) setImmediate(() => this.#respondTaken());
    this.#taken.push(response);
  }

  /** Responds to all of them in one go: the first write may wake a client that reads the others along with it. */
  #respondTaken(): void {
    const taken = this.#taken;
    this.#taken = [];
    for (const response of taken) response.writeHead(202, ACCEPTED_HEADERS).end(ACCEPTED);
  }

  #find(id: string | null, principal: string): OpenSession | BridgeError {
    if (id === null) {
      return new BridgeError(
        'ERR_SESSION_MISSING',
        `The ${SESSION_PARAMETER} parameter is missing; post to the URL that the stream's endpoint event names.`,
      );
    }
    const session = this.#options.sessions.use(id, principal);
    if (session?.peer instanceof HttpSsePeer) return { peer: session.peer, relay: session.relay };
    return new BridgeError('ERR_SESSION_UNKNOWN', 'This session does not exist (anymore); open a new stream.');
  }
}

interface HttpSsePeerOptions {
  readonly response: ServerResponse;
  readonly live: LiveStreams;
  readonly listener: ClientListener;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** A client over HTTP+SSE: one stream, which is also the lane of each of its calls. */
class HttpSsePeer implements DownstreamPeer, Lane, EventStreamOwner {
  readonly gate = new TurnGate();
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly #listener: ClientListener;
  readonly #stream: EventStreamWriter;
  #revision: Revision = OLDEST_REVISION;

  constructor({ response, live, listener, headers }: HttpSsePeerOptions) {
    this.headers = headers;
    this.#listener = listener;
    this.#stream = new EventStreamWriter(response, live, this);
  }

  get revision(): Revision {
    return this.#revision;
  }

  get isOpen(): boolean {
    return this.#stream.isOpen;
  }

  get isConnected(): boolean {
    return this.#stream.isOpen;
  }

  /** A closed stream ends the session, so a client without a stream has left. */
  get hasLeft(): boolean {
    return !this.#stream.isOpen;
  }

  announce(messageUrl: string): void {
    this.#stream.write(encodeEvent({ event: 'endpoint', data: Buffer.from(messageUrl) }));
  }

  send(frame: Frame): boolean {
    const hasCapacity = this.#stream.write(encodeEvents([frame.bytes]));
    if (!hasCapacity) this.gate.close('reader');
    return hasCapacity;
  }

  /** The stream is the lane of other calls too. */
  release(): void {}

  negotiated(revision: Revision): void {
    this.#revision = revision;
  }

  pause(): void {
    this.gate.close('server');
  }

  resume(): void {
    this.gate.open('server');
  }

  close(): void {
    this.#stream.end();
    this.gate.openForGood();
  }

  streamDrained(): void {
    this.gate.open('reader');
    this.#listener.clientDrained();
  }

  /** The stream is the session, so nothing can be resumed. */
  streamClosed(): void {
    this.#listener.clientClosed(new BridgeError('ERR_SESSION_CLOSED', 'The client closed its stream.'));
  }
}

/** Lane for the messages of a POST with its own trace context. The stream was opened by another request. */
class TracedLane implements Lane {
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly traceHeaders: TraceContext;
  readonly #stream: HttpSsePeer;

  constructor(stream: HttpSsePeer, traceHeaders: TraceContext) {
    this.headers = stream.headers;
    this.traceHeaders = traceHeaders;
    this.#stream = stream;
  }

  get isOpen(): boolean {
    return this.#stream.isOpen;
  }
}

/** Responds at the paths of HTTP+SSE when that transport is switched off. */
export function refuseHttpSse(streamableUrl: HttpSseEndpointOptions['streamableUrl']): HttpRoute {
  return (request, response) => {
    const message = `HTTP+SSE is switched off here (--no-sse); Streamable HTTP is at ${streamableUrl(request)}.`;
    respondError(response, new BridgeError('ERR_HTTP_PATH', message));
  };
}

function refuseMethod(response: ServerResponse, allowed: 'GET' | 'POST', streamableUrl: string): void {
  const message = `Only ${allowed} is served here, for clients of HTTP+SSE; Streamable HTTP is at ${streamableUrl}.`;
  const error = new BridgeError('ERR_HTTP_METHOD', message);
  respondError(response, error, undefined, { Allow: allowed });
}
