/** Composes the headers of every request to a remote server from a file, the command line, and the credential. */
import { BridgeError } from '../../../errors.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import { flagOf } from '../../options/option-names.ts';
import { BEARER_TOKEN_VARIABLE, type CommandLineOptions } from '../../options/option-table.ts';
import type { Environment } from './child-environment.ts';
import { type HeaderField, parseHeader } from './header-value.ts';

/** A text file as found on disk. */
export interface FoundFile {
  readonly text: string;
  /** Every user of this machine can read it. */
  readonly isOpenToAll: boolean;
}

export interface HeaderSources {
  readonly given: GivenOptions;
  readonly env: Environment;
  /** Throws the system's error if the file cannot be read. */
  readonly readFile: (path: string) => FoundFile;
}

export interface RemoteHeaders {
  /** Headers by name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly warnings: readonly string[];
}

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION; their messages never show a value. */
export function composeRemoteHeaders(sources: HeaderSources): RemoteHeaders {
  const { given, env } = sources;
  const file = readHeaderFile(sources);
  // A header on the command line overrides the same one in the file.
  const headers = new Map([...collect(file.headers), ...composeHeaders('header', given)]);
  const token = findBearerToken(headers, given, env);
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
  return { headers, warnings: file.warnings };
}

/** Returns the headers of one option, by name. Throws ERR_CONFIG_OPTION; its message never shows a value. */
export function composeHeaders(name: 'header' | 'dialHeader', given: GivenOptions): ReadonlyMap<string, string> {
  const source = given.placeOf(name);
  return collect(given.get(name).map((header) => ({ ...header, source })));
}

/** Names of headers that probably hold a credential: `Authorization`, `X-Api-Key`, `Private-Token`. */
const SECRET_NAME = /key|token|secret|passw|credential|auth|cookie/i;

/** Returns a warning for each credential that the command line has in a header, and not in a variable that it names. */
export function warnOfShownHeaders(options: CommandLineOptions): readonly string[] {
  return HEADER_OPTIONS.flatMap((name) =>
    (options.get(name) ?? []).flatMap((written) => {
      const [, header = '', value = ''] = /^([^:]+):\s*(.*)$/s.exec(written) ?? [];
      if (!SECRET_NAME.test(header) || value === '' || value.includes('${')) return [];
      const flag = flagOf(name);
      return [
        `${flag}: other users of this machine can read the value of ${header} in the list of processes; put it into a variable, and write ${flag} '${header}: \${NAME}' in single quotes.`,
      ];
    }),
  );
}

const HEADER_OPTIONS = ['header', 'dialHeader'] as const;

/** Returns the log message about a file with credentials that other users can read. */
export function warnOfOpenFile(source: string): string {
  return `${source}: every user of this machine can read this file; chmod 600 keeps the credentials in it private.`;
}

interface PlacedHeader extends HeaderField {
  /** The place of the header, for messages. */
  readonly source: string;
}

function readHeaderFile({ given, env, readFile }: HeaderSources) {
  const headerFile = given.get('headerFile');
  if (headerFile === undefined) return { headers: [], warnings: [] };
  const source = given.placeWith('headerFile', headerFile);
  const { text, isOpenToAll } = tryToRead(source, () => readFile(headerFile));
  const lines = text
    .split('\n')
    .map((line, index) => ({ text: line.trim(), source: `${source}, line ${index + 1}` }))
    .filter((line) => line.text !== '' && !line.text.startsWith('#'));
  const headers = lines.map(({ text, source }): PlacedHeader => {
    const header = parseHeader(text, env);
    if (header.ok) return { ...header.value, source };
    throw new BridgeError('ERR_CONFIG_OPTION', `${source}: ${header.problem}.`);
  });
  return { headers, warnings: isOpenToAll ? [warnOfOpenFile(source)] : [] };
}

/** A file that exists but has unusable content. The message completes a sentence and quotes nothing from the file. */
export class UnusableFile extends Error {}

/** Throws ERR_CONFIG_OPTION if `read` fails. */
export function tryToRead<T>(source: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new BridgeError('ERR_CONFIG_OPTION', `${source}: ${explainUnreadable(cause)}.`, { cause });
  }
}

function explainUnreadable(cause: unknown): string {
  if (cause instanceof UnusableFile) return cause.message;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable';
  return code === 'ENOENT' ? 'this file does not exist' : `cannot read this file (${code})`;
}

/** Throws ERR_CONFIG_OPTION for a header that is given twice. */
function collect(given: readonly PlacedHeader[]): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (const { name, value, source } of given) {
    if (headers.has(name)) {
      const problem = `the header ${name} is given twice; put both values into one, or leave one out`;
      throw new BridgeError('ERR_CONFIG_OPTION', `${source}: ${problem}.`);
    }
    headers.set(name, value);
  }
  return headers;
}

/** [RFC 6750 2.1] b64token */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/**
 * Returns the token of the environment, if any. Several credentials are an error: the server gets one, and users should
 * not need to know an order of precedence.
 */
function findBearerToken(headers: ReadonlyMap<string, string>, given: GivenOptions, env: Environment) {
  const token = env[BEARER_TOKEN_VARIABLE]?.trim();
  const sources = [
    ...(token ? [BEARER_TOKEN_VARIABLE] : []),
    ...(given.isGiven('bearerTokenFile') ? [given.placeOf('bearerTokenFile')] : []),
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
