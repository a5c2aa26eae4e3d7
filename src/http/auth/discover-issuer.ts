import { BridgeError } from '../../errors.ts';
import { asFields } from '../../mcp/payload.ts';
import type { FetchJson } from './fetch-json.ts';

/**
 * Where an issuer publishes its keys: the `jwks_uri` of its metadata.
 * [RFC 8414 3; OpenID Connect Discovery 1.0 4; spec 2025-11-25 basic/authorization#authorization-server-metadata-discovery]
 */
export async function discoverKeys(issuer: string, fetchJson: FetchJson): Promise<URL> {
  for (const url of wellKnownUrls(issuer)) {
    const metadata = asFields(await fetchJson(url));
    if (metadata === undefined) continue;
    // [RFC 8414 3.3] Whoever says to be somebody else is not believed anything.
    if (metadata.issuer !== issuer) {
      throw unusable(
        issuer,
        `its metadata at ${url.href} names another issuer; --auth-issuer must be the very same text`,
      );
    }
    const { jwks_uri: keys } = metadata;
    if (typeof keys !== 'string' || !URL.canParse(keys)) throw unusable(issuer, 'its metadata names no jwks_uri');
    return new URL(keys);
  }
  throw unusable(issuer, 'it publishes no metadata; name its keys with --auth-jwks');
}

/** The URLs of an issuer's metadata, in the order of the MCP specification. */
function wellKnownUrls(issuer: string): readonly URL[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  const paths = [
    `/.well-known/oauth-authorization-server${path}`,
    `/.well-known/openid-configuration${path}`,
    `${path}/.well-known/openid-configuration`,
  ];
  return [...new Set(paths)].map((wellKnown) => new URL(wellKnown, origin));
}

function unusable(issuer: string, reason: string): BridgeError {
  return new BridgeError('ERR_AUTH_UNAVAILABLE', `The issuer ${issuer} cannot be used: ${reason}.`);
}
