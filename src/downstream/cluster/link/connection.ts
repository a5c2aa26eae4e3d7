import type { Socket } from 'node:net';
import {
  decodeFrames,
  encodeFrameHead,
  FRAME_HEAD_BYTES,
  type FrameMark,
  type FrameType,
  type LinkFrame,
  MAX_PAYLOAD_BYTES,
} from './frames.ts';
import { MAX_RECORD_BYTES, RecordOpener, RecordSealer } from './records.ts';

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

export interface LinkConnectionOptions {
  readonly socket: Socket;
  /** Seals what is sent. */
  readonly sealingKey: Buffer;
  /** Opens what comes. */
  readonly openingKey: Buffer;
  readonly end: LinkEnd;
}

/** Bytes that have not left from which on bodies wait. Heads and all that is small do not. */
export const FULL_BYTES = 1024 * 1024;
/** A peer that lets so much wait beside bodies, which are held back, has stopped reading. */
export const MAX_UNSENT_BYTES = 32 * 1024 * 1024;
/** The operating system finds out after this, and some minutes, that a peer is gone without having closed its connection. */
const KEEP_ALIVE_MS = 30_000;

/** One connection between two replicas, from either end: frames that are sent in one turn of the event loop leave together. */
export class LinkConnection {
  readonly #socket: Socket;
  readonly #end: LinkEnd;
  readonly #sealer: RecordSealer;
  readonly #opener: RecordOpener;
  /** Whole frames, heads and payloads in turn, which leave at the end of this turn. */
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  #isFlushing = false;
  /** They take turns, in this order. */
  readonly #waiting = new Set<WaitingBody>();
  #isOver = false;
  /** Changes whenever frames leave: what was sent before cannot be changed after. */
  turn = 0;
  /** Counts records, as a sign of life. */
  recordsTaken = 0;

  constructor({ socket, sealingKey, openingKey, end }: LinkConnectionOptions) {
    this.#socket = socket;
    this.#end = end;
    this.#sealer = new RecordSealer(sealingKey);
    this.#opener = new RecordOpener(openingKey);
    socket.setTimeout(0);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('data', (piece: Buffer) => this.#push(piece));
    socket.on('drain', () => this.#goOn());
    socket.on('error', (error: NodeJS.ErrnoException) => this.cut(error.code ?? 'it broke'));
    socket.on('end', () => this.cut('the other end has closed it'));
    socket.on('close', () => this.cut('it broke'));
  }

  /** Takes what came behind the request that was upgraded, or its answer. */
  begin(head: Buffer): void {
    if (head.length > 0) this.#push(head);
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
    const queue = this.#queue;
    this.turn += 1;
    this.#queue = [];
    if (this.#queuedBytes <= MAX_RECORD_BYTES) {
      this.#write(queue, this.#queuedBytes);
      this.#queuedBytes = 0;
      return;
    }
    this.#queuedBytes = 0;
    this.#socket.cork();
    for (let first = 0; first < queue.length; ) {
      let bytes = 0;
      let next = first;
      for (; next < queue.length; next += 2) {
        const frameBytes = FRAME_HEAD_BYTES + (queue[next + 1] as Buffer).length;
        if (bytes + frameBytes > MAX_RECORD_BYTES) break;
        bytes += frameBytes;
      }
      this.#write(queue.slice(first, next), bytes);
      first = next;
    }
    this.#socket.uncork();
  }

  #write(frames: readonly Buffer[], bytes: number): void {
    const parts = this.#sealer.seal(Buffer.concat(frames, bytes));
    if (parts.length === 1) return void this.#socket.write(parts[0] as Buffer);
    this.#socket.cork();
    for (const part of parts) this.#socket.write(part);
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
    const isWell = this.#opener.push(piece, (record) => {
      this.recordsTaken += 1;
      const isRecord = decodeFrames(record, (frame) => {
        this.#end.take(frame);
        return !this.#isOver;
      });
      if (!isRecord) this.cut('it carried something else than frames');
      else if (!this.#isOver) this.#end.took();
      return !this.#isOver;
    });
    if (!isWell) this.cut('it carried something that the other end has not sealed');
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
