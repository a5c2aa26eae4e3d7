import type { AuthorizationServer } from 'oauth4webapi';
import type { LoginConfig, UserGrant } from '../../config/remote.ts';
import { BridgeError } from '../../errors.ts';
import { showUrl } from '../shown-url.ts';
import { isSecure } from './address-guard.ts';
import { loginError, quoteOthers } from './login-error.ts';
import { busyError, isBusy, type LoginFetch } from './login-fetch.ts';
import { mayPass } from './patience.ts';

const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';
const SERVER_METADATA = '/.well-known/oauth-authorization-server';
const OPENID_METADATA = '/.well-known/openid-configuration';
/** The number of authorization servers that are tried. Servers usually name one or two. */
const MAX_AUTHORIZATION_SERVERS = 4;

/** The requirements for authorization that a server announces. */
export interface AuthorizationSetup {
  readonly authorizationServer: AuthorizationServer;
  /** The resource to request tokens for: the server, under the name in its metadata. */
  readonly resource: string;
  /** The scopes that the server needs at least, as far as its metadata lists them. */
  readonly scopes: readonly string[];
  readonly boundTokens: BoundTokens;
}

/** A server's support for tokens that are bound to a key. [RFC 9728 2] */
export interface BoundTokens {
  readonly areRequired: boolean;
  /** The algorithms of proofs that the server accepts; undefined if it does not list them. */
  readonly algorithms: readonly string[] | undefined;
}

export interface DiscoverRequest {
  readonly server: URL;
  /** The URL of the resource metadata in `WWW-Authenticate`. */
  readonly resourceMetadata: URL | undefined;
  /** The only issuer that is accepted; undefined to accept any. */
  readonly issuer: string | undefined;
  /** The kind of login. */
  readonly grant: LoginConfig['grant'];
  /** Members that replace those of an authorization server's metadata, as the user has configured them. */
  readonly corrections: Partial<AuthorizationServer>;
  /** Called with a warning for the user. */
  readonly warn: (text: string) => void;
  readonly fetch: LoginFetch;
}

/** The settings that decide whether the metadata of one authorization server is accepted. */
interface IssuerRequest extends Pick<DiscoverRequest, 'issuer' | 'grant' | 'corrections' | 'warn' | 'fetch'> {
  /** Returns the advice for users who trust metadata with another issuer. */
  readonly adviseOtherName: (asked: string) => string;
}

/**
 * Finds the metadata of an identity provider that the user has configured. The issuer in the metadata must be the
 * configured one. Rejects with ERR_UPSTREAM_AUTH.
 */
export async function discoverIdentityProvider(
  issuer: string,
  request: Pick<IssuerRequest, 'grant' | 'warn' | 'fetch'>,
): Promise<AuthorizationServer> {
  const found = await findAuthorizationServer(issuer, {
    ...{ ...request, issuer: undefined, corrections: {} },
    adviseOtherName: () => 'Check --oauth-idp-issuer.',
  });
  if (found !== undefined) return found;
  throw loginError(`The identity provider at ${issuer} has no metadata`, 'Check --oauth-idp-issuer.');
}

/**
 * Finds the authorization server of an MCP server. Resolves with undefined if the server does not use OAuth. Rejects
 * with ERR_UPSTREAM_AUTH.
 */
export async function discover(request: DiscoverRequest): Promise<AuthorizationSetup | undefined> {
  const { server, issuer } = request;
  const found = await findResourceMetadata(request);
  const { resource, authorizationServers, scopes, boundTokens } = found.metadata ?? {
    resource: canonicalUri(server),
    authorizationServers: [],
    scopes: [],
    boundTokens: { areRequired: false, algorithms: undefined },
  };
  // Before resources had metadata, the server was its own authorization server, and some still are without announcing
  // it. [spec 2025-03-26 basic/authorization#authorization-server-metadata-discovery]
  const named = authorizationServers.length > 0 ? authorizationServers : [issuer ?? server.origin];
  const trusted = named.filter((name) => issuer === undefined || isSameIssuer(name, issuer));
  let fault = found.fault;
  for (const name of trusted.slice(0, MAX_AUTHORIZATION_SERVERS)) {
    try {
      const authorizationServer = await findAuthorizationServer(name, { ...request, adviseOtherName });
      if (authorizationServer !== undefined) return { authorizationServer, resource, scopes, boundTokens };
    } catch (thrown) {
      // After a temporary failure the login is retried with this authorization server: trying the next one would send
      // it the client that this one knows.
      if (!(thrown instanceof BridgeError) || mayPass(thrown)) throw fault ?? thrown;
      fault ??= thrown;
    }
  }
  if (fault !== undefined) throw fault;
  if (found.metadata === undefined) return undefined;
  throw noneFound(request, authorizationServers);
}

function noneFound({ server, issuer }: DiscoverRequest, named: readonly string[]) {
  const names = named.length === 0 ? 'names no authorization server' : `names ${named.join(', ')}`;
  const expected = issuer === undefined ? 'one with metadata' : `${issuer} and its metadata`;
  const isOther = issuer !== undefined && named.length > 0 && !named.some((name) => isSameIssuer(name, issuer));
  return loginError(
    `The server at ${showUrl(server)} ${names}; expected ${expected}`,
    isOther
      ? `If you trust it, give --oauth-issuer ${quoteOthers(named[0] ?? '')}.`
      : 'Give a token with MCP_PORTAGE_BEARER_TOKEN, --bearer-token-file or --header.',
  );
}

/**
 * The result of looking for resource metadata. `metadata` is undefined if there is none. In that case `fault` may be
 * the error of a location that should have metadata but returns none now.
 */
interface FoundResource {
  readonly metadata: ResourceMetadata | undefined;
  readonly fault: BridgeError | undefined;
}

/**
 * Reads the location that the refusal names, then the well-known ones. A document that cannot be used is skipped if
 * another one can be used. [spec 2025-11-25 basic/authorization#protected-resource-metadata-discovery-requirements]
 */
async function findResourceMetadata({ server, resourceMetadata, fetch }: DiscoverRequest): Promise<FoundResource> {
  const path = server.pathname.replace(/\/$/, '');
  const wellKnown = [`${RESOURCE_METADATA}${path}`, RESOURCE_METADATA].map(
    (place) => new URL(place, server.origin).href,
  );
  const places = new Set([...(resourceMetadata === undefined ? [] : [resourceMetadata.href]), ...wellKnown]);
  let fault: BridgeError | undefined;
  /**
   * The error of the first wrong document. It takes precedence over `fault`, because such a document shows that the
   * server requires authorization.
   */
  let wrong: BridgeError | undefined;
  for (const place of places) {
    const location = new URL(place);
    const read = await readDocument(location, fetch);
    if (read.kind === 'missing') continue;
    if (read.kind === 'unavailable') {
      fault ??= read.fault;
      continue;
    }
    const metadata = readResourceMetadata(read.members);
    if ('fault' in metadata) wrong ??= unusable(location, metadata.fault);
    else if (isAbout(metadata.resource, server)) return { metadata, fault: undefined };
    else wrong ??= foreignResource(location, server);
  }
  if (wrong !== undefined) throw wrong;
  return { metadata: undefined, fault };
}

function foreignResource(location: URL, server: URL) {
  const problem = `The metadata at ${showUrl(location)} is about another server than ${showUrl(server)}`;
  return loginError(problem, 'No token is asked for: it would be for somebody else.');
}

/**
 * Resolves with undefined if the issuer has no metadata. Of several documents, the first one that supports this kind of
 * login is used, otherwise the first one that is usable at all. [spec 2025-11-25
 * basic/authorization#authorization-server-metadata-discovery]
 */
export async function findAuthorizationServer(
  issuer: string,
  request: IssuerRequest,
): Promise<AuthorizationServer | undefined> {
  let lacking: AuthorizationServer | undefined;
  let fault: BridgeError | undefined;
  for (const location of wellKnownUrls(new URL(issuer))) {
    const read = await readDocument(location, request.fetch);
    if (read.kind === 'missing') continue;
    if (read.kind === 'unavailable') {
      fault ??= read.fault;
      continue;
    }
    const named = readServerMetadata({ ...read.members, ...request.corrections });
    if ('fault' in named) fault ??= unusable(location, named.fault);
    else if (!mayNameItself(named.metadata.issuer, issuer, request))
      fault ??= misnamed(location, named.metadata, issuer, request);
    else if (hasWhatLoginsNeed(named.metadata, request)) return take(named.metadata, issuer, request);
    else lacking ??= named.metadata;
  }
  if (lacking !== undefined) return take(lacking, issuer, request);
  if (fault !== undefined) throw fault;
  return undefined;
}

/**
 * [RFC 8414 3.3] The issuer in the metadata has to be the one that was asked. An issuer that the user has configured
 * may have another name in its metadata.
 */
function mayNameItself(found: string, asked: string, { issuer }: IssuerRequest): boolean {
  return issuer !== undefined || isSameIssuer(found, asked);
}

function take(metadata: AuthorizationServer, asked: string, { warn }: IssuerRequest): AuthorizationServer {
  const found = metadata.issuer;
  if (!isSameIssuer(found, asked)) {
    warn(`the metadata of ${asked} names ${quoteOthers(found)} as its issuer; it is used, as --oauth-issuer says so`);
  }
  return metadata;
}

function adviseOtherName(asked: string): string {
  return `If you trust whoever serves it, give --oauth-issuer ${quoteOthers(asked)}.`;
}

function misnamed(location: URL, { issuer: found }: AuthorizationServer, asked: string, request: IssuerRequest) {
  const problem = `The metadata at ${showUrl(location)} cannot be used; its issuer is ${quoteOthers(found)}, expected ${asked}`;
  return loginError(problem, request.adviseOtherName(asked));
}

/** True if two issuers differ at most in a trailing slash or in the notation of their URL. */
export function isSameIssuer(one: string, other: string): boolean {
  return one === other || normalIssuer(one) === normalIssuer(other);
}

function normalIssuer(issuer: string): string {
  return URL.canParse(issuer) ? new URL(issuer).href.replace(/\/$/, '') : issuer;
}

function hasWhatLoginsNeed(metadata: AuthorizationServer, { grant }: IssuerRequest): boolean {
  if (grant === 'client-credentials' || grant === 'jwt-bearer') return true;
  return chooseWay(grant, metadata) === 'device-code'
    ? metadata.device_authorization_endpoint !== undefined
    : metadata.authorization_endpoint !== undefined && announcesPkce(metadata);
}

/**
 * Chooses between browser and code. If no browser can be opened here, users log in with a code if the authorization
 * server offers that.
 */
export function chooseWay(
  grant: UserGrant,
  { device_authorization_endpoint: endpoint }: AuthorizationServer,
): Exclude<UserGrant, 'device-code-if-offered'> {
  if (grant !== 'device-code-if-offered') return grant;
  return endpoint === undefined ? 'authorization-code' : 'device-code';
}

/** [spec 2025-11-25 basic/authorization#authorization-code-protection] */
export function announcesPkce({ code_challenge_methods_supported: methods }: AuthorizationServer): boolean {
  return methods?.includes('S256') === true;
}

function unusable(location: URL, fault: string) {
  const problem = `The metadata at ${showUrl(location)} cannot be used; ${fault}`;
  return loginError(problem, 'It is wrong or hostile; tell the operators of the server.');
}

function wellKnownUrls({ origin, pathname }: URL): readonly URL[] {
  const path = pathname.replace(/\/$/, '');
  const paths = [`${SERVER_METADATA}${path}`, `${OPENID_METADATA}${path}`, `${path}${OPENID_METADATA}`];
  return [...new Set(paths)].map((wellKnown) => new URL(wellKnown, origin));
}

const JSON_GET = { method: 'GET', headers: { accept: 'application/json' } } as const;

/**
 * - `missing`: there is no document at this location.
 * - `unavailable`: the location returns something else, such as a web page, or the server is out of order.
 */
type ReadDocument =
  | { readonly kind: 'document'; readonly members: Members }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unavailable'; readonly fault: BridgeError };

async function readDocument(location: URL, fetch: LoginFetch): Promise<ReadDocument> {
  const response = await fetch(location, JSON_GET);
  const { status } = response;
  const problem = `${showUrl(location)} answered ${status} without metadata`;
  if (isBusy(response)) return { kind: 'unavailable', fault: busyError(response, problem) };
  if (status >= 400) return { kind: 'missing' };
  const body: unknown = status === 200 ? await response.json().catch(() => undefined) : undefined;
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    return { kind: 'document', members: { ...body } };
  return { kind: 'unavailable', fault: loginError(problem, 'Try again later.') };
}

/**
 * True if the metadata of a resource covers the server. [RFC 9728 3.3] A document for the whole host covers each of its
 * paths.
 */
function isAbout(resource: string, server: URL): boolean {
  const { origin, pathname } = new URL(resource);
  const base = pathname.replace(/\/$/, '');
  return origin === server.origin && (server.pathname === base || server.pathname.startsWith(`${base}/`));
}

/**
 * [spec 2025-11-25 basic/authorization#canonical-server-uri] The URI of a server, without the slash of an empty path.
 */
export function canonicalUri({ origin, pathname, search }: URL): string {
  return `${origin}${pathname === '/' ? '' : pathname}${search}`;
}

/**
 * Limit on the authorization servers in a metadata document. Servers name one or two, but all entries are checked, so
 * their number must be limited.
 */
export const MAX_NAMED_SERVERS = 100;

/** The reason why a document cannot be used, as the end of a sentence. */
export interface MetadataFault {
  readonly fault: string;
}

/** The members of another party's document. Some parties write null for a member that is absent. */
type Members = Readonly<Record<string, unknown>>;

/** [RFC 9728 2] The members of a protected resource's metadata that the bridge uses. */
export interface ResourceMetadata {
  readonly resource: string;
  /** URLs with https, or with http on this machine. */
  readonly authorizationServers: readonly string[];
  readonly scopes: readonly string[];
  readonly boundTokens: BoundTokens;
}

const BOUND_TOKENS = 'dpop_bound_access_tokens_required';
const PROOF_ALGORITHMS = 'dpop_signing_alg_values_supported';

export function readResourceMetadata(document: Members): ResourceMetadata | MetadataFault {
  const members = withoutNull(document);
  const { resource, authorization_servers: servers, scopes_supported: scopes } = members;
  const { [BOUND_TOKENS]: areRequired, [PROOF_ALGORITHMS]: algorithms } = members;
  const fault =
    findAddressFault('resource', resource) ??
    findServersFault(servers) ??
    findListFault('scopes_supported', scopes) ??
    findSwitchFault(BOUND_TOKENS, areRequired) ??
    findListFault(PROOF_ALGORITHMS, algorithms);
  if (fault !== undefined) return { fault };
  if (typeof resource !== 'string') return { fault: 'it has no member resource' };
  const boundTokens = {
    areRequired: areRequired === true,
    algorithms: algorithms === undefined ? undefined : textsIn(algorithms),
  };
  return { resource, authorizationServers: textsIn(servers), scopes: textsIn(scopes), boundTokens };
}

function findServersFault(value: unknown): string | undefined {
  const name = 'authorization_servers';
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) return `${name} is ${describe(value)} instead of a list of URLs`;
  if (value.length > MAX_NAMED_SERVERS) {
    return `${name} has ${value.length} entries; expected at most ${MAX_NAMED_SERVERS}`;
  }
  for (const entry of value) {
    if (typeof entry !== 'string') return `${name} has ${describe(entry)} among its entries instead of a URL`;
    if (!URL.canParse(entry)) return `${name} has "${quoteOthers(entry)}", which is no URL`;
    if (!isSecure(new URL(entry))) return `${name} has ${quoteOthers(entry)}, which is no URL with https`;
  }
  return undefined;
}

/** The members of an authorization server's metadata that the bridge uses, by type. [RFC 8414 2] */
const ADDRESSES = [
  'authorization_endpoint',
  'token_endpoint',
  'registration_endpoint',
  'device_authorization_endpoint',
  'revocation_endpoint',
] as const;
const LISTS = [
  'scopes_supported',
  'code_challenge_methods_supported',
  'token_endpoint_auth_methods_supported',
  PROOF_ALGORITHMS,
] as const;
const SWITCHES = ['client_id_metadata_document_supported', 'authorization_response_iss_parameter_supported'] as const;

/**
 * Checks that the members have the right types and that there is a token endpoint, without which no login is possible.
 */
export function readServerMetadata(document: Members): { readonly metadata: AuthorizationServer } | MetadataFault {
  const members = withoutNull(document);
  const { issuer } = members;
  const fault =
    firstOf(ADDRESSES, (name) => findAddressFault(name, members[name])) ??
    firstOf(LISTS, (name) => findListFault(name, members[name])) ??
    firstOf(SWITCHES, (name) => findSwitchFault(name, members[name]));
  if (fault !== undefined) return { fault };
  if (typeof issuer !== 'string' || issuer === '') return { fault: 'it has no member issuer' };
  if (members.token_endpoint === undefined) return { fault: 'it has no member token_endpoint' };
  return { metadata: { ...members, issuer } };
}

function findAddressFault(name: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'string') return `${name} is ${describe(value)} instead of a URL`;
  return URL.canParse(value) ? undefined : `${name} is no URL`;
}

function findListFault(name: string, value: unknown): string | undefined {
  if (value === undefined || (Array.isArray(value) && value.every((item) => typeof item === 'string')))
    return undefined;
  return `${name} is no list of texts`;
}

function findSwitchFault(name: string, value: unknown): string | undefined {
  return value === undefined || typeof value === 'boolean' ? undefined : `${name} is neither true nor false`;
}

function firstOf<Name>(names: readonly Name[], find: (name: Name) => string | undefined): string | undefined {
  for (const name of names) {
    const fault = find(name);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Describes a value by its type, because the value itself may have any length. */
function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value : [];
}

/** Removes members that are null, because they count as absent. */
export function withoutNull(document: object): Members {
  return Object.fromEntries(Object.entries(document).filter(([, value]) => value !== null));
}
