import type { ServerResponse } from 'node:http';
import { type LinkedList, ListMember } from '../../collections/short-lived-values.ts';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { type AnswerType, JSON_TYPE, traceContextOf } from '../../http/headers.ts';
import { respondEmpty } from '../../http/server/respond.ts';
import { SESSION_ID_HEADER_OUT } from '../../mcp/vocabulary/headers.ts';
import type { TraceContext } from '../../mcp/vocabulary/meta.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Lane } from '../../relay/call.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, joinArray } from '../../wire/write-message.ts';
import { MAX_COLLECTED_BYTES } from '../batch.ts';
import { endWith, ResponseWriter, type Ticking } from '../http/response-writer.ts';
import type { ResumableStream } from './resumable-stream.ts';

/** A call without messages for this long gets its stream, so that proxies see a live connection. */
export const COMMIT_AFTER_MS = 5000;
/**
 * Limit used instead where another replica may continue the session: only a client that has a stream can come back for
 * its answer.
 */
export const COMMIT_STORED_AFTER_MS = 250;

const TOO_MUCH_TOGETHER = rpcErrorOf(
  new BridgeError(
    'ERR_WIRE_BATCH',
    'The answers to this array are too large to be collected, and its client reads no event stream; send each message by itself.',
  ),
);

/** The session of a lane, as the lane uses it. */
export interface LaneOwner {
  openStream(lane: PostLane): ResumableStream;
  /** The open lanes of the session; each is ticked while it is in this list. */
  readonly lanes: LinkedList<SessionLane>;
  /** A call without messages for this long gets its stream. */
  readonly commitAfterMs: number;
  /** Time at which the client's last connection closed; see `Lane`. */
  readonly lostAtMs: number | undefined;
  readonly nowMs: number;
  streamEnded(stream: ResumableStream): void;
  /** The lane has capacity again after `send` has returned false. */
  laneDrained(lane: PostLane): void;
}

export interface PostLaneOptions {
  readonly response: ServerResponse;
  /** Answers the client waits for. */
  readonly expected: number;
  /** Ids of the requests, if another replica may have to report on them; otherwise empty. */
  readonly requests: readonly JsonRpcId[];
  /** The body was an array, so a JSON answer is one too. [spec 2025-03-26 transports] */
  readonly batch: boolean;
  /** Id of the session that this POST opens. It is sent only with a result. */
  readonly newSessionId: string | undefined;
  /** Headers of the POST that may be forwarded to a remote server. */
  readonly forwarded: Readonly<Record<string, string>> | undefined;
  /** Format of an answer that comes before any other message. */
  readonly answerAs: AnswerType;
  /** Called when the client left before its answer, and has no event id by which it could ask for it. */
  readonly onLost: () => void;
}

/**
 * - `held`: nothing was sent. The response becomes JSON if the answers come first, and a stream otherwise.
 * - `streaming`: an SSE stream, which outlives its connection.
 * - `unread`: answered in JSON, which the client has not read completely yet.
 * - `ended`: answered, or the client left before anything was sent.
 */
type LaneState =
  | { readonly kind: 'held' }
  | { readonly kind: 'streaming'; readonly stream: ResumableStream }
  | { readonly kind: 'unread'; readonly writer: ResponseWriter }
  | { readonly kind: 'ended' };

const HELD: LaneState = { kind: 'held' };
const ENDED: LaneState = { kind: 'ended' };

/** Carries the messages of one POST's calls to a client with a session. */
export interface SessionLane extends Lane, Ticking {
  readonly isConnected: boolean;
  /** False: the client reads only JSON, so the lane carries only answers. */
  readonly isStream: boolean;
  /** Sends a message. The lane ends after the last expected response. False: full. */
  send(frame: Frame): boolean;
  /** Called when one of the expected answers will not come. */
  release(): void;
  /** The call continues at another replica, where the client resumes it. Only the connection ends here. */
  leave(): void;
}

/** The HTTP response of one POST that carried requests. */
export class PostLane extends ListMember implements SessionLane {
  readonly #response: ServerResponse;
  readonly #owner: LaneOwner;
  readonly #options: PostLaneOptions;
  readonly #openedAtMs: number;
  readonly #collected: Frame[] = [];
  #collectedBytes = 0;
  #expected: number;
  #state: LaneState = HELD;

  constructor(owner: LaneOwner, options: PostLaneOptions) {
    super();
    this.#options = options;
    this.#response = options.response;
    this.#owner = owner;
    this.#expected = options.expected;
    this.#openedAtMs = owner.nowMs;
    this.#response.on('close', () => this.#disconnected());
    owner.lanes.add(this);
  }

  get requests(): readonly JsonRpcId[] {
    return this.#options.requests;
  }

  get headers(): Readonly<Record<string, string>> | undefined {
    return this.#options.forwarded;
  }

  get traceHeaders(): TraceContext | undefined {
    return traceContextOf(this.#response.req.headers);
  }

  get lostAtMs(): number | undefined {
    return this.#owner.lostAtMs;
  }

  get isOpen(): boolean {
    return this.#state.kind === 'held' || this.#state.kind === 'streaming';
  }

  /** True while nothing was sent. */
  get isHeld(): boolean {
    return this.#state.kind === 'held';
  }

  get isConnected(): boolean {
    return this.#state.kind === 'held' || (this.#state.kind === 'streaming' && this.#state.stream.isConnected);
  }

  get isStream(): boolean {
    return this.#options.answerAs !== 'only-json';
  }

  /** Sends a message. The lane ends after the last expected response. False: full. */
  send(frame: Frame): boolean {
    if (frame.isResponse) this.#expected -= 1;
    if (this.#state.kind === 'held') {
      if (frame.isResponse && this.#travelsAsJson(frame)) return this.#collect(frame);
      this.#commit(frame.kind !== 'error');
    }
    return this.#stream(frame);
  }

  /** Called when one of the expected answers will not come. */
  release(): void {
    this.#expected -= 1;
    if (this.#expected > 0) return;
    if (this.#state.kind === 'streaming') return this.#endStream(this.#state.stream);
    if (this.#state.kind !== 'held') return;
    if (this.#collected.length > 0) this.#answerJson();
    else {
      respondEmpty(this.#response, 202);
      this.#end();
    }
  }

  leave(): void {
    if (this.#state.kind !== 'streaming') return;
    this.#state.stream.disconnect();
    this.#end();
  }

  /** Makes the response a stream now, if the client reads streams. */
  commit(): void {
    if (this.#state.kind === 'held' && this.isStream) this.#commit(true);
  }

  /** Makes the response a stream, which starts with the answers collected so far. */
  #commit(opensSession: boolean): void {
    if (opensSession) this.#announceSession();
    const stream = this.#owner.openStream(this);
    this.#state = { kind: 'streaming', stream };
    stream.open(this.#response);
    for (const frame of this.#collected) stream.send(frame);
    this.#collected.length = 0;
  }

  get unsentBytes(): number {
    return this.#state.kind === 'unread' ? this.#state.writer.queuedBytes : 0;
  }

  tick(nowMs: number): void {
    if (this.#state.kind === 'held' && nowMs - this.#openedAtMs >= this.#owner.commitAfterMs) this.commit();
    if (this.#state.kind === 'unread') this.#state.writer.tick(nowMs);
  }

  #travelsAsJson(frame: Frame): boolean {
    if (this.#options.answerAs === 'stream') return false;
    return !this.isStream || this.#isCollectable(frame);
  }

  #isCollectable(frame: Frame): boolean {
    return this.#expected === 0 || this.#collectedBytes + frame.bytes.length <= MAX_COLLECTED_BYTES;
  }

  #collect(answer: Frame): boolean {
    const frame = this.#isCollectable(answer) ? answer : errorFrame(answer.id, TOO_MUCH_TOGETHER);
    this.#collected.push(frame);
    this.#collectedBytes += frame.bytes.length;
    return this.#expected > 0 || this.#answerJson();
  }

  /** Sends the collected answers as JSON. False: the client has not read all of it yet. */
  #answerJson(): boolean {
    const answers = this.#collected;
    const body = this.#options.batch ? joinArray(answers.map(({ bytes }) => bytes)) : (answers[0] as Frame).bytes;
    if (answers[0]?.kind === 'result') this.#announceSession();
    this.#response.writeHead(200, { 'Content-Type': JSON_TYPE, 'Content-Length': body.length });
    const writer = endWith(this.#response, body, () => this.#createWriter());
    if (writer === undefined) this.#end();
    else this.#state = { kind: 'unread', writer };
    return writer?.isFull !== true;
  }

  #createWriter(): ResponseWriter {
    return new ResponseWriter(this.#response, this.#owner.nowMs, () => this.#owner.laneDrained(this));
  }

  /** [spec 2025-11-25 transports#session-management] */
  #announceSession(): void {
    const { newSessionId } = this.#options;
    if (newSessionId !== undefined) this.#response.setHeader(SESSION_ID_HEADER_OUT, newSessionId);
  }

  #stream(frame: Frame): boolean {
    if (this.#state.kind !== 'streaming') return true;
    const { stream } = this.#state;
    const hasCapacity = stream.send(frame);
    if (this.#expected === 0) this.#endStream(stream);
    return hasCapacity;
  }

  #endStream(stream: ResumableStream): void {
    stream.end();
    this.#end();
    this.#owner.streamEnded(stream);
  }

  #end(): void {
    this.#state = ENDED;
    this.unlink();
  }

  #disconnected(): void {
    switch (this.#state.kind) {
      case 'held':
        // [spec 2025-11-25 transports#sending-messages-to-the-server] A disconnect is no cancellation: the call
        // continues, but without an event id the client cannot ask for its answer.
        this.#end();
        return this.#options.onLost();
      case 'streaming':
        if (this.#state.stream.lastSequence === 0) this.#options.onLost();
        return;
      case 'unread':
        this.#end();
        return this.#owner.laneDrained(this);
      case 'ended':
        return;
    }
  }
}

/**
 * Ticks the lanes of a stored session when a call may have waited for COMMIT_STORED_AFTER_MS; the timer of
 * `LiveStreams` runs only once a second.
 */
export class CommitTimer {
  readonly #clock: Clock;
  readonly #lanes: LinkedList<SessionLane>;
  #stop: (() => void) | undefined;

  constructor(clock: Clock, lanes: LinkedList<SessionLane>) {
    this.#clock = clock;
    this.#lanes = lanes;
  }

  /** Called when a lane was opened. */
  start(): void {
    this.#stop ??= this.#clock.after(COMMIT_STORED_AFTER_MS, () => this.#look());
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  #look(): void {
    this.#stop = undefined;
    const nowMs = this.#clock.now();
    for (const lane of this.#lanes.toArray()) {
      lane.tick(nowMs);
      if (lane instanceof PostLane && lane.isHeld) this.start();
    }
  }
}
