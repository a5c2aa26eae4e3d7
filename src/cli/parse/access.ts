/** Who may come in: the names this server answers to, and how callers show who they are. */
import { resolve } from 'node:path';
import type {
  AccessConfig,
  AuthConfig,
  EndpointConfig,
  HttpListenerConfig,
  KeyLocation,
  MappedHeader,
  TokenSource,
} from '../../config.ts';
import { BridgeError } from '../../errors.ts';
import { isLoopback, isWildcard } from '../../http/addresses.ts';
import { isBearerToken } from '../../http/client/bearer-token.ts';
import type { GivenOptions } from '../options/given-options.ts';
import type { OptionName } from '../options/option-table.ts';
import {
  parseIssuer,
  parseKeyLocation,
  parseMappedHeader,
  parseScopes,
  parseTokenSource,
  type WrittenTokenSource,
} from './auth-value.ts';
import type { Environment } from './child-environment.ts';
import { parseKeySource } from './cluster.ts';
import * as value from './value.ts';

export interface AccessRequest {
  readonly given: GivenOptions;
  readonly env: Environment;
  readonly cwd: string;
  readonly listen: ListenAddress;
  readonly endpoints: EndpointConfig;
  /** Nobody has to be kept out of what does not listen. */
  readonly listens: 'yes' | 'no';
}

export type ListenAddress = Pick<HttpListenerConfig, 'host' | 'port' | 'tls'>;

export interface ParsedAccess {
  readonly access: AccessConfig;
  readonly warnings: readonly string[];
}

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. */
export function parseAccess(request: AccessRequest): ParsedAccess {
  const { given, listen, listens } = request;
  const auth = parseAuth(request);
  const anonymous = given.required('allow-anonymous', value.parseFlag);
  if (anonymous && auth !== undefined) {
    throw excluded(
      `${given.sourceOf('allow-anonymous')} lets everybody in, ${sourceOfAuth(given)} only some; leave one of them out.`,
    );
  }
  const isExposed = listens === 'yes' && !isLoopback(listen.host);
  if (isExposed && !anonymous && auth === undefined) throw exposed(given, listen);
  return {
    access: {
      allowHosts: parseAllowedHosts(request),
      allowOrigins: given.list('allow-origin', value.parseOrigin),
      auth,
    },
    warnings: [...(isExposed ? warnOfExposure(request, auth) : []), ...warnOfShortTokens(auth)],
  };
}

/** Clients that come through a reverse proxy name the proxy's host, and many proxies hand that on. */
function parseAllowedHosts({ given, listen: { host }, endpoints: { baseUrl } }: AccessRequest): readonly string[] {
  const named = given.list('allow-host', value.parseAllowedHost);
  // On all interfaces and without a name given, every Host is taken; one name from here would end that.
  const takesAny = isWildcard(host) && named.length === 0;
  return baseUrl === undefined || takesAny ? named : [...named, baseUrl.hostname];
}

function parseAuth(request: AccessRequest): AuthConfig | undefined {
  const { given } = request;
  const tokens = given.list('auth-token', parseTokenSource).map((source) => findToken(source, 'auth-token', request));
  if (given.isGiven('auth-token') && tokens.length === 0) {
    throw new BridgeError('ERR_CONFIG_OPTION', `${given.sourceOf('auth-token')}: expected at least one; got none.`);
  }
  const oauth = parseOAuth(request);
  return tokens.length === 0 && oauth === undefined ? undefined : { tokens, oauth };
}

/** Throws ERR_CONFIG_OPTION where there is no token. */
export function findToken(
  { name, kind, place }: WrittenTokenSource,
  option: OptionName,
  { given, env, cwd }: Pick<AccessRequest, 'given' | 'env' | 'cwd'>,
): TokenSource {
  // Apart from the subjects of an issuer, whatever they are called.
  const principal = `token:${name}`;
  if (kind === 'file') return { kind: 'file', principal, file: resolve(cwd, place) };
  const token = env[place]?.trim();
  if (token && isBearerToken(token)) return { kind: 'value', principal, token };
  const got = token ? 'something else' : 'nothing';
  const expected = `expected a token in the variable ${place}, letters, digits and -._~+/ without spaces; got ${got}`;
  throw new BridgeError('ERR_CONFIG_OPTION', `${given.sourceOf(option)}: ${expected}.`);
}

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. */
export function parseMappedHeaders(given: GivenOptions): readonly MappedHeader[] {
  const mapped = given.list('map-header', parseMappedHeader);
  if (mapped.length === 0) return mapped;
  const source = given.sourceOf('map-header');
  const variables = mapped.map(({ variable }) => variable);
  const twice = variables.find((variable, index) => variables.indexOf(variable) !== index);
  if (twice !== undefined) throw excluded(`${source}: the variable ${twice} can come from one header only.`);
  const assigned = given.texts('env').map((text) => text.split('=', 1)[0] ?? '');
  const both = variables.find((variable) => assigned.includes(variable));
  if (both !== undefined) {
    throw excluded(`${given.sourceOf('env')} and ${source} both set ${both}; leave one of them out.`);
  }
  if (given.optional('isolation', value.parseText) === 'shared') {
    throw excluded(
      `${source} tells each caller's own process who calls, but with ${given.sourceOf('isolation')} shared all use one; leave one of them out.`,
    );
  }
  if (given.optional('prewarm', value.parseText) !== '0') {
    throw excluded(
      `${source} tells a process who calls when it starts, but ${given.sourceOf('prewarm')} starts processes before anybody calls; leave one of them out.`,
    );
  }
  return mapped;
}

/** What only a caller's own process is told, and never from here. */
export function mappedVariables(given: GivenOptions): readonly string[] {
  return given.list('map-header', parseMappedHeader).map(({ variable }) => variable);
}

/** Names of the variables that hold tokens of callers: nothing for the wrapped server. */
export function tokenVariables(given: GivenOptions): readonly string[] {
  const written = [...given.list('auth-token', parseTokenSource), ...given.list('status-token', parseTokenSource)];
  const key = given.optional('cluster-key', parseKeySource);
  const all = [...written, ...(key === undefined ? [] : [key])];
  return all.flatMap(({ kind, place }) => (kind === 'env' ? [place] : []));
}

const OAUTH_DETAILS = ['auth-audience', 'auth-jwks', 'auth-scope'] as const;

function parseOAuth({ given, cwd, endpoints }: AccessRequest): AuthConfig['oauth'] {
  const issuer = given.optional('auth-issuer', parseIssuer);
  if (issuer === undefined) {
    const detail = OAUTH_DETAILS.find((name) => given.isGiven(name));
    if (detail === undefined) return undefined;
    throw excluded(`${given.sourceOf(detail)} needs --auth-issuer: it says more about whose tokens are taken.`);
  }
  const named = given.list('auth-audience', value.parseText);
  if (named.length === 0 && endpoints.baseUrl === undefined) {
    throw excluded(
      `${given.sourceOf('auth-issuer')} needs --auth-audience or --base-url: tokens made for other servers must not be taken, so it must be known what this one is called in a token.`,
    );
  }
  const place = given.optional('auth-jwks', parseKeyLocation);
  const keys: KeyLocation =
    place === undefined
      ? { kind: 'discovered' }
      : place.kind === 'file'
        ? { kind: 'file', file: resolve(cwd, place.file) }
        : place;
  const audiences = named.length > 0 ? named : 'own-urls';
  return { issuer, audiences, keys, scopes: [...new Set(given.list('auth-scope', parseScopes).flat())] };
}

function sourceOfAuth(given: GivenOptions): string {
  return given.sourceOf(given.isGiven('auth-token') ? 'auth-token' : 'auth-issuer');
}

function exposed(given: GivenOptions, { host }: ListenAddress): BridgeError {
  return excluded(
    `${given.sourceOf('host')} ${host} lets other machines reach this port, and nobody would be asked who they are: whoever reaches it could use the wrapped server and all it can do. Let in only known callers (--auth-token, or --auth-issuer), listen on 127.0.0.1, or say --allow-anonymous if something else guards the port.`,
  );
}

function warnOfExposure({ listen, endpoints }: AccessRequest, auth: AuthConfig | undefined): readonly string[] {
  if (auth === undefined) {
    return [
      `Listening on ${listen.host} for everybody (--allow-anonymous): whoever reaches this port can use the wrapped server and all it can do. Let only trusted machines reach it (firewall, private network, or a reverse proxy that authenticates).`,
    ];
  }
  if (listen.tls !== undefined || endpoints.baseUrl?.protocol === 'https:') return [];
  return [
    `Listening on ${listen.host} without TLS: everybody on the way can read the tokens of callers. Use --tls-cert and --tls-key, or a reverse proxy with https (and --base-url, which says so).`,
  ];
}

/** 128 bits in base64url have 22 characters; a password somebody thought of is shorter. */
const SAFE_TOKEN_LENGTH = 16;

function warnOfShortTokens(auth: AuthConfig | undefined): readonly string[] {
  const short = (auth?.tokens ?? []).filter(
    (source) => source.kind === 'value' && source.token.length < SAFE_TOKEN_LENGTH,
  );
  return short.map(
    ({ principal }) =>
      `The token of ${principal} is short enough to be guessed; make it at least ${SAFE_TOKEN_LENGTH} characters of chance, as by openssl rand -hex 32.`,
  );
}

function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}
