import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { readAccept } from '../../http/headers.ts';
import { respondEmpty, respondError } from '../../http/server/respond.ts';
import { checkParamHeaders } from '../../mcp/classify/param-headers.ts';
import { MetadataReader } from '../../mcp/classify/request-metadata.ts';
import { type ModernRefusal, validateModern } from '../../mcp/classify/route-era.ts';
import { type ListedTool, readToolPage } from '../../mcp/classify/tool-list.ts';
import { toModernRequest, toSessionlessAnswer, UNDECLARED } from '../../mcp/translate/sessionless.ts';
import {
  decodeHeaderValue,
  type HeaderMap,
  NAME_HEADER,
  PROTOCOL_VERSION_HEADER,
} from '../../mcp/vocabulary/headers.ts';
import {
  CALL_TOOL,
  isClientNotification,
  isModernRequest,
  isSelfContained,
  LIST_TOOLS,
  LISTEN,
  PING,
} from '../../mcp/vocabulary/methods.ts';
import { ASSUMED_REVISION, findRevision, MODERN_REVISION_IDS } from '../../mcp/vocabulary/revisions.ts';
import { HEADER_MISMATCH, INVALID_PARAMS } from '../../mcp/vocabulary/rpc-codes.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import { PARAM_HEADER_KEYWORD } from '../../mcp/vocabulary/schema-keywords.ts';
import type { Lane } from '../../relay/call.ts';
import type { CallRegistry, CallRequest } from '../../relay/call-registry.ts';
import type { CallerEnvironment } from '../../relay/ports.ts';
import { ToolCatalog } from '../../relay/tool-catalog.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';
import type { TurnGate } from '../http/read-post.ts';
import type { LiveStreams } from '../http/response-writer.ts';
import { SESSION_MISSING, unsupportedVersion } from '../streamable-session/refusals.ts';
import {
  answerStatus,
  Backlog,
  CallLane,
  type CallLaneOptions,
  respondFrame,
  respondRefusal,
  type ToClient,
} from './call-lane.ts';

export interface StatelessEndpointOptions {
  readonly modernCalls: CallRegistry;
  readonly live: LiveStreams;
  readonly deps: Pick<Deps, 'log'>;
  /** The headers that pass to a remote server with the message of a POST. */
  readonly headersOf: (request: IncomingMessage) => Lane['headers'];
  /** Returns who sent a request that was accepted. */
  readonly principalOf: (request: IncomingMessage) => string;
  /** Returns the environment variables that the caller's server process gets from headers (`--map-header`). */
  readonly environmentOf: (request: IncomingMessage) => CallerEnvironment | undefined;
}

/**
 * The MCP endpoint for clients without a session: Streamable HTTP of 2026-07-28. Each POST is a call of its own that
 * says everything about itself. [spec 2026-07-28 transports/streamable-http]
 */
export class StatelessEndpoint {
  readonly #options: StatelessEndpointOptions;
  readonly #backlog = new Backlog();
  readonly #tools = new ListedTools();
  readonly #reader = new MetadataReader();

  constructor(options: StatelessEndpointOptions) {
    this.#options = options;
  }

  /** Holds POSTs back while servers do not take the requests that were read. */
  get gate(): TurnGate {
    return this.#backlog.gate;
  }

  /** Serves a request whose JSON was checked. Session and event ids in its headers are ignored. */
  take(frame: Frame, request: IncomingMessage, response: ServerResponse): void {
    const checked = validateModern({
      frame,
      headers: request.headers,
      supportedRevisions: MODERN_REVISION_IDS,
      isKnownMethod: isModernRequest,
      reader: this.#reader,
    });
    if (!('ok' in checked)) return this.#refuse(checked, frame, response);
    const principal = this.#options.principalOf(request);
    const mismatch = this.#tools.findFault(principal, frame, request.headers);
    if (mismatch !== undefined) {
      return this.#refuse({ httpStatus: 400, code: HEADER_MISMATCH, message: mismatch }, frame, response);
    }
    if (frame.method === LISTEN && readAccept(request.headers.accept) === 'only-json') {
      return respondError(response, STREAM_NEEDED, frame.id);
    }
    this.#open({ ...this.#callerOf(request), frame, metadata: checked.ok }, request, response);
  }

  /**
   * Serves a request or a notification of a legacy client without a session. Some clients never send their session id
   * again; methods that do not depend on a session are served to them all the same.
   */
  takeSessionless(frame: Frame, request: IncomingMessage, response: ServerResponse): void {
    const version = request.headers[PROTOCOL_VERSION_HEADER];
    const revision = findRevision(version ?? ASSUMED_REVISION);
    if (revision === undefined) return respondError(response, unsupportedVersion(version), frame.id);
    // Without a session a notification refers to nothing.
    if (frame.kind === 'notification') return respondEmpty(response, 202);
    const { id, method = '' } = frame;
    if (method === PING) return this.#answerPing(frame, request, response);
    if (!isSelfContained(method)) return respondError(response, SESSION_MISSING, id);
    const sent = toModernRequest(frame);
    if (sent === undefined) return respondFrame(response, 200, errorFrame(id, NO_OBJECT));
    const introduction = { era: 'legacy', revision: revision.id, name: undefined, version: undefined } as const;
    const call = { ...this.#callerOf(request), frame: sent, metadata: UNDECLARED, introduction };
    this.#open(call, request, response, (answer) => toSessionlessAnswer(answer, frame, revision.id));
  }

  #answerPing({ id, method = '', bytes }: Frame, request: IncomingMessage, response: ServerResponse): void {
    const lane = this.#createLane({ method, requestBytes: bytes.length }, request, response);
    lane.send(resultFrame(id as JsonRpcId, {})); // a request has an id
  }

  #callerOf(request: IncomingMessage): Pick<CallRequest, 'transport' | 'principal' | 'environment' | 'headers'> {
    const { principalOf, environmentOf, headersOf } = this.#options;
    return {
      transport: 'streamable-http',
      principal: principalOf(request),
      environment: environmentOf(request),
      headers: headersOf(request),
    };
  }

  /**
   * Passes on a notification, if it belongs to an extension. Those of the specification have no effect here: a
   * `notifications/cancelled` cannot be attributed, since several clients may use the same request ids. An envelope is
   * not required, as only requests must carry one. [spec 2026-07-28 basic#meta]
   */
  notify(frame: Frame, request: IncomingMessage): void {
    if (isClientNotification(frame.method ?? '')) return;
    this.#options.modernCalls.notify(frame, this.#callerOf(request));
  }

  #refuse(refusal: ModernRefusal, { id }: Frame, response: ServerResponse): void {
    this.#options.deps.log.debug({ code: refusal.code }, `modern request refused: ${refusal.message}`);
    respondRefusal(response, refusal, id);
  }

  #open(call: CallRequest, request: IncomingMessage, response: ServerResponse, toClient?: ToClient): void {
    const { frame, principal, headers: forwarded } = call;
    const { method = '' } = frame;
    const isModern = toClient === undefined;
    const onAnswer =
      isModern && method === LIST_TOOLS ? (answer: Frame) => this.#tools.note(principal, answer) : undefined;
    try {
      this.#options.modernCalls.open(call, () =>
        this.#createLane(
          { method, requestBytes: frame.bytes.length, onAnswer, forwarded, toClient },
          request,
          response,
        ),
      );
    } catch (thrown) {
      this.#failed(thrown, frame, response);
    }
  }

  #createLane(
    call: Pick<CallLaneOptions, 'method' | 'requestBytes'> & Partial<CallLaneOptions>,
    request: IncomingMessage,
    response: ServerResponse,
  ): CallLane {
    return new CallLane({
      onAnswer: undefined,
      forwarded: undefined,
      toClient: undefined,
      ...call,
      response,
      live: this.#options.live,
      backlog: this.#backlog,
      answerAs: readAccept(request.headers.accept),
    });
  }

  /**
   * Responds to a call that could not be opened. An ERR_UPSTREAM_* error is the answer to the request; any other error
   * rejects it.
   */
  #failed(thrown: unknown, { id, method }: Frame, response: ServerResponse): void {
    const error = toBridgeError(thrown);
    if (error.code === 'ERR_INTERNAL') this.#options.deps.log.error({ err: error.cause }, error.message);
    if (!error.code.startsWith('ERR_UPSTREAM_')) return respondError(response, error, id);
    const answer = errorFrame(id, rpcErrorOf(error));
    respondFrame(response, answerStatus(method ?? '', answer), answer);
  }
}

const STREAM_NEEDED = new BridgeError(
  'ERR_HTTP_ACCEPT',
  'A subscription is an event stream, and the Accept header does not allow one; list text/event-stream in it.',
);
const NO_OBJECT = { code: INVALID_PARAMS, message: 'params must be an object.' };

/** Callers whose tools are remembered. Beyond it, the one that listed its tools longest ago is dropped. */
const MAX_CALLERS = 256;

const KEYWORD = Buffer.from(`"${PARAM_HEADER_KEYWORD}"`);

/**
 * The parameter headers of the tools that each caller has listed, read from the results that pass. A proxy that routes
 * by such a header must not be told something else than the tool. Tools that were never listed here are not checked.
 * [spec 2026-07-28 transports/streamable-http#server-behavior-for-custom-headers]
 */
export class ListedTools {
  readonly #callers = new Map<string, ToolCatalog>();

  /** Records the answer to a `tools/list` request of this caller. */
  note(principal: string, answer: Frame): void {
    const known = this.#callers.get(principal);
    // Most servers name no headers, which a native search over the bytes shows at once.
    if (answer.kind !== 'result' || (known === undefined && !answer.bytes.includes(KEYWORD))) return;
    const tools = known ?? new ToolCatalog(wantsHeaders);
    tools.add(readToolPage(answer)?.tools ?? []);
    this.#callers.delete(principal);
    if (tools.size > 0) this.#remember(principal, tools);
  }

  #remember(principal: string, tools: ToolCatalog): void {
    const [oldest] = this.#callers.keys();
    if (oldest !== undefined && this.#callers.size >= MAX_CALLERS) this.#callers.delete(oldest);
    this.#callers.set(principal, tools);
  }

  /**
   * Returns the fault of a request's parameter headers; its other headers were checked before. Undefined: there is
   * none.
   */
  findFault(principal: string, request: Frame, headers: HeaderMap): string | undefined {
    if (request.method !== CALL_TOOL) return undefined;
    const tools = this.#callers.get(principal);
    const name = headers[NAME_HEADER];
    if (tools === undefined || typeof name !== 'string') return undefined;
    // The header was checked to name the same tool as the body.
    const tool = tools.find(decodeHeaderValue(name) ?? '');
    return tool && checkParamHeaders(tool.annotations.headers, request, headers);
  }
}

/**
 * Returns true if the tool names headers. No client may use a tool with invalid annotations, so those are not checked.
 */
function wantsHeaders({ annotations }: ListedTool): boolean {
  return !('invalid' in annotations) && annotations.headers.length > 0;
}
