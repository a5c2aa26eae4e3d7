/** The client of a long-lived connection as its conversations see it: where they write to, and the input they share. */
import type { Logger } from 'pino';
import { ByteQueue } from '../../collections/bounded-collections.ts';
import type { Clock, Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { Revision } from '../../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange, Lane } from '../../relay/exchange.ts';
import type { ClientListener, DownstreamPeer } from '../../relay/ports.ts';
import type { SessionClient, SessionRegistry } from '../../relay/sessions/session-registry.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { Complaints } from './complaints.ts';
import type { MessageConnection } from './message-connection.ts';

/** Who is at the other end, as the sessions are told. */
export interface ConnectionClient extends Pick<SessionClient, 'transport' | 'principal' | 'environment'> {
  /** The caller's name in modern requests, which belong to somebody in any case. */
  readonly callerName: string;
  /** See `Lane`. */
  readonly headers: Lane['headers'];
}

export interface ConnectionPeerOptions {
  readonly connection: Pick<MessageConnection, 'send'>;
  /** The longest message for the client, with what ends it. */
  readonly maxSentBytes: number;
  readonly log: Logger;
  readonly input: SharedInput;
  readonly client: Pick<ConnectionClient, 'headers'>;
  readonly listener: ClientListener;
  /** The relay has let go of this client. */
  readonly onClose: (reason: BridgeError) => void;
}

/** The client, as one of its conversations sees it. Its connection is also the lane of each of its calls. */
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

  send(frame: Frame, _exchange?: Exchange): boolean {
    const fitting = this.fitting(frame, 0);
    return fitting === undefined || this.write(fitting.bytes);
  }

  /**
   * What the client gets instead of a message that it would not take, and of a response that is an error, so that only its
   * call fails. Undefined: nothing. `more`: bytes that go along in its line.
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

  /** False: full, the listener is told when there is capacity. */
  write(message: Buffer): boolean {
    const hasCapacity = this.#options.connection.send(message);
    if (!hasCapacity) this.#isFull = true;
    return hasCapacity;
  }

  drained(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#options.listener.clientDrained();
  }

  release(_exchange: Exchange): void {}
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

/** What a client says in one era goes to one server; what it says in the other is another conversation. */
export interface ConversationOptions {
  readonly connection: Pick<MessageConnection, 'send'>;
  readonly client: ConnectionClient;
  readonly input: SharedInput;
  readonly sessions: SessionRegistry;
  readonly complaints: Complaints;
  readonly maxSentBytes: number;
  readonly deps: Deps;
  /** The other conversation has a call open under this id: there is one space of ids on a connection. */
  readonly isTaken: (id: JsonRpcId) => boolean;
}

/** Why a request cannot be handed to a server; its client is told, too. At our own end there may be many, and no fault. */
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
 * Read of a client while it is held back: only behind what it has said can be seen that it says no more. The end of a
 * client that says more than this meanwhile is seen late; it is read on when there is capacity.
 */
export const MAX_AHEAD_BYTES = 8 * 1024 * 1024;
/** What a short piece counts as, for it costs about as much. */
const MIN_PIECE_BYTES = 1024;
/**
 * Messages of one client that are taken before all others get a turn: whoever sends many small ones at once has some tens
 * of thousands of them in what is read at a time. It is enough to have their way out written together.
 */
export const MESSAGES_PER_TURN = 32;
/** A message that is longer than this counts as several, for it takes as long. */
const BYTES_OF_A_MESSAGE = 16 * 1024;

export interface SharedInputOptions {
  /** Where it comes from; `read` and `over` are told what comes. */
  readonly source: Pick<MessageConnection, 'pause' | 'resume'>;
  readonly clock: Clock;
  /** After the end of input, how long nothing of what was read ahead may be taken; 0: as long as it takes. */
  readonly untakenTimeoutMs: number;
  /**
   * How long a client that is not read may have to wait until something is taken: nobody would see that it is gone. 0: as
   * long as it takes.
   */
  readonly heldTimeoutMs: number;
  /** Takes so many messages at most. Returns what is left of the piece; undefined: nothing. */
  readonly take: (piece: Buffer, maxMessages: number) => Buffer | undefined;
  /** Called once. Nothing more is taken: the client has ended its input, or so many bytes have waited for too long. */
  readonly onEnd: (untakenBytes: number) => void;
}

/** `open`: more may come. `ending`: no more comes, but not all was taken. `ended`: told. */
type State = 'open' | 'ending' | 'ended';

/**
 * The client's input while several conversations read it: it is taken when none of them holds it back, and as much in one
 * turn of the event loop as leaves time for others.
 */
export class SharedInput {
  readonly #options: SharedInputOptions;
  readonly #holders = new Set<object>();
  readonly #ahead = new ByteQueue<Buffer>(
    { maxItems: Number.POSITIVE_INFINITY, maxBytes: MAX_AHEAD_BYTES },
    ({ length }) => Math.max(length, MIN_PIECE_BYTES),
  );
  /** What is left of the piece that was begun last. */
  #rest: Buffer | undefined;
  #state: State = 'open';
  #isStopped = false;
  /** Messages that may be taken before others get a turn; none: this client waits for its own. */
  #left = MESSAGES_PER_TURN;
  #isWaitingForTurn = false;
  #stopWaiting = (): void => {};

  constructor(options: SharedInputOptions) {
    this.#options = options;
  }

  pauseFor(holder: object): void {
    this.#holders.add(holder);
  }

  /** What was read ahead is taken afterwards, not from within: the holder may be about to let go of its client. */
  resumeFor(holder: object): void {
    if (this.#holders.delete(holder)) process.nextTick(() => this.#takeAhead());
  }

  /** A message of so many bytes was taken. */
  tookMessage(bytes: number): void {
    this.#left -= 1 + Math.floor(bytes / BYTES_OF_A_MESSAGE);
  }

  /** Something has come. */
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

  /** Whoever waits for its own turn is not read meanwhile: what it sends then would only wait as well. */
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

  /** No more comes. May be called several times. */
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
