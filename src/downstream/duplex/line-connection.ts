import type { Readable, Writable } from 'node:stream';
import type { ArrivingMessage } from '../../http/server/read-body.ts';
import { LineWriter } from '../../io/line-writer.ts';
import { LineSplitter } from '../../wire/ndjson.ts';
import type { ConnectionListener, MessageConnection } from './message-connection.ts';

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

  take(chunk: Buffer): void {
    if (this.#isCrowded) return;
    this.#splitter.push(chunk);
    if (this.#arriving.holds(this.#splitter.pendingBytes)) return;
    this.#isCrowded = true;
    this.#splitter.forget();
    this.#arriving.holds(0);
    this.#listener.crowded();
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
