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

/** What is at an end of a link, and what it hears. */
export interface LinkEnd {
  take(frame: LinkFrame): void;
  /** All frames that came together were taken. */
  took(): void;
  /** Nothing comes any more. Called once, and not from within `send`. */
  ended(reason: string): void;
}

/** A body that waits until the connection has capacity. */
export interface WaitingBody {
  goOn(): void;
}

/** Bytes that have not left from which on bodies wait. Heads and all that is small do not. */
export const FULL_BYTES = 1024 * 1024;
/** A peer that lets so much wait beside bodies, which are held back, has stopped reading. */
export const MAX_UNSENT_BYTES = 32 * 1024 * 1024;
/** Frames with more bytes than this are not copied into one buffer. */
const JOIN_BELOW_BYTES = 16 * 1024;
/** The operating system finds out after this, and some minutes, that a peer is gone without having closed its connection. */
const KEEP_ALIVE_MS = 30_000;

/** One connection between two replicas, from either end: frames that are sent in one turn of the event loop leave together. */
export class LinkConnection {
  readonly #socket: Socket;
  readonly #end: LinkEnd;
  readonly #reader = new FrameReader();
  /** Whole frames, heads and payloads in turn, which leave at the end of this turn. */
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  #isFlushing = false;
  /** They take turns, in this order. */
  readonly #waiting = new Set<WaitingBody>();
  #isOver = false;
  /** Changes whenever frames leave: what was sent before cannot be changed after. */
  turn = 0;
  /** Counts what has come, as a sign of life. */
  piecesTaken = 0;

  /** @param socket with TLS (upgrade.ts) */
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

  /** Written, and not taken by the operating system yet. */
  get unsentBytes(): number {
    return this.#queuedBytes + this.#socket.writableLength;
  }

  /** Bodies have to wait. */
  get isFull(): boolean {
    return this.unsentBytes >= FULL_BYTES;
  }

  /** Has the body go on once there is capacity. */
  wait(body: WaitingBody): void {
    this.#waiting.add(body);
  }

  /** Returns the head of the frame, which can be changed until `turn` does. */
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

  /** Sends the head of a request or a response, in as many frames as it takes. */
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

  /** Writes what has been sent now instead of at the end of the turn. */
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

  /** Lets go of the connection once what was sent has left. */
  close(reason: string): void {
    if (this.#isOver) return;
    this.flush();
    this.#over(reason);
    this.#socket.destroySoon();
  }

  /** Breaks the connection. */
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
