import type { Readable, Writable } from 'node:stream';
import { LineWriter } from '../../io/line-writer.ts';
import { LineSplitter } from '../../wire/ndjson.ts';
import type { ConnectionListener, MessageConnection } from './message-connection.ts';

export interface LineConnectionOptions {
  readonly input: Readable;
  /** May be the same stream: a socket. */
  readonly output: Writable;
  readonly maxMessageBytes: number;
}

/** Messages as lines of JSON over a pair of streams. */
export class LineConnection implements MessageConnection {
  readonly unit = 'line';
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #splitter: LineSplitter;
  readonly #writer: LineWriter;

  constructor({ input, output, maxMessageBytes }: LineConnectionOptions, listener: ConnectionListener) {
    this.#input = input;
    this.#output = output;
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
  }

  take(chunk: Buffer): void {
    this.#splitter.push(chunk);
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
