import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Deps } from '../../deps.ts';
import { toBridgeError } from '../../errors.ts';
import { forwardedHeaders, parseAccept } from '../../http/headers.ts';
import { respondError } from '../../http/server/respond.ts';
import { type ModernRefusal, validateModern } from '../../mcp/classify/modern-request.ts';
import { MetadataReader } from '../../mcp/classify/request-metadata.ts';
import { isClientNotification, isModernRequest, LIST_TOOLS } from '../../mcp/vocabulary/methods.ts';
import { MODERN_REVISION_IDS } from '../../mcp/vocabulary/revisions.ts';
import { HEADER_MISMATCH } from '../../mcp/vocabulary/rpc-codes.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { CallRegistry, CallRequest } from '../../relay/call-registry.ts';
import type { CallerEnvironment } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { TurnGate } from '../http/read-post.ts';
import type { LiveStreams } from '../http/response-writer.ts';
import { Backlog, CallLane } from './call-lane.ts';
import { ListedTools } from './listed-tools.ts';
import { answerStatus, respondFrame, respondRefusal } from './respond.ts';

export interface StatelessEndpointOptions {
  readonly calls: CallRegistry;
  readonly live: LiveStreams;
  readonly deps: Pick<Deps, 'log'>;
  /** Names (lower case) of headers of a POST that may pass to a remote server. */
  readonly forwardHeaders: readonly string[];
  /** Returns who sent a request that was accepted. */
  readonly principalOf: (request: IncomingMessage) => string;
  /** What the process of a caller is told about it (`--map-header`). */
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

  /** Holds POSTs back while servers do not take what was read. */
  get gate(): TurnGate {
    return this.#backlog.gate;
  }

  /** Takes a request whose JSON was checked. Session and event ids among its headers mean nothing here. */
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
    const environment = this.#options.environmentOf(request);
    const headers = forwardedHeaders(request, this.#options.forwardHeaders);
    const call = {
      frame,
      transport: 'streamable-http',
      principal,
      metadata: checked.ok,
      environment,
      headers,
    } as const;
    this.#open(call, request, response);
  }

  /**
   * Takes a notification. Those of the specification mean nothing here: whose request a `notifications/cancelled` means
   * cannot be told, for ids of several clients may be the same. What extensions have to say passes, also without an
   * envelope: only requests must carry one. [spec 2026-07-28 basic#meta]
   */
  notify(frame: Frame, request: IncomingMessage): void {
    if (isClientNotification(frame.method ?? '')) return;
    const { calls, principalOf, environmentOf, forwardHeaders } = this.#options;
    const headers = forwardedHeaders(request, forwardHeaders);
    calls.notify(frame, { principal: principalOf(request), environment: environmentOf(request), headers });
  }

  #refuse(refusal: ModernRefusal, { id }: Frame, response: ServerResponse): void {
    this.#options.deps.log.debug({ code: refusal.code }, `modern request refused: ${refusal.message}`);
    respondRefusal(response, refusal, id);
  }

  #open(call: CallRequest, request: IncomingMessage, response: ServerResponse): void {
    const { calls, live } = this.#options;
    const { frame, principal, headers } = call;
    try {
      calls.open(
        call,
        (listener) =>
          new CallLane({
            method: frame.method ?? '',
            requestBytes: frame.bytes.length,
            response,
            listener,
            live,
            backlog: this.#backlog,
            onAnswer: frame.method === LIST_TOOLS ? (answer) => this.#tools.note(principal, answer) : undefined,
            forwarded: headers,
            answerAs: parseAccept(request.headers.accept).prefersEventStream ? 'stream' : 'json',
          }),
      );
    } catch (thrown) {
      this.#failed(thrown, frame, response);
    }
  }

  /** What is wrong with the server is an answer to the request; what is wrong with the bridge is a refusal of it. */
  #failed(thrown: unknown, { id, method }: Frame, response: ServerResponse): void {
    const error = toBridgeError(thrown);
    if (error.code === 'ERR_INTERNAL') this.#options.deps.log.error({ err: error.cause }, error.message);
    if (!error.code.startsWith('ERR_UPSTREAM_')) return respondError(response, error, id);
    const answer = errorFrame(id, rpcErrorOf(error));
    respondFrame(response, answerStatus(method ?? '', answer), answer);
  }
}
