import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { ByteQueue } from '../../collections/bounded-collections.ts';
import type { Clock } from '../../deps.ts';
import { OPEN_TO_READ } from '../../io/bounded-file.ts';
import { LF } from '../../wire/json/ascii.ts';

export interface AppendOnlyFileOptions {
  readonly path: string;
  readonly clock: Clock;
  /** It could not be opened or written; it is tried again and again. */
  readonly onFailed: (error: NodeJS.ErrnoException) => void;
}

/** Some tens of thousands of lines, and the memory that they may take. */
const LIMITS = { maxItems: 100_000, maxBytes: 16 * 1024 * 1024 };
/** Lines of calls that are open still come when no others are taken. */
const NEARLY_FULL = 0.5;
/** Lines that one write takes. */
const MAX_BATCH_BYTES = 256 * 1024;
const RETRY_MS = 1000;
/** A pipe whose reader is slow takes more soon. */
const FULL_PIPE_RETRY_MS = 50;
/** A disk may hang; the end of the process does not wait for it. */
const MAX_CLOSE_MS = 3000;

const NEWLINE = Buffer.of(LF);
/** Others on the machine have no business with it. */
const MODE = 0o600;
/** Opening a pipe that nobody reads, or writing to one that is full, fails instead of blocking a thread. Not on Windows. */
const { O_NONBLOCK = 0 } = constants as Partial<typeof constants>;
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | O_NONBLOCK;

interface OpenFile {
  readonly handle: FileHandle;
  /** Which file it is, whatever it is called by now. */
  readonly identity: string;
}

/**
 * Lines at the end of a file that others may move away and read at any time. Whoever writes one never waits: lines are kept
 * up to a limit and written beside, and beyond the limit they are refused. What could not be written is kept and tried again.
 */
export class AppendOnlyFile {
  readonly #options: AppendOnlyFileOptions;
  readonly #queue = new ByteQueue<Buffer>(LIMITS, (line) => line.length);
  /** Lines that are being written, or were when it failed. */
  #batch: Buffer[] = [];
  #file: OpenFile | undefined;
  /** The file ends in the middle of a line. */
  #isTorn = false;
  #mustReopen = false;
  #isFailing = false;
  #isClosed = false;
  #running: Promise<void> | undefined;
  #isScheduled = false;
  #cancelRetry: (() => void) | undefined;

  constructor(options: AppendOnlyFileOptions) {
    this.#options = options;
  }

  /** Writing has failed and has not succeeded since. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  get isNearlyFull(): boolean {
    const { length, bytes } = this.#queue;
    return length > NEARLY_FULL * LIMITS.maxItems || bytes > NEARLY_FULL * LIMITS.maxBytes;
  }

  /** Lines that are not written yet. */
  get waiting(): number {
    return this.#queue.length + this.#batch.length;
  }

  /** Takes a line without its end. False: the buffer is full, and the line is lost. */
  write(text: string): boolean {
    const line = Buffer.from(`${text}\n`);
    if (this.#isClosed || !this.#queue.fits(line)) return false;
    this.#queue.add(line);
    this.#schedule();
    return true;
  }

  /** Opens what has its name now. Resolves when that has succeeded or failed. */
  async reopen(): Promise<void> {
    this.#mustReopen = true;
    await this.#running;
    await this.#run();
  }

  /** Writes what waits, and takes no more. Resolves with the number of lines that are lost. */
  async close(): Promise<number> {
    this.#isClosed = true;
    let cancel: (() => void) | undefined;
    const tooLong = new Promise<void>((resolve) => {
      cancel = this.#options.clock.after(MAX_CLOSE_MS, resolve);
    });
    await Promise.race([this.#finish(), tooLong]);
    cancel?.();
    return this.waiting;
  }

  async #finish(): Promise<void> {
    await this.#running;
    // A file that fails gets one more chance; a file that has never been needed is not made now.
    if (this.waiting > 0) await this.#run();
    this.#cancelRetry?.();
    await this.#closeFile();
  }

  /** Once for all lines of a turn of the event loop. */
  #schedule(): void {
    if (this.#isScheduled || this.#running !== undefined || this.#cancelRetry !== undefined) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#run();
    });
  }

  #run(): Promise<void> {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    this.#running ??= this.#writeAll().finally(() => {
      this.#running = undefined;
      if (this.waiting > 0 && !this.#isClosed) this.#schedule();
    });
    return this.#running;
  }

  async #writeAll(): Promise<void> {
    try {
      do {
        const { handle } = await this.#open();
        await this.#writeBatch(handle);
        this.#isFailing = false;
      } while (this.waiting > 0 || this.#mustReopen);
    } catch (thrown) {
      await this.#fail(thrown as NodeJS.ErrnoException);
    }
  }

  /** The file that has the name now: it may have been moved away, and then a new one is made. */
  async #open(): Promise<OpenFile> {
    if (this.#file !== undefined && !this.#mustReopen && (await this.#isInPlace(this.#file))) return this.#file;
    await this.#closeFile();
    const handle = await open(this.#options.path, FLAGS, MODE);
    const file = await handle.stat({ bigint: true });
    this.#file = { handle, identity: `${file.dev}:${file.ino}` };
    this.#mustReopen = false;
    if (file.isFile()) this.#isTorn = await endsTorn(this.#options.path, Number(file.size));
    return this.#file;
  }

  async #isInPlace({ identity }: OpenFile): Promise<boolean> {
    try {
      const { dev, ino } = await stat(this.#options.path, { bigint: true });
      return identity === `${dev}:${ino}`;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
      throw error;
    }
  }

  async #writeBatch(handle: FileHandle): Promise<void> {
    if (this.#batch.length === 0) this.#batch = this.#takeBatch();
    if (this.#batch.length === 0) return;
    if (this.#isTorn) {
      await handle.write(NEWLINE);
      this.#isTorn = false;
    }
    const bytes = Buffer.concat(this.#batch);
    let written = 0;
    try {
      while (written < bytes.length) written += (await handle.write(bytes, written)).bytesWritten;
    } finally {
      this.#letGo(written);
    }
  }

  #takeBatch(): Buffer[] {
    const batch: Buffer[] = [];
    for (let bytes = 0; bytes < MAX_BATCH_BYTES && this.#queue.length > 0; ) {
      const line = this.#queue.shift() as Buffer;
      batch.push(line);
      bytes += line.length;
    }
    return batch;
  }

  /** Lines of the batch that are written. One of which only a part is will be written again, as a line of its own. */
  #letGo(written: number): void {
    let [count, end] = [0, 0];
    for (const line of this.#batch) {
      if (end + line.length > written) break;
      end += line.length;
      count += 1;
    }
    this.#batch.splice(0, count);
    this.#isTorn = written > end;
  }

  async #fail(error: NodeJS.ErrnoException): Promise<void> {
    // A pipe whose reader is slow: it takes more soon, and whoever reads it would take being closed for the end.
    if (error.code === 'EAGAIN') return this.#retryAfter(FULL_PIPE_RETRY_MS);
    this.#isFailing = true;
    this.#options.onFailed(error);
    await this.#closeFile();
    this.#retryAfter(RETRY_MS);
  }

  #retryAfter(ms: number): void {
    if (!this.#isClosed) this.#cancelRetry = this.#options.clock.after(ms, () => void this.#run());
  }

  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.handle.close().catch(() => undefined);
  }
}

/** Does the file end in the middle of a line? A process that was killed may leave it so. */
async function endsTorn(path: string, size: number): Promise<boolean> {
  if (size === 0) return false;
  // Who may append to a file need not be allowed to read it.
  const handle = await open(path, OPEN_TO_READ).catch(() => undefined);
  try {
    const last = await handle?.read(Buffer.alloc(1), 0, 1, size - 1);
    return last?.bytesRead === 1 && last.buffer[0] !== LF;
  } finally {
    await handle?.close();
  }
}
