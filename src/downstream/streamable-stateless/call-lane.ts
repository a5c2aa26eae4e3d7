import type { ServerResponse } from 'node:http';
import { ListMember } from '../../collections/short-lived-values.ts';
import { type AnswerType, JSON_TYPE, traceContextOf } from '../../http/headers.ts';
import { noteRefusal } from '../../http/server/respond.ts';
import type { ModernRefusal } from '../../mcp/classify/route-era.ts';
import { modernHttpStatus } from '../../mcp/translate/errors.ts';
import type { TraceContext } from '../../mcp/vocabulary/meta.ts';
import { DISCOVER } from '../../mcp/vocabulary/methods.ts';
import { parseSpan } from '../../mcp/vocabulary/payload.ts';
import { HEADER_MISMATCH } from '../../mcp/vocabulary/rpc-codes.ts';
import { failureToldBy } from '../../mcp/vocabulary/rpc-errors.ts';
import type { CallListener, CallPeer } from '../../relay/modern-call.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { findUniqueMember } from '../../wire/json/outline.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { type EventStreamOwner, EventStreamWriter } from '../http/event-stream-writer.ts';
import { TurnGate } from '../http/read-post.ts';
import { endWith, type LiveStreams, ResponseWriter, type Ticking } from '../http/response-writer.ts';
import { COMMIT_AFTER_MS } from '../streamable-session/post-lane.ts';

export interface CallLaneOptions {
  readonly method: string;
  readonly requestBytes: number;
  readonly response: ServerResponse;
  readonly live: LiveStreams;
  readonly backlog: Backlog;
  /** Headers of the POST that may be forwarded to a remote server. */
  readonly forwarded: Readonly<Record<string, string>> | undefined;
  /** Format of an answer that comes before any other message. */
  readonly answerAs: AnswerType;
  /** Called with the response before it is sent to the client. */
  readonly onAnswer: ((answer: Frame) => void) | undefined;
  /** Translates messages for a client of the legacy era; undefined: the client is of the modern era. */
  readonly toClient: ToClient | undefined;
}

/** Translates a message for a client of the legacy era. */
export type ToClient = (frame: Frame) => Frame;

/**
 * - `held`: nothing was sent. The response becomes JSON if the answer comes first, and a stream otherwise.
 * - `streaming`: an event stream that ends with the answer.
 * - `unread`: answered in JSON, which the client has not read completely yet.
 * - `ended`: answered, or the client left.
 */
type LaneState =
  | { readonly kind: 'held' }
  | { readonly kind: 'streaming'; readonly stream: EventStreamWriter }
  | { readonly kind: 'unread'; readonly writer: ResponseWriter }
  | { readonly kind: 'ended' };

/** Listens where nobody has to: a ping is answered at once, so its client cannot leave before the answer. */
const NO_LISTENER: CallListener = { clientDrained: () => {}, clientLeft: () => {} };

const HELD: LaneState = { kind: 'held' };
const ENDED: LaneState = { kind: 'ended' };

/**
 * The HTTP response of one modern request. It has no state beyond its connection: events have no ids, and a client that
 * disconnects cancels its request. [spec 2026-07-28 transports/streamable-http#receiving-messages]
 */
export class CallLane extends ListMember implements CallPeer, EventStreamOwner, Ticking {
  readonly headers: Readonly<Record<string, string>> | undefined;
  listener: CallListener = NO_LISTENER;
  readonly #options: CallLaneOptions;
  readonly #openedAtMs: number;
  #state: LaneState = HELD;
  /** True while the request counts in the backlog. */
  #isWaiting = false;

  constructor(options: CallLaneOptions) {
    super();
    this.headers = options.forwarded;
    this.#options = options;
    this.#openedAtMs = options.live.nowMs;
    options.response.on('close', () => this.#disconnected());
    options.live.add(this);
    if (options.answerAs === 'stream' && !this.#isDiscovery) this.#commit();
  }

  get traceHeaders(): TraceContext | undefined {
    return traceContextOf(this.#options.response.req.headers);
  }

  get isOpen(): boolean {
    return this.#state.kind === 'held' || this.#state.kind === 'streaming';
  }

  /**
   * True for `server/discover`. Its HTTP status shows the outcome, so it must not become a stream, which would commit
   * to a status before the outcome is known.
   */
  get #isDiscovery(): boolean {
    return this.#options.method === DISCOVER;
  }

  // ---- toward the client

  send(said: Frame): boolean {
    const { onAnswer, toClient } = this.#options;
    const frame = toClient === undefined ? said : toClient(said);
    if (frame.isResponse) onAnswer?.(frame);
    if (this.#state.kind === 'held') {
      if (frame.isResponse && this.#travelsAsJson(frame)) return this.#answerJson(frame);
      // A client that reads only JSON gets the answer and no other message.
      if (this.#options.answerAs === 'only-json') return true;
      this.#commit();
    }
    if (this.#state.kind !== 'streaming') return true;
    const { stream } = this.#state;
    const hasCapacity = stream.send(frame.bytes);
    // [spec 2026-07-28 transports/streamable-http#receiving-messages] the response should terminate the stream.
    if (frame.isResponse) this.#endStream(stream);
    return hasCapacity;
  }

  #travelsAsJson(answer: Frame): boolean {
    return this.#options.answerAs !== 'stream' || answer.kind === 'error';
  }

  #answerJson(answer: Frame): boolean {
    const { method, response, live, toClient } = this.#options;
    const status = toClient === undefined ? answerStatus(method, answer) : 200;
    response.writeHead(status, { 'Content-Type': JSON_TYPE, 'Content-Length': answer.bytes.length });
    // The call is over, so nothing waits for capacity.
    const writer = endWith(response, answer.bytes, () => new ResponseWriter(response, live.nowMs, () => {}));
    if (writer === undefined) this.#end();
    else this.#state = { kind: 'unread', writer };
    return writer?.isFull !== true;
  }

  #commit(): void {
    const { response, live } = this.#options;
    this.unlink();
    this.#state = { kind: 'streaming', stream: new EventStreamWriter(response, live, this) };
  }

  #endStream(stream: EventStreamWriter): void {
    this.#state = ENDED;
    stream.end();
  }

  #end(): void {
    this.#state = ENDED;
    this.unlink();
  }

  get unsentBytes(): number {
    return this.#state.kind === 'unread' ? this.#state.writer.queuedBytes : 0;
  }

  tick(nowMs: number): void {
    if (this.#state.kind === 'unread') return this.#state.writer.tick(nowMs);
    const mayCommit = this.#options.answerAs !== 'only-json' && !this.#isDiscovery;
    if (this.#state.kind === 'held' && mayCommit && nowMs - this.#openedAtMs >= COMMIT_AFTER_MS) this.#commit();
  }

  // ---- from the client

  streamDrained(): void {
    this.listener.clientDrained();
  }

  /** Handled by the 'close' event of the response, which is also emitted if no stream was opened. */
  streamClosed(): void {}

  #disconnected(): void {
    this.#end();
    // Has no effect on a call that was answered.
    this.listener.clientLeft();
  }

  // ---- from the server

  pause(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#options.backlog.add(this.#options.requestBytes);
  }

  resume(): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#options.backlog.remove(this.#options.requestBytes);
  }
}

/** While this many bytes wait for servers to take them, further bodies stay unread. */
export const MAX_BACKLOG_BYTES = 8 * 1024 * 1024;

/**
 * Counts requests that were read but not taken by their server yet. A modern client sends nothing more for the same
 * call, so there is nothing of it to hold back; later calls are held back instead.
 */
export class Backlog {
  readonly gate = new TurnGate();
  #bytes = 0;

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes >= MAX_BACKLOG_BYTES) this.gate.close('server');
  }

  remove(bytes: number): void {
    this.#bytes -= bytes;
    if (this.#bytes < MAX_BACKLOG_BYTES) this.gate.open('server');
  }
}

/** Responds in JSON, if no response has started. */
export function respondFrame(response: ServerResponse, status: number, { bytes }: Frame): void {
  response.writeHead(status, { 'Content-Type': JSON_TYPE, 'Content-Length': bytes.length }).end(bytes);
}

/** Rejects a message of a modern client. If it has no readable id, the error has none. */
export function respondRefusal(response: ServerResponse, refusal: ModernRefusal, id: JsonRpcId | undefined): void {
  const { httpStatus, code, message, data } = refusal;
  // Other refusals are part of the protocol, such as the answer to an unknown method. Headers that do not fit the body are
  // a mistake of the client, or of a proxy on the way.
  if (code === HEADER_MISMATCH) noteRefusal(response, 'ERR_HTTP_HEADER');
  respondFrame(response, httpStatus, errorFrame(id, { code, message: `The request was refused: ${message}.`, data }));
}

/** Returns the HTTP status of an answer that travels as JSON. */
export function answerStatus(method: string, answer: Frame): number {
  if (answer.kind === 'result') return 200;
  return (method === DISCOVER ? failureStatus(answer) : undefined) ?? modernHttpStatus(readCode(answer));
}

/**
 * Returns the HTTP status for a failure of the bridge in `server/discover`. Clients that probe for the era take nearly
 * every error as the sign of a legacy server, but not a status of 500 and above, so a bridge that cannot reach its
 * server uses one. Undefined: the error is the server's own.
 */
function failureStatus(answer: Frame): number | undefined {
  const failure = failureToldBy(answer);
  if (failure === undefined) return undefined;
  const { http } = failure.audiences;
  return http !== undefined && http >= 500 ? http : BAD_GATEWAY;
}

const BAD_GATEWAY = 502;

function readCode({ bytes, payloadStart, outline }: Frame): number {
  const span = findUniqueMember(bytes, payloadStart, 'code', outline);
  const code = span === undefined || span === 'duplicate' ? undefined : parseSpan(bytes, span);
  return typeof code === 'number' ? code : 0;
}
