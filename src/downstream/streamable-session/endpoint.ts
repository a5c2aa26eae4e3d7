import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { acceptsStream, readAccept } from '../../http/headers.ts';
import { respondEmpty, respondError } from '../../http/server/respond.ts';
import { LAST_EVENT_ID_HEADER, PROTOCOL_VERSION_HEADER, SESSION_ID_HEADER } from '../../mcp/vocabulary/headers.ts';
import { INITIALIZE } from '../../mcp/vocabulary/methods.ts';
import { findRevision } from '../../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Lane } from '../../relay/call.ts';
import type { CallerEnvironment, ClientListener } from '../../relay/ports.ts';
import type { Relay } from '../../relay/relay.ts';
import type { SessionRegistry, StoredSession } from '../../relay/sessions/session-registry.ts';
import type { StoredReplay } from '../../relay/sessions/session-storage.ts';
import { Frame, type JsonRpcId } from '../../wire/frame.ts';
import type { EnvelopeFault } from '../../wire/scan-envelope.ts';
import { errorFrame } from '../../wire/write-message.ts';
import {
  type BatchItem,
  countAnswers,
  faultAnswer,
  HOLDS_INITIALIZE,
  holdsInitialize,
  refusalOfBatch,
} from '../batch.ts';
import { idOf, type PostedMessages, type TurnGate } from '../http/read-post.ts';
import type { LiveStreams } from '../http/response-writer.ts';
import type { Placement } from '../placement.ts';
import { StreamablePeer } from './peer.ts';
import type { PostLaneOptions } from './post-lane.ts';
import { SESSION_MISSING, unsupportedVersion } from './refusals.ts';

export interface StreamableEndpointOptions {
  readonly sessions: SessionRegistry;
  readonly live: LiveStreams;
  readonly deps: Deps;
  /** Age at which the connection of a stream is closed, for the client to reconnect and resume it; 0: never. */
  readonly pollAfterMs: number;
  /** Event streams that one session may have open, calls that wait for an answer included. */
  readonly maxStreams: number;
  /** Bytes of a session's streams that are kept for a client that reconnects; default: REPLAY_LIMITS. */
  readonly maxReplayBytes?: number | undefined;
  /** The headers that pass to a remote server with the messages of a POST. */
  readonly headersOf: (request: IncomingMessage) => Lane['headers'];
  /** Returns the name of the caller of an admitted request. A session belongs to the caller that opened it. */
  readonly principalOf: (request: IncomingMessage) => string;
  /** Returns the environment variables that the caller's server process gets from headers (`--map-header`). */
  readonly environmentOf: (request: IncomingMessage) => CallerEnvironment | undefined;
  /** Rejects requests of sessions that have moved to another replica; undefined: there is no other replica. */
  readonly placement?: Pick<Placement, 'refuseMoved'> | undefined;
}

interface OpenSession {
  readonly peer: StreamablePeer;
  readonly relay: Relay;
}

/** Notifications and answers of a client open no lane. */
const NO_LANE: Lane = { isOpen: false };
const NOTHING = (): void => {};

/**
 * The MCP endpoint for clients with a session: Streamable HTTP of 2025-03-26, 2025-06-18 and 2025-11-25. [spec
 * 2025-11-25 transports#streamable-http]
 */
export class StreamableEndpoint {
  readonly #options: StreamableEndpointOptions;

  constructor(options: StreamableEndpointOptions) {
    this.#options = options;
  }

  /** Returns the gate that holds back the POSTs of a session while its server or its client reads too slowly. */
  gateOf(request: IncomingMessage): TurnGate | undefined {
    return this.#find(request)?.peer.gate;
  }

  // ---- POST

  /** Serves the content of a POST, whose JSON was checked. */
  accept(messages: PostedMessages, request: IncomingMessage, response: ServerResponse): void {
    if (messages.kind === 'message' && isInitialize(messages.frame)) {
      return this.#initialize(messages.frame, request, response);
    }
    // Checked before the session: the sender has none yet, and an error that asks for one would mislead it.
    if (messages.kind === 'batch' && holdsInitialize(messages.items)) return respondError(response, HOLDS_INITIALIZE);
    const found = this.#require(request);
    if (found instanceof BridgeError) {
      if (found.code === 'ERR_SESSION_UNKNOWN' && this.#isRefusedAsMoved(request, response)) return;
      return respondError(response, found, idOf(messages));
    }
    if (found.relay.isDraining && holdsRequest(messages) && this.#isRefusedAsMoved(request, response)) return;
    if (messages.kind === 'batch') return this.#takeBatch(messages.items, found, request, response);
    const { frame } = messages;
    if (frame.kind === 'request') {
      const requests = requestsIn([frame], found.peer);
      const lane = this.#openLane(found, request, { response, expected: 1, requests, batch: false });
      if (lane instanceof BridgeError) return respondError(response, lane, frame.id);
      return found.relay.fromClient(frame, lane);
    }
    found.relay.fromClient(frame, NO_LANE);
    respondEmpty(response, 202);
  }

  #isRefusedAsMoved(request: IncomingMessage, response: ServerResponse): boolean {
    return this.#options.placement?.refuseMoved(request, response) === true;
  }

  #initialize(frame: Frame, request: IncomingMessage, response: ServerResponse): void {
    const existing = this.#find(request);
    if (existing !== undefined) {
      const error = new BridgeError(
        'ERR_WIRE_MESSAGE',
        'This session is initialized already; send initialize without Mcp-Session-Id to open another.',
      );
      return respondError(response, error, frame.id);
    }
    try {
      const { sessions, principalOf, environmentOf } = this.#options;
      const { id, peer, relay } = sessions.open((newId, listener) => this.#createPeer(newId, listener), {
        transport: 'streamable-http',
        era: 'legacy',
        principal: principalOf(request),
        environment: environmentOf(request),
      });
      const lane = peer.openLane({
        response,
        expected: 1,
        // A session that has not begun is never continued by another replica, so no request ids are kept.
        requests: NONE,
        batch: false,
        newSessionId: id,
        forwarded: this.#options.headersOf(request),
        answerAs: readAccept(request.headers.accept),
        // Only the lost response named the session. Close it, so that a client that retries does not find every slot
        // taken by its earlier attempts.
        onLost: () =>
          relay.close(new BridgeError('ERR_SESSION_CLOSED', 'The client left before initialize was answered.')),
      });
      if (lane instanceof BridgeError) throw lane;
      relay.fromClient(frame, lane);
    } catch (thrown) {
      this.#refuseSession(toBridgeError(thrown), frame, response);
    }
  }

  #createPeer(id: string, listener: ClientListener): StreamablePeer {
    const { sessions, live, deps, pollAfterMs, maxStreams, maxReplayBytes } = this.#options;
    const replayLog = sessions.replayOf(id);
    const limits = { pollAfterMs, maxStreams, maxReplayBytes };
    return new StreamablePeer({ listener, live, deps, log: deps.log, ...limits, replayLog });
  }

  /** Continues a session of another replica. Throws a BridgeError if no session slot is free here. */
  restore(session: StoredSession, replay: StoredReplay, token: number): void {
    const { peer, relay } = this.#options.sessions.restore(session, (id, listener) => {
      const created = this.#createPeer(id, listener);
      created.restore(replay, token);
      return created;
    });
    for (const { call, lane, asked } of peer.continueCalls()) {
      session.state.resumes(call);
      relay.resumeCall(call.request, lane);
      // The request has reached the link or was rejected, so its resumption must not apply to a later request.
      session.state.takeResumption(call.request);
      for (const id of asked) relay.wasAsked(id, call.request);
    }
  }

  /**
   * Responds to a call that could not open its session. An ERR_UPSTREAM_* error is the answer to the request; any other
   * error rejects it.
   */
  #refuseSession(error: BridgeError, frame: Frame, response: ServerResponse): void {
    if (error.code === 'ERR_INTERNAL') this.#options.deps.log.error({ err: error.cause }, error.message);
    if (!error.code.startsWith('ERR_UPSTREAM_')) return respondError(response, error, frame.id);
    const body = errorFrame(frame.id, rpcErrorOf(error)).bytes;
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }).end(body);
  }

  #takeBatch(
    items: readonly BatchItem[],
    session: OpenSession,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const refusal = refusalOfBatch(items, session.peer.revision);
    if (refusal !== undefined) return respondError(response, refusal);
    const expected = countAnswers(items);
    const requests = requestsIn(items, session.peer);
    const lane =
      expected === 0 ? NO_LANE : this.#openLane(session, request, { response, expected, requests, batch: true });
    if (lane instanceof BridgeError) return respondError(response, lane);
    session.relay.batched();
    for (const item of items) {
      if (item instanceof Frame) session.relay.fromClient(item, lane);
      else session.peer.sendOn(lane, faultAnswer(item));
    }
    if (expected === 0) respondEmpty(response, 202);
  }

  #openLane(
    session: OpenSession,
    request: IncomingMessage,
    { response, expected, requests, batch }: Pick<PostLaneOptions, 'response' | 'expected' | 'requests' | 'batch'>,
  ): Lane | BridgeError {
    const answerAs = readAccept(request.headers.accept);
    const opened = session.peer.openLane({
      response,
      expected,
      requests,
      batch,
      newSessionId: undefined,
      forwarded: this.#options.headersOf(request),
      answerAs,
      onLost: NOTHING,
    });
    if (opened instanceof BridgeError) return opened;
    if (answerAs === 'stream') opened.commit();
    return opened;
  }

  // ---- GET and DELETE

  /** Opens or resumes the stream of a session. */
  get(request: IncomingMessage, response: ServerResponse): void {
    if (!acceptsStream(request.headers.accept)) {
      const message = 'The Accept header must list text/event-stream: that is what a GET opens.';
      return respondError(response, new BridgeError('ERR_HTTP_ACCEPT', message));
    }
    const session = this.#require(request);
    if (session instanceof BridgeError) return respondError(response, session);
    const lastEventId = request.headers[LAST_EVENT_ID_HEADER];
    const { peer } = session;
    const isResumption = typeof lastEventId === 'string';
    const error = isResumption ? peer.resumeStream(response, lastEventId) : peer.openGetStream(response);
    if (error !== undefined) respondError(response, error);
  }

  /** Ends a session. */
  delete(request: IncomingMessage, response: ServerResponse): void {
    const session = this.#require(request);
    if (session instanceof BridgeError) return respondError(response, session);
    session.relay.close(new BridgeError('ERR_SESSION_CLOSED', 'The client ended its session.'));
    respondEmpty(response, 204);
  }

  // ---- sessions

  #find(request: IncomingMessage): OpenSession | undefined {
    const id = request.headers[SESSION_ID_HEADER];
    const { sessions, principalOf } = this.#options;
    const session = typeof id === 'string' ? sessions.use(id, principalOf(request)) : undefined;
    // A session of another transport is not served here.
    return session?.peer instanceof StreamablePeer ? { peer: session.peer, relay: session.relay } : undefined;
  }

  #require(request: IncomingMessage): OpenSession | BridgeError {
    const version = request.headers[PROTOCOL_VERSION_HEADER];
    if (version !== undefined && findRevision(version) === undefined) return unsupportedVersion(version);
    if (request.headers[SESSION_ID_HEADER] === undefined) return SESSION_MISSING;
    // [spec 2025-11-25 transports#session-management] 404 makes the client open a new session.
    return (
      this.#find(request) ??
      new BridgeError('ERR_SESSION_UNKNOWN', 'This session does not exist (anymore); open a new one with initialize.')
    );
  }
}

const NONE: readonly JsonRpcId[] = [];

/** Returns the ids of the requests, if another replica may have to report on them later. */
function requestsIn(items: readonly BatchItem[], { isStored }: StreamablePeer): readonly JsonRpcId[] {
  if (!isStored) return NONE;
  return items.flatMap((item) => (item instanceof Frame && item.kind === 'request' ? (item.id ?? []) : []));
}

/**
 * Returns true if the content has a request. Answers and notifications belong to open calls, so they are taken at the
 * replica that runs these.
 */
function holdsRequest(messages: PostedMessages): boolean {
  return messages.kind === 'batch' ? countAnswers(messages.items) > 0 : messages.frame.kind === 'request';
}

function isInitialize(item: Frame | EnvelopeFault): item is Frame {
  return item instanceof Frame && item.kind === 'request' && item.method === INITIALIZE;
}
