/** Composes the headers of every request to a remote server from a file, the command line, and the credential. */

import { validateHeaderValue } from 'node:http';
import type { ForwardedHeader } from '../../../config/remote.ts';
import { BridgeError } from '../../../errors.ts';
import { isConfigurable, isForwardable } from '../../../http/headers.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import { BEARER_TOKEN_VARIABLE } from '../../options/option-table.ts';
import type { Parsed } from '../value.ts';
import type { Environment } from './child-environment.ts';

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
  const headers = new Map([...parseLines(file.lines, env), ...composeHeaders('header', given, env)]);
  const token = findBearerToken(headers, given, env);
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
  return { headers, warnings: file.warnings };
}

/**
 * Parses the headers of one option, by name in lower case. Throws ERR_CONFIG_OPTION; its message never shows a value.
 */
export function composeHeaders(
  name: 'header' | 'dial-header',
  given: GivenOptions,
  env: Environment,
): ReadonlyMap<string, string> {
  const source = given.sourceOf(name);
  const written = given.texts(name).map((text) => ({ text, source }));
  return parseLines(written, given.standsInFile(name) ? 'expanded' : env);
}

/** Returns the log message about a file with credentials that other users can read. */
export function warnOfOpenFile(source: string): string {
  return `${source}: every user of this machine can read this file; chmod 600 keeps the credentials in it private.`;
}

interface HeaderLine {
  readonly text: string;
  /** The origin of the line, for messages. */
  readonly source: string;
}

function readHeaderFile({ given, headerFile, readFile }: HeaderSources) {
  if (headerFile === undefined) return { lines: [], warnings: [] };
  const source = given.sourceWith('header-file', headerFile);
  const { text, isOpenToAll } = tryToRead(source, () => readFile(headerFile));
  const lines = text
    .split('\n')
    .map((line, index) => ({ text: line.trim(), source: `${source}, line ${index + 1}` }))
    .filter((line) => line.text !== '' && !line.text.startsWith('#'));
  return { lines, warnings: isOpenToAll ? [warnOfOpenFile(source)] : [] };
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

function parseLines(lines: readonly HeaderLine[], env: Environment | 'expanded'): ReadonlyMap<string, string> {
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

/**
 * Returns the token of the environment, if any. Several credentials are an error: the server gets one, and users should
 * not need to know an order of precedence.
 */
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

// ---- one header as written on the command line, in the environment or in a file; messages never show values

export type ParsedHeader =
  | { readonly ok: true; readonly name: string; readonly value: string }
  /** The problem completes a sentence that begins with the origin of the header. */
  | { readonly ok: false; readonly problem: string };

/** [RFC 9110 5.6.2] token */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/**
 * Parses `Name: value` and returns the name in lower case. `${NAME}` in the value is replaced from the environment,
 * unless the text is expanded already.
 */
export function parseHeader(text: string, env: Environment | 'expanded'): ParsedHeader {
  const colon = text.indexOf(':');
  const name = text.slice(0, Math.max(0, colon)).trim();
  if (!NAME.test(name)) return refuse("expected 'Name: value'; got something else");
  if (isOurs(name.toLowerCase())) {
    return refuse(`${name} is written by mcp-portage itself, as HTTP and MCP want it; leave it out`);
  }
  const written = text.slice(colon + 1).trim();
  const { value, missing } = env === 'expanded' ? { value: written, missing: undefined } : expand(written, env);
  if (missing !== undefined) {
    return refuse(
      `the value of ${name} names the variable ${missing}, which is not set here; set it, or correct its name`,
    );
  }
  if (!isSendable(name, value)) {
    return refuse(`the value of ${name} has a character that HTTP headers cannot hold, such as a line break`);
  }
  return { ok: true, name: name.toLowerCase(), value };
}

/**
 * Headers in which clients authenticate themselves. They are never forwarded under their own names, even on request.
 */
const CREDENTIALS: readonly string[] = ['authorization', 'cookie'];

/** Parses the name of a client's header whose value may be passed on to the server, and returns it in lower case. */
export function parseForwardedName(text: string): Parsed<string> {
  const parsed = parseForwardedHeader(text);
  if (!parsed.ok) return parsed;
  return text.includes(':') ? { ok: false, expected: A_NAME } : { ok: true, value: parsed.value.name };
}

/** Parses `X-Request-Id`, or `X-Api-Key: Authorization` for a header with another name in requests to the server. */
export function parseForwardedHeader(text: string): Parsed<ForwardedHeader> {
  const [name = '', sentAs = name, ...more] = text.split(':').map((part) => part.trim().toLowerCase());
  const header: ForwardedHeader = { name, sentAs };
  const isForwarded = [name, sentAs].every((either) => NAME.test(either) && !isOurs(either)) && isForwardable(header);
  if (isForwarded && more.length === 0) return { ok: true, value: header };
  return { ok: false, expected: CREDENTIALS.includes(name) ? NO_CREDENTIALS : A_NAME };
}

const A_NAME = 'the name of a header that is not about HTTP or MCP themselves, like X-Request-Id';

const NO_CREDENTIALS =
  'a header that is no credential: MCP forbids passing on what clients show to mcp-portage, since the server could use it elsewhere in their name (give mcp-portage a credential of its own with --bearer-token-file or --header)';

/**
 * Returns true for headers that the bridge writes itself: Host comes from the URL, and `content-*` describe the body.
 */
function isOurs(name: string): boolean {
  return name === 'host' || name.startsWith('content-') || !isConfigurable(name);
}

/** Replaces variables once: inserted values are not expanded again. An empty variable counts as not set. */
function expand(text: string, env: Environment): { readonly value: string; readonly missing: string | undefined } {
  let missing: string | undefined;
  const value = text.replaceAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name: string) => {
    const found = env[name];
    if (!found) missing ??= name;
    // A file that was read into a variable often ends with a line break.
    return found?.trimEnd() ?? '';
  });
  return { value, missing };
}

function isSendable(name: string, value: string): boolean {
  try {
    validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}

function refuse(problem: string): ParsedHeader {
  return { ok: false, problem };
}
