import { writeSync } from 'node:fs';

/**
 * Writes log lines to a file descriptor whose reader may be slow or stopped, without ever blocking. If the descriptor
 * accepts the line, it is written before `write` returns, so that the log is complete up to a crash. Other lines are
 * kept up to a limit; beyond it they are dropped and counted.
 *
 * A descriptor that can be full, such as a pipe or a socket, must be non-blocking. Files accept everything, and a full
 * terminal blocks only the user who stopped it.
 */
export class PatientLines {
  readonly #options: PatientLinesOptions;
  /** Lines that were not accepted yet, in order. The first may be the rest of a line. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  #retry: NodeJS.Timeout | undefined;
  /** True if the reader has closed the descriptor. Further lines are dropped. */
  #isBroken = false;

  constructor(options: PatientLinesOptions) {
    this.#options = options;
  }

  /** Writes a line, which includes its line break, or keeps it for later. */
  write(line: string): void {
    if (this.#isBroken) return;
    const bytes = Buffer.from(line);
    // After a lost line, all lines are dropped until the descriptor accepts lines again: a log with one gap of known
    // size can still be read.
    if (this.#dropped > 0 || this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#dropped += 1;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#retry === undefined) this.#drain();
  }

  /** Called before the process ends: gives a slow reader at most `MAX_FLUSH_MS` to take the rest. */
  flushSync(): void {
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (let waitedMs = 0; waitedMs < MAX_FLUSH_MS && this.#waiting.length > 0; waitedMs += FLUSH_PAUSE_MS) {
      this.#drain();
      if (this.#waiting.length > 0) Atomics.wait(pause, 0, 0, FLUSH_PAUSE_MS);
    }
  }

  #drain(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    const [first = NOTHING, ...more] = this.#waiting;
    const bytes = more.length === 0 ? first : Buffer.concat(this.#waiting, this.#waitingBytes);
    const rest = bytes.subarray(this.#tryToWrite(bytes));
    this.#waiting = rest.length === 0 ? [] : [rest];
    this.#waitingBytes = rest.length;
    if (rest.length === 0) this.#tellDropped();
    else this.#retry = setTimeout(() => this.#drain(), RETRY_MS).unref();
  }

  /** Returns the number of bytes that need no further attempt. */
  #tryToWrite(bytes: Buffer): number {
    const { fd, write = writeSync } = this.#options;
    try {
      return write(fd, bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
      // EPIPE and similar errors: the reader is gone for good.
      this.#isBroken = true;
      return bytes.length;
    }
  }

  #tellDropped(): void {
    const dropped = this.#dropped;
    this.#dropped = 0;
    if (dropped > 0 && !this.#isBroken) this.#options.onDropped(dropped);
  }
}

export interface PatientLinesOptions {
  readonly fd: number;
  /** Called when the descriptor accepts lines again after this many were lost. May write a line about it. */
  readonly onDropped: (count: number) => void;
  /** Replaces `fs.writeSync`; tests use it to simulate a full pipe. */
  readonly write?: (fd: number, bytes: Buffer) => number;
}

const NOTHING = Buffer.alloc(0);

/** Some thousands of lines: enough for a reader that was busy, and little memory. */
export const MAX_WAITING_BYTES = 1024 * 1024;
/** A pipe written with `writeSync` emits no drain event, so the write is repeated. */
const RETRY_MS = 50;
/** Limit for the delay of the process's end. */
const MAX_FLUSH_MS = 500;
const FLUSH_PAUSE_MS = 5;
