import type { Logger } from 'pino';
import { hideSecrets, toPrintable } from '../printable.ts';
import { ByteCollector } from '../wire/byte-collector.ts';
import { LF } from '../wire/json/ascii.ts';

/** Longer lines are cut, because stderr is meant for people. */
export const MAX_STDERR_LINE_BYTES = 8 * 1024;
/** The number of last lines kept for error messages. */
export const MAX_TAIL_LINES = 10;
export const MAX_TAIL_LINE_LENGTH = 300;
/**
 * A variable's name is reported only if at most this many lines follow it. Stack traces can separate the reason from
 * the end.
 */
export const MAX_LINES_SINCE_NAME = 50;

/** Variable names have a capital letter, an underscore or a digit, unlike ordinary words. */
const LIKE_A_VARIABLE = /[A-Z_\d]/;

/** A frame of a stack trace of JavaScript. Enough of them would push the line of the error out of the last lines. */
const STACK_FRAME = /^at .*(?::\d+:\d+\)?|\(<anonymous>\)|\(native\))(?: \{)?$/;

/**
 * Logs a child's stderr line by line. Keeps the last lines, and which watched names they contained. [spec 2025-11-25
 * transports#stdio] Output on stderr does not indicate an error, so the level is info.
 */
export class StderrLog {
  /** A child logger with the child's name and pid. */
  readonly #log: Logger;
  readonly #line = new ByteCollector();
  readonly #tail: string[] = [];
  readonly #watchedNames: ReadonlySet<string>;
  readonly #onLine: ((line: string) => void) | undefined;
  /** The number of the latest line that contained each watched name; at most one entry per name. */
  readonly #lastNamed = new Map<string, number>();
  #lines = 0;

  /** @param onLine is told each line without what looks like a credential; undefined: nobody reads them */
  constructor(log: Logger, watchedNames: readonly string[] = [], onLine?: (line: string) => void) {
    this.#log = log;
    this.#onLine = onLine;
    this.#watchedNames = new Set(watchedNames);
  }

  /** The last lines that are no frames of a stack trace, oldest first, each truncated. */
  get tail(): readonly string[] {
    return [...this.#tail];
  }

  /** The watched names that recent lines of stderr contain. */
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

  /** Ends the last line, even without a newline. */
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
    const isFrame = STACK_FRAME.test(text);
    if (isFrame && this.#onLine === undefined) return;
    // The log has the whole line and only its operator reads it. Others are shown it without secrets: the tail is part
    // of errors, which clients get.
    const shown = toPrintable(hideSecrets(text), MAX_TAIL_LINE_LENGTH);
    this.#onLine?.(shown);
    if (isFrame) return;
    this.#tail.push(shown);
    if (this.#tail.length > MAX_TAIL_LINES) this.#tail.shift();
  }

  #lookForNames(text: string): void {
    this.#lines += 1;
    if (this.#watchedNames.size === 0) return;
    for (const name of namesIn(text, this.#watchedNames)) {
      // Deleting first keeps the map ordered by the latest occurrence.
      this.#lastNamed.delete(name);
      this.#lastNamed.set(name, this.#lines);
    }
  }
}

/** Returns the variable names that occur in a text as whole words. */
export function namesIn(text: string, names: ReadonlySet<string>): readonly string[] {
  const words = new Set(text.match(/[A-Za-z_]\w{2,}/g));
  return [...words].filter((word) => LIKE_A_VARIABLE.test(word) && names.has(word));
}
