import type { Logger } from 'pino';
import { toPrintable } from '../printable.ts';
import { LF } from '../wire/ascii.ts';
import { ByteCollector } from '../wire/byte-collector.ts';

/** The rest of a longer line is dropped: stderr is for people. */
export const MAX_STDERR_LINE_BYTES = 8 * 1024;
/** What is kept for error messages. */
export const MAX_TAIL_LINES = 10;
export const MAX_TAIL_LINE_LENGTH = 300;

/**
 * Passes a child's stderr on to the log line by line and remembers its last words.
 * [spec 2025-11-25 transports#stdio] output there is no sign of failure, hence the level.
 */
export class StderrLog {
  /** Carries the child's name and pid. */
  readonly #log: Logger;
  readonly #line = new ByteCollector();
  readonly #tail: string[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  /** The last lines, oldest first, each short. */
  get tail(): readonly string[] {
    return [...this.#tail];
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (;;) {
      const newline = chunk.indexOf(LF, start);
      this.#keep(chunk.subarray(start, newline === -1 ? chunk.length : newline));
      if (newline === -1) return;
      this.#finishLine();
      start = newline + 1;
    }
  }

  /** A last line without newline counts. */
  end(): void {
    this.#finishLine();
  }

  #keep(part: Buffer): void {
    const room = MAX_STDERR_LINE_BYTES - this.#line.byteLength;
    if (room > 0 && part.length > 0) this.#line.append(part.subarray(0, room));
  }

  #finishLine(): void {
    if (this.#line.byteLength === 0) return;
    const text = toPrintable(this.#line.take().toString('utf8'), MAX_STDERR_LINE_BYTES);
    if (text === '') return;
    this.#log.info({ stream: 'stderr' }, text);
    this.#tail.push(toPrintable(text, MAX_TAIL_LINE_LENGTH));
    if (this.#tail.length > MAX_TAIL_LINES) this.#tail.shift();
  }
}
