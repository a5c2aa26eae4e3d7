import { isIP } from 'node:net';
import { parseSetCookie } from 'set-cookie-parser';

/** Load balancers need fewer cookies than this. If a server sets more, the first ones are kept. */
const MAX_COOKIES = 50;
const MAX_COOKIE_LENGTH = 4096;

/**
 * The cookies of one upstream session: load balancers use them to route all requests of a session to the same server.
 * Cookies are kept in memory only, and each is sent only to the origin that set it. It does not matter then which
 * domains are public suffixes; loading a list of those would take longer than most other parts of the startup.
 */
export class SessionCookies {
  readonly #now: () => number;
  /** Keyed by name, domain and path, in the order of arrival. */
  readonly #cookies = new Map<string, Cookie>();

  /** Cookies expire by calendar time, so `now` must return milliseconds since 1970. */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /**
   * Stores the `set-cookie` headers of a response from `url`. Ignores cookies that cannot be parsed or belong to
   * another host.
   */
  store(url: URL, setCookies: readonly string[] | undefined): void {
    if (setCookies === undefined) return;
    this.#forgetExpired();
    for (const text of setCookies) {
      const cookie = text.length <= MAX_COOKIE_LENGTH ? parseCookie(text, url, this.#now()) : undefined;
      if (cookie === undefined) continue;
      const key = `${cookie.name};${cookie.domain};${cookie.path}`;
      if (this.#isExpired(cookie)) this.#cookies.delete(key);
      else if (this.#cookies.size < MAX_COOKIES || this.#cookies.has(key)) this.#cookies.set(key, cookie);
    }
  }

  /** Returns the value of the `cookie` header; undefined if no cookie matches. */
  headerFor(url: URL): string | undefined {
    if (this.#cookies.size === 0) return undefined;
    this.#forgetExpired();
    const fitting = [...this.#cookies.values()].filter(
      ({ origin, path }) => origin === url.origin && isBelow(url.pathname, path),
    );
    if (fitting.length === 0) return undefined;
    // [RFC 6265 section 5.4] Longer paths come first; otherwise the order of arrival counts.
    fitting.sort((one, other) => other.path.length - one.path.length);
    return fitting.map(({ name, value }) => `${name}=${value}`).join('; ');
  }

  #forgetExpired(): void {
    for (const [key, cookie] of this.#cookies) if (this.#isExpired(cookie)) this.#cookies.delete(key);
  }

  #isExpired({ expiresAt }: Cookie): boolean {
    return expiresAt !== undefined && expiresAt <= this.#now();
  }
}

// ---- Parsing cookies. The citations are of RFC 6265, which describes what servers rely on in practice.

export interface Cookie {
  readonly name: string;
  readonly value: string;
  /** The origin that set the cookie. */
  readonly origin: string;
  readonly domain: string;
  readonly path: string;
  /** Milliseconds since 1970; undefined if the cookie lasts as long as the session. */
  readonly expiresAt: number | undefined;
}

/** Returns undefined for text that is not a cookie, and for a cookie that `url` cannot set. */
export function parseCookie(text: string, url: URL, nowMs: number): Cookie | undefined {
  const [parsed] = parseSetCookie([text], { decodeValues: false, silent: true });
  if (parsed === undefined || parsed.name === '') return undefined;
  const { name, value, secure = false, maxAge, expires } = parsed;
  // A secure cookie would never be sent over http.
  if (secure && url.protocol !== 'https:') return undefined;
  const domain = parsed.domain?.toLowerCase().replace(/^\./, '') || url.hostname;
  if (!isWithin(domain, url.hostname)) return undefined;
  const path = parsed.path?.startsWith('/') ? parsed.path : defaultPath(url.pathname);
  // [RFC 6265 section 5.3] Max-Age takes precedence over Expires.
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

/** [RFC 6265 section 5.1.4] The path up to its last slash, which is kept only if it is the first character. */
function defaultPath(pathname: string): string {
  return pathname.slice(0, Math.max(1, pathname.lastIndexOf('/')));
}
