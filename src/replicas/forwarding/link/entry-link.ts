import type { Socket } from 'node:net';
import { LinkConnection, type LinkEnd } from './connection.ts';
import { EntryStream, type EntryStreamListener } from './entry-stream.ts';
import { type LinkFrame, MAX_STREAM } from './frames.ts';
import type { PassedHead } from './heads.ts';

/** Unsent bytes of a link from which no further requests are begun on it, because the other end does not read. */
const BUSY_BYTES = 8 * 1024 * 1024;
const NOTHING = Buffer.alloc(0);

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
  readonly #streams = new Map<number, EntryStream>();
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
  open(head: PassedHead, listener: EntryStreamListener): EntryStream | undefined {
    if (this.#connection.unsentBytes > BUSY_BYTES) return undefined;
    this.#latest += 1;
    const onOver = (over: EntryStream): void => this.#forget(over);
    const stream = new EntryStream(this.#latest, { connection: this.#connection, listener, onOver });
    this.#streams.set(stream.id, stream);
    stream.begin(head);
    if (this.#latest === MAX_STREAM) this.#retire();
    return stream;
  }

  #forget(stream: EntryStream): void {
    this.#streams.delete(stream.id);
    if (this.#state === 'retired' && this.#streams.size === 0) this.#connection.close('it is not needed anymore');
  }

  // ---- from the owner

  take(frame: LinkFrame): void {
    if (frame.type === 'leave') return this.#ownerLeaves(frame.stream);
    if (frame.stream === 0) return;
    if (frame.stream > this.#latest) return this.#connection.cut('it carried a response to nothing');
    // Ignore frames for an abandoned request that the owner sent before it received the reset.
    const fault = this.#streams.get(frame.stream)?.take(frame);
    if (fault !== undefined) this.#connection.cut(fault);
  }

  #ownerLeaves(last: number): void {
    this.#retire();
    for (const stream of [...this.#streams.values()]) {
      if (stream.id > last) stream.fail('unserved', 'the owner is shutting down');
    }
  }

  took(): void {}

  // ---- its end

  /** Accepts no further requests, and closes the link after the last one under way. */
  #retire(): void {
    if (this.#state !== 'open') return;
    this.#state = 'retired';
    this.#options.onRetired();
    if (this.#streams.size === 0) this.#connection.close('it is not needed anymore');
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
    for (const stream of [...this.#streams.values()]) stream.fail('lost', reason);
    this.#options.onClosed(reason);
  }
}
