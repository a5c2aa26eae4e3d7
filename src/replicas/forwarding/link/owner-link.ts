import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { LinkConnection, type LinkEnd } from './connection.ts';
import type { LinkFrame } from './frames.ts';
import { OwnerStream, type OwnerStreamParts } from './owner-stream.ts';

export interface OwnerLinkOptions {
  /** Socket on which TLS is established. */
  readonly socket: Socket;
  /** Largest head of a request. */
  readonly maxHeaderBytes: number;
  readonly serve: RequestListener;
  readonly onEnded: (reason: string) => void;
}

/** Limit of streams on a link, twice the number of requests that one replica forwards. */
const MAX_STREAMS = 8192;
/** A header's character may take two bytes in JSON. The head also contains the name of the caller. */
const HEAD_FACTOR = 2;
const MAX_CALLER_BYTES = 8 * 1024;
const NOTHING = Buffer.alloc(0);

/** A link at the replica that receives forwarded requests. */
export class OwnerLink implements LinkEnd {
  readonly #connection: LinkConnection;
  readonly #parts: OwnerStreamParts;
  readonly #onEnded: (reason: string) => void;
  readonly #streams = new Map<number, OwnerStream>();
  /** Number of the latest stream that was begun. */
  #latest = 0;
  /** Stream whose head has arrived and whose body may be in the same received chunk. */
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
    // Ignore frames of a stream that has ended here or was never begun, of which the other end does not know yet.
    if (stream === undefined) return;
    const fault = stream.take(frame);
    if (fault !== undefined) return this.#connection.cut(fault);
    this.#held = stream.isHeld ? stream : undefined;
  }

  #opened(id: number): OwnerStream | undefined {
    const known = this.#streams.get(id);
    if (known !== undefined) return known;
    // Ignore the stream. While leaving, the sender has been or will be told that nothing was done for it. Otherwise the
    // frame is the rest of a head that was rejected.
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

  /** Finishes the streams that have begun and accepts no others. The other end closes the link after the last one. */
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
    for (const stream of [...this.#streams.values()]) stream.abort();
    this.#onEnded(reason);
  }
}
