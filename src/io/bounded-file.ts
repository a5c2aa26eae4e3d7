/** Reads the start of a file and reports its kind. Reads are limited, because a device may have no end. */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';

/** A file as found on disk. */
export interface FoundFile {
  readonly kind: 'file' | 'directory' | 'other';
  /** The permission bits. */
  readonly mode: number;
  readonly uid: number;
  /** At most the requested number of bytes. */
  readonly bytes: Uint8Array;
}

/** Reads at most `maxBytes`. Throws the system's error if the file cannot be read. */
export type ReadFile = (path: string, maxBytes: number) => FoundFile;

/**
 * The time that the bridge, while it starts, waits for data in a pipe, such as the shell's `<(command)`. While it
 * serves clients, it does not wait.
 */
export const PIPE_PATIENCE_MS = 5000;
const PIPE_PAUSE_MS = 10;

/** Opening a pipe without a writer would block the whole process forever. Windows has no such flag. */
const { O_NONBLOCK = 0 } = constants as Partial<typeof constants>;
export const OPEN_TO_READ = constants.O_RDONLY | O_NONBLOCK;

/**
 * Reads a file. Its permissions are those of the opened file itself, even if the path is replaced at the same time.
 *
 * @param pipePatienceMs time for which the whole process may block to wait for data in a pipe
 */
export function readFileOnDisk(path: string, maxBytes: number, pipePatienceMs = 0): FoundFile {
  const handle = openSync(path, OPEN_TO_READ);
  try {
    const stats = fstatSync(handle);
    const kind = kindOf(stats);
    const bytes =
      kind === 'file' ? readAtMost(handle, maxBytes, stats.isFIFO() ? pipePatienceMs : undefined) : new Uint8Array();
    return { kind, mode: stats.mode & 0o7777, uid: stats.uid, bytes };
  } finally {
    closeSync(handle);
  }
}

function kindOf(stats: Stats): FoundFile['kind'] {
  if (stats.isDirectory()) return 'directory';
  return stats.isFile() || stats.isFIFO() ? 'file' : 'other';
}

/** @param patienceMs time to wait for data in a pipe; undefined for a file, which ends where a read returns nothing */
function readAtMost(handle: number, maxBytes: number, patienceMs: number | undefined): Uint8Array {
  const chunks: Buffer[] = [];
  let left = maxBytes;
  let waitedMs = 0;
  while (left > 0) {
    const chunk = Buffer.allocUnsafe(Math.min(left, 64 * 2 ** 10));
    const length = tryToRead(handle, chunk);
    // A pipe that no writer has opened yet reads like one at its end.
    const mayComeYet = length === 'nothing yet' || (length === 0 && chunks.length === 0);
    if (patienceMs !== undefined && mayComeYet) {
      if (waitedMs >= patienceMs) throw Object.assign(new Error('nobody writes into this pipe'), { code: 'EAGAIN' });
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PIPE_PAUSE_MS);
      waitedMs += PIPE_PAUSE_MS;
    } else if (length === 0 || length === 'nothing yet') break;
    else {
      chunks.push(chunk.subarray(0, length));
      left -= length;
    }
  }
  return Buffer.concat(chunks);
}

function tryToRead(handle: number, chunk: Buffer): number | 'nothing yet' {
  try {
    return readSync(handle, chunk, 0, chunk.length, null);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EAGAIN') return 'nothing yet';
    throw thrown;
  }
}

/** No secret, key, certificate or list of them is longer. */
const MAX_SMALL_BYTES = 2 ** 20;

/**
 * Returns the text of a small regular file. Throws an error with a `code` for anything else, such as a pipe or a
 * device.
 */
export function readSmallFile(path: string, maxBytes = MAX_SMALL_BYTES): string {
  const handle = openSync(path, OPEN_TO_READ);
  try {
    const stats = fstatSync(handle);
    if (!stats.isFile()) throw Object.assign(new Error('this is not a file'), { code: 'ERR_NOT_A_FILE' });
    const bytes = readAtMost(handle, maxBytes + 1, undefined);
    if (bytes.length > maxBytes) throw Object.assign(new Error('this file is too large'), { code: 'EFBIG' });
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  } finally {
    closeSync(handle);
  }
}
