/** The client of a long-lived connection, as its conversations see it, and the input that the conversations share. */
import type { Logger } from 'pino';
import { ByteQueue } from '../../collections/bounded-collections.ts';
import type { Clock, Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { Revision } from '../../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Call, Lane } from '../../relay/call.ts';
import type { ClientListener, DownstreamPeer } from '../../relay/ports.ts';
import type { SessionClient, SessionRegistry } from '../../relay/sessions/session-registry.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Complaints } from './complaints.ts';
import type { MessageConnection } from './message-connection.ts';

/** The client of a connection, as described to its sessions. */
export interface ConnectionClient extends Pick<SessionClient, 'transport' | 'principal' | 'environment'> {
  /** Caller of the modern requests, which always need one. */
  readonly callerName: string;
  /** Forwarded headers of the client's HTTP request; see `Lane`. */
  readonly headers: Lane['headers'];
}

export interface ConnectionPeerOptions {
  readonly connection: Pick<MessageConnection, 'send'>;
  /** The largest message that may be sent to the client, its line break included. */
  readonly maxSentBytes: number;
  readonly log: Logger;
  readonly input: SharedInput;
  readonly client: Pick<ConnectionClient, 'headers'>;
  readonly listener: ClientListener;
  /** Called when the relay has released this client. */
  readonly onClose: (reason: BridgeError) => void;
}

/** The client as seen by one of its conversations. The connection is also the lane of each call. */
export class ConnectionPeer implements DownstreamPeer, Lane {
  readonly isOpen = true;
  readonly isConnected = true;
  readonly hasLeft = false;
  readonly headers: Lane['headers'];
  readonly #options: ConnectionPeerOptions;
  #isFull = false;

  constructor(options: ConnectionPeerOptions) {
    this.#options = options;
    this.headers = options.client.headers;
  }

  send(frame: Frame, call?: Call): boolean {
    const fitting = this.fitting(frame, 0);
    return fitting === undefined || this.write(fitting.bytes, fitting.isResponse ? undefined : call);
  }

  /**
   * Returns the frame to send. A message over the limit is replaced or dropped, so that only its call fails: a response
   * becomes an error response, a request of the server is reported as undeliverable. Undefined: nothing is sent. `more`
   * is the number of bytes that share the message's line.
   */
  protected fitting(frame: Frame, more: number): Frame | undefined {
    const { maxSentBytes, listener, log } = this.#options;
    if (frame.bytes.length + more + LINE_BREAK_BYTES <= maxSentBytes) return frame;
    const error = tooLargeToSend(frame, maxSentBytes);
    log.error({ code: error.code }, error.message);
    if (frame.isResponse) return errorFrame(frame.id, rpcErrorOf(error));
    if (frame.kind === 'request') listener.undeliverable(frame, error);
    return undefined;
  }

  /**
   * Writes one message. False: the connection is full, and the listener's `clientDrained` follows.
   * @param about see `MessageConnection.send`
   */
  write(message: Buffer, about?: Call): boolean {
    const hasCapacity = this.#options.connection.send(message, about);
    if (!hasCapacity) this.#isFull = true;
    return hasCapacity;
  }

  drained(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#options.listener.clientDrained();
  }

  release(_call: Call): void {}
  negotiated(_revision: Revision): void {}

  pause(): void {
    this.#options.input.pauseFor(this);
  }

  resume(): void {
    this.#options.input.resumeFor(this);
  }

  close(reason: BridgeError): void {
    this.#options.input.resumeFor(this);
    this.#options.onClose(reason);
  }
}

const LINE_BREAK_BYTES = 1;

function tooLargeToSend({ kind, bytes }: Frame, maxSentBytes: number): BridgeError {
  const what = kind === 'result' || kind === 'error' ? 'An answer' : `A ${kind}`;
  const message = `${what} of ${bytes.length + LINE_BREAK_BYTES} bytes with its line break was not passed on: this client is sent ${maxSentBytes} at most, because most clients on stdin and stdout end the connection at a longer line. Have the server send less, or raise --max-message-bytes if the client takes more.`;
  return new BridgeError('ERR_UPSTREAM_TOO_LARGE', message);
}

/**
 * Options of a conversation: the messages of one era on a connection. Each era has a session, and so a relay, of its
 * own.
 */
export interface ConversationOptions {
  readonly connection: Pick<MessageConnection, 'send'>;
  readonly client: ConnectionClient;
  readonly input: SharedInput;
  readonly sessions: SessionRegistry;
  readonly complaints: Complaints;
  readonly maxSentBytes: number;
  readonly deps: Deps;
  /** Returns true if the other conversation has an open call with this id. Both share one id space. */
  readonly isTaken: (id: JsonRpcId) => boolean;
}

/**
 * Logs why a request could not be passed to a server. The client gets the same error. ERR_SESSION_CLOSED goes to the
 * debug level: when the bridge itself ends, there may be many, and none is a fault.
 */
export function logRefusal({ deps, complaints }: ConversationOptions, error: BridgeError): void {
  if (error.code !== 'ERR_SESSION_CLOSED') return complaints.tell('error', error);
  deps.log.debug({ code: error.code, err: error.cause }, error.message);
}

export function takenId(id: JsonRpcId): BridgeError {
  return new BridgeError(
    'ERR_WIRE_MESSAGE',
    `Request id ${JSON.stringify(id)} is already in use by a call of another era that has not been answered; use a new id for each request.`,
  );
}

// ---- Its input

/**
 * Bytes that are read ahead of a paused client, since only reading reveals that its input has ended. If more than this
 * is waiting, the end is noticed once there is capacity again.
 */
export const MAX_AHEAD_BYTES = 8 * 1024 * 1024;
/** Smallest size that a queued piece counts as, since a shorter one costs about as much. */
const MIN_PIECE_BYTES = 1024;
/**
 * Messages of one client that are processed before other clients get a turn. One read can hold tens of thousands of
 * small messages. This many is enough for the output to be written in batches.
 */
export const MESSAGES_PER_TURN = 32;
/** A message counts once more for each of these bytes, as it takes that much longer. */
const BYTES_OF_A_MESSAGE = 16 * 1024;

export interface SharedInputOptions {
  /** The connection that the input comes from. Its owner passes on what it reads by calling `read` and `over`. */
  readonly source: Pick<MessageConnection, 'pause' | 'resume'>;
  readonly clock: Clock;
  /** After the end of input, how long nothing of what was read ahead may be taken; 0: no limit. */
  readonly untakenTimeoutMs: number;
  /**
   * While the client is paused, how long nothing of what was read ahead may be taken; its departure would go unnoticed
   * meanwhile. 0: no limit.
   */
  readonly heldTimeoutMs: number;
  /**
   * Processes at most this many messages of the piece. Returns the rest of the piece; undefined: all of it was taken.
   */
  readonly take: (piece: Buffer, maxMessages: number) => Buffer | undefined;
  /** Called once, when the input is over: all of it was taken (0), or this many bytes have waited too long. */
  readonly onEnd: (untakenBytes: number) => void;
}

/**
 * - `open`: more input may arrive.
 * - `ending`: the input has ended, but not all of it was taken.
 * - `ended`: `onEnd` was called.
 */
type State = 'open' | 'ending' | 'ended';

/**
 * The input of a client that several conversations share. It is processed while no conversation holds it back, and in
 * portions that leave other clients their turns of the event loop.
 */
export class SharedInput {
  readonly #options: SharedInputOptions;
  readonly #holders = new Set<object>();
  readonly #ahead = new ByteQueue<Buffer>(
    { maxItems: Number.POSITIVE_INFINITY, maxBytes: MAX_AHEAD_BYTES },
    ({ length }) => Math.max(length, MIN_PIECE_BYTES),
  );
  /** Rest of the piece that was taken in part. */
  #rest: Buffer | undefined;
  #state: State = 'open';
  #isStopped = false;
  /** Messages that may still be taken in this turn. At 0 the client waits for its next turn. */
  #left = MESSAGES_PER_TURN;
  #isWaitingForTurn = false;
  #stopWaiting = (): void => {};

  constructor(options: SharedInputOptions) {
    this.#options = options;
  }

  pauseFor(holder: object): void {
    this.#holders.add(holder);
  }

  /**
   * Releases one hold. Input that was read ahead is processed on the next tick, not within this call: the holder may be
   * about to release its client.
   */
  resumeFor(holder: object): void {
    if (this.#holders.delete(holder)) process.nextTick(() => this.#takeAhead());
  }

  /** Counts a processed message against this turn. */
  tookMessage(bytes: number): void {
    this.#left -= 1 + Math.floor(bytes / BYTES_OF_A_MESSAGE);
  }

  /** Queues a piece of input and processes what may be processed. */
  read(piece: Buffer): void {
    if (this.#state === 'ended') return;
    this.#ahead.add(piece);
    this.#takeAhead();
  }

  #takeAhead(): void {
    while (this.#holders.size === 0 && !this.#isWaitingForTurn) {
      const piece = this.#rest ?? this.#ahead.shift();
      if (piece === undefined) break;
      if (this.#state === 'ending') this.#awaitProgress(this.#options.untakenTimeoutMs);
      else if (this.#isStopped) this.#awaitProgress(this.#options.heldTimeoutMs);
      this.#rest = this.#options.take(piece, this.#left);
      if (this.#left <= 0 || this.#rest !== undefined) this.#waitForTurn();
    }
    if (this.#state === 'ending' && this.#isEmpty) this.#end();
    this.#stopOrResume();
  }

  #waitForTurn(): void {
    this.#isWaitingForTurn = true;
    setImmediate(() => {
      this.#isWaitingForTurn = false;
      this.#left = MESSAGES_PER_TURN;
      this.#takeAhead();
    });
  }

  get #isEmpty(): boolean {
    return this.#rest === undefined && this.#ahead.length === 0;
  }

  /**
   * Pauses the connection while the queue is full, or while unprocessed input waits for the client's next turn: reading
   * on would only lengthen the queue.
   */
  #stopOrResume(): void {
    const { source, heldTimeoutMs } = this.#options;
    const mustStop = this.#ahead.isFull || (this.#isWaitingForTurn && !this.#isEmpty);
    if (mustStop === this.#isStopped) return;
    this.#isStopped = mustStop;
    if (mustStop) {
      source.pause();
      if (this.#state === 'open') this.#awaitProgress(heldTimeoutMs);
    } else {
      if (this.#state === 'open') this.#stopWaiting();
      source.resume();
    }
  }

  /** Called at the end of input. May be called several times. */
  over(): void {
    if (this.#state !== 'open') return;
    this.#state = 'ending';
    if (this.#isEmpty) this.#end();
    else this.#awaitProgress(this.#options.untakenTimeoutMs);
  }

  #awaitProgress(timeoutMs: number): void {
    this.#stopWaiting();
    if (timeoutMs > 0) this.#stopWaiting = this.#options.clock.after(timeoutMs, () => this.#end());
  }

  #end(): void {
    this.#stopWaiting();
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    const untaken = [this.#rest ?? NOTHING, ...this.#ahead.takeAll()];
    this.#rest = undefined;
    this.#options.onEnd(untaken.reduce((sum, { length }) => sum + length, 0));
  }
}

const NOTHING = Buffer.alloc(0);
