import type { Socket } from 'node:net';
import { BodyInput, BodyOutput } from './body-flow.ts';
import { LinkConnection, type LinkEnd } from './connection.ts';
import { detachPayload, type LinkFrame, MAX_STREAM, windowOf } from './frames.ts';
import { decodeReturnedHead, encodePassedHead, type PassedHead, type ReturnedHead } from './heads.ts';

/** Whoever passes a request on, and what it hears of it. */
export interface PassedStreamListener {
  responded(head: ReturnedHead): void;
  /** A part of the response's body has come. Whoever has dealt with it says so to the stream. */
  came(bytes: Buffer): void;
  /** The response is complete; `last` was the end of its body. Nothing else is heard. */
  completed(last: Buffer): void;
  /** More of the request can be sent. */
  drained(): void;
  /**
   * Nothing else is heard.
   * - `unserved`: the owner has done nothing.
   * - `cut`: the owner has broken off. Nobody knows what it has done, and it does nothing further.
   * - `lost`: so has the link, and most likely the owner with it.
   */
  failed(how: 'unserved' | 'cut' | 'lost', reason: string): void;
}

/** More than any response of a replica has. */
const MAX_HEAD_BYTES = 64 * 1024;
/** So much waits in a link whose other end does not read; then nothing new is begun on it. */
const BUSY_BYTES = 8 * 1024 * 1024;
const NOTHING = Buffer.alloc(0);

/** One request on a link, as the replica has it that passes it on. */
export class PassedStream {
  readonly id: number;
  readonly listener: PassedStreamListener;
  readonly output: BodyOutput;
  readonly input: BodyInput;
  readonly #left: (stream: PassedStream) => void;
  /** What has come of the head of the response; undefined: all of it has. */
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

  /** Sends a part of the body. False: wait for `drained`. */
  write(bytes: Buffer): boolean {
    return this.output.write(bytes);
  }

  /** Ends the body. */
  end(): void {
    this.output.end();
  }

  /** So much of the response was dealt with. */
  read(bytes: number): void {
    this.input.read(bytes);
  }

  /** Nothing of it matters any more. */
  leave(): void {
    this.#left(this);
  }
}

/**
 * - `open`: takes requests.
 * - `retired`: those that it carries come to their end, and it takes no others.
 * - `closed`.
 */
type EntryLinkState = 'open' | 'retired' | 'closed';

export interface EntryLinkOptions {
  /** With TLS. */
  readonly socket: Socket;
  /** It takes no further requests. */
  readonly onRetired: () => void;
  readonly onClosed: (reason: string) => void;
}

/** A link, at the replica that has opened it and passes requests on. */
export class EntryLink implements LinkEnd {
  readonly #options: EntryLinkOptions;
  readonly #connection: LinkConnection;
  readonly #streams = new Map<number, PassedStream>();
  #latest = 0;
  #state: EntryLinkState = 'open';
  /** What had come when it was last looked at, and how many looks nothing has come since. */
  #piecesSeen = 0;
  #silentLooks = 0;
  #idleLooks = 0;

  constructor(options: EntryLinkOptions) {
    this.#options = options;
    this.#connection = new LinkConnection(options.socket, this);
  }

  /** Something is under way on it. */
  get isBusy(): boolean {
    return this.#streams.size > 0;
  }

  /** Undefined: too much waits in it. */
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
    // Whoever asked has left, and the owner has not known yet.
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
    // Nobody wants the rest of a request that was refused before it was read.
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

  /** It takes no further requests, and ends with the last of those that it carries. */
  #retire(): void {
    if (this.#state !== 'open') return;
    this.#state = 'retired';
    this.#options.onRetired();
    if (this.#streams.size === 0) this.#connection.close('it is not needed any more');
  }

  /**
   * Called now and then.
   * @param looks how often that happens until a link is suspect that says nothing, and one is closed that carries nothing
   */
  look(looks: { readonly silent: number; readonly idle: number }): void {
    const { piecesTaken } = this.#connection;
    this.#idleLooks = this.#streams.size === 0 ? this.#idleLooks + 1 : 0;
    if (this.#idleLooks >= looks.idle) return this.#retire();
    if (this.#streams.size === 0) return;
    this.#silentLooks = piecesTaken === this.#piecesSeen ? this.#silentLooks + 1 : 0;
    this.#piecesSeen = piecesTaken;
    if (this.#silentLooks === 0) return;
    // Others may still find another way to the owner, while it is not known whether it is only slow.
    if (this.#silentLooks >= looks.silent) this.#retire();
    if (this.#silentLooks >= 2 * looks.silent) return this.cut('nothing was heard on it for too long');
    this.#connection.send('ping', 0, NOTHING);
  }

  /** Whatever the owner would still say does not matter. */
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
