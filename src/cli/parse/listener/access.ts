/** Parses the options for access control: allowed hosts and origins, and the authentication of callers. */
import type { AccessConfig, AuthConfig, KeyLocation, MappedHeader, TokenSource } from '../../../config/access.ts';
import type { EndpointConfig, HttpListenerConfig, ListenAddress, TcpAddress } from '../../../config/listener.ts';
import { BridgeError } from '../../../errors.ts';
import { hostOf, isLoopback, isWildcard } from '../../../http/addresses.ts';
import { isBearerToken } from '../../../http/client/credentials.ts';
import { boundAddress, isExposed, isOpenToAllUsers } from '../../../http/server/listen-addresses.ts';
import { showStreamAddress } from '../../../http/socket-addresses.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { OptionName } from '../../options/option-table.ts';
import type { Environment } from '../servers/child-environment.ts';
import type { TokenPlace } from './auth-value.ts';
import type { NamedGrpc, NamedStream } from './listen-addresses.ts';

export interface AccessRequest {
  readonly given: GivenOptions;
  readonly env: Environment;
  readonly listen: ListenPlaces;
  readonly endpoints: EndpointConfig;
  /** With `no`, the rules for addresses that other machines can reach do not apply. */
  readonly listens: 'yes' | 'no';
}

export interface ListenPlaces extends Pick<HttpListenerConfig, 'addresses' | 'tls'> {
  readonly streams: readonly NamedStream[];
  readonly grpc: readonly NamedGrpc[];
}

export interface ParsedAccess {
  readonly access: AccessConfig;
  readonly warnings: readonly string[];
}

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. */
export function parseAccess(request: AccessRequest): ParsedAccess {
  const { given, listen, listens } = request;
  const auth = parseAuth(request);
  const anonymous = given.get('allowAnonymous');
  refuseUnaskedStreams(request, { anonymous, auth });
  // With a stream at a port, --allow-anonymous applies to that stream alone, and HTTP still requires authentication.
  if (anonymous && auth !== undefined && portsOfStreams(listen).length === 0) {
    throw excluded(
      `${given.placeOf('allowAnonymous')} lets everybody in, ${sourceOfAuth(given)} only some; leave one of them out.`,
    );
  }
  const exposed = listens === 'yes' ? findExposed(request) : [];
  const isOpen = auth === undefined && !anonymous;
  const [first] = exposed;
  if (first !== undefined && isOpen) throw refuseExposed(given, first);
  const warnsOfNames = listens === 'yes' && isOpen;
  return {
    access: {
      allowHosts: parseAllowedHosts(request),
      allowOrigins: given.get('allowOrigin'),
      auth,
    },
    warnings: [
      ...exposed.flatMap((place) => warnOfExposure(request, auth, place)),
      ...(listens === 'yes' ? warnOfExposedStreams(request) : []),
      ...(listens === 'yes' ? warnOfOpenSockets(request, auth) : []),
      ...(warnsOfNames ? warnOfPublicNames(request) : []),
      ...warnOfShortTokens(auth),
    ],
  };
}

/** The host of --base-url is allowed, too: many reverse proxies pass on the Host header that names the proxy. */
function parseAllowedHosts({ given, listen: { addresses }, endpoints: { baseUrl } }: AccessRequest): readonly string[] {
  const named = given.get('allowHost');
  // On a wildcard address without --allow-host, every Host is accepted. Adding the base URL's host would end that.
  const isAnywhere = addresses.map(boundAddress).some((bound) => bound.kind === 'tcp' && isWildcard(bound.host));
  const takesAny = isAnywhere && named.length === 0;
  return baseUrl === undefined || takesAny ? named : [...named, baseUrl.hostname];
}

function parseAuth(request: AccessRequest): AuthConfig | undefined {
  const { given } = request;
  const tokens = given.get('authToken').map((source) => findToken(source, 'authToken', request));
  if (given.isGiven('authToken') && tokens.length === 0) {
    throw new BridgeError('ERR_CONFIG_OPTION', `${given.placeOf('authToken')}: expected at least one; got none.`);
  }
  const oauth = parseOAuth(request);
  return tokens.length === 0 && oauth === undefined ? undefined : { tokens, oauth };
}

/** Throws ERR_CONFIG_OPTION if the variable holds no usable token. A file is not read here. */
export function findToken(
  { name, kind, place }: TokenPlace,
  option: OptionName,
  { given, env }: Pick<AccessRequest, 'given' | 'env'>,
): TokenSource {
  // The prefix keeps names of tokens apart from the subjects of an issuer.
  const principal = `token:${name}`;
  if (kind === 'file') return { kind: 'file', principal, file: place };
  const token = env[place]?.trim();
  if (token && isBearerToken(token)) return { kind: 'value', principal, token };
  const problem = token
    ? `expected a token in the variable ${place}, letters, digits and -._~+/ without spaces; got something else`
    : `the variable ${place} is not set; set it to the token first, as by export ${place}=…`;
  throw new BridgeError('ERR_CONFIG_OPTION', `${given.placeOf(option)}: ${problem}.`);
}

/** Throws ERR_CONFIG_OPTION and ERR_CONFIG_COMBINATION. */
export function parseMappedHeaders(given: GivenOptions): readonly MappedHeader[] {
  const mapped = given.get('mapHeader');
  if (mapped.length === 0) return mapped;
  const source = given.placeOf('mapHeader');
  const variables = mapped.map(({ variable }) => variable);
  const twice = variables.find((variable, index) => variables.indexOf(variable) !== index);
  if (twice !== undefined) throw excluded(`${source}: the variable ${twice} can come from one header only.`);
  const assigned = given.get('env').map(({ name }) => name);
  const both = variables.find((variable) => assigned.includes(variable));
  if (both !== undefined) {
    throw excluded(`${given.placeOf('env')} and ${source} both set ${both}; leave one of them out.`);
  }
  if (given.get('isolation') === 'shared') {
    throw excluded(
      `${source} tells each caller's own process who calls, but with ${given.placeOf('isolation')} shared all use one; leave one of them out.`,
    );
  }
  if (given.get('prewarm') !== 0) {
    throw excluded(
      `${source} tells a process who calls when it starts, but ${given.placeOf('prewarm')} starts processes before anybody calls; leave one of them out.`,
    );
  }
  return mapped;
}

/**
 * Names of the variables that --map-header sets in each caller's own process. A child never inherits them from our
 * environment.
 */
export function mappedVariables(given: GivenOptions): readonly string[] {
  return given.get('mapHeader').map(({ variable }) => variable);
}

/** Names of the variables that hold callers' tokens or the cluster key. They are withheld from the wrapped server. */
export function tokenVariables(given: GivenOptions): readonly string[] {
  const sources = [...given.get('authToken'), given.get('statusToken'), given.get('clusterKey')];
  return sources.flatMap((source) => (source?.kind === 'env' ? [source.place] : []));
}

const OAUTH_DETAILS = ['authAudience', 'authJwks', 'authScope'] as const;

function parseOAuth({ given, endpoints }: AccessRequest): AuthConfig['oauth'] {
  const issuer = given.get('authIssuer');
  if (issuer === undefined) {
    const detail = OAUTH_DETAILS.find((name) => given.isGiven(name));
    if (detail === undefined) return undefined;
    throw excluded(
      `${given.placeOf(detail)} needs ${given.nameOf('authIssuer')}: it says more about whose tokens are taken.`,
    );
  }
  const named = given.get('authAudience');
  if (named.length === 0 && endpoints.baseUrl === undefined) {
    throw excluded(
      `${given.placeOf('authIssuer')} needs ${given.nameOf('authAudience')} or ${given.nameOf('baseUrl')}: tokens made for other servers must not be taken, so it must be known what this one is called in a token.`,
    );
  }
  const keys: KeyLocation = given.get('authJwks') ?? { kind: 'discovered' };
  const audiences = named.length > 0 ? named : 'own-urls';
  return { issuer, audiences, keys, scopes: [...new Set(given.get('authScope').flat())] };
}

function sourceOfAuth(given: GivenOptions): string {
  return given.placeOf(given.isGiven('authToken') ? 'authToken' : 'authIssuer');
}

/** A place that other machines can reach, where callers can authenticate. */
interface ExposedPlace {
  readonly host: string;
  /** The option or the socket that says so, as the beginning of a sentence. */
  readonly source: string;
}

/** Returns at most one place for HTTP, and one for gRPC. */
function findExposed({ given, listen }: AccessRequest): readonly ExposedPlace[] {
  const overHttp = listen.addresses.filter(isExposed).map((address) => {
    const host = nameExposed(address);
    const isInherited = address.kind === 'inherited';
    const source = isInherited ? `The inherited socket ${address.fd}, ${host},` : given.placeWith('host', host);
    return { host, source };
  });
  const overGrpc = listen.grpc
    .map(({ address }) => address)
    .filter(isExposed)
    .map(({ host, port }) => ({ host, source: given.placeWith('grpc', `${host}:${port}`) }));
  return [...overHttp.slice(0, 1), ...overGrpc.slice(0, 1)];
}

function refuseExposed(given: GivenOptions, { source }: ExposedPlace): BridgeError {
  return excluded(
    `${source} lets other machines reach this port without authentication: whoever reaches it could use the wrapped server and everything it can do. Require ${given.nameOf('authToken')} or ${given.nameOf('authIssuer')}, listen on 127.0.0.1, or pass ${given.nameOf('allowAnonymous')} if something else guards the port.`,
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
      `${given.placeWith('stream', showPort(first, listen.tls))} carries no token, so whoever reaches it would get past ${sourceOfAuth(given)}. Use a Unix socket (unix:///path), whose file mode decides who may connect, or pass ${given.nameOf('allowAnonymous')}, which then applies to the stream alone: HTTP still requires tokens.`,
    );
  }
  const exposed = ports.find(isExposed);
  if (exposed === undefined) return;
  throw excluded(
    `${given.placeWith('stream', showPort(exposed, listen.tls))} lets other machines reach this port without authentication: whoever reaches it could use the wrapped server and everything it can do. Listen on 127.0.0.1 or a Unix socket, or pass ${given.nameOf('allowAnonymous')} if something else guards the port.`,
  );
}

function warnOfExposedStreams({ given, listen }: AccessRequest): readonly string[] {
  return portsOfStreams(listen)
    .filter(isExposed)
    .map((address) => {
      const readable =
        listen.tls === undefined
          ? `, and anybody on the network path can read what is said (no ${given.nameOf('tlsCert')})`
          : '';
      return `Taking lines at ${showPort(address, listen.tls)} from everybody (${given.nameOf('allowAnonymous')}): whoever reaches this port can use the wrapped server and all it can do${readable}. Let only trusted machines reach it (firewall, or private network).`;
    });
}

function nameExposed(address: ListenAddress): string {
  const bound = boundAddress(address);
  return bound.kind === 'tcp' ? bound.host : bound.path;
}

function warnOfExposure(
  { given, listen, endpoints }: AccessRequest,
  auth: AuthConfig | undefined,
  { host }: ExposedPlace,
): readonly string[] {
  if (auth === undefined) {
    return [
      `Listening on ${host} for everybody (${given.nameOf('allowAnonymous')}): whoever reaches this port can use the wrapped server and all it can do. Let only trusted machines reach it (firewall, private network, or a reverse proxy that authenticates).`,
    ];
  }
  if (listen.tls !== undefined || endpoints.baseUrl?.protocol === 'https:') return [];
  return [
    `Listening on ${host} without TLS: anybody on the network path can read the tokens of callers. Use ${given.nameOf('tlsCert')} and ${given.nameOf('tlsKey')}, or a reverse proxy with https (and ${given.nameOf('baseUrl')}, which says so).`,
  ];
}

/**
 * Warns of sockets that all users of this machine may connect to. This is no error because the user chose the file
 * mode. Authentication does not protect byte streams, which carry no token.
 */
function warnOfOpenSockets(
  { given, listen: { addresses, streams } }: AccessRequest,
  auth: AuthConfig | undefined,
): readonly string[] {
  const overHttp = auth === undefined ? addresses.map(boundAddress) : [];
  return [...overHttp, ...streams.map(({ address }) => address)]
    .flatMap((bound) => (bound.kind === 'socket' && isOpenToAllUsers(bound) ? [bound.path] : []))
    .map(
      (path) =>
        `Every user of this machine may connect to the socket ${path}, without authentication, and use the wrapped server and everything it can do. Restrict the socket with ${given.nameOf('socketMode')}, or require a token with ${given.nameOf('authToken')}.`,
    );
}

/**
 * Warns where the server is called by a name that other machines know, though it listens on this machine alone: a
 * reverse proxy or a tunnel passes their calls on. This is no error because the proxy may authenticate.
 */
function warnOfPublicNames({ given, endpoints: { baseUrl } }: AccessRequest): readonly string[] {
  const named = [
    ...(baseUrl === undefined ? [] : [{ option: 'baseUrl', host: hostOf(baseUrl) } as const]),
    ...given.get('allowHost').map((host) => ({ option: 'allowHost', host }) as const),
  ];
  const known = named.find(({ host }) => !isLoopback(host));
  if (known === undefined) return [];
  return [
    `${given.placeWith(known.option, known.host)} lets calls of other machines in without authentication, through a reverse proxy or a tunnel: whoever knows the address can use the wrapped server and everything it can do. Require ${given.nameOf('authToken')} or ${given.nameOf('authIssuer')}, or pass ${given.nameOf('allowAnonymous')} if the proxy authenticates.`,
  ];
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
