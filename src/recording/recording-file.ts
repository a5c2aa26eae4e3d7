import { constants } from 'node:fs';
import { type FileHandle, open, rename, stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import { ByteQueue } from '../collections/bounded-collections.ts';
import type { Clock } from '../deps.ts';
import { BridgeError } from '../errors.ts';
import { LF } from '../wire/json/ascii.ts';
import type { RecordingSink } from './recorder.ts';
import type { MessageFormat } from './shown-message.ts';

export interface RecordingFileOptions {
  readonly path: string;
  readonly format: MessageFormat;
  /** Size at which the file becomes `FILE.1`, and a new one begins. 0 means no limit. */
  readonly maxFileBytes: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Lines that wait for a slow disk. Beyond it messages are dropped, because no call may wait for its recording. */
const WAITING_LIMITS = { maxItems: 64 * 1024, maxBytes: 16 * 1024 * 1024 };
/** Bytes that lines are encoded to before they are written. A line that may be longer is encoded by itself. */
const BATCH_BYTES = 512 * 1024;
/** Most bytes that a character takes in UTF-8, where a pair of surrogates is two characters. */
const MAX_CHARACTER_BYTES = 3;
const RETRY_MS = 1000;
/** Longest wait for the last lines at the end, since a disk may hang. */
const MAX_CLOSE_MS = 3000;
/** Only the owner may read the file, because it has the content of calls. */
const MODE = 0o600;
/** Makes opening a pipe without a reader fail instead of blocking a thread. Not available on Windows. */
const { O_NONBLOCK = 0 } = constants as Partial<typeof constants>;
const FLAGS = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | O_NONBLOCK;

/** Lines as they are written, each with its line break. */
interface Batch {
  readonly bytes: Buffer;
  readonly lines: number;
}

interface OpenFile {
  readonly handle: FileHandle;
  /** Device and inode, which stay the same when the file is renamed. */
  readonly identity: string;
  /** False for a device or a pipe, which has no size and is not renamed. */
  readonly isRegular: boolean;
}

/**
 * Appends the lines of a recording to a file. Batches are written one after the other; a batch that could not be written
 * is tried again. Another bridge may append to the same file, and a file that was moved away is created again.
 */
export class RecordingFile implements RecordingSink {
  readonly #options: RecordingFileOptions;
  readonly #waiting = new ByteQueue<string>(WAITING_LIMITS, (line) => line.length);
  /** Space in which each batch is encoded. It is kept, as allocating such buffers costs more than writing them. */
  readonly #space = Buffer.allocUnsafeSlow(BATCH_BYTES);
  #file: OpenFile | undefined;
  /** The batch that is being written, and the part of it that has been. */
  #batch: Batch | undefined;
  #written = 0;
  /** Size of the file after the latest write that has failed in the middle of a line. */
  #tornAt: number | undefined;
  #running: Promise<void> | undefined;
  #cancelRetry: (() => void) | undefined;
  /** True from a failure, which is logged, until the next success, which is logged too. */
  #isFailing = false;
  /** Messages that were dropped and not reported yet. */
  #dropped = 0;
  #isClosed = false;

  /** Rejects with ERR_CONFIG_OPTION if the file cannot be opened. */
  static async open(options: RecordingFileOptions): Promise<RecordingFile> {
    const file = new RecordingFile(options);
    try {
      await file.#open();
    } catch (thrown) {
      const { code } = thrown as NodeJS.ErrnoException;
      throw new BridgeError(
        'ERR_CONFIG_OPTION',
        `The recording ${options.path} cannot be written (${code}); choose a file in a folder that exists and is yours.`,
        { cause: thrown },
      );
    }
    return file;
  }

  private constructor(options: RecordingFileOptions) {
    this.#options = options;
  }

  get format(): MessageFormat {
    return this.#options.format;
  }

  take(lines: readonly string[]): void {
    let dropped = 0;
    for (const line of lines) {
      // A line that is longer than the limit is taken if nothing else waits.
      if (this.#isClosed || !(this.#waiting.fits(line) || this.#waiting.length === 0)) dropped += 1;
      else this.#waiting.add(line);
    }
    if (dropped > 0) this.#drop(dropped);
    if (this.#waiting.length > 0 && this.#cancelRetry === undefined) this.#run();
  }

  #drop(lines: number): void {
    if (this.#dropped === 0 && !this.#isFailing) {
      const { log, path } = this.#options;
      log.warn({ path }, `the recording ${path} is written too slowly: messages are missing from it`);
    }
    this.#dropped += lines;
  }

  /** Opens the path again, as the file may have been moved away. */
  reopen(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    this.#run();
  }

  /** Writes the waiting lines and accepts no more. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.reopen();
    let cancel: (() => void) | undefined;
    const tooLong = new Promise<void>((resolve) => {
      cancel = this.#options.clock.after(MAX_CLOSE_MS, resolve);
    });
    await Promise.race([this.#running, tooLong]);
    cancel?.();
    this.#cancelRetry?.();
    this.#tellMissing(this.#waiting.length + (this.#batch?.lines ?? 0));
    await this.#closeFile();
  }

  #tellMissing(unwritten: number): void {
    const missing = this.#dropped + unwritten;
    this.#dropped = 0;
    if (missing === 0) return;
    const { log, path } = this.#options;
    log.warn({ path, missing }, `${missing} messages are missing from the recording ${path}`);
  }

  #run(): void {
    this.#running ??= this.#writeAll().finally(() => {
      this.#running = undefined;
      if (this.#waiting.length > 0 && this.#cancelRetry === undefined && !this.#isClosed) this.#run();
    });
  }

  async #writeAll(): Promise<void> {
    try {
      for (;;) {
        this.#batch ??= this.#nextBatch();
        if (this.#batch === undefined) return;
        await this.#write(this.#batch.bytes);
        this.#batch = undefined;
        this.#written = 0;
        this.#succeeded();
      }
    } catch (thrown) {
      await this.#failed(thrown as NodeJS.ErrnoException);
    }
  }

  #nextBatch(): Batch | undefined {
    let lines = 0;
    let used = 0;
    for (let line = this.#waiting.peek(); line !== undefined; line = this.#waiting.peek()) {
      const mostBytes = MAX_CHARACTER_BYTES * line.length + 1;
      if (used + mostBytes > BATCH_BYTES) {
        if (lines > 0) break;
        this.#waiting.shift();
        return { bytes: Buffer.from(`${line}\n`), lines: 1 };
      }
      this.#waiting.shift();
      used += this.#space.write(line, used);
      this.#space[used] = LF;
      used += 1;
      lines += 1;
    }
    return lines === 0 ? undefined : { bytes: this.#space.subarray(0, used), lines };
  }

  #succeeded(): void {
    const { log, path } = this.#options;
    if (this.#isFailing) log.info({ path }, `the recording ${path} is written again`);
    this.#isFailing = false;
    this.#tellMissing(0);
  }

  async #failed(error: NodeJS.ErrnoException): Promise<void> {
    const { log, path, clock } = this.#options;
    if (!this.#isFailing) {
      const told = `the recording ${path} cannot be written (${error.code}); calls go on, and it is tried again every second`;
      log.error({ err: error, path }, told);
    }
    this.#isFailing = true;
    await this.#closeFile();
    if (this.#isClosed) return;
    this.#cancelRetry = clock.after(RETRY_MS, () => {
      this.#cancelRetry = undefined;
      this.#run();
    });
  }

  async #write(bytes: Buffer): Promise<void> {
    const { handle, isRegular } = await this.#fileFor(bytes.length);
    if (this.#tornAt !== undefined) await this.#mend(handle);
    try {
      while (this.#written < bytes.length) {
        this.#written += (await handle.write(bytes, this.#written)).bytesWritten;
      }
    } catch (error) {
      const isTorn = this.#written > 0 && bytes[this.#written - 1] !== LF;
      if (isTorn) this.#tornAt = isRegular ? (await handle.stat()).size : 0;
      throw error;
    }
  }

  /** Goes on in the middle of a line, or ends the line if something was written after it, and writes it again. */
  async #mend(handle: FileHandle): Promise<void> {
    const { size } = await handle.stat();
    if (size !== this.#tornAt) {
      if (size > 0) await endLine(handle, size);
      this.#written = this.#batch?.bytes.lastIndexOf(LF, this.#written - 1) ?? -1;
      this.#written += 1;
    }
    this.#tornAt = undefined;
  }

  /** Returns the file that has the path now. A file that would grow too large is renamed. */
  async #fileFor(bytes: number): Promise<OpenFile> {
    const { path, maxFileBytes } = this.#options;
    const file = this.#file ?? (await this.#open());
    if (!file.isRegular) return file;
    const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      return undefined;
    });
    if (found === undefined || identityOf(found) !== file.identity) {
      await this.#closeFile();
      return this.#open();
    }
    if (maxFileBytes === 0 || found.size === 0 || found.size + bytes <= maxFileBytes) return file;
    // A line is not continued in another file.
    if (this.#written > 0) return file;
    await this.#closeFile();
    await rename(path, `${path}.1`);
    return this.#open();
  }

  async #open(): Promise<OpenFile> {
    const handle = await open(this.#options.path, FLAGS, MODE);
    try {
      const found = await handle.stat();
      this.#file = { handle, identity: identityOf(found), isRegular: found.isFile() };
      if (found.isFile() && found.size > 0 && this.#tornAt === undefined) await endLine(handle, found.size);
      return this.#file;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.handle.close().catch(() => undefined);
  }
}

function identityOf({ dev, ino }: { readonly dev: number; readonly ino: number }): string {
  return `${dev}:${ino}`;
}

/** Ends the last line of a file, which a crash may have left torn. */
async function endLine(handle: FileHandle, size: number): Promise<void> {
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  if (bytesRead === 1 && buffer[0] !== LF) await handle.write('\n');
}
