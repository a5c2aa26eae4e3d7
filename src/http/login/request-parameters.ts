/** The parameters of a login's requests beyond those that the protocol itself needs. */
import type { LoginConfig } from '../../config/remote.ts';
import { quoteOthers } from './login-error.ts';
import type { TokenBinding } from './token-binding.ts';

export interface RequestParameters {
  /** [RFC 8707] The resource that the token is for, sent in every request; undefined if the user has it left out. */
  readonly resource: string | undefined;
  /** Parameters that the user has configured for the request that begins a login. Their values are never shown. */
  readonly extra: ReadonlyMap<string, string>;
  /** Creates the proofs that the bridge holds the key of the tokens, for every request. Undefined to send no proofs. */
  readonly binding: TokenBinding | undefined;
}

/** @param named the resource, as the server's metadata names it */
export function chooseParameters(
  { resource, extraParameters: extra }: Pick<LoginConfig, 'resource' | 'extraParameters'>,
  named: string,
  binding: TokenBinding | undefined,
): RequestParameters {
  switch (resource.kind) {
    case 'server':
      return { resource: named, extra, binding };
    case 'named':
      return { resource: resource.uri, extra, binding };
    case 'left-out':
      return { resource: undefined, extra, binding };
  }
}

/** The members of the request that begins a login. */
export function beginningMembers(parameters: RequestParameters): Readonly<Record<string, string>> {
  return { ...Object.fromEntries(parameters.extra), ...resourceMember(parameters) };
}

/** The members of every request for tokens. */
export function resourceMember({ resource }: RequestParameters): Readonly<Record<string, string>> {
  return resource === undefined ? {} : { resource };
}

/** Entra reports in the description of an error that it accepts no resource, or not this one with these scopes. */
const RESOURCE_REFUSED = /\bAADSTS(?:9010010|901002)\b/;

/** True if an authorization server refuses a request because of its resource. [RFC 8707 2] */
export function isResourceRefused(error: unknown, description: string | null | undefined): boolean {
  return error === 'invalid_target' || RESOURCE_REFUSED.test(description ?? '');
}

/**
 * Returns the way out if the resource is refused. The bridge never leaves the resource out by itself, because the token
 * could then be for any server.
 */
export function adviseResource({ resource }: RequestParameters): string {
  if (resource === undefined) return 'No resource was named; give the one that it expects with --oauth-resource.';
  return `The token was asked for the resource ${quoteOthers(resource)}; give the one that it expects with --oauth-resource, or --oauth-resource none to leave it out.`;
}
