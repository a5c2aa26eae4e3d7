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
/** A server names one or two. */
const MAX_AUTHORIZATION_SERVERS = 4;

/** What a server says about its authorization. */
export interface AuthorizationSetup {
  readonly authorizationServer: AuthorizationServer;
  /** The resource that tokens are asked for: the server, as it names itself. */
  readonly resource: string;
  /** What the server needs at least, as far as it says. */
  readonly scopes: readonly string[];
  readonly boundTokens: BoundTokens;
}

/** What a server says of tokens that are bound to a key. [RFC 9728 2] */
export interface BoundTokens {
  readonly areRequired: boolean;
  /** The algorithms of proofs that the server takes; undefined: it does not say. */
  readonly algorithms: readonly string[] | undefined;
}

export interface DiscoverRequest {
  readonly server: URL;
  /** The URL of the metadata that `WWW-Authenticate` names. */
  readonly resourceMetadata: URL | undefined;
  /** The only issuer that is accepted; undefined: any. */
  readonly issuer: string | undefined;
  /** The kind of login. */
  readonly grant: LoginConfig['grant'];
  /** Members of an authorization server's metadata as the user knows them better. */
  readonly corrections: Partial<AuthorizationServer>;
  /** Called with what the user should know. */
  readonly warn: (text: string) => void;
  readonly fetch: LoginFetch;
}

/** What decides about the metadata of one authorization server. */
interface IssuerRequest extends Pick<DiscoverRequest, 'issuer' | 'grant' | 'corrections' | 'warn' | 'fetch'> {
  /** For users who trust metadata of another name. */
  readonly adviseOtherName: (asked: string) => string;
}

/**
 * Finds the metadata of an identity provider that the user has named, under that very name. Rejects with
 * ERR_UPSTREAM_AUTH.
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

/** Undefined: the server has nothing to do with OAuth. Rejects with ERR_UPSTREAM_AUTH. */
export async function discover(request: DiscoverRequest): Promise<AuthorizationSetup | undefined> {
  const { server, issuer } = request;
  const found = await findResourceMetadata(request);
  const { resource, authorizationServers, scopes, boundTokens } = found.metadata ?? {
    resource: canonicalUri(server),
    authorizationServers: [],
    scopes: [],
    boundTokens: { areRequired: false, algorithms: undefined },
  };
  // Before there was metadata of resources, the server was its own authorization server, and some still are without
  // saying so. [spec 2025-03-26 basic/authorization#authorization-server-metadata-discovery]
  const named = authorizationServers.length > 0 ? authorizationServers : [issuer ?? server.origin];
  const trusted = named.filter((name) => issuer === undefined || isSameIssuer(name, issuer));
  let fault = found.fault;
  for (const name of trusted.slice(0, MAX_AUTHORIZATION_SERVERS)) {
    try {
      const authorizationServer = await findAuthorizationServer(name, { ...request, adviseOtherName });
      if (authorizationServer !== undefined) return { authorizationServer, resource, scopes, boundTokens };
    } catch (thrown) {
      // One that may be there again in a moment is waited for: the next one would see a client that is known to this one.
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

interface FoundResource {
  /** Undefined: there is none. */
  readonly metadata: ResourceMetadata | undefined;
  /** The error of a place that should have metadata and gives none now. */
  readonly fault: BridgeError | undefined;
}

/**
 * Looks at the place that the refusal names, then at the well-known ones. A document that cannot be used is passed over
 * if another one can be. [spec 2025-11-25 basic/authorization#protected-resource-metadata-discovery-requirements]
 */
async function findResourceMetadata({ server, resourceMetadata, fetch }: DiscoverRequest): Promise<FoundResource> {
  const path = server.pathname.replace(/\/$/, '');
  const wellKnown = [`${RESOURCE_METADATA}${path}`, RESOURCE_METADATA].map(
    (place) => new URL(place, server.origin).href,
  );
  const places = new Set([...(resourceMetadata === undefined ? [] : [resourceMetadata.href]), ...wellKnown]);
  let fault: BridgeError | undefined;
  /** A document that is wrong says that there is authorization, so its fault is told whatever else is there. */
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
 * Undefined: there is no metadata of it. Of several documents the first that a login can do with is taken, else the first
 * that can be used at all. [spec 2025-11-25 basic/authorization#authorization-server-metadata-discovery]
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
 * [RFC 8414 3.3] The issuer in the metadata has to be the one that was asked. An issuer that the user has named may call
 * itself differently.
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

/** Two issuers are the same if they differ in nothing but a slash at the end, or the way in which a URL is written. */
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

/** If no browser can be opened here, users log in with a code where the authorization server offers that. */
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
 * - `missing`: the place has no document.
 * - `unavailable`: there is something else in its place, such as a page, or a server that is out of order.
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

/** [RFC 9728 3.3] A document for the whole host speaks for each of its paths. */
function isAbout(resource: string, server: URL): boolean {
  const { origin, pathname } = new URL(resource);
  const base = pathname.replace(/\/$/, '');
  return origin === server.origin && (server.pathname === base || server.pathname.startsWith(`${base}/`));
}

/** [spec 2025-11-25 basic/authorization#canonical-server-uri] without a slash that means nothing */
export function canonicalUri({ origin, pathname, search }: URL): string {
  return `${origin}${pathname === '/' ? '' : pathname}${search}`;
}

/** A server names one or two authorization servers. All entries are checked, so there may not be any number of them. */
export const MAX_NAMED_SERVERS = 100;

/** Why a document cannot be used, as the end of a sentence. */
export interface MetadataFault {
  readonly fault: string;
}

/** The members of a document of another party. Some write null for a member that is absent. */
type Members = Readonly<Record<string, unknown>>;

/** [RFC 9728 2] The members of a protected resource's metadata that are used here. */
export interface ResourceMetadata {
  readonly resource: string;
  /** URLs with https, or of this machine. */
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

/** Members of an authorization server's metadata that are used here, by what they have to be. [RFC 8414 2] */
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

/** The metadata with members of the right types, and a token endpoint, without which there is no login. */
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

/** Describes a value by its type, as the value itself may be of any length. */
function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value : [];
}

/** Members that are null count as absent. */
export function withoutNull(document: object): Members {
  return Object.fromEntries(Object.entries(document).filter(([, value]) => value !== null));
}
