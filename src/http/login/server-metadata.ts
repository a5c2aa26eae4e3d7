import type { AuthorizationServer } from 'oauth4webapi';

/** Members of the metadata that are used here, by what they have to be. [RFC 8414 2] */
const ADDRESSES = ['authorization_endpoint', 'token_endpoint', 'registration_endpoint'] as const;
const LISTS = [
  'scopes_supported',
  'code_challenge_methods_supported',
  'token_endpoint_auth_methods_supported',
] as const;

/**
 * The metadata of an authorization server with members of the right types; it was written by somebody else. In some
 * languages what is not there is null.
 */
export function readServerMetadata(metadata: AuthorizationServer): AuthorizationServer | { readonly fault: string } {
  const known = Object.entries(metadata).filter(([, value]) => value !== null);
  const fields: Readonly<Record<string, unknown>> = Object.fromEntries(known);
  for (const name of ADDRESSES) {
    const value = fields[name];
    if (value !== undefined && (typeof value !== 'string' || !URL.canParse(value))) {
      return { fault: `${name} is no URL` };
    }
  }
  for (const name of LISTS) {
    const value = fields[name];
    if (value !== undefined && !isListOfTexts(value)) return { fault: `${name} is no list of texts` };
  }
  return { ...fields, issuer: metadata.issuer };
}

function isListOfTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
