/**
 * The file of a Unix socket: when it may replace an existing one, who may connect from the first moment on, and which
 * process removes it at the end. See docs/internals/decisions/0029-sockets.md.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, linkSync, lstatSync, renameSync, type Stats, statSync, unlinkSync } from 'node:fs';
import { connect, type Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { SocketAddress } from '../../config/listener.ts';
import { BridgeError } from '../../errors.ts';
import { begin } from './begin-listening.ts';

/**
 * The length of `sun_path` without its terminating zero. The system would truncate a longer path and listen elsewhere.
 */
const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103;
/** A umask: only this user may connect until the socket's mode is set. */
const ONLY_OURS = 0o077;
/** Time to wait for a connection. A stopped process with a full backlog does not answer, but still runs. */
const ANSWER_MS = 2000;

/** The socket file of a listener. */
export interface SocketFile {
  /** Removes the file, unless another process has replaced it. Can be called repeatedly. */
  remove(): void;
}

/**
 * Starts listening. Rejects with ERR_CONFIG_LISTEN.
 *
 * @param option the option that gave the path
 */
export async function listenAtSocketFile(
  server: Server,
  { path, mode }: SocketAddress,
  option: string,
): Promise<SocketFile> {
  const folder = dirname(path);
  // The socket has a temporary name until it is complete, and then replaces a stale one atomically. Node removes the
  // name that it listened on at the end, even if the file is then another process's; here that is the temporary name.
  const draft = join(folder, `.${randomBytes(3).toString('hex')}`);
  refuseLongPath(path, draft, option);
  refuseFolder(folder, { path, option });
  const stale = await findStale(path, option);
  await beginAsOurs(server, draft, path);
  try {
    chmodSync(draft, mode);
    const { dev, ino } = lstatSync(draft);
    put(draft, { path, option }, stale);
    return new OwnFile(path, { dev, ino });
  } catch (thrown) {
    // Node also removes the temporary file.
    server.close();
    if (thrown instanceof BridgeError) throw thrown;
    throw unusable(thrown, path);
  }
}

class OwnFile implements SocketFile {
  readonly #path: string;
  readonly #own: Pick<Stats, 'dev' | 'ino'>;
  #isRemoved = false;

  constructor(path: string, own: Pick<Stats, 'dev' | 'ino'>) {
    this.#path = path;
    this.#own = own;
  }

  remove(): void {
    if (this.#isRemoved) return;
    this.#isRemoved = true;
    const found = lookAt(this.#path);
    if (found === undefined || !isSame(found, this.#own)) return;
    try {
      unlinkSync(this.#path);
    } catch {
      // The file is already gone, or this user may not change the folder anymore. The next listener there finds a
      // stale file.
    }
  }
}

/**
 * Starts listening with a restrictive umask. The system creates the file during the call of `listen`, so no other code
 * of this process runs with that mask.
 */
async function beginAsOurs(server: Server, draft: string, path: string): Promise<void> {
  const before = process.umask(ONLY_OURS);
  let begun: Promise<void>;
  try {
    begun = begin(server, { path: draft }, (error) => unusable(error, path));
  } finally {
    process.umask(before);
  }
  await begun;
}

interface GivenPath {
  readonly path: string;
  readonly option: string;
}

/**
 * Moves the draft to its final name. The existing file is checked once more, because another process may have started
 * to use it.
 */
function put(draft: string, { path, option }: GivenPath, stale: Stats | undefined): void {
  const found = lookAt(path);
  if (stale === undefined && found === undefined && linked(draft, { path, option })) return;
  if (found !== undefined && (stale === undefined || !isSame(found, stale))) throw inUse({ path, option });
  renameSync(draft, path);
}

/**
 * Links the draft to its final name. Unlike a rename, that fails if a file exists by now. Returns false if the file
 * system has no links for sockets.
 */
function linked(draft: string, { path, option }: GivenPath): boolean {
  try {
    linkSync(draft, path);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') throw inUse({ path, option });
    return false;
  }
  unlinkSync(draft);
  return true;
}

/** Returns the file left behind by a process that has ended; undefined if there is no file. */
async function findStale(path: string, option: string): Promise<Stats | undefined> {
  const found = lookAt(path);
  if (found === undefined) return undefined;
  if (!found.isSocket()) {
    throw refuse(
      `${path} is ${nameKind(found)}, and no socket: it is not replaced. Choose another path with ${option}, or remove it.`,
    );
  }
  const uid = process.getuid?.();
  if (uid !== undefined && found.uid !== uid) {
    throw refuse(
      `The socket ${path} belongs to another user (uid ${found.uid}, this process has ${uid}): it is not replaced. Choose another path with ${option}.`,
    );
  }
  const answer = await ask(path);
  switch (answer) {
    case 'ECONNREFUSED':
      return found;
    case 'ENOENT':
      return undefined;
    case 'connected':
    case 'silent':
    case 'EAGAIN':
      throw inUse({ path, option });
    default:
      throw refuse(
        `Whether a program listens at the socket ${path} cannot be told (${answer}), so it is not replaced. Choose another path with ${option}, or remove it.`,
      );
  }
}

/** Tests for a listener by connecting. Resolves with `connected`, `silent`, or the code of the error. */
function ask(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const settle = (answer: string): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(ANSWER_MS, () => settle('silent'));
    socket.once('connect', () => settle('connected'));
    socket.once('error', ({ code = 'unknown' }: NodeJS.ErrnoException) => settle(code));
  });
}

function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

function isSame(one: Pick<Stats, 'dev' | 'ino'>, other: Pick<Stats, 'dev' | 'ino'>): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

function nameKind(stats: Stats): string {
  if (stats.isDirectory()) return 'a directory';
  return stats.isSymbolicLink() ? 'a symbolic link' : 'a file';
}

function refuseLongPath(path: string, draft: string, option: string): void {
  const bytes = Math.max(Buffer.byteLength(path), Buffer.byteLength(draft));
  if (bytes <= MAX_PATH_BYTES) return;
  const most = MAX_PATH_BYTES - Math.max(0, Buffer.byteLength(basename(draft)) - Buffer.byteLength(basename(path)));
  throw refuse(
    `The path of a socket has at most ${most} bytes on this system, ${path} has ${Buffer.byteLength(path)}; choose a shorter one with ${option}.`,
  );
}

function refuseFolder(folder: string, { path, option }: GivenPath): void {
  let found: Stats | undefined;
  try {
    found = statSync(folder);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT') throw unusable(thrown, path);
  }
  if (found?.isDirectory()) return;
  const what = found === undefined ? 'does not exist' : 'is no folder';
  throw refuse(`The folder of the socket, ${folder}, ${what}: create it, or choose another path with ${option}.`);
}

function inUse({ path, option }: GivenPath): BridgeError {
  return refuse(`Another program listens at the socket ${path}; stop it, or choose another path with ${option}.`);
}

function unusable(cause: unknown, path: string): BridgeError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const reason =
    code === 'EACCES' || code === 'EPERM' || code === 'EROFS'
      ? `this user may not create a file in ${dirname(path)} (${code})`
      : message;
  return new BridgeError('ERR_CONFIG_LISTEN', `Cannot listen at the socket ${path}: ${reason}.`, { cause });
}

function refuse(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_LISTEN', message);
}
