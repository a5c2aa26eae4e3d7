/**
 * Which header names may come from outside. The transports alone write the headers of HTTP framing and of MCP;
 * configuration may add others, and a client's inbound request far fewer.
 */

import type { IncomingMessage } from 'node:http';

/** Headers about one connection, which nobody passes on. [RFC 9110 7.6.1] */
export const ABOUT_CONNECTION: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
];

/** What is about our connection, or describes the body, which is ours. */
const OWN: ReadonlySet<string> = new Set([
  ...ABOUT_CONNECTION,
  'content-length',
  'content-type',
  'content-encoding',
  'accept',
  'accept-encoding',
  'last-event-id',
]);

const MCP_PREFIX = 'mcp-';

/** A client authorizes itself to the bridge; what it shows is for nobody else. */
const NEVER_FORWARDED: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'host',
  'origin',
  'x-forwarded-for',
  'forwarded',
]);

/** May the user set this header for every request? */
export function isConfigurable(name: string): boolean {
  return !OWN.has(name) && !name.startsWith(MCP_PREFIX);
}

/** May this header of a client's request go on to the server, once the user named it? */
export function isForwardable(name: string): boolean {
  return isConfigurable(name) && !NEVER_FORWARDED.has(name);
}

/** The headers of a client's request that go on to the server; undefined: none. `names` are in lower case. */
export function forwardedHeaders(
  request: IncomingMessage,
  names: readonly string[],
): Readonly<Record<string, string>> | undefined {
  let forwarded: Record<string, string> | undefined;
  for (const name of names) {
    const value = request.headers[name];
    if (typeof value !== 'string' || !isForwardable(name)) continue;
    forwarded ??= {};
    forwarded[name] = value;
  }
  return forwarded;
}

/** A copy of the entries whose name (lower case) passes. */
export function pickHeaders(
  headers: Iterable<readonly [string, string]>,
  isAllowed: (name: string) => boolean,
): Readonly<Record<string, string>> {
  const picked: Record<string, string> = {};
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    if (isAllowed(lower)) picked[lower] = value;
  }
  return picked;
}
