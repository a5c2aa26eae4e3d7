import { isIP } from 'node:net';
import { parseSetCookie } from 'set-cookie-parser';

/** No load balancer needs more. Of a server that sets ever more cookies, the first ones are kept. */
const MAX_COOKIES = 50;
const MAX_COOKIE_LENGTH = 4096;

/**
 * The cookies of one upstream session: load balancers use them to lead each request of a session to the same server.
 * In memory only, and each goes back to nobody but the origin that set it. So it does not matter which domains are public
 * suffixes: a list of those takes longer to load than most of the rest of a start.
 */
export class SessionCookies {
  readonly #now: () => number;
  /** Keyed by name, domain and path, in the order in which they came. */
  readonly #cookies = new Map<string, Cookie>();

  /** Expiry is by the calendar, so the clock is, too. */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** `set-cookie` of a response from `url`. What cannot be parsed or belongs elsewhere is ignored. */
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

  /** For the `cookie` header; undefined when there is none. */
  headerFor(url: URL): string | undefined {
    if (this.#cookies.size === 0) return undefined;
    this.#forgetExpired();
    const fitting = [...this.#cookies.values()].filter(
      ({ origin, path }) => origin === url.origin && isBelow(url.pathname, path),
    );
    if (fitting.length === 0) return undefined;
    // [RFC 6265 section 5.4] longer paths first, else in the order in which they came
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

// ---- A cookie as a client takes it from a server. Cites RFC 6265, which says what servers in the field rely on.

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
