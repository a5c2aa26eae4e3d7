import { isUtf8 } from 'node:buffer';
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { Clock } from '../../deps.ts';
import { toPrintable } from '../../printable.ts';
import { ReadingWatch } from '../reading-watch.ts';
import { ArrivingFrames } from './arriving-frames.ts';
import { CLOSE_CODES, fitReason, MAX_REASON_BYTES } from './close-codes.ts';

/**
 * The connection is full from this size on. It must not be below Node's own high-water mark, or no `drain` event would
 * follow.
 */
export const HIGH_WATER_BYTES = 64 * 1024;
/**
 * A peer that has been silent for this long is pinged. Intermediaries (load balancers, home routers) drop connections
 * that are idle for a minute, and without pings a vanished peer would not be noticed.
 */
export const PING_MS = 25_000;
/** After this many pings without a byte in return the peer counts as gone. */
export const MAX_MISSED_PINGS = 2;
/** Time for the peer to close its side after a close frame. */
export const CLOSE_TIMEOUT_MS = 5000;

/** The only subprotocol of MCP. */
export const SUBPROTOCOL = 'mcp';

/**
 * Frames of one peer that are processed before all others get a turn. A single read may have ten thousand of them, and
 * the system delivers megabytes at once. The number is large enough for their responses to be written together.
 */
export const FRAMES_PER_TURN = 32;

/**
 * Options of the library for both sides. Compression is off: it takes 300 KB per connection and a pass through the
 * thread pool per message, and the length of data compressed together can reveal its content. The bridge sends pongs
 * itself. Messages are emitted synchronously, because the library only gets as many frames as there is time for.
 */
export const LIBRARY_OPTIONS = { perMessageDeflate: false, autoPong: false, allowSynchronousEvents: true } as const;

/** The library stores this limit in 32 bits. */
export function maxPayloadOf(maxMessageBytes: number): number {
  return Math.min(maxMessageBytes, 2 ** 31 - 1);
}

/**
 * The reason for the end of a connection. `closed`: by the peer; 1005 stands for a missing code, and `reason` is
 * printable. `refused`: the peer sent something unacceptable and was told so. `silent`: the peer did not answer pings.
 * `stalled`: the peer read none of the waiting bytes, even if it sent messages. `cut`: this side destroyed the
 * connection. `lost`: the connection broke without a close frame.
 */
export type ConnectionEnd =
  | { readonly kind: 'closed'; readonly code: number; readonly reason: string }
  | { readonly kind: 'refused'; readonly code: number; readonly problem: string }
  | { readonly kind: 'silent' | 'lost' | 'cut' }
  | { readonly kind: 'stalled'; readonly forMs: number };

/** The events of a connection. */
export interface WebSocketListener {
  /** Receives a message and owns its bytes. */
  message(bytes: Buffer): void;
  /** Memory used by the incomplete message; 0 if there is none. Called for each part that arrives. */
  holds?(bytes: number): void;
  /** The connection can take messages again, after `send` returned false. */
  drained(): void;
  /** The connection has ended. Called once, and not for a connection that this side closed. */
  ended(end: ConnectionEnd): void;
}

export interface WebSocketConnectionOptions {
  /** An open WebSocket, created with LIBRARY_OPTIONS. */
  readonly socket: WebSocket;
  /** The underlying TCP or TLS connection. */
  readonly stream: Socket;
  readonly clock: Clock;
  readonly pingMs?: number;
}

/**
 * State of the connection. `open`: messages flow. `ending`: a close frame was sent, and the peer has `CLOSE_TIMEOUT_MS`
 * to answer it. `over`: the connection is closed.
 */
type State =
  | { readonly kind: 'open'; readonly stopPings: () => void }
  | { readonly kind: 'ending'; readonly cancelTimeout: () => void }
  | { readonly kind: 'over' };

const TEXT = { binary: false } as const;

/** Sends and receives messages over a WebSocket, on either side. Each message is a text frame. */
export class WebSocketConnection {
  readonly #socket: WebSocket;
  readonly #stream: WebSocketConnectionOptions['stream'];
  readonly #clock: Clock;
  readonly #listener: WebSocketListener;
  readonly #reading: ReadingWatch;
  /** Time limit for a peer that reads nothing, the same as for a silent one. */
  readonly #stallMs: number;
  #state: State;
  /** True while the listener still gets messages and the end. */
  #isHeard = true;
  #isPaused = false;
  readonly #frames = new ArrivingFrames();
  /** The library's own `data` listener. */
  readonly #deliver: (chunk: Buffer) => void;
  /** Frames that may be processed in this turn. With 0, the peer waits for the next turn. */
  #framesLeft = FRAMES_PER_TURN;
  /** True if received bytes wait for the next turn. */
  #hasRest = false;
  /** True if received bytes are ignored, because the peer has sent a close frame or violated the protocol. */
  #isDeaf = false;
  /** True if `send` has returned false and `drained` has not been called since. */
  #owesDrain = false;
  #sentInTurn = 0;
  #bytesSeen: number;
  #missedPings = 0;
  /** The payload of the peer's latest ping until it is answered. */
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

  /**
   * Sends a message, whose bytes must not change afterward. Returns false if the connection is full; the message is
   * still sent. Drops messages after the end.
   */
  send(bytes: Buffer): boolean {
    if (this.#state.kind !== 'open') return true;
    this.#gather();
    this.#socket.send(bytes, TEXT);
    if (!this.isFull) return true;
    this.#owesDrain = true;
    return false;
  }

  /**
   * The first message in a turn of the event loop is written at once; further ones in the same turn are written
   * together at its end.
   */
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

  /** Bytes that were sent but not yet accepted by the operating system. */
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

  /** Resolves when everything sent so far was accepted by the operating system, or the connection is closed. */
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
    // The library has checked text messages. [RFC 6455 8.1]
    if (isBinary && !isUtf8(data)) {
      return this.#refuse(CLOSE_CODES.unsupportedData, 'a binary message that is not UTF-8; messages are JSON');
    }
    this.#listener.message(data);
  }

  /** Pauses reading. Messages that the library already has, at most those of one turn, are still delivered. */
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

  /**
   * Passes bytes to the library. Those beyond this turn's frames are put back into the stream, so that they are not
   * lost if the connection ends meanwhile.
   */
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

  /**
   * The count continues across turns, so a peer that sends little costs one `setImmediate` per `FRAMES_PER_TURN`
   * frames.
   */
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

  // ---- Liveness of the peer

  /** Only the latest ping of a turn is answered. [RFC 6455 5.5.3] */
  #pinged(data: Buffer): void {
    if (this.#ping === undefined) setImmediate(() => this.#answerPing());
    this.#ping = data;
  }

  /** A peer that does not read its pongs gets no further ones while the connection is full. */
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
    // While reading is paused, a pong would not be seen.
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

  /** A paused connection is excused: the peer may not read on until the bridge reads its messages. */
  #hasStalled(): boolean {
    const nowMs = this.#clock.now();
    const { bytesWritten, writableLength } = this.#stream;
    const written = { bytes: bytesWritten, queuedBytes: writableLength, socket: this.#stream };
    if (!this.#isPaused) return this.#reading.hasStopped(written, nowMs);
    this.#reading.excuse(nowMs);
    return false;
  }

  // ---- Closing

  /** Closes the connection with a code and a reason. The listener is not called anymore. Can be called repeatedly. */
  close(code: number, reason: string): void {
    this.#isHeard = false;
    if (this.#state.kind !== 'open') return;
    this.#beginEnding();
    this.#socket.close(code, fitReason(reason));
  }

  /** Closes the connection without reading any further, and destroys it as soon as the close frame is written. */
  dismiss(code: number, reason: string): void {
    this.close(code, reason);
    this.#isPaused = true;
    this.#socket.pause();
    void this.flush().then(() => this.#socket.terminate());
  }

  /** Destroys the connection without a close frame, and tells the listener. */
  cut(): void {
    this.#tell({ kind: 'cut' });
    this.terminate();
  }

  /** Destroys the connection without a close frame. The listener is not called anymore. */
  terminate(): void {
    this.#isHeard = false;
    this.#isOver();
    this.#socket.terminate();
  }

  #beginEnding(): void {
    if (this.#state.kind === 'open') this.#state.stopPings();
    // Reading must continue to receive the peer's close frame.
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

  /**
   * Called when the library has received an invalid or oversized frame. It has already sent a close frame with the
   * reason.
   */
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
 * Removes the library's listener for the stream's data and returns it. By passing smaller pieces to that listener, the
 * caller limits how many messages the library emits in a row.
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

/** Faults by the library's documented error codes. All other codes are about framing. */
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
