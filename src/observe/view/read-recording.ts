/** Reads the lines of a recording from its files, and follows them while a bridge appends and rotates. */
import type { Stats } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { BridgeError } from '../../errors.ts';
import { LF } from '../../wire/json/ascii.ts';

/** A line, or the news that it was too long to be kept. */
export interface FoundLine {
  readonly file: string;
  /** Counts the lines of the file, from 1. */
  readonly number: number;
  /** Undefined: the line is longer than `MAX_LINE_BYTES`. */
  readonly text: string | undefined;
}

export interface ReadingOptions {
  readonly path: string;
  /** `follows`: goes on with what is appended, also after a rotation, and waits for a file that does not exist yet. */
  readonly mode: 'once' | 'follows';
  /** Resolves after a moment, or with the signal. */
  readonly pause: () => Promise<void>;
  readonly signal: AbortSignal;
  /** Called once if the file does not exist yet. */
  readonly waiting: () => void;
}

/** Limit of a line. With `--record-max-message`, lines of any length can be recorded on purpose. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;

/**
 * Yields the lines of `path.1`, to which a bridge rotates a full recording, and then those of `path`. While it follows, it
 * yields an empty list where nothing is new. Rejects with ERR_CONFIG_OPTION if the file cannot be read.
 */
export async function* readRecording(options: ReadingOptions): AsyncGenerator<readonly FoundLine[], void> {
  const { path, mode, signal } = options;
  // Opened before the older file, so that a rotation in between loses nothing.
  let handle = await openRecording(options);
  const older = handle === undefined ? undefined : await openOlder(path, handle);
  try {
    if (older !== undefined) yield* readToEnd(older, `${path}.1`, signal);
  } finally {
    await older?.close();
  }
  while (handle !== undefined) {
    const current: FileHandle = handle;
    try {
      if (mode === 'once') yield* readToEnd(current, path, signal);
      else yield* followToReplacement(current, options);
    } finally {
      await current.close();
    }
    if (mode === 'once' || signal.aborted) return;
    handle = await openRecording(options);
  }
}

/** Returns undefined if the signal came before the file. */
async function openRecording({ path, mode, pause, signal, waiting }: ReadingOptions): Promise<FileHandle | undefined> {
  let hasTold = false;
  while (!signal.aborted) {
    const handle = await tryToOpen(path);
    if (handle !== undefined) return handle;
    if (mode === 'once') {
      throw new BridgeError(
        'ERR_CONFIG_OPTION',
        `There is no recording at ${path}; --record of serve and connect writes one.`,
      );
    }
    if (!hasTold) waiting();
    hasTold = true;
    await pause();
  }
  return undefined;
}

async function openOlder(path: string, handle: FileHandle): Promise<FileHandle | undefined> {
  const older = await tryToOpen(`${path}.1`);
  if (older === undefined) return undefined;
  if (!isSameFile(await older.stat(), await handle.stat())) return older;
  await older.close();
  return undefined;
}

/** Returns undefined if there is no such file. */
async function tryToOpen(path: string): Promise<FileHandle | undefined> {
  try {
    const handle = await open(path, 'r');
    if (!(await handle.stat()).isDirectory()) return handle;
    await handle.close();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new BridgeError('ERR_CONFIG_OPTION', `The recording at ${path} cannot be read (${code}).`, { cause });
  }
  throw new BridgeError('ERR_CONFIG_OPTION', `${path} is a directory; view shows the file of --record.`);
}

async function* readToEnd(handle: FileHandle, file: string, signal: AbortSignal): AsyncGenerator<readonly FoundLine[]> {
  const lines = new NumberedLines(file);
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  while (!signal.aborted) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0) return yield lines.end();
    yield lines.take(buffer.subarray(0, bytesRead));
  }
}

/** Reads until another file is at the path, or the file was emptied. */
async function* followToReplacement(
  handle: FileHandle,
  { path, pause, signal }: ReadingOptions,
): AsyncGenerator<readonly FoundLine[]> {
  const lines = new NumberedLines(path);
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  let readBytes = 0;
  let isReplaced = false;
  while (!signal.aborted) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
    readBytes += bytesRead;
    if (bytesRead > 0) yield lines.take(buffer.subarray(0, bytesRead));
    else if (isReplaced) return yield lines.end();
    else {
      // What was written before the rotation is read first.
      isReplaced = await hasBeenReplaced(path, handle, readBytes);
      if (isReplaced) continue;
      yield [];
      await pause();
    }
  }
}

async function hasBeenReplaced(path: string, handle: FileHandle, readBytes: number): Promise<boolean> {
  const own = await handle.stat();
  if (own.isFile() && own.size < readBytes) return true;
  try {
    return !isSameFile(own, await stat(path));
  } catch {
    // A file that was removed may be open at the bridge, which goes on writing to it.
    return false;
  }
}

function isSameFile(one: Stats, other: Stats): boolean {
  return one.ino === other.ino && one.dev === other.dev;
}

/** Splits a file into lines and counts them, empty ones as well, as editors do. */
class NumberedLines {
  readonly #file: string;
  #count = 0;
  /** The beginning of the last line; undefined: it is too long to be kept. */
  #rest: Buffer[] | undefined = [];
  #restBytes = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** The chunk may be overwritten after this. */
  take(chunk: Buffer): readonly FoundLine[] {
    const found: FoundLine[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      this.#keep(chunk.subarray(start, end));
      found.push(...this.#finish());
      start = end + 1;
    }
    this.#keep(Buffer.from(chunk.subarray(start)));
    return found;
  }

  /** Returns the line that has no line break, if there is one. */
  end(): readonly FoundLine[] {
    return this.#restBytes === 0 ? [] : this.#finish();
  }

  #keep(part: Buffer): void {
    this.#restBytes += part.length;
    if (this.#restBytes > MAX_LINE_BYTES) this.#rest = undefined;
    if (part.length > 0) this.#rest?.push(part);
  }

  #finish(): readonly FoundLine[] {
    const text = this.#rest && Buffer.concat(this.#rest).toString('utf8').trim();
    this.#rest = [];
    this.#restBytes = 0;
    this.#count += 1;
    return text === '' ? [] : [{ file: this.#file, number: this.#count, text }];
  }
}
