import { type Cookie, isBelow, parseCookie } from './parse-cookie.ts';

/** More are no stickiness but a leak; a server that sets them over and over keeps the first ones. */
const MAX_COOKIES = 50;
const MAX_COOKIE_LENGTH = 4096;

/**
 * The cookies of one upstream session: load balancers use them to lead each request of a session to the same server.
 * In memory only, and each goes back to nobody but the origin that set it. So it does not matter which domains are public
 * suffixes: a list of those takes longer to load than most of the rest of a start.
 */
export class SessionCookies {
  readonly #now: () => number;
  /** By what makes two of them the same, in the order in which they came. */
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
