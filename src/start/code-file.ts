/**
 * Compiled code in a file of the user's cache folder. V8 runs it without checks, and damaged code crashes the process.
 * It is therefore read only if no other user can have written it and its checksum is right. V8 itself checks its version
 * and flags; the file name identifies the file of the program.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, extname, isAbsolute, join } from 'node:path';
import { crc32 } from 'node:zlib';

type Environment = Readonly<Record<string, string | undefined>>;

export interface CodeFileOptions {
  /** The name of a file of the program. */
  readonly file: string;
  readonly argv: readonly string[];
  readonly env: Environment;
  /** The digest of that file, in hexadecimal digits. */
  readonly digest: string;
}

export interface CompiledCode {
  readonly code: Buffer;
  /** The number of runs that have stored the code. */
  readonly generation: number;
}

/** Returns undefined if compiled code is not to be stored. */
export function findCodeFile({ file, argv, env, digest }: CodeFileOptions): CodeFile | undefined {
  const base =
    process.platform === 'win32' ? env.LOCALAPPDATA : env.XDG_CACHE_HOME || (env.HOME && `${env.HOME}/.cache`);
  // Node's own switch for its compile cache.
  if (env.NODE_DISABLE_COMPILE_CACHE || !base || !isAbsolute(base)) return undefined;
  const name = `${nameRun(argv)}-${basename(file, extname(file))}-${process.version}-${process.arch}-${digest}${SUFFIX}`;
  return new CodeFile(join(base, 'mcp-portage', name));
}

/** Names a kind of run. Runs with the same name use mostly the same code. */
function nameRun(argv: readonly string[]): string {
  const verb = VERBS.find((candidate) => candidate === argv[0]) ?? 'serve';
  return `${verb}-${argv.includes('--') ? 'command' : 'url'}`;
}

const VERBS = ['connect', 'probe'];

/**
 * Layout of the file: the checksum of everything after it, the generation, the code. V8 would have to copy code that
 * does not start at a multiple of eight. The checksum finds damage; loading a cryptographic digest would take longer
 * than the rest of reading the file.
 */
const CHECKSUM_BYTES = 4;
const HEAD_BYTES = CHECKSUM_BYTES + 4;
const SUFFIX = '.v8';
/** Enough for a few versions of the program and of Node, whose starts load some files each: about 20 MB. */
export const MAX_FILES = 96;

export class CodeFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns undefined if there is no file, or none that can be trusted. */
  read(): CompiledCode | undefined {
    try {
      const bytes = readPrivate(this.#path);
      if (bytes === undefined || bytes.length < HEAD_BYTES) return undefined;
      if (crc32(bytes.subarray(CHECKSUM_BYTES)) !== bytes.readUInt32LE()) return undefined;
      return { code: bytes.subarray(HEAD_BYTES), generation: bytes.readUInt8(CHECKSUM_BYTES) };
    } catch {
      return undefined;
    }
  }

  /** Writes the whole file or nothing. A failure is not reported, because it only makes the next start slower. */
  write({ code, generation }: CompiledCode): void {
    const draft = `${this.#path}.${process.pid}`;
    try {
      makePrivateDirectory(dirname(this.#path));
      const bytes = Buffer.concat([Buffer.alloc(HEAD_BYTES), code]);
      bytes.writeUInt8(generation, CHECKSUM_BYTES);
      bytes.writeUInt32LE(crc32(bytes.subarray(CHECKSUM_BYTES)));
      writeFileSync(draft, bytes, { mode: 0o600, flag: 'wx' });
      renameSync(draft, this.#path);
      removeOldest(dirname(this.#path));
    } catch {
      remove(draft);
    }
  }
}

function removeOldest(directory: string): void {
  const files = readdirSync(directory)
    .filter((name) => name.endsWith(SUFFIX))
    .map((name) => ({ path: join(directory, name), at: lstatSync(join(directory, name)).mtimeMs }));
  files.sort((one, other) => other.at - one.at);
  for (const { path } of files.slice(MAX_FILES)) remove(path);
}

function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // If the file cannot be removed, it was not written either.
  }
}

function readPrivate(path: string): Buffer | undefined {
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    return isPrivate(fstatSync(fd)) ? readFileSync(fd) : undefined;
  } finally {
    closeSync(fd);
  }
}

/** Creates the folder and its parent, but not the home directory: a user without one is not meant to have one. */
function makePrivateDirectory(path: string): void {
  for (const directory of [dirname(path), path]) {
    try {
      mkdirSync(directory, { mode: 0o700 });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
  }
  if (!isPrivate(lstatSync(path))) throw new Error(`${path} belongs to somebody else, too`);
}

/**
 * Returns true if only this user can have written the file. On Windows the folder's permissions decide, which mode bits
 * and ids do not show.
 */
function isPrivate({ uid, mode }: Stats): boolean {
  return process.geteuid === undefined || (uid === process.geteuid() && (mode & 0o022) === 0);
}
