import type { Socket } from 'node:net';
import type { ServePassed } from '../hops.ts';
import { LinkConnection, type LinkEnd } from './connection.ts';
import { type LinkFrame, windowOf } from './frames.ts';
import { OwnerStream, type OwnerStreamParts } from './owner-stream.ts';

export interface OwnerLinkOptions {
  /** With TLS. */
  readonly socket: Socket;
  /** Largest head of a request. */
  readonly maxHeaderBytes: number;
  readonly serve: ServePassed;
  readonly onEnded: (reason: string) => void;
}

/** Twice what one replica passes on. */
const MAX_STREAMS = 8192;
/** In JSON a character of a header may have two bytes; and the name of the caller is in it, too. */
const HEAD_FACTOR = 2;
const MAX_CALLER_BYTES = 8 * 1024;
const NOTHING = Buffer.alloc(0);

/** A link, at the replica that others pass requests on to. */
export class OwnerLink implements LinkEnd {
  readonly #connection: LinkConnection;
  readonly #parts: OwnerStreamParts;
  readonly #onEnded: (reason: string) => void;
  readonly #streams = new Map<number, OwnerStream>();
  /** The latest stream that was begun. */
  #latest = 0;
  /** Waits for the rest of what came together. */
  #held: OwnerStream | undefined;
  #isLeaving = false;

  constructor({ socket, maxHeaderBytes, serve, onEnded }: OwnerLinkOptions) {
    this.#connection = new LinkConnection(socket, this);
    this.#onEnded = onEnded;
    this.#parts = {
      connection: this.#connection,
      maxHeadBytes: HEAD_FACTOR * maxHeaderBytes + MAX_CALLER_BYTES,
      serve,
      onOver: ({ id }) => void this.#streams.delete(id),
    };
  }

  take(frame: LinkFrame): void {
    const { type, stream: id } = frame;
    if (this.#held !== undefined && (id !== this.#held.id || type !== 'data')) this.took();
    if (type === 'ping') return void this.#connection.send('pong', 0, NOTHING);
    const stream = type === 'open' ? this.#opened(id) : this.#streams.get(id);
    // It is over here, or was never begun, and the other end has not known yet.
    if (stream === undefined) return;
    const fault = this.#takeFor(stream, frame);
    if (fault !== undefined) return this.#connection.cut(fault);
    this.#held = stream.isHeld ? stream : undefined;
  }

  #takeFor(stream: OwnerStream, frame: LinkFrame): string | undefined {
    switch (frame.type) {
      case 'open':
        return stream.takeHead(frame);
      case 'data':
        return stream.takeData(frame);
      case 'window':
        return stream.takeWindow(windowOf(frame));
      case 'reset':
        stream.end();
        return undefined;
      default:
        return 'it carried something that only owners say';
    }
  }

  #opened(id: number): OwnerStream | undefined {
    const known = this.#streams.get(id);
    if (known !== undefined) return known;
    // Its sender is told that nothing is done for it, or knows that already; or it is the rest of a head that was refused.
    if (this.#isLeaving || (id === this.#latest && id > 0)) return undefined;
    if (id <= this.#latest || this.#streams.size >= MAX_STREAMS) {
      this.#connection.cut('it carried more requests than it may, or one with a number that was used');
      return undefined;
    }
    this.#latest = id;
    const stream = new OwnerStream(id, this.#parts);
    this.#streams.set(id, stream);
    return stream;
  }

  took(): void {
    const held = this.#held;
    this.#held = undefined;
    held?.serve();
  }

  /** Serves what has been begun, and nothing else. The other end closes the link when that is over. */
  leave(): void {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    this.#connection.send('leave', this.#latest, NOTHING);
  }

  close(): void {
    this.#connection.close('this replica ends');
  }

  cut(reason: string): void {
    this.#connection.cut(reason);
  }

  ended(reason: string): void {
    for (const stream of [...this.#streams.values()]) stream.end();
    this.#onEnded(reason);
  }
}
