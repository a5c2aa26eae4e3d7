import { BridgeError } from '../../errors.ts';
import { isLoopback } from '../addresses.ts';
import type { HttpClient } from '../client.ts';
import { ControlClient } from '../control-client.ts';
import { SessionCookies } from '../cookies.ts';
import { showUrl } from '../shown-url.ts';

/** Callers wait for this, so a slow issuer must not hold them for long. */
const FETCH_TIMEOUT_MS = 5000;

/** `undefined`: there is no such document. Throws a BridgeError for everything else that is no JSON. */
export type FetchJson = (url: URL) => Promise<unknown>;

/** Keys decide who comes in: they are taken over https, or from this machine, and from nowhere a redirect points to. */
export function createFetchJson(http: HttpClient): FetchJson {
  const control = new ControlClient(http);
  return async (url) => {
    if (!isTrustworthy(url)) throw unusable(url, 'expected https, or http to this machine');
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
    if (status !== 200) throw unusable(url, `expected status 200, got ${status}`);
    try {
      return JSON.parse(body.toString('utf8'));
    } catch {
      throw unusable(url, 'expected JSON, got something else');
    }
  };
}

export function isTrustworthy({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/g, '')));
}

function unusable(url: URL, reason: string): BridgeError {
  return new BridgeError('ERR_AUTH_UNAVAILABLE', `${showUrl(url)} cannot be used: ${reason}.`);
}
