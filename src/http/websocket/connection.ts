import { isUtf8 } from 'node:buffer';
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { Clock } from '../../deps.ts';
import { toPrintable } from '../../printable.ts';
import { ReadingWatch } from '../reading-watch.ts';
import { ArrivingFrames } from './arriving-frames.ts';
import { CLOSE_CODES, fitReason, MAX_REASON_BYTES } from './close-codes.ts';

/** From here on the connection is full. Not below Node's own mark, as nothing would wait behind it. */
export const HIGH_WATER_BYTES = 64 * 1024;
/**
 * A peer that has been silent for this long is pinged: what sits in between (load balancers, routers of homes) forgets
 * connections after a minute, and a peer that vanished would never be missed.
 */
export const PING_MS = 25_000;
/** Pings without a byte in return, after which the peer counts as gone. */
export const MAX_MISSED_PINGS = 2;
/** How long the peer has to close its side when it was told of the end. */
export const CLOSE_TIMEOUT_MS = 5000;

/** The one subprotocol of MCP. */
export const SUBPROTOCOL = 'mcp';

/**
 * Frames of one peer that are taken before all others get a turn: what is read at a time may hold ten thousand of them, and
 * the system hands over megabytes in a row. It is enough to have the answers to them written together.
 */
export const FRAMES_PER_TURN = 32;

/**
 * What both sides ask of the library. Compression is off: it costs each connection 300 KB and a turn through the thread pool
 * for each message, and what is compressed together can be guessed from the length. Pongs are sent here. Messages are told
 * at once, as the library is given no more of them than there is time for.
 */
export const LIBRARY_OPTIONS = { perMessageDeflate: false, autoPong: false, allowSynchronousEvents: true } as const;

/** The library counts in 32 bits. */
export function maxPayloadOf(maxMessageBytes: number): number {
  return Math.min(maxMessageBytes, 2 ** 31 - 1);
}

/**
 * - `closed`: the peer has closed it; 1005 stands for no code. Its words are fit for a log.
 * - `refused`: what the peer sent was not acceptable, and it was told so.
 * - `silent`: the peer answered no pings.
 * - `stalled`: the peer took nothing of what waited for it, whatever it said meanwhile.
 * - `cut`: whoever uses it has let the peer go.
 * - `lost`: it broke without a word.
 */
export type ConnectionEnd =
  | { readonly kind: 'closed'; readonly code: number; readonly reason: string }
  | { readonly kind: 'refused'; readonly code: number; readonly problem: string }
  | { readonly kind: 'silent' | 'lost' | 'cut' }
  | { readonly kind: 'stalled'; readonly forMs: number };

/** What a connection tells whoever uses it. */
export interface WebSocketListener {
  /** One message; the receiver owns the bytes. */
  message(bytes: Buffer): void;
  /** So much memory is held of a message that is not complete; 0: there is none. Called with each part that comes. */
  holds?(bytes: number): void;
  /** There is capacity again after `send` had none. */
  drained(): void;
  /** Nothing more comes or goes. Called once, and not for a connection that was closed from here. */
  ended(end: ConnectionEnd): void;
}

export interface WebSocketConnectionOptions {
  /** Open, and made with LIBRARY_OPTIONS. */
  readonly socket: WebSocket;
  /** What carries it. */
  readonly stream: Socket;
  readonly clock: Clock;
  readonly pingMs?: number;
}

/**
 * - `open`: messages flow.
 * - `ending`: the peer has been told of the end, and has a moment to agree.
 * - `over`: nothing is left of it.
 */
type State =
  | { readonly kind: 'open'; readonly stopPings: () => void }
  | { readonly kind: 'ending'; readonly cancelTimeout: () => void }
  | { readonly kind: 'over' };

const TEXT = { binary: false } as const;

/** Messages over a WebSocket, of either side: one message is one frame of text. */
export class WebSocketConnection {
  readonly #socket: WebSocket;
  readonly #stream: WebSocketConnectionOptions['stream'];
  readonly #clock: Clock;
  readonly #listener: WebSocketListener;
  readonly #reading: ReadingWatch;
  /** How long a peer may take nothing: as long as one may be silent. */
  readonly #stallMs: number;
  #state: State;
  /** Whether somebody still wants to know of messages and of the end. */
  #isHeard = true;
  #isPaused = false;
  readonly #frames = new ArrivingFrames();
  /** The library's own listener for what comes in. */
  readonly #deliver: (chunk: Buffer) => void;
  /** Frames that may be taken before others get a turn; none: this peer waits for its own. */
  #framesLeft = FRAMES_PER_TURN;
  /** Something has come that waits for the next turn. */
  #hasRest = false;
  /** Nothing that still comes is looked at: the peer has said that nothing does, or broke the rules. */
  #isDeaf = false;
  /** `send` has returned false and `drained` has not been called since. */
  #owesDrain = false;
  #sentInTurn = 0;
  #bytesSeen: number;
  #missedPings = 0;
  /** The payload of the peer's latest ping, as long as that is not answered. */
  #ping: Buffer | undefined;

  constructor(options: WebSocketConnectionOptions, listener: WebSocketListener) {
    const { socket, stream, clock, pingMs = PING_MS } = options;
    this.#socket = socket;
    this.#stream = stream;
    this.#clock = clock;
    this.#listener = listener;
    this.#stallMs = pingMs * (MAX_MISSED_PINGS + 1);
    this.#reading = new ReadingWatch(clock.now(), this.#stallMs);
    this.#bytesSeen = stream.bytesRead;
    this.#state = { kind: 'open', stopPings: clock.every(pingMs, () => this.#checkLife()) };
    this.#deliver = takeOver(stream);
    stream.on('data', (chunk: Buffer) => this.#arrived(chunk));
    stream.on('drain', () => this.#tellDrained());
    socket.on('message', (data, isBinary) => this.#received(data as Buffer, isBinary));
    socket.on('ping', (data) => this.#pinged(data));
    socket.on('error', (error) => this.#failed(error));
    socket.on('close', (code, reason) => this.#closed(code, reason));
  }

  // ---- messages

  /** The bytes must not change afterwards. False: full, but taken. An ended connection swallows everything. */
  send(bytes: Buffer): boolean {
    if (this.#state.kind !== 'open') return true;
    this.#gather();
    this.#socket.send(bytes, TEXT);
    if (!this.isFull) return true;
    this.#owesDrain = true;
    return false;
  }

  /** The first message of a turn of the event loop leaves at once; those that follow in it leave together at its end. */
  #gather(): void {
    this.#sentInTurn += 1;
    if (this.#sentInTurn === 1) setImmediate(() => this.#endTurn());
    else if (this.#sentInTurn === 2) this.#stream.cork();
  }

  #endTurn(): void {
    if (this.#sentInTurn > 1) this.#stream.uncork();
    this.#sentInTurn = 0;
    this.#tellDrained();
  }

  get isFull(): boolean {
    return this.waitingBytes >= HIGH_WATER_BYTES;
  }

  /** Sent, and not taken by the operating system yet. */
  get waitingBytes(): number {
    return this.#socket.bufferedAmount;
  }

  get isOpen(): boolean {
    return this.#state.kind === 'open';
  }

  #tellDrained(): void {
    if (!this.#owesDrain || this.#state.kind !== 'open' || this.isFull) return;
    this.#owesDrain = false;
    this.#listener.drained();
  }

  /** Resolves when what was sent has left for the peer, or cannot. */
  flush(): Promise<void> {
    const stream = this.#stream;
    if (stream.destroyed || this.#socket.bufferedAmount === 0) return Promise.resolve();
    return new Promise((resolve) => {
      stream.once('close', resolve);
      stream.write('', () => resolve());
    });
  }

  #received(data: Buffer, isBinary: boolean): void {
    if (!this.#isHeard) return;
    // The library has looked at text. [RFC 6455 8.1]
    if (isBinary && !isUtf8(data)) {
      return this.#refuse(CLOSE_CODES.unsupportedData, 'a binary message that is not UTF-8; messages are JSON');
    }
    this.#listener.message(data);
  }

  /** Messages that the library has already, those of one turn at most, are still told. */
  pause(): void {
    if (this.#isPaused || this.#state.kind !== 'open') return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (!this.#hasRest) this.#socket.resume();
  }

  /** Bytes that have no time in this turn are put back, so that they are not forgotten if the connection ends meanwhile. */
  #arrived(chunk: Buffer): void {
    if (this.#isDeaf) return;
    const taken = this.#frames.push(chunk, this.#framesLeft);
    this.#isDeaf = this.#frames.isClosed;
    if (this.#framesLeft > 0) this.#count(this.#frames.ended);
    if (taken < chunk.length && !this.#isDeaf) {
      this.#hasRest = true;
      this.#socket.pause();
      this.#stream.unshift(chunk.subarray(taken));
    }
    if (taken > 0) this.#deliver.call(this.#stream, taken < chunk.length ? chunk.subarray(0, taken) : chunk);
    this.#listener.holds?.(this.#frames.heldBytes);
  }

  /** Counted from turn to turn, not anew in each: a peer that sends little pays one `setImmediate` for so many frames. */
  #count(frames: number): void {
    this.#framesLeft -= frames;
    if (this.#framesLeft === 0) setImmediate(() => this.#beginTurn());
  }

  #beginTurn(): void {
    this.#framesLeft = FRAMES_PER_TURN;
    if (!this.#hasRest) return;
    this.#hasRest = false;
    if (!this.#isPaused) this.#socket.resume();
  }

  // ---- whether the peer is there

  /** Of the pings of one turn only the latest has to be answered. [RFC 6455 5.5.3] */
  #pinged(data: Buffer): void {
    if (this.#ping === undefined) setImmediate(() => this.#answerPing());
    this.#ping = data;
  }

  /** A peer that reads none of the answers gets no more of them than it has capacity for. */
  #answerPing(): void {
    const data = this.#ping;
    this.#ping = undefined;
    if (this.#state.kind === 'open' && !this.isFull) this.#socket.pong(data);
  }

  #checkLife(): void {
    if (this.#hasStalled()) {
      this.#tell({ kind: 'stalled', forMs: this.#stallMs });
      return this.terminate();
    }
    const { bytesRead } = this.#stream;
    // While nothing is read, an answer would not be seen.
    if (bytesRead !== this.#bytesSeen || this.#isPaused) {
      this.#bytesSeen = bytesRead;
      this.#missedPings = 0;
      return;
    }
    if (this.#missedPings >= MAX_MISSED_PINGS) {
      this.#tell({ kind: 'silent' });
      return this.terminate();
    }
    this.#missedPings += 1;
    this.#socket.ping();
  }

  /** A peer that we do not read may itself wait for us before it reads on. */
  #hasStalled(): boolean {
    const nowMs = this.#clock.now();
    const { bytesWritten, writableLength } = this.#stream;
    const written = { bytes: bytesWritten, queuedBytes: writableLength, socket: this.#stream };
    if (!this.#isPaused) return this.#reading.hasStopped(written, nowMs);
    this.#reading.excuse(nowMs);
    return false;
  }

  // ---- the end

  /** Closes it and says why. The listener hears nothing more. May be called twice. */
  close(code: number, reason: string): void {
    this.#isHeard = false;
    if (this.#state.kind !== 'open') return;
    this.#beginEnding();
    this.#socket.close(code, fitReason(reason));
  }

  /** Closes the connection without reading anything more: the peer is cut as soon as it has been told. */
  dismiss(code: number, reason: string): void {
    this.close(code, reason);
    this.#isPaused = true;
    this.#socket.pause();
    void this.flush().then(() => this.#socket.terminate());
  }

  /** Lets the peer go without a word, and tells the listener so. */
  cut(): void {
    this.#tell({ kind: 'cut' });
    this.terminate();
  }

  /** Cuts it. The listener hears nothing more. */
  terminate(): void {
    this.#isHeard = false;
    this.#isOver();
    this.#socket.terminate();
  }

  #beginEnding(): void {
    if (this.#state.kind === 'open') this.#state.stopPings();
    // The peer's own close is to be read.
    this.resume();
    const cancelTimeout = this.#clock.after(CLOSE_TIMEOUT_MS, () => this.#socket.terminate());
    this.#state = { kind: 'ending', cancelTimeout };
  }

  #isOver(): void {
    if (this.#state.kind === 'open') this.#state.stopPings();
    if (this.#state.kind === 'ending') this.#state.cancelTimeout();
    this.#state = { kind: 'over' };
  }

  #refuse(code: number, problem: string): void {
    this.#tell({ kind: 'refused', code, problem });
    this.close(code, problem);
  }

  /** The library has found something that is no WebSocket, or too large, and has sent a close frame that says so. */
  #failed(error: Error): void {
    this.#isDeaf = true;
    const { code, problem } = describeFault(error);
    if (this.#state.kind === 'open') this.#beginEnding();
    this.#tell({ kind: 'refused', code, problem });
  }

  #closed(code: number, reason: Buffer): void {
    this.#isOver();
    this.#tell(
      code === CLOSE_CODES.abnormal
        ? { kind: 'lost' }
        : { kind: 'closed', code, reason: toPrintable(reason.toString('utf8'), MAX_REASON_BYTES) },
    );
  }

  #tell(end: ConnectionEnd): void {
    if (!this.#isHeard) return;
    this.#isHeard = false;
    this.#listener.ended(end);
  }
}

/**
 * Takes the place of the library's listener for what the stream reads, and returns that listener: whoever gives it less at a
 * time decides how many messages the library tells of in a row.
 */
function takeOver(stream: Socket): (chunk: Buffer) => void {
  const listener = stream.listeners('data').at(-1) as ((chunk: Buffer) => void) | undefined;
  if (listener === undefined) throw new Error('the library reads the stream of an open WebSocket');
  stream.off('data', listener);
  return listener;
}

interface Fault {
  readonly code: number;
  readonly problem: string;
}

/** By the codes that the library documents; all others are about the framing. */
const FAULTS: ReadonlyMap<unknown, Fault> = new Map([
  [
    'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH',
    { code: CLOSE_CODES.tooBig, problem: 'a message that is larger than is allowed' },
  ],
  [
    'WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH',
    { code: CLOSE_CODES.tooBig, problem: 'a message that is larger than is allowed' },
  ],
  ['WS_ERR_INVALID_UTF8', { code: CLOSE_CODES.invalidText, problem: 'text that is not UTF-8' }],
  [
    'WS_ERR_TOO_MANY_BUFFERED_PARTS',
    { code: CLOSE_CODES.policyViolation, problem: 'a message in more fragments than are allowed' },
  ],
]);
const FRAMING: Fault = { code: CLOSE_CODES.protocolError, problem: 'a frame that WebSocket does not allow' };

function describeFault(error: Error): Fault {
  return FAULTS.get('code' in error ? error.code : undefined) ?? FRAMING;
}
