/** Parses the options for access control: allowed hosts and origins, and the authentication of callers. */
import { resolve } from 'node:path';
import type { AccessConfig, AuthConfig, KeyLocation, MappedHeader, TokenSource } from '../../../config/access.ts';
import type { EndpointConfig, HttpListenerConfig, ListenAddress, TcpAddress } from '../../../config/listener.ts';
import { BridgeError } from '../../../errors.ts';
import { isWildcard } from '../../../http/addresses.ts';
import { isBearerToken } from '../../../http/client/credentials.ts';
import { boundAddress, isExposed, isOpenToAllUsers } from '../../../http/server/listen-addresses.ts';
import { showStreamAddress } from '../../../http/socket-addresses.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { OptionName } from '../../options/option-table.ts';
import { parseKeySource } from '../cluster.ts';
import type { Environment } from '../servers/child-environment.ts';
import * as value from '../value.ts';
import {
  parseIssuer,
  parseKeyLocation,
  parseMappedHeader,
  parseScopes,
  parseTokenSource,
  type WrittenTokenSource,
} from './auth-value.ts';
import type { WrittenStream } from './stream-address.ts';

export interface AccessRequest {
  readonly given: GivenOptions;
  readonly env: Environment;
  readonly cwd: string;
  readonly listen: ListenPlaces;
  readonly endpoints: EndpointConfig;
  /** With `no`, the rules for addresses that other machines can reach do not apply. */
  readonly listens: 'yes' | 'no';
}

export interface ListenPlaces extends Pick<HttpListenerConfig, 'addresses' | 'tls'> {
  readonly streams: readonly WrittenStream[];
}

export interface ParsedAccess {
  readonly access: AccessConfig;
  readonly warnings: readonly string[];
}

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. */
export function parseAccess(request: AccessRequest): ParsedAccess {
  const { given, listen, listens } = request;
  const auth = parseAuth(request);
  const anonymous = given.required('allow-anonymous', value.parseFlag);
  refuseUnaskedStreams(request, { anonymous, auth });
  // With a stream at a port, --allow-anonymous applies to that stream alone, and HTTP still requires authentication.
  if (anonymous && auth !== undefined && portsOfStreams(listen).length === 0) {
    throw excluded(
      `${given.sourceOf('allow-anonymous')} lets everybody in, ${sourceOfAuth(given)} only some; leave one of them out.`,
    );
  }
  const exposed = listens === 'yes' ? listen.addresses.find(isExposed) : undefined;
  if (exposed !== undefined && !anonymous && auth === undefined) throw refuseExposed(given, exposed);
  return {
    access: {
      allowHosts: parseAllowedHosts(request),
      allowOrigins: given.list('allow-origin', value.parseOrigin),
      auth,
    },
    warnings: [
      ...(exposed === undefined ? [] : warnOfExposure(request, auth, exposed)),
      ...(listens === 'yes' ? warnOfExposedStreams(listen) : []),
      ...(listens === 'yes' ? warnOfOpenSockets(listen, auth) : []),
      ...warnOfShortTokens(auth),
    ],
  };
}

/** The host of --base-url is allowed, too: many reverse proxies pass on the Host header that names the proxy. */
function parseAllowedHosts({ given, listen: { addresses }, endpoints: { baseUrl } }: AccessRequest): readonly string[] {
  const named = given.list('allow-host', value.parseAllowedHost);
  // On a wildcard address without --allow-host, every Host is accepted. Adding the base URL's host would end that.
  const isAnywhere = addresses.map(boundAddress).some((bound) => bound.kind === 'tcp' && isWildcard(bound.host));
  const takesAny = isAnywhere && named.length === 0;
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

/** Throws ERR_CONFIG_OPTION if the variable holds no usable token. A file is not read here. */
export function findToken(
  { name, kind, place }: WrittenTokenSource,
  option: OptionName,
  { given, env, cwd }: Pick<AccessRequest, 'given' | 'env' | 'cwd'>,
): TokenSource {
  // The prefix keeps names of tokens apart from the subjects of an issuer.
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

/**
 * Names of the variables that --map-header sets in each caller's own process. A child never inherits them from our
 * environment.
 */
export function mappedVariables(given: GivenOptions): readonly string[] {
  return given.list('map-header', parseMappedHeader).map(({ variable }) => variable);
}

/** Names of the variables that hold callers' tokens or the cluster key. They are withheld from the wrapped server. */
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

function refuseExposed(given: GivenOptions, address: ListenAddress): BridgeError {
  const where =
    address.kind === 'inherited'
      ? `The inherited socket ${address.fd}, ${nameExposed(address)},`
      : given.sourceWith('host', nameExposed(address));
  return excluded(
    `${where} lets other machines reach this port without authentication: whoever reaches it could use the wrapped server and everything it can do. Require --auth-token or --auth-issuer, listen on 127.0.0.1, or pass --allow-anonymous if something else guards the port.`,
  );
}

function portsOfStreams({ streams }: Pick<ListenPlaces, 'streams'>): readonly TcpAddress[] {
  return streams.flatMap(({ address }) => (address.kind === 'tcp' ? [address] : []));
}

function showPort(address: TcpAddress, tls: HttpListenerConfig['tls']): string {
  return showStreamAddress({ ...address, tls: tls === undefined ? 'off' : 'on' });
}

/**
 * Refuses byte streams at ports that would admit callers without authentication: JSON lines carry no token, so all who
 * can reach such a port can use the server, and the user has to agree with --allow-anonymous.
 */
function refuseUnaskedStreams(
  { given, listen, listens }: AccessRequest,
  { anonymous, auth }: { readonly anonymous: boolean; readonly auth: AuthConfig | undefined },
): void {
  const ports = listens === 'yes' && !anonymous ? portsOfStreams(listen) : [];
  const [first] = ports;
  if (first !== undefined && auth !== undefined) {
    throw excluded(
      `${given.sourceWith('stream', showPort(first, listen.tls))} carries no token, so whoever reaches it would get past ${sourceOfAuth(given)}. Use a Unix socket (unix:///path), whose file mode decides who may connect, or pass --allow-anonymous, which then applies to the stream alone: HTTP still requires tokens.`,
    );
  }
  const exposed = ports.find(isExposed);
  if (exposed === undefined) return;
  throw excluded(
    `${given.sourceWith('stream', showPort(exposed, listen.tls))} lets other machines reach this port without authentication: whoever reaches it could use the wrapped server and everything it can do. Listen on 127.0.0.1 or a Unix socket, or pass --allow-anonymous if something else guards the port.`,
  );
}

function warnOfExposedStreams(listen: ListenPlaces): readonly string[] {
  return portsOfStreams(listen)
    .filter(isExposed)
    .map((address) => {
      const readable =
        listen.tls === undefined ? ', and anybody on the network path can read what is said (no --tls-cert)' : '';
      return `Taking lines at ${showPort(address, listen.tls)} from everybody (--allow-anonymous): whoever reaches this port can use the wrapped server and all it can do${readable}. Let only trusted machines reach it (firewall, or private network).`;
    });
}

function nameExposed(address: ListenAddress): string {
  const bound = boundAddress(address);
  return bound.kind === 'tcp' ? bound.host : bound.path;
}

function warnOfExposure(
  { listen, endpoints }: AccessRequest,
  auth: AuthConfig | undefined,
  exposed: ListenAddress,
): readonly string[] {
  const host = nameExposed(exposed);
  if (auth === undefined) {
    return [
      `Listening on ${host} for everybody (--allow-anonymous): whoever reaches this port can use the wrapped server and all it can do. Let only trusted machines reach it (firewall, private network, or a reverse proxy that authenticates).`,
    ];
  }
  if (listen.tls !== undefined || endpoints.baseUrl?.protocol === 'https:') return [];
  return [
    `Listening on ${host} without TLS: anybody on the network path can read the tokens of callers. Use --tls-cert and --tls-key, or a reverse proxy with https (and --base-url, which says so).`,
  ];
}

/**
 * Warns of sockets that all users of this machine may connect to. This is no error because the user chose the file
 * mode. Authentication does not protect byte streams, which carry no token.
 */
function warnOfOpenSockets({ addresses, streams }: ListenPlaces, auth: AuthConfig | undefined): readonly string[] {
  const overHttp = auth === undefined ? addresses.map(boundAddress) : [];
  return [...overHttp, ...streams.map(({ address }) => address)]
    .flatMap((bound) => (bound.kind === 'socket' && isOpenToAllUsers(bound) ? [bound.path] : []))
    .map(
      (path) =>
        `Every user of this machine may connect to the socket ${path}, without authentication, and use the wrapped server and everything it can do. Restrict the socket with --socket-mode, or require a token with --auth-token.`,
    );
}

/**
 * A random token of 128 bits has 22 characters in base64url; shorter ones are likely to be passwords that people chose.
 */
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
