import type { Socket } from 'node:net';
import { BodyInput, BodyOutput } from './body-flow.ts';
import { LinkConnection, type LinkEnd } from './connection.ts';
import { detachPayload, type LinkFrame, MAX_STREAM, windowOf } from './frames.ts';
import { decodeReturnedHead, encodePassedHead, type PassedHead, type ReturnedHead } from './heads.ts';

/** Receives what the owner sends in response to one forwarded request. */
export interface PassedStreamListener {
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
  failed(how: 'unserved' | 'cut' | 'lost', reason: string): void;
}

/** Limit of a response's head, larger than any that a replica sends. */
const MAX_HEAD_BYTES = 64 * 1024;
/** Unsent bytes of a link from which no further requests are begun on it, because the other end does not read. */
const BUSY_BYTES = 8 * 1024 * 1024;
const NOTHING = Buffer.alloc(0);

/** A forwarded request on a link, at the replica that forwards it. */
export class PassedStream {
  readonly id: number;
  readonly listener: PassedStreamListener;
  readonly output: BodyOutput;
  readonly input: BodyInput;
  readonly #left: (stream: PassedStream) => void;
  /** Received part of the response's head, or undefined once the head is complete. */
  unreadHead: Buffer | undefined = NOTHING;

  constructor(
    id: number,
    {
      connection,
      listener,
      left,
    }: {
      readonly connection: LinkConnection;
      readonly listener: PassedStreamListener;
      readonly left: (stream: PassedStream) => void;
    },
  ) {
    this.id = id;
    this.listener = listener;
    this.output = new BodyOutput(connection, id, () => listener.drained());
    this.input = new BodyInput(connection, id);
    this.#left = left;
  }

  /** Sends a part of the body. Returns false if the caller has to wait for `drained`. */
  write(bytes: Buffer): boolean {
    return this.output.write(bytes);
  }

  /** Ends the body. */
  end(): void {
    this.output.end();
  }

  /** Call this when bytes of the response have been processed, so that the owner may send more. */
  read(bytes: number): void {
    this.input.read(bytes);
  }

  /** Abandons the request. The listener is not called again. */
  leave(): void {
    this.#left(this);
  }
}

/**
 * - `open`: accepts requests.
 * - `retired`: accepts no further requests, and closes after the last one that is under way.
 * - `closed`: the connection has ended.
 */
type EntryLinkState = 'open' | 'retired' | 'closed';

export interface EntryLinkOptions {
  /** Socket on which TLS is established. */
  readonly socket: Socket;
  /** Called when the link accepts no further requests. */
  readonly onRetired: () => void;
  readonly onClosed: (reason: string) => void;
}

/** A link at the replica that has opened it and forwards requests. */
export class EntryLink implements LinkEnd {
  readonly #options: EntryLinkOptions;
  readonly #connection: LinkConnection;
  readonly #streams = new Map<number, PassedStream>();
  #latest = 0;
  #state: EntryLinkState = 'open';
  /** `piecesTaken` of the connection at the last check, and the number of checks since which nothing was received. */
  #piecesSeen = 0;
  #silentLooks = 0;
  #idleLooks = 0;

  constructor(options: EntryLinkOptions) {
    this.#options = options;
    this.#connection = new LinkConnection(options.socket, this);
  }

  /** True if the link carries requests. */
  get isBusy(): boolean {
    return this.#streams.size > 0;
  }

  /** Begins a request. Returns undefined if too many bytes are unsent. */
  open(head: PassedHead, listener: PassedStreamListener): PassedStream | undefined {
    if (this.#connection.unsentBytes > BUSY_BYTES) return undefined;
    this.#latest += 1;
    const left = (stream: PassedStream): void => this.#leave(stream);
    const stream = new PassedStream(this.#latest, { connection: this.#connection, listener, left });
    this.#streams.set(stream.id, stream);
    this.#connection.sendHead('open', stream.id, encodePassedHead(head));
    if (this.#latest === MAX_STREAM) this.#retire();
    return stream;
  }

  #leave(stream: PassedStream): void {
    if (!this.#streams.has(stream.id)) return;
    this.#connection.send('reset', stream.id, NOTHING);
    this.#forget(stream);
  }

  #forget(stream: PassedStream): void {
    stream.output.stop();
    this.#streams.delete(stream.id);
    if (this.#state === 'retired' && this.#streams.size === 0) this.#connection.close('it is not needed any more');
  }

  // ---- from the owner

  take(frame: LinkFrame): void {
    if (frame.type === 'leave') return this.#ownerLeaves(frame.stream);
    if (frame.stream === 0) return;
    if (frame.stream > this.#latest) return this.#connection.cut('it carried a response to nothing');
    const stream = this.#streams.get(frame.stream);
    // Ignore frames for an abandoned request that the owner sent before it received the reset.
    if (stream === undefined) return;
    switch (frame.type) {
      case 'head':
        return this.#takeHead(stream, frame);
      case 'data':
        return this.#takeData(stream, frame);
      case 'window':
        if (!stream.output.widen(windowOf(frame))) this.#connection.cut('more was read than was sent');
        return;
      case 'reset':
        this.#forget(stream);
        return stream.listener.failed('cut', 'the owner has broken off');
      default:
        return this.#connection.cut('it carried something that no owner says');
    }
  }

  #takeHead(stream: PassedStream, { payload, mark }: LinkFrame): void {
    if (stream.unreadHead === undefined) return this.#connection.cut('it carried two heads of one response');
    const bytes = stream.unreadHead.length === 0 ? payload : Buffer.concat([stream.unreadHead, payload]);
    if (bytes.length > MAX_HEAD_BYTES) return this.#connection.cut('the head of a response is too large');
    stream.unreadHead = mark === 'more' ? bytes : undefined;
    if (mark === 'more') return;
    const head = decodeReturnedHead(bytes);
    if (head === undefined) return this.#connection.cut('the head of a response is none');
    stream.listener.responded(head);
  }

  #takeData(stream: PassedStream, { payload, mark }: LinkFrame): void {
    if (stream.unreadHead !== undefined) return this.#connection.cut('it carried a body in front of its head');
    if (!stream.input.came(payload.length)) return this.#connection.cut('more came than was welcome');
    if (mark !== 'last') return stream.listener.came(detachPayload(payload));
    stream.input.end();
    // The request was answered before it was sent completely, so the rest of its body is not needed.
    if (!stream.output.isOver) this.#connection.send('reset', stream.id, NOTHING);
    this.#forget(stream);
    stream.listener.completed(detachPayload(payload));
  }

  #ownerLeaves(last: number): void {
    this.#retire();
    for (const stream of [...this.#streams.values()]) {
      if (stream.id <= last) continue;
      this.#forget(stream);
      stream.listener.failed('unserved', 'the owner is shutting down');
    }
  }

  took(): void {}

  // ---- its end

  /** Accepts no further requests, and closes the link after the last one under way. */
  #retire(): void {
    if (this.#state !== 'open') return;
    this.#state = 'retired';
    this.#options.onRetired();
    if (this.#streams.size === 0) this.#connection.close('it is not needed any more');
  }

  /**
   * Checks for silent and idle links. Called at regular intervals.
   * @param looks number of checks after which a busy link without any received bytes is retired (after twice as many it
   * is cut), and after which an idle link is closed
   */
  look(looks: { readonly silent: number; readonly idle: number }): void {
    const { piecesTaken } = this.#connection;
    this.#idleLooks = this.#streams.size === 0 ? this.#idleLooks + 1 : 0;
    if (this.#idleLooks >= looks.idle) return this.#retire();
    if (this.#streams.size === 0) return;
    this.#silentLooks = piecesTaken === this.#piecesSeen ? this.#silentLooks + 1 : 0;
    this.#piecesSeen = piecesTaken;
    if (this.#silentLooks === 0) return;
    // Further requests use another link, while it is unknown whether this owner is only slow.
    if (this.#silentLooks >= looks.silent) this.#retire();
    if (this.#silentLooks >= 2 * looks.silent) return this.cut('nothing was heard on it for too long');
    this.#connection.send('ping', 0, NOTHING);
  }

  /** Ends the link at once. Requests under way fail with `lost`. */
  cut(reason: string): void {
    this.#connection.cut(reason);
  }

  ended(reason: string): void {
    if (this.#state === 'open') this.#options.onRetired();
    this.#state = 'closed';
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const { output, listener } of streams) {
      output.stop();
      listener.failed('lost', reason);
    }
    this.#options.onClosed(reason);
  }
}
