import { Cookie, CookieJar } from 'tough-cookie';

/** More are no stickiness but a leak; a server that sets them over and over keeps the first ones. */
const MAX_COOKIES = 50;
const MAX_COOKIE_LENGTH = 4096;

/**
 * The cookies of one upstream session: load balancers use them to lead each request of a session to the same server.
 * In memory only, and only for the server's own origin: nothing else is ever requested with them.
 */
export class SessionCookies {
  readonly #jar = new CookieJar();
  readonly #keys = new Set<string>();

  /** `set-cookie` of a response from `url`. What cannot be parsed or belongs elsewhere is ignored. */
  store(url: URL, setCookies: readonly string[] | undefined): void {
    if (setCookies === undefined) return;
    for (const text of setCookies) {
      const cookie = text.length <= MAX_COOKIE_LENGTH ? Cookie.parse(text) : undefined;
      if (cookie === undefined) continue;
      const key = `${cookie.key};${cookie.domain ?? ''};${cookie.path ?? ''}`;
      if (this.#keys.size >= MAX_COOKIES && !this.#keys.has(key)) continue;
      this.#keys.add(key);
      this.#jar.setCookieSync(cookie, url.href, { ignoreError: true });
    }
  }

  /** For the `cookie` header; undefined when there is none. */
  headerFor(url: URL): string | undefined {
    if (this.#keys.size === 0) return undefined;
    const header = this.#jar.getCookieStringSync(url.href);
    return header === '' ? undefined : header;
  }
}
