import type { ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { LinkedList, ListMember } from '../../collections/short-lived-values.ts';
import type { Clock, Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { OLDEST_REVISION, type Revision } from '../../mcp/vocabulary/revisions.ts';
import type { Call, Lane } from '../../relay/call.ts';
import type { ClientListener, DownstreamPeer } from '../../relay/ports.ts';
import type { ReplayLog, StoredReplay } from '../../relay/sessions/session-storage.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { readMessage, SERVER_LIMITS } from '../../wire/read-message.ts';
import { TurnGate } from '../http/read-post.ts';
import type { LiveStreams, Ticking } from '../http/response-writer.ts';
import { type ContinuedCall, ContinuedLane, idsAmong } from './continued-lane.ts';
import { type NamedEvent, parseEventId } from './event-ids.ts';
import { type InheritedCall, InheritedStreams } from './inherited-streams.ts';
import {
  COMMIT_AFTER_MS,
  COMMIT_STORED_AFTER_MS,
  CommitTimer,
  type LaneOwner,
  PostLane,
  type PostLaneOptions,
  type SessionLane,
} from './post-lane.ts';
import { REPLAY_LIMITS, ReplayBuffer } from './replay-buffer.ts';
import { ResumableStream, type StreamBeginning } from './resumable-stream.ts';
import { StreamSlots } from './stream-slots.ts';
import { canWait, isAboutCall, isQuestion, UndeliveredQueue } from './undelivered-queue.ts';

/** The stream opened by GET, for messages that belong to no request. */
const GET_STREAM = 0;
/**
 * Numbers of streams, and of events of the GET stream, that one owner of a session may use. The next owner starts after
 * them even if everything stored was lost. With these values event ids stay within their digits for 99,999 owners.
 */
const STREAMS_OF_ONE_OWNER = 1_000_000;
const EVENTS_OF_ONE_OWNER = 1_000_000_000;

export interface StreamablePeerOptions {
  readonly listener: ClientListener;
  readonly live: LiveStreams;
  readonly deps: Deps;
  readonly log: Logger;
  /** Streams' connections are closed after this time, for the client to reconnect and resume them; 0: never. */
  readonly pollAfterMs: number;
  /** Event streams open at a time, calls included whose answer may become one. */
  readonly maxStreams: number;
  /** Default: REPLAY_LIMITS. */
  readonly maxReplayBytes?: number | undefined;
  /** Log that keeps the streams for other replicas; default: none. */
  readonly replayLog?: ReplayLog | undefined;
}

/**
 * A client over Streamable HTTP with a session: a lane for each POST, and one stream for everything else. Each message
 * is sent on exactly one of them. [spec 2025-11-25 transports#multiple-connections] It ticks while it has lanes or
 * waiting messages.
 */
export class StreamablePeer extends ListMember implements DownstreamPeer, LaneOwner, Ticking {
  /** Holds POSTs back while the server or this client reads too slowly. */
  readonly gate = new TurnGate();
  readonly lanes = new LinkedList<SessionLane>();
  readonly #commits: CommitTimer | undefined;
  readonly #clock: Clock;
  readonly #live: LiveStreams;
  readonly #listener: ClientListener;
  readonly #log: Logger;
  readonly #pollAfterMs: number;
  readonly #replay: ReplayBuffer;
  readonly #streams = new Map<number, ResumableStream>();
  readonly #slots: StreamSlots;
  /** Messages that wait for a stream. Undefined until the first one, which most clients never have. */
  #waiting: UndeliveredQueue | undefined;
  #getStream: ResumableStream | undefined;
  /** True if the GET stream was open after the last call: when it closes, the client has left. */
  #isListening = false;
  #nextStream = GET_STREAM + 1;
  /** Streams of the session's earlier owner; undefined: the session began here. */
  #inherited: InheritedStreams | undefined;
  /** Calls of another replica that continue here once the revision is known. */
  #toContinue: readonly InheritedCall[] = [];
  #revision: Revision = OLDEST_REVISION;
  /** Lanes and streams that are full until their client reads on. */
  readonly #full = new Set<object>();

  constructor(options: StreamablePeerOptions) {
    super();
    this.#clock = options.deps.clock;
    this.#live = options.live;
    this.#listener = options.listener;
    this.#log = options.log;
    this.#pollAfterMs = options.pollAfterMs;
    this.#slots = new StreamSlots(options.maxStreams, this.#clock);
    const { maxReplayBytes: maxBytes = REPLAY_LIMITS.maxBytes, replayLog } = options;
    this.#replay = new ReplayBuffer(this.#clock, { ...REPLAY_LIMITS, maxBytes }, replayLog);
    if (replayLog === undefined) return;
    replayLog.resumable = (request) => this.#openStreamFor(request);
    replayLog.hold = (stream, stored) => this.#streams.get(stream)?.holdUntil(stored);
    replayLog.kept = () => this.#kept();
    this.#commits = new CommitTimer(this.#clock, this.lanes);
  }

  /**
   * Opens the stream of a call, so that the client can come back for the answer. Skipped for older revisions: there the
   * first event id comes with the first message, and a stream without an id cannot be resumed.
   */
  #openStreamFor(request: JsonRpcId): void {
    if (!this.#revision.primingEvent) return;
    for (const lane of this.lanes) if (lane instanceof PostLane && lane.requests.includes(request)) lane.commit();
  }

  #kept(): StoredReplay {
    return {
      runs: this.#replay.runs,
      waiting: (this.#waiting?.notifications ?? []).map(({ bytes }) => bytes),
      unended: this.#inherited?.unended ?? new Map(),
    };
  }

  /** True if another replica may continue this session. */
  get isStored(): boolean {
    return this.#replay.log !== undefined;
  }

  get commitAfterMs(): number {
    return this.isStored ? COMMIT_STORED_AFTER_MS : COMMIT_AFTER_MS;
  }

  /**
   * Takes over the streams of another replica; `continueCalls` follows. A call that cannot be continued is answered
   * with an error, since its progress is unknown.
   * @param token how many replicas have owned the session
   */
  restore(stored: StoredReplay, token: number): void {
    this.#replay.restore(stored);
    this.#nextStream = token * STREAMS_OF_ONE_OWNER;
    this.#inherited = new InheritedStreams({ stream: this.#nextStream, sequence: token * EVENTS_OF_ONE_OWNER });
    this.#toContinue = this.#inherited.restore(stored, this.#replay, GET_STREAM);
    for (const bytes of stored.waiting) {
      const read = readMessage(bytes, SERVER_LIMITS);
      this.#waiting ??= new UndeliveredQueue();
      if (read.kind === 'message') this.#waiting.add(read.frame, this.nowMs);
    }
  }

  /** Returns the calls of another replica that continue here. Called once the revision is known. */
  continueCalls(): readonly ContinuedCall[] {
    const calls = this.#toContinue.map(({ key, call, newest }): ContinuedCall => {
      const request = call.request.id as JsonRpcId;
      const stream = this.#createStream(key, { sequence: newest, request });
      this.#streams.set(key, stream);
      this.#replay.log?.continued(key, request);
      const asked = idsAmong(this.#replay.runsOf(key), 'requests');
      return { call, lane: new ContinuedLane(this, stream), asked };
    });
    this.#toContinue = [];
    if (calls.length > 0) this.#tickOn();
    return calls;
  }

  get nowMs(): number {
    return this.#clock.now();
  }

  get revision(): Revision {
    return this.#revision;
  }

  get isConnected(): boolean {
    return this.#getStream?.isConnected === true || this.lanes.findLast((lane) => lane.isConnected) !== undefined;
  }

  get lostAtMs(): number | undefined {
    return this.#slots.emptySinceMs;
  }

  get hasLeft(): boolean {
    return this.#isListening && !this.isConnected;
  }

  negotiated(revision: Revision): void {
    this.#revision = revision;
  }

  // ---- toward the client

  send(frame: Frame, call?: Call): boolean {
    const lane = this.#laneOf(call);
    if (lane !== undefined && carries(lane, frame)) return this.#noteCapacity(lane, lane.send(frame));
    if (frame.isResponse || isAboutCall(frame, call)) {
      this.#log.debug({ id: frame.id, method: frame.method }, 'dropped: nothing carries it to its client anymore');
      return true;
    }
    return this.#sendUnsolicited(frame);
  }

  #laneOf(call: Call | undefined): SessionLane | undefined {
    const lane: Lane | undefined = call?.lane;
    return (lane instanceof PostLane || lane instanceof ContinuedLane) && lane.isOpen ? lane : undefined;
  }

  /** Sends the answer to an item of a batch that never became a call. */
  sendOn(lane: Lane, frame: Frame): void {
    if (lane instanceof PostLane && lane.isOpen) this.#noteCapacity(lane, lane.send(frame));
  }

  /**
   * Sends a message that belongs to no call. A client without a GET stream gets it on the stream of its latest call.
   */
  #sendUnsolicited(frame: Frame): boolean {
    if (this.#getStream?.isConnected) return this.#noteCapacity(this.#getStream, this.#getStream.send(frame));
    const lane = canWait(frame) ? undefined : this.#latestOpenStream();
    if (lane !== undefined) return this.#noteCapacity(lane, lane.send(frame));
    this.#tickOn();
    this.#waiting ??= new UndeliveredQueue();
    const outcome = this.#waiting.add(frame, this.nowMs);
    if (outcome === 'full') this.#giveUp(frame);
    // A request of the server is not stored: the replica that continues its call asks it again, and outside a call it
    // is lost.
    else if (outcome === 'added' && frame.kind === 'notification') this.#replay.log?.waits(frame.bytes);
    return true;
  }

  #latestOpenStream(): SessionLane | undefined {
    return this.lanes.findLast((lane) => lane.isStream && lane.isConnected);
  }

  #noteCapacity(source: object, hasCapacity: boolean): boolean {
    if (!hasCapacity) {
      this.#full.add(source);
      this.gate.close('reader');
    }
    return hasCapacity;
  }

  laneDrained(lane: PostLane): void {
    this.#drained(lane);
  }

  #drained(source: object): void {
    if (!this.#full.delete(source) || this.#full.size > 0) return;
    this.gate.open('reader');
    this.#listener.clientDrained();
  }

  release(call: Call): void {
    this.#laneOf(call)?.release();
  }

  pause(): void {
    this.gate.close('server');
  }

  resume(): void {
    this.gate.open('server');
  }

  // ---- responses that carry messages

  /** Opens a lane for a POST that carries requests. Returns an error if the session has too many streams. */
  openLane(options: PostLaneOptions): PostLane | BridgeError {
    const refusal = this.#slots.take(options.response);
    if (refusal !== undefined) return refusal;
    const lane = new PostLane(this, options);
    // A client that calls after its stream was closed has not left: some clients never reopen the stream.
    this.#isListening &&= this.#getStream?.isConnected ?? false;
    this.#tickOn();
    this.#commits?.start();
    this.#flushQuestions();
    return lane;
  }

  openStream(lane: PostLane): ResumableStream {
    const key = this.#nextStream;
    this.#nextStream += 1;
    const { requests } = lane;
    const stored = this.#replay.log?.opened(key, requests);
    const [request] = requests.length === 1 ? requests : [];
    const stream = this.#createStream(key, { source: lane, request, stored });
    this.#streams.set(key, stream);
    return stream;
  }

  streamEnded(stream: ResumableStream): void {
    this.#streams.delete(stream.key);
  }

  /** Makes a GET the session's stream; an earlier one ends. Returns an error if the session has too many streams. */
  openGetStream(response: ServerResponse): BridgeError | undefined {
    const refusal = this.#slots.take(response, this.#getStream);
    if (refusal !== undefined) return refusal;
    this.#getStream ??= this.#createStream(GET_STREAM);
    this.#getStream.advanceTo(this.#inherited?.begunAnew(GET_STREAM) ?? 0);
    this.#getStream.open(response);
    this.#isListening = true;
    this.#flushWaiting();
    return undefined;
  }

  /**
   * Continues a stream that broke. Returns an error if that would lose events, or if the session has too many streams.
   */
  resumeStream(response: ServerResponse, lastEventId: string): BridgeError | undefined {
    const position = parseEventId(lastEventId);
    const stream = position && this.#streamAt(position.stream);
    const newest = position && this.#replay.newestOf(position.stream);
    const lost = stream === undefined ? position && this.#inherited?.answersOn(position, newest ?? 0) : undefined;
    if (position !== undefined && lost !== undefined) return this.#resumeLost(response, position, lost);
    stream?.flush();
    const known = position && (this.#inherited?.knownPosition(position) ?? position);
    const missed = known && this.#replay.after(known, stream?.lastSequence);
    if (position === undefined || missed === undefined) {
      return new BridgeError(
        'ERR_HTTP_RESUME',
        `Nothing can be resumed after event ${JSON.stringify(lastEventId.slice(0, 40))}: it is unknown or too old; open a new stream without Last-Event-ID.`,
      );
    }
    const refusal = this.#slots.take(response, stream);
    if (refusal !== undefined) return refusal;
    this.#inherited?.caughtUp(position.stream);
    stream?.advanceTo(position.sequence);
    if (stream !== undefined) stream.resume(response, missed);
    else this.#replayEnded(response, position, missed);
    if (position.stream === GET_STREAM) {
      this.#isListening = true;
      this.#flushWaiting();
    } else this.#flushQuestions();
    return undefined;
  }

  #streamAt(key: number): ResumableStream | undefined {
    if (key !== GET_STREAM) return this.#streams.get(key);
    if (this.#inherited?.storedUpTo(key) !== undefined) this.#getStream ??= this.#createStream(key);
    return this.#getStream;
  }

  /**
   * Sends the error responses of lost calls and ends their stream. The client's latest event may not have been stored,
   * so what follows is numbered after it.
   */
  #resumeLost(response: ServerResponse, position: NamedEvent, lost: readonly Frame[]): BridgeError | undefined {
    const refusal = this.#slots.take(response);
    if (refusal !== undefined) return refusal;
    const missed = this.#replay.after(position, undefined) ?? [];
    const stream = this.#createStream(position.stream, { request: position.request });
    stream.advanceTo(Math.max(position.sequence, this.#replay.newestOf(position.stream)));
    stream.resume(response, missed);
    for (const answer of lost) stream.send(answer);
    stream.end();
    this.#inherited?.answered(position.stream);
    return undefined;
  }

  /** Sends the missed events of a stream that is complete, and its end. */
  #replayEnded(response: ServerResponse, { stream: key, request }: NamedEvent, missed: readonly Buffer[]): void {
    const stream = this.#createStream(key, { request });
    stream.resume(response, missed);
    stream.end();
  }

  #createStream(key: number, { source, sequence, request, stored }: StreamOrigin = {}): ResumableStream {
    const { primingEvent: priming } = this.#revision;
    const context = { live: this.#live, replay: this.#replay, priming, pollAfterMs: this.#pollAfterMs };
    const drained = (): void => this.#drained(source ?? stream);
    const known = sequence ?? this.#inherited?.storedUpTo(key);
    const stream: ResumableStream = new ResumableStream(key, context, {
      onDrain: drained,
      sequence: known,
      request,
      stored,
    });
    return stream;
  }

  #flushWaiting(): void {
    if (this.#waiting === undefined) return;
    const { dropped } = this.#waiting;
    if (dropped > 0) this.#log.warn({ dropped }, 'notifications were lost: the client had no stream open for too long');
    this.#waiting.dropped = 0;
    const frames = this.#waiting.takeAll();
    for (const frame of frames) this.send(frame);
    if (!frames.some(({ kind }) => kind === 'notification')) return;
    // Recorded after the events that the notifications have become: a duplicate is better than a loss.
    this.#getStream?.flush();
    this.#replay.log?.told();
  }

  /**
   * Sends the waiting requests of the server on the GET stream, or on the stream of a call that was just opened or
   * resumed.
   */
  #flushQuestions(): void {
    if (this.#waiting === undefined || this.#waiting.size === 0) return;
    if (this.#getStream?.isConnected !== true && this.#latestOpenStream() === undefined) return;
    for (const request of this.#waiting.takeRequests()) this.#sendUnsolicited(request);
  }

  /** Unsent bytes of the lanes. Streams' connections report their own. */
  get unsentBytes(): number {
    return this.lanes.toArray().reduce((sum, lane) => sum + lane.unsentBytes, 0);
  }

  tick(nowMs: number): void {
    for (const lane of this.lanes.toArray()) lane.tick(nowMs);
    for (const request of this.#waiting?.takeOverdueRequests(nowMs) ?? []) this.#giveUp(request);
    this.#leaveIfIdle();
  }

  #leaveIfIdle(): void {
    if (!this.lanes.isEmpty || (this.#waiting !== undefined && this.#waiting.size > 0)) return;
    this.unlink();
  }

  #tickOn(): void {
    if (!this.isListed) this.#live.add(this);
  }

  #giveUp(request: Frame): void {
    const reason = 'The client has no stream open on which it could be asked.';
    this.#listener.undeliverable(request, new BridgeError('ERR_CLIENT_NO_STREAM', reason));
  }

  /**
   * Called when the relay has answered every call and rejects further ones. A lane that is still open belongs to a call
   * that continues at another replica.
   */
  close(_reason: BridgeError): void {
    for (const lane of this.lanes.toArray()) lane.leave();
    this.#waiting?.takeAll();
    this.#commits?.stop();
    this.#leaveIfIdle();
    this.#getStream?.end();
    this.gate.openForGood();
  }
}

/**
 * Returns true if the lane can carry the message. A stream without a connection keeps messages until the client resumes
 * it, except requests of the server and their cancellations, which cannot wait for that.
 */
function carries(lane: SessionLane, frame: Frame): boolean {
  return frame.isResponse || (lane.isStream && (lane.isConnected || !isQuestion(frame)));
}

/** `source`: the object that counts as full when the stream is full; default: the stream. */
type StreamOrigin = Pick<StreamBeginning, 'sequence' | 'request' | 'stored'> & { readonly source?: object };
