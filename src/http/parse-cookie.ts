/** A cookie as a client takes it from a server. Cites RFC 6265, which says what servers in the field rely on. */
import { isIP } from 'node:net';
import { parseSetCookie } from 'set-cookie-parser';

export interface Cookie {
  readonly name: string;
  readonly value: string;
  /** The origin that set the cookie. */
  readonly origin: string;
  readonly domain: string;
  readonly path: string;
  /** In milliseconds since 1970; undefined: it lasts as long as the session. */
  readonly expiresAt: number | undefined;
}

/** Undefined for what is no cookie, or none for `url`. */
export function parseCookie(text: string, url: URL, nowMs: number): Cookie | undefined {
  const [parsed] = parseSetCookie([text], { decodeValues: false, silent: true });
  if (parsed === undefined || parsed.name === '') return undefined;
  const { name, value, secure = false, maxAge, expires } = parsed;
  // Over http it would never be sent.
  if (secure && url.protocol !== 'https:') return undefined;
  const domain = parsed.domain?.toLowerCase().replace(/^\./, '') || url.hostname;
  if (!isWithin(domain, url.hostname)) return undefined;
  const path = parsed.path?.startsWith('/') ? parsed.path : defaultPath(url.pathname);
  // [RFC 6265 section 5.3] Max-Age wins
  const expiresAt = maxAge === undefined ? expires?.getTime() : nowMs + maxAge * 1000;
  return { name, value, origin: url.origin, domain, path, expiresAt };
}

/** [RFC 6265 section 5.1.4] */
export function isBelow(requested: string, path: string): boolean {
  if (!requested.startsWith(path)) return false;
  return requested.length === path.length || path.endsWith('/') || requested[path.length] === '/';
}

/** [RFC 6265 section 5.1.3] */
function isWithin(domain: string, host: string): boolean {
  return host === domain || (host.endsWith(`.${domain}`) && isIP(host) === 0);
}

/** [RFC 6265 section 5.1.4] up to the last slash, which stays only when it is the first one, too */
function defaultPath(pathname: string): string {
  return pathname.slice(0, Math.max(1, pathname.lastIndexOf('/')));
}
