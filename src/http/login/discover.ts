import { type AuthorizationServer, processDiscoveryResponse } from 'oauth4webapi';
import { showUrl } from '../shown-url.ts';
import { loginError } from './login-error.ts';
import type { LoginFetch } from './login-fetch.ts';
import { readResourceMetadata, readServerMetadata } from './metadata.ts';

const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';
const SERVER_METADATA = '/.well-known/oauth-authorization-server';
const OPENID_METADATA = '/.well-known/openid-configuration';
/** A server names one or two. */
const MAX_AUTHORIZATION_SERVERS = 4;

/** What a server says about who lets users in. */
export interface Surroundings {
  readonly authorizationServer: AuthorizationServer;
  /** What tokens are asked for: the server, as it names itself. */
  readonly resource: string;
  /** What the server needs at least, as far as it says. */
  readonly scopes: readonly string[];
}

export interface DiscoverRequest {
  readonly server: URL;
  /** The URL of the metadata that `WWW-Authenticate` names. */
  readonly resourceMetadata: URL | undefined;
  /** The only one that will do; undefined: any. */
  readonly issuer: string | undefined;
  readonly fetch: LoginFetch;
}

/** Undefined: the server has nothing to do with OAuth. Rejects with ERR_UPSTREAM_AUTH. */
export async function discover(request: DiscoverRequest): Promise<Surroundings | undefined> {
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
async function discoverWithoutResource({ server, issuer, fetch }: DiscoverRequest): Promise<Surroundings | undefined> {
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
    // [RFC 8414 3.3] Whose metadata it is has to be who was asked.
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
  if (!URL.canParse(resource)) return false;
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
