/**
 * Compiled code in a file of the user's cache folder. V8 runs it as it is, so it is read only where nobody but this user
 * could have written it, and only if it is what was written: V8 does not look, and damaged code ends the process. That it
 * belongs to this V8 and its flags, V8 checks itself; to which program, the name says.
 */
import { createHash } from 'node:crypto';
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
import { dirname, isAbsolute, join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

export interface CodeFileOptions {
  readonly argv: readonly string[];
  readonly env: Environment;
  /** The digest of the program, in hexadecimal digits. */
  readonly digest: string;
}

export interface CompiledCode {
  readonly code: Buffer;
  /** How many runs have added to it. */
  readonly generation: number;
}

/** Undefined where nothing is to be kept. */
export function findCodeFile({ argv, env, digest }: CodeFileOptions): CodeFile | undefined {
  const base =
    process.platform === 'win32' ? env.LOCALAPPDATA : env.XDG_CACHE_HOME || (env.HOME && `${env.HOME}/.cache`);
  // Node's own switch for the same thing.
  if (env.NODE_DISABLE_COMPILE_CACHE || !base || !isAbsolute(base)) return undefined;
  const name = `${nameRun(argv)}-${process.version}-${process.arch}-${digest}${SUFFIX}`;
  return new CodeFile(join(base, 'mcp-portage', name));
}

/** Runs with the same name need much the same code. */
function nameRun(argv: readonly string[]): string {
  const verb = VERBS.find((candidate) => candidate === argv[0]) ?? 'serve';
  return `${verb}-${argv.includes('--') ? 'command' : 'url'}`;
}

const VERBS = ['connect', 'probe'];

/**
 * The digest of all that follows, then the generation, then the code, which V8 would have to copy if it did not begin at a
 * multiple of eight.
 */
const DIGEST_BYTES = 32;
const HEAD_BYTES = DIGEST_BYTES + 8;
const SUFFIX = '.v8';
/** Enough for a few versions of the program and of Node; each takes about a megabyte. */
export const MAX_FILES = 16;

export class CodeFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Undefined when there is none, or none to be trusted. */
  read(): CompiledCode | undefined {
    try {
      const bytes = readPrivate(this.#path);
      if (bytes === undefined || bytes.length < HEAD_BYTES) return undefined;
      if (!digestOf(bytes.subarray(DIGEST_BYTES)).equals(bytes.subarray(0, DIGEST_BYTES))) return undefined;
      return { code: bytes.subarray(HEAD_BYTES), generation: bytes.readUInt8(DIGEST_BYTES) };
    } catch {
      return undefined;
    }
  }

  /** Writes the whole file or nothing. Without a place for it the next start is slower, which is no reason to say anything. */
  write({ code, generation }: CompiledCode): void {
    const draft = `${this.#path}.${process.pid}`;
    try {
      makePrivateDirectory(dirname(this.#path));
      const bytes = Buffer.concat([Buffer.alloc(HEAD_BYTES), code]);
      bytes.writeUInt8(generation, DIGEST_BYTES);
      digestOf(bytes.subarray(DIGEST_BYTES)).copy(bytes);
      writeFileSync(draft, bytes, { mode: 0o600, flag: 'wx' });
      renameSync(draft, this.#path);
      removeOldest(dirname(this.#path));
    } catch {
      remove(draft);
    }
  }
}

/** The program needs node:crypto anyway; of a megabyte it takes a millisecond. */
function digestOf(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
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
    // Where nothing can be removed nothing was written.
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

/** The home directory itself is not made: a user that has none is not meant to have one. */
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

/** Written by this user, and by nobody else. On Windows the folder says who may write, and neither bits nor ids do. */
function isPrivate({ uid, mode }: Stats): boolean {
  return process.geteuid === undefined || (uid === process.geteuid() && (mode & 0o022) === 0);
}
