import type { Socket } from 'node:net';
import {
  encodeFrameHead,
  FRAME_HEAD_BYTES,
  type FrameMark,
  FrameReader,
  type FrameType,
  type LinkFrame,
  MAX_PAYLOAD_BYTES,
} from './frames.ts';

/** The receiver of a connection's frames. */
export interface LinkEnd {
  take(frame: LinkFrame): void;
  /** Called after all frames of one received chunk have been passed to `take`. */
  took(): void;
  /** Called once when the link has ended. `send` never calls it synchronously, so its callers need not expect it. */
  ended(reason: string): void;
}

/** A body that waits until the connection has capacity. */
export interface WaitingBody {
  goOn(): void;
}

/** Unsent bytes from which bodies wait. Heads and other small frames do not wait. */
export const FULL_BYTES = 1024 * 1024;
/**
 * Unsent bytes at which the connection is cut. Since bodies are held back at FULL_BYTES, the peer must have stopped
 * reading.
 */
export const MAX_UNSENT_BYTES = 32 * 1024 * 1024;
/** Frames with more bytes than this in total are written separately instead of being copied into one buffer. */
const JOIN_BELOW_BYTES = 16 * 1024;
/**
 * Idle time before TCP keep-alive probes, with which the operating system detects after some further minutes that a
 * peer is gone without having closed its connection.
 */
const KEEP_ALIVE_MS = 30_000;

/**
 * The connection between two replicas, used at both ends. Frames sent in one turn of the event loop are written
 * together.
 */
export class LinkConnection {
  readonly #socket: Socket;
  readonly #end: LinkEnd;
  readonly #reader = new FrameReader();
  /** Heads and payloads of complete frames, which are written at the end of this turn of the event loop. */
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  #isFlushing = false;
  /** Bodies that wait for capacity, served in turn in this order. */
  readonly #waiting = new Set<WaitingBody>();
  #isOver = false;
  /** Increases whenever queued frames are written. Frames sent in an earlier turn cannot be changed anymore. */
  turn = 0;
  /** Count of received chunks, which serves as a sign of life. */
  piecesTaken = 0;

  /** @param socket socket on which TLS is established; see upgrade.ts */
  constructor(socket: Socket, end: LinkEnd) {
    this.#socket = socket;
    this.#end = end;
    socket.setTimeout(0);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('data', (piece: Buffer) => this.#push(piece));
    socket.on('drain', () => this.#goOn());
    socket.on('error', (error: NodeJS.ErrnoException) => this.cut(error.code ?? 'it broke'));
    socket.on('end', () => this.cut('the other end has closed it'));
    socket.on('close', () => this.cut('it broke'));
  }

  /** Bytes sent that the operating system has not accepted yet. */
  get unsentBytes(): number {
    return this.#queuedBytes + this.#socket.writableLength;
  }

  /** True if bodies have to wait. */
  get isFull(): boolean {
    return this.unsentBytes >= FULL_BYTES;
  }

  /** Calls `goOn` of the body once there is capacity. */
  wait(body: WaitingBody): void {
    this.#waiting.add(body);
  }

  /** Queues a frame. Returns its head, which can be changed until `turn` changes. */
  send(type: FrameType, stream: number, payload: Buffer, mark: FrameMark = 'none'): Buffer {
    const head = encodeFrameHead(type, stream, mark, payload.length);
    if (this.#isOver) return head;
    this.#queue.push(head, payload);
    this.#queuedBytes += FRAME_HEAD_BYTES + payload.length;
    if (!this.#isFlushing) {
      this.#isFlushing = true;
      setImmediate(() => this.#endTurn());
    }
    return head;
  }

  /** Sends the head of a request or response, split into several frames if it is large. */
  sendHead(type: 'open' | 'head', stream: number, head: Buffer): void {
    let at = 0;
    for (; head.length - at > MAX_PAYLOAD_BYTES; at += MAX_PAYLOAD_BYTES) {
      this.send(type, stream, head.subarray(at, at + MAX_PAYLOAD_BYTES), 'more');
    }
    this.send(type, stream, at === 0 ? head : head.subarray(at));
  }

  #endTurn(): void {
    this.#isFlushing = false;
    this.flush();
    if (this.unsentBytes > MAX_UNSENT_BYTES) return this.cut('its other end reads nothing');
    this.#goOn();
  }

  /** Writes the queued frames now instead of at the end of the turn. */
  flush(): void {
    if (this.#queue.length === 0 || this.#isOver) return;
    const [queue, bytes] = [this.#queue, this.#queuedBytes];
    this.turn += 1;
    this.#queue = [];
    this.#queuedBytes = 0;
    if (bytes <= JOIN_BELOW_BYTES) return void this.#socket.write(Buffer.concat(queue, bytes));
    this.#socket.cork();
    for (const part of queue) this.#socket.write(part);
    this.#socket.uncork();
  }

  #goOn(): void {
    for (const body of this.#waiting) {
      if (this.isFull || this.#isOver) return;
      this.#waiting.delete(body);
      body.goOn();
    }
  }

  #push(piece: Buffer): void {
    if (this.#isOver) return;
    this.piecesTaken += 1;
    const areFrames = this.#reader.push(piece, (frame) => {
      this.#end.take(frame);
      return !this.#isOver;
    });
    if (!areFrames) this.cut('it carried something else than frames');
    else if (!this.#isOver) this.#end.took();
  }

  /** Closes the connection after the queued frames have been sent. */
  close(reason: string): void {
    if (this.#isOver) return;
    this.flush();
    this.#over(reason);
    this.#socket.destroySoon();
  }

  /** Destroys the connection at once. */
  cut(reason: string): void {
    if (this.#isOver) return;
    this.#over(reason);
    this.#socket.destroy();
  }

  #over(reason: string): void {
    this.#isOver = true;
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#waiting.clear();
    this.#end.ended(reason);
  }
}
