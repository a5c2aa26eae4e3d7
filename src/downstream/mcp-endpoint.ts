import type { IncomingMessage, ServerResponse } from 'node:http';
import { BridgeError } from '../errors.ts';
import { parseAccept } from '../http/headers.ts';
import { respondEmpty, respondError } from '../http/server/respond.ts';
import { namesModern, routeEra } from '../mcp/classify/route-era.ts';
import { SESSION_ID_HEADER } from '../mcp/vocabulary/headers.ts';
import type { Frame } from '../wire/frame.ts';
import { idOf, type PostedMessages, readInTurn, type TurnGate, type TurnLimits } from './http/read-post.ts';
import type { HttpRoute } from './listener/http-server.ts';
import type { StreamableEndpoint } from './streamable-session/endpoint.ts';
import { respondRefusal } from './streamable-stateless/call-lane.ts';
import type { StatelessEndpoint } from './streamable-stateless/endpoint.ts';

export interface McpEndpointOptions {
  /** Serves clients of the legacy era. */
  readonly sessions: StreamableEndpoint;
  /** Serves clients of the modern era. */
  readonly stateless: StatelessEndpoint;
  /** What bodies of POSTs may hold. */
  readonly bodies: TurnLimits;
  /** Takes a GET without a session: an old client opening HTTP+SSE at this URL. Undefined: that is not served. */
  readonly openWithoutSession: HttpRoute | undefined;
  /** Where requests without a session are served; undefined: here. */
  readonly routeCall: RouteCall | undefined;
}

/**
 * The MCP endpoint for clients of every era at one URL. What a POST says of itself decides who serves it; GET and
 * DELETE are of the legacy era only. [spec 2026-07-28 transports/streamable-http#backward-compatibility]
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
    const { eventStream } = parseAccept(request.headers.accept ?? '');
    if (openWithoutSession === undefined || !eventStream || isModernCaller(request)) return refuseMethod(response);
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

  /** Whose messages go before this one is not known before its body was read; its headers tell it of honest clients. */
  #gateOf(request: IncomingMessage): TurnGate | undefined {
    if (namesModern(request.headers)) return this.#options.stateless.gate;
    return this.#options.sessions.gateOf(request);
  }

  #takeModern(frame: Frame, request: IncomingMessage, response: ServerResponse): void {
    const { stateless, routeCall } = this.#options;
    if (routeCall === undefined) return stateless.take(frame, request, response);
    routeCall({ frame, request, response, serve: () => stateless.take(frame, request, response) });
  }

  /** Nobody waits for what becomes of it. */
  #notify(frame: Frame, request: IncomingMessage, response: ServerResponse): void {
    const { stateless, routeCall } = this.#options;
    const serve = (): void => {
      stateless.notify(frame, request);
      respondEmpty(response, 202);
    };
    if (routeCall === undefined) serve();
    else routeCall({ frame, request, response, serve });
  }

  #accept(messages: PostedMessages, request: IncomingMessage, response: ServerResponse): void {
    // The client may have left while its message waited.
    if (response.destroyed) return;
    const route = routeEra(messages.kind === 'message' ? messages.frame : messages.items, request.headers);
    switch (route.kind) {
      case 'modern':
        if (messages.kind === 'message') this.#takeModern(messages.frame, request, response);
        return;
      case 'modern-notification':
        if (messages.kind === 'message') return this.#notify(messages.frame, request, response);
        return respondEmpty(response, 202);
      case 'refused':
        return respondRefusal(response, route.refusal, idOf(messages));
      case 'batch':
        if (isModernCaller(request)) return respondError(response, MODERN_BATCH);
        return this.#options.sessions.accept(messages, request, response);
      default:
        return this.#options.sessions.accept(messages, request, response);
    }
  }
}

/** Modern by its header, without a session that says otherwise. */
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

/** What is wrong with the Accept header of a POST to the MCP endpoint, the same in every revision. */
export function checkAccept(request: IncomingMessage): BridgeError | undefined {
  const accept = parseAccept(request.headers.accept ?? '');
  if (accept.json && accept.eventStream) return undefined;
  return new BridgeError(
    'ERR_HTTP_ACCEPT',
    'The Accept header must list both application/json and text/event-stream: an answer may come as either.',
  );
}

/** A request of the modern era whose body was read, and that may have to be served elsewhere. */
export interface RoutedCall {
  readonly frame: Frame;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Serves it here. */
  readonly serve: () => void;
}

/** Leads requests without a session to the replica where what they continue is. */
export type RouteCall = (call: RoutedCall) => void;
