import { BridgeError } from '../../errors.ts';
import { asFields } from '../../mcp/vocabulary/payload.ts';
import { isLoopback } from '../addresses.ts';
import type { HttpClient } from '../client/client.ts';
import { ControlClient } from '../client/control-client.ts';
import { SessionCookies } from '../client/cookies.ts';
import { showUrl } from '../shown-url.ts';

/**
 * Returns the URL of an issuer's keys, which is the `jwks_uri` in its metadata. [RFC 8414 3; OpenID Connect Discovery
 * 1.0 4; spec 2025-11-25 basic/authorization#authorization-server-metadata-discovery]
 */
export async function discoverKeys(issuer: string, fetchJson: FetchJson): Promise<URL> {
  for (const url of wellKnownUrls(issuer)) {
    const metadata = asFields(await fetchJson(url));
    if (metadata === undefined) continue;
    // [RFC 8414 3.3] Metadata that names another issuer is not used at all.
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

/** Callers wait for this request, so a slow issuer must not hold them for long. */
const FETCH_TIMEOUT_MS = 5000;

/**
 * Resolves with the parsed document; undefined if there is no such document. Rejects with a BridgeError if the document
 * is not JSON or cannot be fetched.
 */
export type FetchJson = (url: URL) => Promise<unknown>;

/**
 * Creates a function that fetches a document. Keys decide which callers are accepted, so they are fetched over https or
 * from this machine, and redirects are not followed.
 */
export function createFetchJson(http: HttpClient): FetchJson {
  const control = new ControlClient(http);
  return async (url) => {
    if (!isTrustworthy(url)) throw unusableDocument(url, 'expected https, or http to this machine');
    const headers = { accept: 'application/json' };
    const request = {
      method: 'GET',
      url,
      headers,
      cookies: new SessionCookies(),
      timeoutMs: FETCH_TIMEOUT_MS,
    } as const;
    const { status, body } = await control.request(request);
    if (status >= 400 && status < 500) return undefined;
    if (status !== 200) throw unusableDocument(url, `expected status 200, got ${status}`);
    try {
      return JSON.parse(body.toString('utf8'));
    } catch {
      throw unusableDocument(url, 'expected JSON, got something else');
    }
  };
}

export function isTrustworthy({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/g, '')));
}

function unusableDocument(url: URL, reason: string): BridgeError {
  return new BridgeError('ERR_AUTH_UNAVAILABLE', `${showUrl(url)} cannot be used: ${reason}.`);
}
