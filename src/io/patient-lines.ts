import { writeSync } from 'node:fs';

/**
 * Lines to a file descriptor whose reader may be slow or asleep, for a log: whoever writes one never waits. A line goes
 * out before `write` returns if the descriptor takes it, so what was logged before a crash is there to be read. Other
 * lines are kept up to a limit, and beyond it they are dropped and counted.
 *
 * The descriptor has to be non-blocking where it can be full: a pipe or a socket. Files take everything, and a terminal
 * is read by whoever stops it.
 */
export class PatientLines {
  readonly #options: PatientLinesOptions;
  /** What did not fit, in order; the first may be the rest of a line. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  #retry: NodeJS.Timeout | undefined;
  /** The reader is gone for good: nothing can be said any more. */
  #isBroken = false;

  constructor(options: PatientLinesOptions) {
    this.#options = options;
  }

  /** Writes a line, which ends with its line break, or keeps it for later. */
  write(line: string): void {
    if (this.#isBroken) return;
    const bytes = Buffer.from(line);
    // Once a line is lost, all are until the descriptor takes lines again: a log with one gap of known size can be read.
    if (this.#dropped > 0 || this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#dropped += 1;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#retry === undefined) this.#drain();
  }

  /** Before the process ends: gives a reader that is only slow a moment to take the rest. */
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

  /** How much of it is done with. */
  #tryToWrite(bytes: Buffer): number {
    const { fd, write = writeSync } = this.#options;
    try {
      return write(fd, bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
      // EPIPE and the like: nobody will ever read it.
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
  /** The descriptor takes lines again after this many were lost; may write a line about it. */
  readonly onDropped: (count: number) => void;
  /** Stands for `fs.writeSync`; a test plays a full pipe with it. */
  readonly write?: (fd: number, bytes: Buffer) => number;
}

const NOTHING = Buffer.alloc(0);

/** Some thousands of lines: enough for a reader that was busy, too little to matter for memory. */
export const MAX_WAITING_BYTES = 1024 * 1024;
/** A pipe that is written like this reports no drain, so it is tried again. */
const RETRY_MS = 50;
/** Longer nobody wants to wait for the end of a process. */
const MAX_FLUSH_MS = 500;
const FLUSH_PAUSE_MS = 5;
