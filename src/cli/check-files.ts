/**
 * Checks files and folders before the bridge starts, so that a wrong path is reported with its option and not as a
 * later crash.
 */
import { constants, type Stats } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { AuthConfig } from '../config/access.ts';
import type { ListenerConfig } from '../config/listener.ts';
import type { AssertionSource, RemoteConfig } from '../config/remote.ts';
import type { ServerConfig } from '../config/server.ts';
import type { Config } from '../config.ts';
import { BridgeError } from '../errors.ts';
import { checkPair } from '../http/server/certificate-files.ts';
import { readFileOnDisk, readSmallFile } from '../io/bounded-file.ts';
import { GivenOptions } from './options/given-options.ts';
import type { OptionName } from './options/option-table.ts';
import type { GivenOfConfig } from './parse/config.ts';
import { type FoundFile, UnusableFile, warnOfOpenFile } from './parse/servers/headers.ts';

const NOT_SAID = new GivenOptions([], { verb: 'serve', target: 'any', spelling: 'flags' });

/**
 * Resolves with warnings. Throws ERR_CONFIG_OPTION or ERR_CONFIG_COMBINATION.
 * @param given has the source of each path; a path in a configuration file is not shown, like all values there
 */
export async function checkFiles({ listener, servers }: Config, given?: GivenOfConfig): Promise<readonly string[]> {
  // In a configuration file, many servers have the same folder, which is checked once.
  const folders = new Map<string, Promise<FolderFault | undefined>>();
  const checkFolder = (path: string): Promise<FolderFault | undefined> => {
    const checked = folders.get(path) ?? findFolderFault(path);
    folders.set(path, checked);
    return checked;
  };
  // A damaged file keeps the whole bridge from starting, as its tools would be unprotected, or missing without a reason.
  for (const path of new Set(servers.flatMap(({ pinTools }) => pinTools ?? []))) {
    const index = servers.findIndex(({ pinTools }) => pinTools === path);
    await checkPins(namedBy(given?.servers[index] ?? NOT_SAID, 'pinTools', path), checkFolder);
  }
  const checked = servers.map((server, index) =>
    checkOneOf({ server, given: given?.servers[index] ?? NOT_SAID, checkFolder }),
  );
  const warnings = (await Promise.all(checked)).flat();
  return [...warnings, ...(await checkListener(listener, given?.listener ?? NOT_SAID))];
}

interface ServerToCheck {
  readonly server: ServerConfig;
  readonly given: GivenOptions;
  readonly checkFolder: CheckFolder;
}

/**
 * Checks one server. For a server of a file, an error becomes a warning: it must not keep the others from being served.
 */
async function checkOneOf(checked: ServerToCheck): Promise<readonly string[]> {
  const { listing } = checked.server;
  if (listing === undefined) return checkServer(checked);
  try {
    const warnings = await checkServer(checked);
    return warnings.map((warning) => `${listing.name}: ${warning}`);
  } catch (thrown) {
    if (!(thrown instanceof BridgeError)) throw thrown;
    return [`${listing.name}: ${thrown.message}`];
  }
}

type CheckFolder = (path: string) => Promise<FolderFault | undefined>;
type FolderFault = 'nothing there' | 'a file';

/** The path of an option. Errors call the option `source` and the path `shown`. */
interface NamedPath {
  readonly path: string;
  /** The option, such as `--ca`, or a position in a configuration file. */
  readonly source: string;
  readonly shown: string;
}

function namedBy(given: GivenOptions, option: OptionName, path: string): NamedPath {
  const shown = given.isInFile(option) ? 'the path that is named here' : path;
  return { path, source: given.placeOf(option), shown };
}

async function checkServer({ server, given, checkFolder }: ServerToCheck): Promise<readonly string[]> {
  const { child, remote } = server;
  if (child.cwd !== undefined) {
    const { source, shown, path } = namedBy(given, 'cwd', child.cwd);
    const got = await checkFolder(path);
    if (got !== undefined) {
      throw new BridgeError('ERR_CONFIG_OPTION', `${source}: expected a directory at ${shown}; got ${got}.`);
    }
  }
  checkClientTls(remote.tls, given);
  const secrets = [
    ['bearerTokenFile', remote.bearerTokenFile],
    ['oauthAssertionFile', assertionFileOf(remote.login?.assertion)],
  ] as const;
  const warnings: string[] = [];
  for (const [option, file] of secrets) {
    if (file !== undefined) warnings.push(...(await checkTokenFile(namedBy(given, option, file))));
  }
  return warnings;
}

/** Throws ERR_CONFIG_PINS for pins that cannot be used, and ERR_CONFIG_OPTION if none could be written. */
async function checkPins({ path, source, shown }: NamedPath, checkFolder: CheckFolder): Promise<void> {
  const folder = dirname(path);
  const fault = await checkFolder(folder);
  if (fault !== undefined) {
    throw new BridgeError('ERR_CONFIG_OPTION', `${source}: expected a directory for ${shown}; got ${fault}.`);
  }
  const { readPins } = await import('../pins/pin-file.ts');
  readPins(path);
  try {
    await access(folder, constants.W_OK);
  } catch (cause) {
    const message = `${source}: cannot write into the directory of ${shown} (${reasonOf(cause)}).`;
    throw new BridgeError('ERR_CONFIG_OPTION', message, { cause });
  }
}

function assertionFileOf(assertion: AssertionSource | undefined): string | undefined {
  if (assertion?.kind === 'file') return assertion.file;
  return assertion?.idToken.kind === 'file' ? assertion.idToken.file : undefined;
}

async function checkListener(listener: ListenerConfig, given: GivenOptions): Promise<readonly string[]> {
  if (listener.kind !== 'http') return [];
  const { tls, access } = listener;
  if (tls !== undefined) checkPairOf(namedBy(given, 'tlsCert', tls.certFile), namedBy(given, 'tlsKey', tls.keyFile));
  return access.auth === undefined ? [] : checkAuth(access.auth, given);
}

/** The keys of an issuer are public, so a file with them may be readable by all users. */
async function checkAuth({ tokens, oauth }: AuthConfig, given: GivenOptions): Promise<readonly string[]> {
  if (oauth?.keys.kind === 'file') await checkReadable(namedBy(given, 'authJwks', oauth.keys.file));
  const warnings: string[] = [];
  for (const source of tokens) {
    if (source.kind === 'file') warnings.push(...(await checkTokenFile(namedBy(given, 'authToken', source.file))));
  }
  return warnings;
}

/** More than any real file of headers, variables or keys has. */
const MAX_TEXT_BYTES = 2 ** 20;

/** Reads a file with headers, variables, a secret or a key. Throws if it cannot be read. */
export function readTextFile(path: string, pipePatienceMs = 0): FoundFile {
  const found = readFileOnDisk(path, MAX_TEXT_BYTES + 1, pipePatienceMs);
  if (found.kind === 'directory') throw new UnusableFile('this is a directory; expected a file');
  if (found.kind === 'other') throw new UnusableFile('this is a device or a socket; expected a file');
  if (found.bytes.length > MAX_TEXT_BYTES) throw new UnusableFile('this file is larger than 1 MiB');
  return { text: decode(found.bytes), isOpenToAll: isOpenToAll(found) };
}

function decode(bytes: Uint8Array): string {
  try {
    // The decoder removes a byte order mark, which editors on Windows write.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new UnusableFile('this file is not UTF-8; save it in that encoding', { cause });
  }
}

/** Windows does not report the permissions of other users in the mode. */
function isOpenToAll({ mode }: Pick<Stats, 'mode'>): boolean {
  return process.platform !== 'win32' && (mode & 0o004) !== 0;
}

/**
 * Checks a file with a token, but not its content: the file is read when the token is needed, and may be empty until
 * then.
 */
async function checkTokenFile(file: NamedPath): Promise<readonly string[]> {
  const stats = await checkReadable(file);
  return isOpenToAll(stats) ? [warnOfOpenFile(`${file.source} ${file.shown}`)] : [];
}

async function checkReadable(file: NamedPath): Promise<Stats> {
  const { path, source, shown } = file;
  try {
    await access(path, constants.R_OK);
    const stats = await stat(path);
    if (stats.isDirectory()) throw new BridgeError('ERR_CONFIG_OPTION', `${source}: ${shown} is a directory.`);
    return stats;
  } catch (cause) {
    if (cause instanceof BridgeError) throw cause;
    throw unreadable(file, cause);
  }
}

function checkClientTls({ caFile, certFile, keyFile }: RemoteConfig['tls'], given: GivenOptions): void {
  if (caFile !== undefined) checkAuthorities(namedBy(given, 'ca', caFile));
  if (certFile !== undefined && keyFile !== undefined) {
    checkPairOf(namedBy(given, 'clientCert', certFile), namedBy(given, 'clientKey', keyFile));
  }
}

function checkAuthorities(file: NamedPath): void {
  const ca = readPem(file);
  // Node would turn a file without certificates into an empty list of authorities, and then trust no server.
  if (ca.includes('-----BEGIN CERTIFICATE-----') && isUsable({ ca })) return;
  const { source, shown } = file;
  throw new BridgeError(
    'ERR_CONFIG_OPTION',
    `${source}: expected certificates in PEM form in ${shown}; got something else.`,
  );
}

function isUsable(options: SecureContextOptions): boolean {
  try {
    createSecureContext(options);
    return true;
  } catch {
    return false;
  }
}

async function findFolderFault(path: string): Promise<FolderFault | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return undefined;
  return found === undefined ? 'nothing there' : 'a file';
}

function checkPairOf(certFile: NamedPath, keyFile: NamedPath): void {
  const cert = readPem(certFile);
  const key = readPem(keyFile);
  try {
    checkPair({ cert, key });
  } catch (cause) {
    throw new BridgeError(
      'ERR_CONFIG_COMBINATION',
      `${certFile.source}, ${keyFile.source}: expected a PEM certificate and its own unencrypted key; got ${certFile.shown} and ${keyFile.shown}, which do not work together (${reasonOf(cause)}).`,
      { cause },
    );
  }
}

function readPem(file: NamedPath): string {
  try {
    return readSmallFile(file.path);
  } catch (cause) {
    throw unreadable(file, cause);
  }
}

function unreadable({ source, shown }: NamedPath, cause: unknown): BridgeError {
  const reason = reasonOf(cause);
  const problem = reason === 'ENOENT' ? `${shown} does not exist` : `cannot read ${shown} (${reason})`;
  return new BridgeError('ERR_CONFIG_OPTION', `${source}: ${problem}.`, { cause });
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable';
}
