import { CookieJar } from 'tough-cookie';

const MAX_HOPS = 10;

/** A browser without a window, whose user agrees to everything: goes where it is sent, and keeps cookies. */
export class Browser {
  jar = new CookieJar();

  /**
   * @param {string | URL} page
   * @returns {Promise<{ url: URL, status: number, headers: Headers, text: string }>} where it ends
   */
  async visit(page) {
    let url = new URL(page);
    for (let hops = 0; hops < MAX_HOPS; hops += 1) {
      const response = await this.open(url);
      const text = await response.text();
      const { status, headers } = response;
      const location = headers.get('location');
      if (location === null) return { url, status, headers, text };
      url = new URL(location, url);
    }
    throw new Error(`more than ${MAX_HOPS} redirects`);
  }

  /**
   * Goes nowhere else.
   * @param {string | URL} page
   * @param {RequestInit} [init]
   * @returns {Promise<Response>}
   */
  async open(page, init = {}) {
    const { href } = new URL(page);
    const cookie = await this.jar.getCookieString(href);
    const headers = { ...init.headers, ...(cookie !== '' && { cookie }) };
    const response = await fetch(href, { ...init, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) await this.jar.setCookie(line, href);
    return response;
  }
}
