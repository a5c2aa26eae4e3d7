/**
 * The file of a Unix socket: when another may be replaced by it, who may connect from its first moment on, and whose it is
 * at the end. See docs/decisions/0029-sockets.md.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, linkSync, lstatSync, renameSync, type Stats, statSync, unlinkSync } from 'node:fs';
import { connect, type Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { SocketAddress } from '../../config/listener.ts';
import { BridgeError } from '../../errors.ts';
import { begin } from './begin-listening.ts';

/** The length of `sun_path` without the zero at its end. The system would cut a longer path short, and listen elsewhere. */
const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103;
/** Nobody but us may connect while a socket still waits for its mode. */
const ONLY_OURS = 0o077;
/** A process that is stopped with its backlog full answers nobody, and is not gone. */
const ANSWER_MS = 2000;

/** The file of a socket that we listen on. */
export interface SocketFile {
  /** Takes the file away, unless it has been replaced by somebody else's. May be called twice. */
  remove(): void;
}

/**
 * Rejects with ERR_CONFIG_LISTEN.
 * @param option by which the path was given
 */
export async function listenAtSocketFile(
  server: Server,
  { path, mode }: SocketAddress,
  option: string,
): Promise<SocketFile> {
  const folder = dirname(path);
  // Under this name only until it is complete: it then takes the place of a stale one in one step. Node would also remove
  // the name that it has listened on in the end, whoever's that is by then.
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
    // Node takes the draft with it.
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
      // Somebody was quicker, or has taken the folder from us. The next to listen there finds a stale file.
    }
  }
}

/** The system makes the file while `listen` is called, so nothing else of this process sees the other mask. */
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

/** What there was is looked at once more: it may have become somebody's. */
function put(draft: string, { path, option }: GivenPath, stale: Stats | undefined): void {
  const found = lookAt(path);
  if (stale === undefined && found === undefined && linked(draft, { path, option })) return;
  if (found !== undefined && (stale === undefined || !isSame(found, stale))) throw inUse({ path, option });
  renameSync(draft, path);
}

/** Unlike renaming, that fails where there is a file by now. False: this file system has no links for sockets. */
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

/** The file of a process that has ended without taking it away; undefined: there is no file. */
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

/** Whether somebody listens there: `connected`, `silent`, or the code of the error. */
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
