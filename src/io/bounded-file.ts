/** Reads the beginning of a file, and tells what kind of thing its name leads to: a device may have no end. */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';

/** A file as found on disk. */
export interface FoundFile {
  readonly kind: 'file' | 'directory' | 'other';
  /** The permission bits. */
  readonly mode: number;
  readonly uid: number;
  /** Never more than was asked for. */
  readonly bytes: Uint8Array;
}

/** Reads at most `maxBytes`; throws what the system says when it cannot be read. */
export type ReadFile = (path: string, maxBytes: number) => FoundFile;

/** How long the start waits for whoever writes into a pipe, as the shell's `<(command)` does. While clients are served: not at all. */
export const PIPE_PATIENCE_MS = 5000;
const PIPE_PAUSE_MS = 10;

/** Opening a pipe that nobody writes into would wait for ever, and everybody with it. Not on Windows. */
const { O_NONBLOCK = 0 } = constants as Partial<typeof constants>;
export const OPEN_TO_READ = constants.O_RDONLY | O_NONBLOCK;

/**
 * What is asked about permissions is the very file that is read, whatever the name leads to a moment later.
 * @param pipePatienceMs how long the whole process may wait for what comes through a pipe
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

/** @param patienceMs of a pipe; undefined: it is none, and its end is where nothing more is read */
function readAtMost(handle: number, maxBytes: number, patienceMs: number | undefined): Uint8Array {
  const chunks: Buffer[] = [];
  let left = maxBytes;
  let waitedMs = 0;
  while (left > 0) {
    const chunk = Buffer.allocUnsafe(Math.min(left, 64 * 2 ** 10));
    const length = tryToRead(handle, chunk);
    // A pipe that nobody has opened to write yet has an end as well.
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

/** Nobody writes a longer secret, key, certificate or list of them. */
const MAX_SMALL_BYTES = 2 ** 20;

/** The text of a small file, and of nothing else that may have its name: a pipe, a device. Throws with a code. */
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
