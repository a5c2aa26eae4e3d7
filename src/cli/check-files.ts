/** The checks that need the disk, before anything is started: a wrong path should be told as such, not as a crash later. */
import { constants, type Stats } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { AuthConfig } from '../config/access.ts';
import type { ListenerConfig } from '../config/listener.ts';
import type { RemoteConfig } from '../config/remote.ts';
import type { ServerConfig } from '../config/server.ts';
import type { Config } from '../config.ts';
import { BridgeError } from '../errors.ts';
import { checkPair } from '../http/server/certificate-files.ts';
import { readFileOnDisk, readSmallFile } from '../io/bounded-file.ts';
import { type FoundFile, UnusableFile, warnOfOpenFile } from './parse/servers/headers.ts';

/** Resolves with warnings. Throws ERR_CONFIG_OPTION or ERR_CONFIG_COMBINATION. */
export async function checkFiles({ listener, servers }: Config): Promise<readonly string[]> {
  // Many servers of a file have the folder of that file.
  const folders = new Map<string, Promise<void>>();
  const checkFolder = (path: string): Promise<void> => {
    const checked = folders.get(path) ?? checkDirectory(path);
    folders.set(path, checked);
    return checked;
  };
  const warnings = (await Promise.all(servers.map((server) => checkOneOf(server, checkFolder)))).flat();
  return [...warnings, ...(await checkListener(listener))];
}

/** Checks one of several servers: one that cannot be started, or reached, keeps no other from being served. */
async function checkOneOf(server: ServerConfig, checkFolder: CheckFolder): Promise<readonly string[]> {
  const { listing } = server;
  if (listing === undefined) return checkServer(server, checkFolder);
  try {
    const warnings = await checkServer(server, checkFolder);
    return warnings.map((warning) => `${listing.name}: ${warning}`);
  } catch (thrown) {
    if (!(thrown instanceof BridgeError)) throw thrown;
    return [`${listing.name}: ${thrown.message}`];
  }
}

type CheckFolder = (path: string) => Promise<void>;

async function checkServer({ child, remote }: ServerConfig, checkFolder: CheckFolder): Promise<readonly string[]> {
  if (child.cwd !== undefined) await checkFolder(child.cwd);
  await checkClientTls(remote.tls);
  return remote.bearerTokenFile === undefined ? [] : checkTokenFile('bearer-token-file', remote.bearerTokenFile);
}

async function checkListener(listener: ListenerConfig): Promise<readonly string[]> {
  if (listener.kind !== 'http') return [];
  const { tls, access } = listener;
  if (tls !== undefined) await checkPairOf({ cert: 'tls-cert', key: 'tls-key' }, tls.certFile, tls.keyFile);
  return access.auth === undefined ? [] : checkAuth(access.auth);
}

/** The keys of an issuer are public: who else can read them does not matter. */
async function checkAuth({ tokens, oauth }: AuthConfig): Promise<readonly string[]> {
  if (oauth?.keys.kind === 'file') await checkReadable('auth-jwks', oauth.keys.file);
  const warnings: string[] = [];
  for (const source of tokens) {
    if (source.kind === 'file') warnings.push(...(await checkTokenFile('auth-token', source.file)));
  }
  return warnings;
}

/** Nobody writes so many headers, variables or keys. */
const MAX_TEXT_BYTES = 2 ** 20;

/** For files that hold headers, variables, a secret or a key; what cannot be read is thrown. */
export function readTextFile(path: string, pipePatienceMs = 0): FoundFile {
  const found = readFileOnDisk(path, MAX_TEXT_BYTES + 1, pipePatienceMs);
  if (found.kind === 'directory') throw new UnusableFile('this is a directory; expected a file');
  if (found.kind === 'other') throw new UnusableFile('this is a device or a socket; expected a file');
  if (found.bytes.length > MAX_TEXT_BYTES) throw new UnusableFile('this file is larger than 1 MiB');
  return { text: decode(found.bytes), isOpenToAll: isOpenToAll(found) };
}

function decode(bytes: Uint8Array): string {
  try {
    // A mark of the byte order at the beginning, as editors on Windows write it, is left out.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new UnusableFile('this file is not UTF-8; save it in that encoding', { cause });
  }
}

/** On Windows the bits say nothing about others. */
function isOpenToAll({ mode }: Pick<Stats, 'mode'>): boolean {
  return process.platform !== 'win32' && (mode & 0o004) !== 0;
}

/** Its content is read when it is needed, and may come later: whoever renews it may not have written it yet. */
async function checkTokenFile(option: string, path: string): Promise<readonly string[]> {
  const stats = await checkReadable(option, path);
  return isOpenToAll(stats) ? [warnOfOpenFile(`--${option} ${path}`)] : [];
}

async function checkReadable(option: string, path: string): Promise<Stats> {
  try {
    await access(path, constants.R_OK);
    const stats = await stat(path);
    if (stats.isDirectory()) throw new BridgeError('ERR_CONFIG_OPTION', `--${option}: ${path} is a directory.`);
    return stats;
  } catch (cause) {
    if (cause instanceof BridgeError) throw cause;
    throw unreadable(option, path, cause);
  }
}

async function checkClientTls({ caFile, certFile, keyFile }: RemoteConfig['tls']): Promise<void> {
  if (caFile !== undefined) await checkAuthorities(caFile);
  if (certFile !== undefined && keyFile !== undefined) {
    await checkPairOf({ cert: 'client-cert', key: 'client-key' }, certFile, keyFile);
  }
}

async function checkAuthorities(path: string): Promise<void> {
  const ca = readPem('ca', path);
  // Node takes a file without any certificate for an empty list of authorities, which trusts nobody.
  if (ca.includes('-----BEGIN CERTIFICATE-----') && isUsable({ ca })) return;
  throw new BridgeError('ERR_CONFIG_OPTION', `--ca: expected certificates in PEM form in ${path}; got something else.`);
}

function isUsable(options: SecureContextOptions): boolean {
  try {
    createSecureContext(options);
    return true;
  } catch {
    return false;
  }
}

async function checkDirectory(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return;
  const got = found === undefined ? 'nothing there' : 'a file';
  throw new BridgeError('ERR_CONFIG_OPTION', `--cwd: expected a directory at ${path}; got ${got}.`);
}

interface PairNames {
  readonly cert: string;
  readonly key: string;
}

async function checkPairOf(names: PairNames, certFile: string, keyFile: string): Promise<void> {
  const cert = readPem(names.cert, certFile);
  const key = readPem(names.key, keyFile);
  try {
    checkPair({ cert, key });
  } catch (cause) {
    throw new BridgeError(
      'ERR_CONFIG_COMBINATION',
      `--${names.cert}, --${names.key}: expected a PEM certificate and its own unencrypted key; got ${certFile} and ${keyFile}, which do not work together (${reasonOf(cause)}).`,
      { cause },
    );
  }
}

function readPem(option: string, path: string): string {
  try {
    return readSmallFile(path);
  } catch (cause) {
    throw unreadable(option, path, cause);
  }
}

function unreadable(option: string, path: string, cause: unknown): BridgeError {
  const reason = reasonOf(cause);
  const problem = reason === 'ENOENT' ? `${path} does not exist` : `cannot read ${path} (${reason})`;
  return new BridgeError('ERR_CONFIG_OPTION', `--${option}: ${problem}.`, { cause });
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable';
}
