/**
 * Reads files whose content decides which programs are started, and refuses those that other users could have written.
 */
import { BridgeError } from '../../errors.ts';
import type { FoundFile, ReadFile } from '../../io/bounded-file.ts';

export interface Readers {
  readonly platform: NodeJS.Platform;
  /** The user id of this process; undefined on Windows. */
  readonly uid: number | undefined;
  readonly readFile: ReadFile;
  /** True if files that other users own or may write to are accepted. */
  readonly mayBeWritable: boolean;
}

export type ReadText =
  | { readonly ok: true; readonly text: string }
  /** The problem ends with a period and quotes nothing from the file. */
  | { readonly ok: false; readonly problem: string };

/** Returns the text of a file that only this user and root can have written. */
export function readOwnText(path: string, maxBytes: number, readers: Readers): ReadText {
  return readText(path, maxBytes, readers, 'the file that is named here');
}

/** Throws ERR_CONFIG_FILE. */
export function readConfigText(path: string, maxBytes: number, readers: Readers): string {
  const read = readText(path, maxBytes, readers, path);
  if (read.ok) return read.text;
  throw new BridgeError('ERR_CONFIG_FILE', `--config: ${read.problem}`);
}

/** @param name the name of the file in messages, which do not repeat texts of a configuration file */
export function readText(path: string, maxBytes: number, readers: Readers, name: string): ReadText {
  let found: FoundFile;
  try {
    found = readers.readFile(path, maxBytes + 1);
  } catch (cause) {
    const code = codeOf(cause);
    return refuse(code === 'ENOENT' ? `${name} does not exist.` : `cannot read ${name} (${code}).`);
  }
  if (found.kind === 'directory') return refuse(`${name} is a directory; expected a file.`);
  if (found.kind === 'other') return refuse(`${name} is a device or a socket; expected a file.`);
  const unsafe = explainUnsafeOwner(name, found, readers);
  if (unsafe !== undefined) return refuse(unsafe);
  if (found.bytes.length > maxBytes) return refuse(`${name} is larger than ${renderSize(maxBytes)}.`);
  try {
    // The decoder removes a byte order mark at the beginning.
    return { ok: true, text: new TextDecoder('utf-8', { fatal: true }).decode(found.bytes) };
  } catch {
    return refuse(`${name} is not UTF-8; save it in that encoding.`);
  }
}

/** Applies the rule of ssh for its files. On Windows, owner and mode bits have no meaning. */
function explainUnsafeOwner(name: string, found: FoundFile, readers: Readers): string | undefined {
  if (readers.platform === 'win32' || readers.uid === undefined || readers.mayBeWritable) return undefined;
  const remedy = 'or say --allow-writable-config where nobody else can reach it, as in a container';
  if (found.uid !== readers.uid && found.uid !== 0) {
    return `${name} belongs to another user, who could have any program started as you. Make it yours (chown), ${remedy}.`;
  }
  if ((found.mode & 0o022) === 0) return undefined;
  return `others may write to ${name}, and so have any program started as you. Forbid it with chmod go-w, ${remedy}.`;
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable';
}

function renderSize(bytes: number): string {
  return bytes >= 2 ** 20 ? `${bytes / 2 ** 20} MiB` : `${bytes / 2 ** 10} KiB`;
}

function refuse(problem: string): ReadText {
  return { ok: false, problem };
}
