/** What carries messages on a long-lived connection, and the lines that pipes and sockets carry them as. */
import type { Readable, Writable } from 'node:stream';
import type { ArrivingMessage } from '../../http/server/read-body.ts';
import { LineWriter } from '../../io/line-writer.ts';
import { LineSplitter, type OversizedLine } from '../../wire/ndjson.ts';

/**
 * What carries messages both ways to one client for as long as both want: a pair of pipes, a byte stream, a WebSocket.
 * What it reads it hands over in pieces, and takes the messages out of a piece when it is asked to; in between they
 * wait, for a client may be held back while the end of what it says has still to be seen.
 */
export interface MessageConnection {
  /** How a message is called in errors: what the client knows it as. */
  readonly unit: 'line' | 'message';
  /**
   * Tells the listener of the messages in this piece, of so many at most. Called in the order of `read`, and then with what
   * it returns: what is left of the piece; undefined: nothing.
   */
  take(piece: Buffer, maxMessages: number): Buffer | undefined;
  /** So it does with what is left when all pieces are taken and no more come. */
  takeRest(): void;
  /** Stop and go on reading. */
  pause(): void;
  resume(): void;
  /** Writes a message, whose bytes must not change afterwards. False: full, `drained` follows; it is taken all the same. */
  send(message: Buffer): boolean;
  /** Written, and not taken by the operating system yet. */
  readonly waitingBytes: number;
  /** Resolves when what was written has left for the client, or cannot. */
  flush(): Promise<void>;
  /** Lets the client go, whatever waits for it. The listener hears of it as of a client that is gone. */
  cut(): void;
}

/** What a connection tells of its client; nothing while it is being made. */
export interface ConnectionListener {
  /** Something was read, and waits for `take`. */
  read(piece: Buffer): void;
  message(bytes: Buffer): void;
  /** A message over the limit went by and was dropped. */
  oversized(message: OversizedLine): void;
  /** The client says no more. It may still read. May be called several times. */
  inputEnded(): void;
  /** The incoming message and those of others exceed the limit. Nothing more is read. */
  crowded(): void;
  /** There is capacity again after `send` had none. */
  drained(): void;
  /** Nobody reads what is written any more. May be called several times. */
  readerGone(): void;
}

/** Makes the connection, which reads from then on. */
export type OpenConnection = (listener: ConnectionListener) => MessageConnection;

export interface LineConnectionOptions {
  readonly input: Readable;
  /** May be the same stream: a socket. */
  readonly output: Writable;
  readonly maxMessageBytes: number;
  /** Its part of what all clients may have on their way in. */
  readonly arriving: ArrivingMessage;
}

/** Messages as lines of JSON over a pair of streams. */
export class LineConnection implements MessageConnection {
  readonly unit = 'line';
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #splitter: LineSplitter;
  readonly #writer: LineWriter;
  readonly #arriving: ArrivingMessage;
  readonly #listener: ConnectionListener;
  #isCrowded = false;

  constructor(options: LineConnectionOptions, listener: ConnectionListener) {
    const { input, output, maxMessageBytes, arriving } = options;
    this.#input = input;
    this.#output = output;
    this.#arriving = arriving;
    this.#listener = listener;
    const sink = {
      line: (bytes: Buffer) => listener.message(bytes),
      oversized: listener.oversized.bind(listener),
    };
    this.#splitter = new LineSplitter(sink, maxMessageBytes);
    this.#writer = new LineWriter(output, () => listener.drained());
    input.on('data', (chunk: Buffer) => listener.read(chunk));
    for (const end of ['end', 'error']) input.on(end, () => listener.inputEnded());
    // EPIPE: whoever read our output is gone, so nothing can be answered any more.
    output.on('error', () => listener.readerGone());
    output.on('close', () => listener.readerGone());
    input.on('close', () => void arriving.holds(0));
  }

  take(chunk: Buffer, maxMessages: number): Buffer | undefined {
    if (this.#isCrowded) return undefined;
    const taken = this.#splitter.push(chunk, maxMessages);
    if (this.#arriving.holds(this.#splitter.pendingBytes))
      return taken < chunk.length ? chunk.subarray(taken) : undefined;
    this.#isCrowded = true;
    this.#splitter.forget();
    this.#arriving.holds(0);
    this.#listener.crowded();
    return undefined;
  }

  /** A last line without newline counts. */
  takeRest(): void {
    this.#splitter.end();
  }

  pause(): void {
    this.#input.pause();
  }

  resume(): void {
    this.#input.resume();
  }

  send(message: Buffer): boolean {
    return this.#writer.send(message);
  }

  get waitingBytes(): number {
    return this.#writer.waitingBytes;
  }

  cut(): void {
    this.#output.destroy();
  }

  flush(): Promise<void> {
    this.#writer.flush();
    const output = this.#output;
    if (output.destroyed || output.writableLength === 0) return Promise.resolve();
    return new Promise((resolve) => {
      output.once('close', resolve);
      output.once('error', () => resolve());
      output.write('', () => resolve());
    });
  }
}
