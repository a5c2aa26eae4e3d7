import { type AuthorizationServer, processDiscoveryResponse } from 'oauth4webapi';
import { showUrl } from '../shown-url.ts';
import { isSecure } from './address-guard.ts';
import { loginError, quoteOthers } from './login-error.ts';
import type { LoginFetch } from './login-fetch.ts';

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
}

export interface DiscoverRequest {
  readonly server: URL;
  /** The URL of the metadata that `WWW-Authenticate` names. */
  readonly resourceMetadata: URL | undefined;
  /** The only issuer that is accepted; undefined: any. */
  readonly issuer: string | undefined;
  readonly fetch: LoginFetch;
}

/** Undefined: the server has nothing to do with OAuth. Rejects with ERR_UPSTREAM_AUTH. */
export async function discover(request: DiscoverRequest): Promise<AuthorizationSetup | undefined> {
  const found = await findResourceMetadata(request);
  if (found === undefined) return discoverWithoutResource(request);
  const { document, location } = found;
  const metadata = readResourceMetadata(document);
  if ('fault' in metadata) throw unusable(location, metadata.fault);
  const { resource, authorizationServers, scopes } = metadata;
  if (!isAbout(resource, request.server)) {
    const problem = `The metadata at ${showUrl(location)} is about another server than ${showUrl(request.server)}`;
    throw loginError(problem, 'No token is asked for: it would be for somebody else.');
  }
  const issuers = authorizationServers.filter(isTrusted(request.issuer));
  for (const issuer of issuers.slice(0, MAX_AUTHORIZATION_SERVERS)) {
    const authorizationServer = await findAuthorizationServer(issuer, request.fetch);
    if (authorizationServer === undefined) continue;
    return { authorizationServer, resource, scopes };
  }
  const named = issuers.length === 0 ? 'names no authorization server' : `names ${issuers.join(', ')}`;
  const expected = request.issuer === undefined ? 'one with metadata' : `${request.issuer} and its metadata`;
  throw loginError(
    `The server at ${showUrl(request.server)} ${named}; expected ${expected}`,
    'Give a token with MCP_PORTAGE_BEARER_TOKEN, --bearer-token-file or --header.',
  );
}

/** Before there was metadata of resources, the server was its own authorization server. [spec 2025-03-26] */
async function discoverWithoutResource({
  server,
  issuer,
  fetch,
}: DiscoverRequest): Promise<AuthorizationSetup | undefined> {
  const expected = issuer ?? server.origin;
  const authorizationServer = await findAuthorizationServer(expected, fetch);
  if (authorizationServer === undefined) return undefined;
  return { authorizationServer, resource: canonicalUri(server), scopes: [] };
}

/** [spec 2025-11-25 basic/authorization#protected-resource-metadata-discovery-requirements] */
async function findResourceMetadata({ server, resourceMetadata, fetch }: DiscoverRequest) {
  const { origin, pathname } = server;
  const path = pathname.replace(/\/$/, '');
  const wellKnown = [...new Set([`${RESOURCE_METADATA}${path}`, RESOURCE_METADATA])];
  const urls = resourceMetadata === undefined ? wellKnown.map((known) => new URL(known, origin)) : [resourceMetadata];
  for (const location of urls) {
    const response = await fetch(location, JSON_GET);
    if (isMissing(response)) continue;
    const document = await readObject(response);
    if (document !== undefined) return { document, location };
    throw loginError(`${showUrl(location)} answered ${response.status} without metadata`, 'Try again later.');
  }
  return undefined;
}

/** [spec 2025-11-25 basic/authorization#authorization-server-metadata-discovery] */
async function findAuthorizationServer(issuer: string, fetch: LoginFetch): Promise<AuthorizationServer | undefined> {
  const url = new URL(issuer);
  for (const location of wellKnownUrls(url)) {
    const response = await fetch(location, JSON_GET);
    if (isMissing(response)) continue;
    // [RFC 8414 3.3] The issuer in the metadata has to be the one that was asked.
    const metadata = await processDiscoveryResponse(url, response).catch(() => undefined);
    const read = metadata && readServerMetadata(metadata);
    if (read !== undefined && 'metadata' in read) return read.metadata;
    throw unusable(location, read?.fault ?? `expected JSON whose issuer is ${issuer}`);
  }
  return undefined;
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

function isMissing({ status }: Response): boolean {
  return status >= 400 && status < 500;
}

async function readObject(response: Response): Promise<Readonly<Record<string, unknown>> | undefined> {
  const body: unknown = response.status === 200 ? await response.json().catch(() => undefined) : undefined;
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body } : undefined;
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

function isTrusted(issuer: string | undefined) {
  return (named: string): boolean => issuer === undefined || named === issuer;
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
}

export function readResourceMetadata(document: Members): ResourceMetadata | MetadataFault {
  const { resource, authorization_servers: servers, scopes_supported: scopes } = withoutNull(document);
  const fault =
    findAddressFault('resource', resource) ?? findServersFault(servers) ?? findListFault('scopes_supported', scopes);
  if (fault !== undefined) return { fault };
  if (typeof resource !== 'string') return { fault: 'it has no member resource' };
  return { resource, authorizationServers: textsIn(servers), scopes: textsIn(scopes) };
}

function findServersFault(value: unknown): string | undefined {
  const name = 'authorization_servers';
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) return `${name} is ${describe(value)} instead of a list of URLs`;
  if (value.length === 0) return `${name} is an empty list`;
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
const ADDRESSES = ['authorization_endpoint', 'token_endpoint', 'registration_endpoint'] as const;
const LISTS = [
  'scopes_supported',
  'code_challenge_methods_supported',
  'token_endpoint_auth_methods_supported',
] as const;
const SWITCHES = ['client_id_metadata_document_supported', 'authorization_response_iss_parameter_supported'] as const;

/** The metadata with members of the right types, and a token endpoint, without which there is no login. */
export function readServerMetadata(
  metadata: AuthorizationServer,
): { readonly metadata: AuthorizationServer } | MetadataFault {
  const members = withoutNull(metadata);
  const fault =
    firstOf(ADDRESSES, (name) => findAddressFault(name, members[name])) ??
    firstOf(LISTS, (name) => findListFault(name, members[name])) ??
    firstOf(SWITCHES, (name) => findSwitchFault(name, members[name]));
  if (fault !== undefined) return { fault };
  if (members.token_endpoint === undefined) return { fault: 'it has no member token_endpoint' };
  return { metadata: { ...members, issuer: metadata.issuer } };
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
