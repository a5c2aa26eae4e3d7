/** The parameters of a login's requests besides those that the protocol itself needs. */
import type { LoginConfig } from '../../config/remote.ts';
import { quoteOthers } from './login-error.ts';
import type { TokenBinding } from './token-binding.ts';

export interface RequestParameters {
  /** [RFC 8707] Names what the token is for, in every request. Undefined: the user has it left out. */
  readonly resource: string | undefined;
  /** Parameters of the user, for the request with which a login begins. Their values are shown nowhere. */
  readonly extra: ReadonlyMap<string, string>;
  /** Proves, in every request, that the key is here which the tokens are to be bound to. Undefined: nothing is proved. */
  readonly binding: TokenBinding | undefined;
}

/** @param named the resource, as the server names itself */
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

/** The members of the request with which a login begins. */
export function beginningMembers(parameters: RequestParameters): Readonly<Record<string, string>> {
  return { ...Object.fromEntries(parameters.extra), ...resourceMember(parameters) };
}

/** The members of every request for tokens. */
export function resourceMember({ resource }: RequestParameters): Readonly<Record<string, string>> {
  return resource === undefined ? {} : { resource };
}

/** Entra says in the description of an error that it takes no resource, or not this one with these scopes. */
const RESOURCE_REFUSED = /\bAADSTS(?:9010010|901002)\b/;

/** Returns true where an authorization server refuses the resource, and nothing else. [RFC 8707 2] */
export function isResourceRefused(error: unknown, description: string | null | undefined): boolean {
  return error === 'invalid_target' || RESOURCE_REFUSED.test(description ?? '');
}

/** The way out where the resource is refused. It is never left out by itself, as the token could be for anybody then. */
export function adviseResource({ resource }: RequestParameters): string {
  if (resource === undefined) return 'No resource was named; give the one that it expects with --oauth-resource.';
  return `The token was asked for the resource ${quoteOthers(resource)}; give the one that it expects with --oauth-resource, or --oauth-resource none to leave it out.`;
}
