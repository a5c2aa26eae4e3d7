import type { IncomingMessage, ServerResponse } from 'node:http';
import { BridgeError } from '../errors.ts';
import { acceptsStream, readAccept } from '../http/headers.ts';
import { respondEmpty, respondError } from '../http/server/respond.ts';
import { namesModern, routeEra } from '../mcp/classify/route-era.ts';
import { SESSION_ID_HEADER } from '../mcp/vocabulary/headers.ts';
import type { Frame } from '../wire/frame.ts';
import { idOf, type PostedMessages, readInTurn, type TurnGate, type TurnLimits } from './http/read-post.ts';
import type { HttpRoute } from './listener/http-server.ts';
import type { Placement } from './placement.ts';
import type { StreamableEndpoint } from './streamable-session/endpoint.ts';
import { respondRefusal } from './streamable-stateless/call-lane.ts';
import type { StatelessEndpoint } from './streamable-stateless/endpoint.ts';

export interface McpEndpointOptions {
  /** Serves clients of the legacy era. */
  readonly sessions: StreamableEndpoint;
  /** Serves clients of the modern era. */
  readonly stateless: StatelessEndpoint;
  /** Limits of POST bodies. */
  readonly bodies: TurnLimits;
  /**
   * Serves a GET without a session, which is how an old client opens HTTP+SSE at this URL. Undefined: such a GET is
   * rejected.
   */
  readonly openWithoutSession: HttpRoute | undefined;
  /** Finds the replica that serves a message; undefined: every message is served here. */
  readonly placement: Placement | undefined;
}

/**
 * The MCP endpoint for clients of every era at one URL. The headers and the body of a POST decide which endpoint serves
 * it; GET and DELETE belong to the legacy era. [spec 2026-07-28 transports/streamable-http#backward-compatibility]
 */
export class McpEndpoint {
  readonly #options: McpEndpointOptions;

  constructor(options: McpEndpointOptions) {
    this.#options = options;
  }

  readonly route: HttpRoute = (request, response, query) => {
    switch (request.method) {
      case 'POST':
        return this.#post(request, response);
      case 'GET':
        return this.#get(request, response, query);
      case 'DELETE':
        if (isModernCaller(request)) return refuseMethod(response);
        return this.#options.sessions.delete(request, response);
      default:
        return refuseMethod(response);
    }
  };

  #get(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): void {
    if (request.headers[SESSION_ID_HEADER] !== undefined) return this.#options.sessions.get(request, response);
    const { openWithoutSession } = this.#options;
    const { accept } = request.headers;
    // A request without an Accept header, such as a WebSocket handshake, does not come from an HTTP+SSE client.
    const isOld = accept !== undefined && acceptsStream(accept) && !isModernCaller(request);
    if (openWithoutSession === undefined || !isOld) return refuseMethod(response);
    openWithoutSession(request, response, query);
  }

  #post(request: IncomingMessage, response: ServerResponse): void {
    const unacceptable = checkAccept(request);
    if (unacceptable !== undefined) return respondError(response, unacceptable);
    readInTurn({
      request,
      response,
      limits: this.#options.bodies,
      gate: this.#gateOf(request),
      accepted: (messages) => this.#accept(messages, request, response),
    });
  }

  /**
   * Chooses the gate by the headers, since the body has not been read yet. Honest clients name their session or era
   * there.
   */
  #gateOf(request: IncomingMessage): TurnGate | undefined {
    const isOfSession = request.headers[SESSION_ID_HEADER] !== undefined && !namesModern(request.headers);
    return isOfSession ? this.#options.sessions.gateOf(request) : this.#options.stateless.gate;
  }

  /** Serves a message without a session at the replica that holds what it continues. */
  #serve(frame: Frame, request: IncomingMessage, response: ServerResponse, serve: () => void): void {
    const { placement } = this.#options;
    if (placement === undefined) serve();
    else placement.place({ kind: 'message', frame }, { request, response, serve });
  }

  #accept(messages: PostedMessages, request: IncomingMessage, response: ServerResponse): void {
    // The client may have left while its message waited.
    if (response.destroyed) return;
    const { stateless, sessions } = this.#options;
    const route = routeEra(messages.kind === 'message' ? messages.frame : messages.items, request.headers);
    switch (route.kind) {
      case 'modern':
        if (messages.kind !== 'message') return;
        return this.#serve(messages.frame, request, response, () => stateless.take(messages.frame, request, response));
      case 'modern-notification':
        if (messages.kind !== 'message') return respondEmpty(response, 202);
        return this.#serve(messages.frame, request, response, () => {
          stateless.notify(messages.frame, request);
          // A notification has no result that the client waits for.
          respondEmpty(response, 202);
        });
      case 'sessionless':
        if (messages.kind !== 'message' || messages.frame.isResponse)
          return sessions.accept(messages, request, response);
        return this.#serve(messages.frame, request, response, () =>
          stateless.takeSessionless(messages.frame, request, response),
        );
      case 'refused':
        return respondRefusal(response, route.refusal, idOf(messages));
      case 'batch':
        if (isModernCaller(request)) return respondError(response, MODERN_BATCH);
        return sessions.accept(messages, request, response);
      default:
        return sessions.accept(messages, request, response);
    }
  }
}

/** Returns true if the headers name a modern revision and no session. */
function isModernCaller(request: IncomingMessage): boolean {
  return request.headers[SESSION_ID_HEADER] === undefined && namesModern(request.headers);
}

function refuseMethod(response: ServerResponse): void {
  const error = new BridgeError('ERR_HTTP_METHOD', 'Only GET (with a session), POST and DELETE are served here.');
  respondError(response, error, undefined, { Allow: 'GET, POST, DELETE' });
}

const MODERN_BATCH = new BridgeError(
  'ERR_WIRE_BATCH',
  'An array of messages is not part of the revision that MCP-Protocol-Version names; send each message in a POST of its own.',
);

/**
 * Returns the error of a POST whose Accept header allows neither JSON nor an event stream. The specification requires
 * both types in it; a client that names only one gets its answers as that type. [spec 2025-11-25
 * transports#sending-messages-to-the-server]
 */
export function checkAccept(request: IncomingMessage): BridgeError | undefined {
  if (readAccept(request.headers.accept) !== 'neither') return undefined;
  return new BridgeError(
    'ERR_HTTP_ACCEPT',
    'The Accept header allows neither application/json nor text/event-stream; list both, or leave it out.',
  );
}
