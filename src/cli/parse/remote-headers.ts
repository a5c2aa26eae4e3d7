/** The headers every request to a remote server carries: of a file, of the command line, and the credential. */
import { BridgeError } from '../../errors.ts';
import type { GivenOptions } from '../options/given-options.ts';
import { BEARER_TOKEN_VARIABLE } from '../options/options.ts';
import type { Environment } from './child-environment.ts';
import { parseHeader } from './header.ts';

/** A text file as found on disk. */
export interface FoundFile {
  readonly text: string;
  /** Every user of this machine can read it. */
  readonly isOpenToAll: boolean;
}

export interface HeaderSources {
  readonly given: GivenOptions;
  readonly env: Environment;
  /** Absolute path of --header-file. */
  readonly headerFile: string | undefined;
  /** Throws what the system says when it cannot be read. */
  readonly readFile: (path: string) => FoundFile;
}

export interface RemoteHeaders {
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly warnings: readonly string[];
}

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION, which never show a value. */
export function composeRemoteHeaders(sources: HeaderSources): RemoteHeaders {
  const { given, env } = sources;
  const file = readHeaderFile(sources);
  const source = given.sourceOf('header');
  const written = given.texts('header').map((text) => ({ text, source }));
  // A header of the command line wins over the same one in the file.
  const headers = new Map([...parseLines(file.lines, env), ...parseLines(written, env)]);
  const token = findBearerToken(headers, given, env);
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
  return { headers, warnings: file.warnings };
}

/** The text of a log line about a file with credentials that others can read. */
export function warnOfOpenFile(source: string): string {
  return `${source}: every user of this machine can read this file; chmod 600 keeps the credentials in it private.`;
}

interface HeaderLine {
  readonly text: string;
  /** Where it stands, for messages. */
  readonly source: string;
}

function readHeaderFile({ given, headerFile, readFile }: HeaderSources) {
  if (headerFile === undefined) return { lines: [], warnings: [] };
  const source = `${given.sourceOf('header-file')} ${headerFile}`;
  const { text, isOpenToAll } = tryToRead(source, () => readFile(headerFile));
  const lines = text
    .split('\n')
    .map((line, index) => ({ text: line.trim(), source: `${source}, line ${index + 1}` }))
    .filter((line) => line.text !== '' && !line.text.startsWith('#'));
  return { lines, warnings: isOpenToAll ? [warnOfOpenFile(source)] : [] };
}

/** Throws ERR_CONFIG_OPTION. */
export function tryToRead<T>(source: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable';
    throw new BridgeError('ERR_CONFIG_OPTION', `${source}: cannot read this file (${code}).`, { cause });
  }
}

function parseLines(lines: readonly HeaderLine[], env: Environment): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (const { text, source } of lines) {
    const header = parseHeader(text, env);
    if (!header.ok) throw new BridgeError('ERR_CONFIG_OPTION', `${source}: ${header.problem}.`);
    if (headers.has(header.name)) {
      const problem = `the header ${header.name} is given twice; put both values into one, or leave one out`;
      throw new BridgeError('ERR_CONFIG_OPTION', `${source}: ${problem}.`);
    }
    headers.set(header.name, header.value);
  }
  return headers;
}

/** [RFC 6750 2.1] b64token */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** The server is shown one credential: two are a mistake, and nobody should have to know which one wins. */
function findBearerToken(headers: ReadonlyMap<string, string>, given: GivenOptions, env: Environment) {
  const token = env[BEARER_TOKEN_VARIABLE]?.trim();
  const sources = [
    ...(token ? [BEARER_TOKEN_VARIABLE] : []),
    ...(given.isGiven('bearer-token-file') ? [given.sourceOf('bearer-token-file')] : []),
    ...(headers.has('authorization') ? ['a header Authorization'] : []),
  ];
  if (sources.length > 1) {
    const problem = `${sources.join(' and ')} are set, but the server can be shown one credential only; leave one of them`;
    throw new BridgeError('ERR_CONFIG_COMBINATION', `${problem}.`);
  }
  if (!token) return undefined;
  if (TOKEN.test(token)) return token;
  const problem = `${BEARER_TOKEN_VARIABLE}: expected the token alone, without "Bearer" and spaces; got something else`;
  throw new BridgeError('ERR_CONFIG_OPTION', `${problem}.`);
}
