import { constants } from 'node:fs';
import { type FileHandle, open, stat, statfs } from 'node:fs/promises';
import { ByteQueue } from '../../collections/bounded-collections.ts';
import type { Clock } from '../../deps.ts';
import { OPEN_TO_READ } from '../../io/bounded-file.ts';
import { LF } from '../../wire/json/ascii.ts';

export interface AppendOnlyFileOptions {
  readonly path: string;
  readonly clock: Clock;
  /** Called when the file could not be opened or written. Retries continue. */
  readonly onFailed: (error: NodeJS.ErrnoException) => void;
  /** Returns the space of the file system that has this path. Default: as the system says. */
  readonly spaceAt?: (path: string) => Promise<DiskSpace>;
}

/** Numbers of blocks. `bavail` are free for everybody, `bfree` for the superuser. */
export interface DiskSpace {
  readonly blocks: number;
  readonly bavail: number;
  readonly bfree: number;
}

/** Limits of the lines that wait: some tens of thousands of usual length, and the memory that they may take. */
const LIMITS = { maxItems: 100_000, maxBytes: 16 * 1024 * 1024 };
/** Share of the limits above which calls may be rejected. The rest is for the lines of calls that are still open. */
const NEARLY_FULL = 0.5;
/** Bytes of lines per write. */
const MAX_BATCH_BYTES = 256 * 1024;
const RETRY_MS = 1000;
/** Retry delay for a full pipe, whose slow reader will soon make room. */
const FULL_PIPE_RETRY_MS = 50;
/** Longest wait for the last lines at exit, since a disk may hang. */
const MAX_CLOSE_MS = 3000;

const NEWLINE = Buffer.of(LF);
/** Only the owner may read the file. */
const MODE = 0o600;
/**
 * Makes opening a pipe without a reader, or writing to a full one, fail instead of blocking a thread. Not available on
 * Windows.
 */
const { O_NONBLOCK = 0 } = constants as Partial<typeof constants>;
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | O_NONBLOCK;

interface OpenFile {
  readonly handle: FileHandle;
  /** Device and inode, which stay the same when the file is renamed. */
  readonly identity: string;
}

/**
 * Appends lines to a file that other programs may rename and read at any time. A caller of `write` never waits: lines
 * are queued up to a limit and rejected beyond it. Lines that could not be written are kept and retried.
 */
export class AppendOnlyFile {
  readonly #options: AppendOnlyFileOptions;
  readonly #queue = new ByteQueue<Buffer>(LIMITS, (line) => line.length);
  /** Lines of the write in progress, or of the one that failed. */
  #batch: Buffer[] = [];
  #file: OpenFile | undefined;
  /** True while the file ends in the middle of a line. */
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

  /** True if the latest write failed. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  get isNearlyFull(): boolean {
    const { length, bytes } = this.#queue;
    return length > NEARLY_FULL * LIMITS.maxItems || bytes > NEARLY_FULL * LIMITS.maxBytes;
  }

  /** Number of lines that are not written yet. */
  get waiting(): number {
    return this.#queue.length + this.#batch.length;
  }

  /** Queues a line, passed without its line break. False: the queue is full, and the line is lost. */
  write(text: string): boolean {
    const line = Buffer.from(`${text}\n`);
    if (this.#isClosed || !this.#queue.fits(line)) return false;
    this.#queue.add(line);
    this.#schedule();
    return true;
  }

  /** Reopens the path, for log rotation. Resolves when that has succeeded or failed. */
  async reopen(): Promise<void> {
    this.#mustReopen = true;
    await this.#running;
    await this.#run();
  }

  /** Writes the waiting lines and accepts no more. Resolves with the number of lines that are lost. */
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
    // A failing file gets one more attempt. A file that was never needed is not created now.
    if (this.waiting > 0) await this.#run();
    this.#cancelRetry?.();
    await this.#closeFile();
  }

  /** Schedules one write for all lines of a turn of the event loop. */
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

  /** Returns the file that has the path now. If it was moved away, a new one is created. */
  async #open(): Promise<OpenFile> {
    if (this.#file !== undefined && !this.#mustReopen && (await this.#isInPlace(this.#file))) return this.#file;
    await this.#closeFile();
    const handle = await open(this.#options.path, FLAGS, MODE);
    const file = await handle.stat({ bigint: true });
    this.#file = { handle, identity: `${file.dev}:${file.ino}` };
    this.#mustReopen = false;
    const { path } = this.#options;
    if (file.isFile()) this.#isTorn = await endsTorn(path, Number(file.size));
    await this.#requireSpace(handle, file.isFile());
    return this.#file;
  }

  /**
   * Fails if a full disk can be told by now. To open a file takes no space, so that the first line would be the first to
   * fail, when its call is over.
   */
  async #requireSpace(handle: FileHandle, isOnDisk: boolean): Promise<void> {
    const { path, spaceAt = statfs } = this.#options;
    // A device that takes nothing refuses even that.
    if (!isOnDisk) return void (await handle.writev([NOTHING]));
    const { blocks, bavail, bfree } = await spaceAt(path);
    // Some file systems do not count their blocks.
    if (blocks > 0 && bavail === 0 && (bfree === 0 || process.getuid?.() !== 0)) throw noSpace(path);
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

  /**
   * Removes the written lines from the batch. A line that was written in part is written again, as a line of its own.
   */
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
    // A full pipe is kept open: it will take more soon, and its reader would take a close for the end.
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

const NOTHING = Buffer.alloc(0);

/** The error that a write would fail with. */
function noSpace(path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`ENOSPC: no space left on device, write '${path}'`), { code: 'ENOSPC' });
}

/** Returns true if the file ends in the middle of a line, as after a crash during a write. */
async function endsTorn(path: string, size: number): Promise<boolean> {
  if (size === 0) return false;
  // A process that may append to a file may lack permission to read it.
  const handle = await open(path, OPEN_TO_READ).catch(() => undefined);
  try {
    const last = await handle?.read(Buffer.alloc(1), 0, 1, size - 1);
    return last?.bytesRead === 1 && last.buffer[0] !== LF;
  } finally {
    await handle?.close();
  }
}
