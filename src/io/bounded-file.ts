/** Reads the beginning of a file, and tells what kind of thing its name leads to: a device may have no end. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

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

/** What is asked about permissions is the very file that is read, whatever the name leads to a moment later. */
export function readFileOnDisk(path: string, maxBytes: number): FoundFile {
  const handle = openSync(path, 'r');
  try {
    const stats = fstatSync(handle);
    const kind = stats.isDirectory() ? 'directory' : stats.isFile() || stats.isFIFO() ? 'file' : 'other';
    const bytes = kind === 'file' ? readAtMost(handle, maxBytes) : new Uint8Array();
    return { kind, mode: stats.mode & 0o7777, uid: stats.uid, bytes };
  } finally {
    closeSync(handle);
  }
}

function readAtMost(handle: number, maxBytes: number): Uint8Array {
  const chunks: Buffer[] = [];
  let left = maxBytes;
  while (left > 0) {
    const chunk = Buffer.allocUnsafe(Math.min(left, 64 * 2 ** 10));
    const length = readSync(handle, chunk, 0, chunk.length, null);
    if (length === 0) break;
    chunks.push(chunk.subarray(0, length));
    left -= length;
  }
  return Buffer.concat(chunks);
}
