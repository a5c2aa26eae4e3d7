/** Long-lived connections that carry messages both ways, and the lines of JSON that pipes and sockets use. */
import type { Readable, Writable } from 'node:stream';
import type { ArrivingMessage } from '../../http/server/read-body.ts';
import { LineWriter } from '../../io/line-writer.ts';
import type { Call } from '../../relay/call.ts';
import { LineSplitter, type OversizedLine } from '../../wire/ndjson.ts';

/**
 * A long-lived connection to one client: a pair of pipes, a byte stream or a WebSocket. It passes on raw pieces as it
 * reads them, and extracts their messages when `take` is called. Pieces wait in between, since a paused client must
 * still be read for the end of its input to be noticed.
 */
export interface MessageConnection {
  /** Name of a message in errors, in the client's terms. */
  readonly unit: 'line' | 'message';
  /**
   * Passes at most `maxMessages` messages of the piece to the listener. Called with the pieces in the order of `read`.
   * Returns the rest of the piece, which the next call gets; undefined: all of it was taken.
   */
  take(piece: Buffer, maxMessages: number): Buffer | undefined;
  /** Passes on the unfinished message, if any, after the last piece was taken and the input has ended. */
  takeRest(): void;
  /** Pauses and resumes reading. */
  pause(): void;
  resume(): void;
  /**
   * Writes a message, whose bytes must not change afterward. False: the message was accepted, but the connection is
   * full and `drained` follows.
   * @param about the call that a notification or a request of the server belongs to, for clients that can be told
   */
  send(message: Buffer, about?: Call): boolean;
  /** Bytes that were written and not taken by the operating system yet. */
  readonly waitingBytes: number;
  /** Resolves when everything written has left for the client, or cannot. */
  flush(): Promise<void>;
  /** Ends the connection at once and drops what is unsent. The listener is told that the reader is gone. */
  cut(): void;
}

/** Receives the events of a connection. None is emitted before the connection has been created. */
export interface ConnectionListener {
  /** A piece was read and waits for `take`. */
  read(piece: Buffer): void;
  message(bytes: Buffer): void;
  /** A message over the size limit was dropped. */
  oversized(message: OversizedLine): void;
  /** The client has ended its input but may still read. May be called several times. */
  inputEnded(): void;
  /** The incoming message and those of other clients exceed the limit of all together. Nothing more is read. */
  crowded(): void;
  /** The connection has capacity again after `send` has returned false. */
  drained(): void;
  /** The client no longer reads. May be called several times. */
  readerGone(): void;
}

/** Creates the connection, which starts reading at once. */
export type OpenConnection = (listener: ConnectionListener) => MessageConnection;

export interface LineConnectionOptions {
  readonly input: Readable;
  /** May be the same stream as the input, as with a socket. */
  readonly output: Writable;
  readonly maxMessageBytes: number;
  /** This connection's share of the memory for incoming messages of all clients. */
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
    // EPIPE: the reader of our output is gone, so nothing can be answered anymore.
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

  /** A last line without a line break counts as a message. */
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
