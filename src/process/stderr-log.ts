import type { Logger } from 'pino';
import { toPrintable } from '../printable.ts';
import { ByteCollector } from '../wire/byte-collector.ts';
import { LF } from '../wire/json/ascii.ts';

/** The rest of a longer line is dropped: stderr is for people. */
export const MAX_STDERR_LINE_BYTES = 8 * 1024;
/** What is kept for error messages. */
export const MAX_TAIL_LINES = 10;
export const MAX_TAIL_LINE_LENGTH = 300;
/** A name counts as long as so many lines follow at most: stack traces stand between the reason and the end. */
export const MAX_LINES_SINCE_NAME = 50;

/** As programs write names of variables: not a plain word in lower case, which could be any word of a sentence. */
const LIKE_A_VARIABLE = /[A-Z_\d]/;

/**
 * Passes a child's stderr on to the log line by line and remembers its last words, and which of the names it was told to
 * watch for have been among them.
 * [spec 2025-11-25 transports#stdio] output there is no sign of failure, hence the level.
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

  /** Those of the watched names that it has written lately. */
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
    if (this.#line.byteLength === 0) return;
    const text = toPrintable(this.#line.take().toString('utf8'), MAX_STDERR_LINE_BYTES);
    if (text === '') return;
    this.#log.info({ stream: 'stderr' }, text);
    this.#lookForNames(text);
    this.#tail.push(toPrintable(text, MAX_TAIL_LINE_LENGTH));
    if (this.#tail.length > MAX_TAIL_LINES) this.#tail.shift();
  }

  #lookForNames(text: string): void {
    this.#lines += 1;
    if (this.#watchedNames.size === 0) return;
    for (const name of namesIn(text, this.#watchedNames)) {
      // In the order in which they came last.
      this.#lastNamed.delete(name);
      this.#lastNamed.set(name, this.#lines);
    }
  }
}

/** Which of the names of variables stand in a text as words. */
export function namesIn(text: string, names: ReadonlySet<string>): readonly string[] {
  const words = new Set(text.match(/[A-Za-z_]\w{2,}/g));
  return [...words].filter((word) => LIKE_A_VARIABLE.test(word) && names.has(word));
}
