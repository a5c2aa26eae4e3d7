/** A `set-cookie` header as a client reads it. Cites RFC 6265, which says what servers in the field rely on. */
import { isIP } from 'node:net';

export interface Cookie {
  readonly name: string;
  readonly value: string;
  /** Who set it. */
  readonly origin: string;
  readonly domain: string;
  readonly path: string;
  /** In milliseconds since 1970; undefined: it lasts as long as the session. */
  readonly expiresAt: number | undefined;
}

/** Undefined for what is no cookie, or none for `url`. */
export function parseCookie(text: string, url: URL, nowMs: number): Cookie | undefined {
  const [pair = '', ...attributes] = text.split(';');
  const [name, value] = splitAt(pair);
  if (name === '' || value === undefined) return undefined;
  const { isSecure, domain = url.hostname, path = defaultPath(url.pathname), ...ends } = readAttributes(attributes);
  // Over http it would never be sent.
  if (isSecure && url.protocol !== 'https:') return undefined;
  if (!isWithin(domain, url.hostname)) return undefined;
  // [RFC 6265 section 5.3] Max-Age wins
  const expiresAt = ends.maxAgeSeconds === undefined ? ends.expiresAt : nowMs + ends.maxAgeSeconds * 1000;
  return { name, value, origin: url.origin, domain, path, expiresAt };
}

interface Attributes {
  isSecure: boolean;
  domain?: string | undefined;
  path?: string | undefined;
  maxAgeSeconds?: number;
  expiresAt?: number;
}

/** [RFC 6265 section 5.2] the last one of a name counts, and what cannot be read was not said */
function readAttributes(attributes: readonly string[]): Attributes {
  const read: Attributes = { isSecure: false };
  for (const [name, value = ''] of attributes.map(splitAt)) {
    switch (name.toLowerCase()) {
      case 'secure':
        read.isSecure = true;
        break;
      case 'domain':
        if (value !== '') read.domain = value.toLowerCase().replace(/^\./, '');
        break;
      case 'path':
        read.path = value.startsWith('/') ? value : undefined;
        break;
      case 'max-age':
        if (/^-?\d+$/.test(value)) read.maxAgeSeconds = Number(value);
        break;
      case 'expires':
        if (!Number.isNaN(Date.parse(value))) read.expiresAt = Date.parse(value);
    }
  }
  return read;
}

/** [RFC 6265 section 5.1.4] */
export function isBelow(requested: string, path: string): boolean {
  if (!requested.startsWith(path)) return false;
  return requested.length === path.length || path.endsWith('/') || requested[path.length] === '/';
}

function splitAt(text: string): [name: string, value: string | undefined] {
  const equals = text.indexOf('=');
  return equals === -1 ? [text.trim(), undefined] : [text.slice(0, equals).trim(), text.slice(equals + 1).trim()];
}

/** [RFC 6265 section 5.1.3] */
function isWithin(domain: string, host: string): boolean {
  return host === domain || (host.endsWith(`.${domain}`) && isIP(host) === 0);
}

/** [RFC 6265 section 5.1.4] up to the last slash, which stays only when it is the first one, too */
function defaultPath(pathname: string): string {
  return pathname.slice(0, Math.max(1, pathname.lastIndexOf('/')));
}
