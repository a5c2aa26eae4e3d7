/** Parsers for the values of authentication options; value.ts has those for other options. */
import type { KeyLocation, MappedHeader } from '../../../config/access.ts';
import { isLoopback } from '../../../http/addresses.ts';
import type { Explained, Parsed, ReadingContext } from '../../options/value-type.ts';
import { parseForwardedName } from '../servers/header-value.ts';

/** The place of a secret: the name of a variable, or the absolute path of a file. */
export interface SecretSource {
  readonly kind: 'env' | 'file';
  readonly place: string;
}

/** The place of a token, with the name of the caller that shows it. */
export interface TokenPlace extends SecretSource {
  readonly name: string;
}

/** The caller's name for a token that is given without one. */
const DEFAULT_NAME = 'client';

/**
 * Parses `alice=env:ALICE_TOKEN`, `bob=file:/run/secrets/bob` or `env:TOKEN`. A token in place is refused, and its text
 * is not repeated in the message.
 */
export function parseTokenSource(
  text: string,
  context: Pick<ReadingContext, 'resolvePath' | 'nameOf'>,
  option: string,
): Parsed<TokenPlace> | Explained {
  const [, name = DEFAULT_NAME, rest = ''] = /^(?:([A-Za-z0-9._@-]{1,64})=)?(.*)$/s.exec(text) ?? [];
  const source = parseSource(rest, context);
  if (source !== undefined) return { ok: true, value: { name, ...source } };
  const named = context.nameOf(option);
  const example = named.startsWith('--') ? `${named} env:MCP_TOKEN` : `${named}: 'env:MCP_TOKEN'`;
  return {
    ok: false,
    problem: `write where the token is, env:NAME or file:/path, and not the token itself, which others could read: set a variable to it, as by export MCP_TOKEN=…, and write ${example}`,
  };
}

/** Parses `env:CLUSTER_KEY` or `file:/run/secrets/cluster-key`. */
export function parseKeySource(text: string, context: Pick<ReadingContext, 'resolvePath'>): Parsed<SecretSource> {
  const source = parseSource(text, context);
  if (source !== undefined) return { ok: true, value: source };
  return refuse(
    'where the key is found, like env:CLUSTER_KEY or file:/run/secrets/cluster-key (not the key itself: other users can read command lines)',
  );
}

function parseSource(text: string, { resolvePath }: Pick<ReadingContext, 'resolvePath'>): SecretSource | undefined {
  const [, kind, place = ''] = /^(env|file):(.+)$/s.exec(text) ?? [];
  if (kind === 'file') return { kind, place: resolvePath(place) };
  return kind === 'env' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(place) ? { kind, place } : undefined;
}

/** Returns the issuer as written, since issuers are compared as text. [RFC 8414 2] */
export function parseIssuer(text: string): Parsed<string> {
  const url = parseTrustworthyUrl(text);
  if (url !== undefined && url.search === '') return { ok: true, value: text };
  return refuse('the https URL of an issuer (http only on this machine), exactly as it stands in its tokens');
}

/** Accepts a URL or the path of a file. */
export function parseKeyLocation(
  text: string,
  { resolvePath }: Pick<ReadingContext, 'resolvePath'>,
): Parsed<Exclude<KeyLocation, { kind: 'discovered' }>> {
  const isPath = text !== '' && !/^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  if (isPath) return { ok: true, value: { kind: 'file', file: resolvePath(text) } };
  const url = parseTrustworthyUrl(text);
  if (url !== undefined) return { ok: true, value: { kind: 'url', url } };
  return refuse('a file, or an https URL (http only on this machine), with the keys of the issuer');
}

/** Parses a scope, or several that are separated by spaces. [RFC 6749 3.3] */
export function parseScopes(text: string): Parsed<readonly string[]> {
  const scopes = text.split(' ').filter((scope) => scope !== '');
  const areScopes = scopes.length > 0 && scopes.every((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope));
  return areScopes ? { ok: true, value: scopes } : refuse('the name of a scope, without quotes and backslashes');
}

/** Variables that decide which code runs. A client must not be able to set them with a header. */
const POWERFUL =
  /^(PATH|SHELL|HOME|IFS|ENV|BASH_ENV|NODE_OPTIONS|NODE_PATH|PERL5OPT|PERL5LIB|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS|(LD|DYLD|PYTHON|NPM_CONFIG|MCP_PORTAGE)_?.*)$/i;

/** Parses `X-User=USER_ENV`. */
export function parseMappedHeader(text: string, context: Pick<ReadingContext, 'nameOf'>): Parsed<MappedHeader> {
  const [, name = '', variable = ''] = /^([^=]+)=([A-Za-z_][A-Za-z0-9_]*)$/.exec(text) ?? [];
  const header = parseForwardedName(name, context);
  if (!header.ok) return refuse(`Name=VARIABLE with ${header.expected}`);
  if (POWERFUL.test(variable)) {
    return refuse('Name=VARIABLE with a variable that does not decide which code runs, as PATH and NODE_OPTIONS do');
  }
  return { ok: true, value: { header: header.value, variable } };
}

export function parseTrustworthyUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.hash !== '' || url.username !== '' || url.password !== '') return undefined;
  const isLocal = isLoopback(url.hostname.replace(/^\[|\]$/g, ''));
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLocal) ? url : undefined;
}

function refuse(expected: string): Parsed<never> {
  return { ok: false, expected };
}
