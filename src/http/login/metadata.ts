import type { AuthorizationServer } from 'oauth4webapi';
import { isSecure } from './address-guard.ts';
import { quoteOthers } from './login-error.ts';

/** A server names one or two authorization servers. All entries are checked, so there may not be any number of them. */
export const MAX_NAMED_SERVERS = 100;

/** Why a document cannot be used, as the end of a sentence. */
export interface MetadataFault {
  readonly fault: string;
}

/** Documents were written by somebody else. In some languages what is not there is null. */
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

/** By its type: the value itself may be of any length. */
function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value : [];
}

function withoutNull(document: object): Members {
  return Object.fromEntries(Object.entries(document).filter(([, value]) => value !== null));
}
