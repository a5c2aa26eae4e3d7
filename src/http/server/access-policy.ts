import type { IncomingMessage, ServerResponse } from 'node:http';
import { BridgeError, OWN_SERVER } from '../../errors.ts';
import {
  LAST_EVENT_ID_HEADER,
  METHOD_HEADER,
  NAME_HEADER,
  PROTOCOL_VERSION_HEADER,
  SESSION_ID_HEADER_OUT,
} from '../../mcp/vocabulary/headers.ts';
import { BRIDGE_MARK_HEADER } from '../headers.ts';

export interface AccessOptions {
  /**
   * The addresses on which the server listens. `any`: every Host is accepted, as on a local socket, to which no host
   * name leads.
   */
  readonly addresses: readonly string[] | 'any';
  /** Additional Host names for the server, with or without a port. */
  readonly allowHosts: readonly string[];
  /** Web origins whose pages may call the server. */
  readonly allowOrigins: readonly string[];
  /**
   * Marks of requests that this bridge, or another of its replicas, sends to servers; undefined if they are not
   * checked.
   */
  readonly ownMarks?: () => readonly string[];
}

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];
const WILDCARD_ADDRESSES = ['0.0.0.0', '::', '[::]'];
/**
 * Sites of requests from the server's own pages, and of requests by the user (address bar, bookmark). `same-site` is no
 * safer than `cross-site`, because all ports of localhost are the same site. All other values count as another origin.
 */
const OWN_SITES = ['same-origin', 'none'];

/**
 * Accepts or rejects requests by Host, Origin and Sec-Fetch-Site before any other check. A web page can reach a server
 * on this machine if its own name resolves to 127.0.0.1 (DNS rebinding); its Host or Origin reveals it. [spec
 * 2025-11-25 transports#security-warning]
 *
 * A page can also use the server's address for an image, a script, a frame or a link. Browsers send no Origin with such
 * requests, but Sec-Fetch-Site shows where they come from. [W3C Fetch Metadata 2.3]
 */
export class AccessPolicy {
  readonly #hosts: ReadonlySet<string> | undefined;
  readonly #origins: ReadonlySet<string>;
  readonly #ownMarks: () => readonly string[];
  /** The Host most recently accepted; clients send the same one with every request. */
  #latestHost: string | undefined;

  constructor(options: AccessOptions) {
    // On a wildcard address the names that clients use are unknown unless the user lists them.
    const { addresses, allowHosts } = options;
    const isAnyTaken =
      addresses === 'any' || (addresses.some((host) => WILDCARD_ADDRESSES.includes(host)) && allowHosts.length === 0);
    this.#hosts = isAnyTaken
      ? undefined
      : new Set([...LOOPBACK_NAMES, ...addresses.map(bracketed), ...allowHosts].map((host) => host.toLowerCase()));
    this.#ownMarks = options.ownMarks ?? (() => []);
    this.#origins = new Set(options.allowOrigins.map((origin) => origin.toLowerCase()));
  }

  /** Returns undefined if the request is allowed. */
  check(request: IncomingMessage): BridgeError | undefined {
    const { host, origin, 'sec-fetch-site': site, [BRIDGE_MARK_HEADER]: mark } = request.headers;
    if (mark !== undefined && this.#ownMarks().some((own) => own === mark)) return OWN_SERVER;
    if (!this.#isKnownHost(host)) {
      return new BridgeError(
        'ERR_HTTP_HOST',
        `The Host header ${quoted(host)} is not a name that this server answers to; allow it with --allow-host.`,
      );
    }
    const isOwn = site === undefined ? isSameOrigin(origin, host) : OWN_SITES.includes(site.toLowerCase());
    if (origin !== undefined && !this.#isNamed(origin) && !(isOwn && isOfThisMachine(origin))) {
      return new BridgeError(
        'ERR_HTTP_ORIGIN',
        `The web origin ${quoted(origin)} may not call this server; allow it with --allow-origin.`,
      );
    }
    if (origin === undefined && !isOwn) {
      return new BridgeError(
        'ERR_HTTP_ORIGIN',
        `A page of another web origin may not call this server (Sec-Fetch-Site is ${quoted(site)}); pages that may are named with --allow-origin and call with fetch. To look at it in a browser, type its address.`,
      );
    }
    return undefined;
  }

  /** Writes CORS headers for an origin that --allow-origin lists; never a wildcard. */
  writeCors(request: IncomingMessage, response: ServerResponse): void {
    const { origin } = request.headers;
    if (origin === undefined || !this.#isNamed(origin)) return;
    response.setHeader('Access-Control-Allow-Origin', origin);
    response.setHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS);
    response.setHeader('Vary', 'Origin');
    if (request.method !== 'OPTIONS') return;
    const asked = request.headers['access-control-request-headers'];
    response.setHeader('Access-Control-Allow-Methods', 'GET, POST, DELETE, OPTIONS');
    response.setHeader('Access-Control-Allow-Headers', typeof asked === 'string' ? asked : DEFAULT_CORS_HEADERS);
    response.setHeader('Access-Control-Max-Age', '7200');
  }

  #isKnownHost(host: string | undefined): boolean {
    if (this.#hosts === undefined) return true;
    if (host === undefined) return false;
    if (host === this.#latestHost) return true;
    const lower = host.toLowerCase();
    const isKnown = this.#hosts.has(lower) || this.#hosts.has(withoutPort(lower));
    if (isKnown) this.#latestHost = host;
    return isKnown;
  }

  #isNamed(origin: string): boolean {
    return this.#origins.has(origin.toLowerCase());
  }
}

/**
 * Only pages of this server itself, and programs that send its own address as their Origin, need not be listed. A page
 * on another port must be listed, because it may be anyone's.
 */
function isOfThisMachine(origin: string): boolean {
  const authority = authorityOf(origin);
  return authority !== undefined && LOOPBACK_NAMES.includes(withoutPort(authority));
}

/**
 * Replaces Sec-Fetch-Site if it is missing: old browsers never send it, and Chromium does not send it for a WebSocket,
 * which a page of any origin may read. Programs send no Origin, or that of the URL they call.
 */
function isSameOrigin(origin: string | undefined, host: string | undefined): boolean {
  return origin === undefined || (host !== undefined && authorityOf(origin) === host.toLowerCase());
}

/** Returns the host and port of a web origin. */
function authorityOf(origin: string): string | undefined {
  return /^https?:\/\/([^/]+)$/.exec(origin.toLowerCase())?.[1];
}

const EXPOSED_HEADERS = `${SESSION_ID_HEADER_OUT}, WWW-Authenticate, Deprecation, Sunset, Link`;
const DEFAULT_CORS_HEADERS = [
  'Content-Type',
  'Authorization',
  SESSION_ID_HEADER_OUT,
  PROTOCOL_VERSION_HEADER,
  METHOD_HEADER,
  NAME_HEADER,
  LAST_EVENT_ID_HEADER,
].join(', ');

function withoutPort(host: string): string {
  return host.replace(/:\d+$/, '');
}

function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

/** Quotes a peer's value for a message, truncated and without control characters. */
function quoted(value: string | undefined): string {
  return value === undefined ? '(absent)' : JSON.stringify(value.slice(0, 100));
}
