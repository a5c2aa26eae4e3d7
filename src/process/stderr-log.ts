import type { Logger } from 'pino';
import { hideSecrets, toPrintable } from '../printable.ts';
import { ByteCollector } from '../wire/byte-collector.ts';
import { LF } from '../wire/json/ascii.ts';

/** The rest of a longer line is dropped: stderr is for people. */
export const MAX_STDERR_LINE_BYTES = 8 * 1024;
/** The number of last lines that are kept for error messages. */
export const MAX_TAIL_LINES = 10;
export const MAX_TAIL_LINE_LENGTH = 300;
/** A name counts as long as so many lines follow at most: stack traces stand between the reason and the end. */
export const MAX_LINES_SINCE_NAME = 50;

/** A name of a variable is told from an ordinary word by a capital letter, an underscore or a digit. */
const LIKE_A_VARIABLE = /[A-Z_\d]/;

/**
 * Passes a child's stderr on to the log line by line. Remembers the last lines, and which of the watched names were in
 * them. [spec 2025-11-25 transports#stdio] Output on stderr is no sign of failure, so the level is info.
 */
export class StderrLog {
  /** Carries the child's name and pid. */
  readonly #log: Logger;
  readonly #line = new ByteCollector();
  readonly #tail: string[] = [];
  readonly #watchedNames: ReadonlySet<string>;
  /** Each watched name with the number of the line it was last on: as many entries at most as there are such names. */
  readonly #lastNamed = new Map<string, number>();
  #lines = 0;

  constructor(log: Logger, watchedNames: readonly string[] = []) {
    this.#log = log;
    this.#watchedNames = new Set(watchedNames);
  }

  /** The last lines, oldest first, each short. */
  get tail(): readonly string[] {
    return [...this.#tail];
  }

  /** The watched names that stderr has mentioned lately. */
  get named(): readonly string[] {
    return [...this.#lastNamed].filter(([, line]) => this.#lines - line <= MAX_LINES_SINCE_NAME).map(([name]) => name);
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
    const capacity = MAX_STDERR_LINE_BYTES - this.#line.byteLength;
    if (capacity > 0 && part.length > 0) this.#line.append(part.subarray(0, capacity));
  }

  #finishLine(): void {
    const text = toPrintable(this.#line.take().toString('utf8'), MAX_STDERR_LINE_BYTES);
    if (text === '') return;
    this.#log.info({ stream: 'stderr' }, text);
    this.#lookForNames(text);
    // The log has the whole line, which only its operator reads; clients and whoever looks at the status get the tail.
    this.#tail.push(toPrintable(hideSecrets(text), MAX_TAIL_LINE_LENGTH));
    if (this.#tail.length > MAX_TAIL_LINES) this.#tail.shift();
  }

  #lookForNames(text: string): void {
    this.#lines += 1;
    if (this.#watchedNames.size === 0) return;
    for (const name of namesIn(text, this.#watchedNames)) {
      // The map is ordered by when each name came last.
      this.#lastNamed.delete(name);
      this.#lastNamed.set(name, this.#lines);
    }
  }
}

/** The names of variables that occur in a text as whole words. */
export function namesIn(text: string, names: ReadonlySet<string>): readonly string[] {
  const words = new Set(text.match(/[A-Za-z_]\w{2,}/g));
  return [...words].filter((word) => LIKE_A_VARIABLE.test(word) && names.has(word));
}
