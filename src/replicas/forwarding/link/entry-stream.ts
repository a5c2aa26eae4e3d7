import type { LinkConnection } from './connection.ts';
import { detachPayload } from './frames.ts';
import { decodeReturnedHead, encodePassedHead, type PassedHead, type ReturnedHead } from './heads.ts';
import { type Fault, StreamEnd } from './stream-end.ts';

/** Receives what the owner sends in response to one forwarded request. */
export interface EntryStreamListener {
  responded(head: ReturnedHead): void;
  /**
   * Called with a part of the response body. The listener calls `read` of the stream once it has processed the bytes.
   */
  came(bytes: Buffer): void;
  /** Called when the response is complete; `last` is the end of its body. No further call follows. */
  completed(last: Buffer): void;
  /** Called when more of the request body can be written. */
  drained(): void;
  /**
   * Called when the request has failed. No further call follows.
   * - `unserved`: the owner has done nothing.
   * - `cut`: the owner has aborted the request. What it did before is unknown, and it does nothing further.
   * - `lost`: the link has ended, and most likely the owner with it. What the owner did is unknown.
   */
  failed(how: FailedHow, reason: string): void;
}

type FailedHow = 'unserved' | 'cut' | 'lost';

/** Limit of a response's head, larger than any that a replica sends. */
const MAX_HEAD_BYTES = 64 * 1024;
const NOTHING = Buffer.alloc(0);

export interface EntryStreamParts {
  readonly connection: LinkConnection;
  readonly listener: EntryStreamListener;
  readonly onOver: (stream: EntryStream) => void;
}

/** A forwarded request on a link, at the replica that forwards it. The counterpart is OwnerStream. */
export class EntryStream extends StreamEnd {
  readonly #listener: EntryStreamListener;
  readonly #onOver: (stream: EntryStream) => void;

  constructor(id: number, { connection, listener, onOver }: EntryStreamParts) {
    super(id, { connection, headType: 'head', maxHeadBytes: MAX_HEAD_BYTES });
    this.#listener = listener;
    this.#onOver = onOver;
  }

  begin(head: PassedHead): void {
    this.connection.sendHead('open', this.id, encodePassedHead(head));
  }

  /** Sends a part of the body. Returns false if the caller has to wait for `drained`. */
  write(bytes: Buffer): boolean {
    return this.output.write(bytes);
  }

  /** Ends the body of the request. */
  finish(): void {
    this.output.end();
  }

  /** Call this when bytes of the response have been processed, so that the owner may send more. */
  read(bytes: number): void {
    this.input.read(bytes);
  }

  /** Abandons the request. The listener is not called again. */
  leave(): void {
    this.reset();
  }

  fail(how: FailedHow, reason: string): void {
    this.end();
    this.#listener.failed(how, reason);
  }

  // ---- from the owner

  protected override headCame(bytes: Buffer): Fault {
    const head = decodeReturnedHead(bytes);
    if (head === undefined) return 'the head of a response is none';
    this.#listener.responded(head);
    return undefined;
  }

  protected override headTooLarge(): Fault {
    return 'the head of a response is too large';
  }

  protected override dataCame(payload: Buffer, isLast: boolean): void {
    if (!isLast) return this.#listener.came(detachPayload(payload));
    // The request was answered before it was sent completely, so the rest of its body is not needed.
    if (!this.output.isOver) this.connection.send('reset', this.id, NOTHING);
    this.end();
    this.#listener.completed(detachPayload(payload));
  }

  protected override wasReset(): void {
    this.fail('cut', 'the owner has broken off');
  }

  protected override drained(): void {
    this.#listener.drained();
  }

  protected override forget(): void {
    this.#onOver(this);
  }
}
