import type { ServerResponse } from 'node:http';
import { type LinkedList, ListMember } from '../../collections/short-lived-values.ts';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { type AnswerType, JSON_TYPE, traceContextOf } from '../../http/headers.ts';
import { respondEmpty } from '../../http/server/respond.ts';
import { SESSION_ID_HEADER_OUT } from '../../mcp/vocabulary/headers.ts';
import type { TraceContext } from '../../mcp/vocabulary/meta.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Lane } from '../../relay/exchange.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, joinArray } from '../../wire/write-message.ts';
import { MAX_COLLECTED_BYTES } from '../batch.ts';
import { endWith, ResponseWriter, type Ticking } from '../http/response-writer.ts';
import type { ResumableStream } from './resumable-stream.ts';

/** A call that is silent for this long gets its stream, so that proxies see a living connection. */
export const COMMIT_AFTER_MS = 5000;
/** Where another bridge may go on with the session. Only a client that has a stream can come back for its answer. */
export const COMMIT_STORED_AFTER_MS = 250;

const TOO_MUCH_TOGETHER = rpcErrorOf(
  new BridgeError(
    'ERR_WIRE_BATCH',
    'The answers to this array are too large to be collected, and its client reads no event stream; send each message by itself.',
  ),
);

/** What a lane needs of the session it belongs to. */
export interface LaneOwner {
  openStream(lane: PostLane): ResumableStream;
  /** The open lanes of the session; each is ticked while it is in this list. */
  readonly lanes: LinkedList<SessionLane>;
  /** How long a call may be silent before it gets its stream. */
  readonly commitAfterMs: number;
  /** See `Lane`. */
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
  /** The requests that they answer, where another bridge may have to tell of them; else none. */
  readonly requests: readonly JsonRpcId[];
  /** The body was an array, so a JSON answer is one too. [spec 2025-03-26 transports] */
  readonly batch: boolean;
  /** The id of the session that this POST opens. The client is told with a result only. */
  readonly newSessionId: string | undefined;
  /** Headers of the POST that may pass to a remote server. */
  readonly forwarded: Readonly<Record<string, string>> | undefined;
  /** What an answer travels as when it comes before everything else. */
  readonly answerAs: AnswerType;
  /** The client left before its answer and with nothing to ask for it with. */
  readonly onLost: () => void;
}

/**
 * - `held`: nothing sent; becomes JSON if answers come first, a stream if anything else does.
 * - `streaming`: an SSE stream, which outlives its connection.
 * - `unread`: answered; the client has not read it all yet.
 * - `ended`: answered, or the client left while nothing had been sent.
 */
type LaneState =
  | { readonly kind: 'held' }
  | { readonly kind: 'streaming'; readonly stream: ResumableStream }
  | { readonly kind: 'unread'; readonly writer: ResponseWriter }
  | { readonly kind: 'ended' };

const HELD: LaneState = { kind: 'held' };
const ENDED: LaneState = { kind: 'ended' };

/** What carries the messages of a call to a client with a session. */
export interface SessionLane extends Lane, Ticking {
  readonly isConnected: boolean;
  /** False: it carries nothing but answers, since its client reads only JSON. */
  readonly isStream: boolean;
  /** False: full. A response counts down to the end of the lane. */
  send(frame: Frame): boolean;
  /** One of the expected answers will not come. */
  release(): void;
  /** The call goes on elsewhere, where its client comes back for the rest: here only the connection ends. */
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

  /** Nothing has been sent. */
  get isHeld(): boolean {
    return this.#state.kind === 'held';
  }

  get isConnected(): boolean {
    return this.#state.kind === 'held' || (this.#state.kind === 'streaming' && this.#state.stream.isConnected);
  }

  get isStream(): boolean {
    return this.#options.answerAs !== 'only-json';
  }

  /** False: full. A response counts down to the end of the lane. */
  send(frame: Frame): boolean {
    if (frame.isResponse) this.#expected -= 1;
    if (this.#state.kind === 'held') {
      if (frame.isResponse && this.#travelsAsJson(frame)) return this.#collect(frame);
      this.#commit(frame.kind !== 'error');
    }
    return this.#stream(frame);
  }

  /** One of the expected answers will not come. */
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

  /** Makes the response a stream, whatever comes, if its client reads streams. */
  commit(): void {
    if (this.#state.kind === 'held' && this.isStream) this.#commit(true);
  }

  /** What was collected goes first. */
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

  /** False: the client has not read it all yet. */
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
        // [spec 2025-11-25 transports#sending-messages-to-the-server] a disconnect is no cancellation: the call
        // goes on, but without an event id the client has nothing to ask for its answer with.
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
 * Looks at the lanes of a stored session when their calls may have waited for COMMIT_STORED_AFTER_MS: what looks at all open
 * responses does so only once a second.
 */
export class CommitTimer {
  readonly #clock: Clock;
  readonly #lanes: LinkedList<SessionLane>;
  #stop: (() => void) | undefined;

  constructor(clock: Clock, lanes: LinkedList<SessionLane>) {
    this.#clock = clock;
    this.#lanes = lanes;
  }

  /** A lane was opened. */
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
