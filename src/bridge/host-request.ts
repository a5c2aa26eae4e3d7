/**
 * Requests that arrived at the host application's server: which of them the bridge serves, and what they must satisfy.
 */
import { IncomingMessage, type ServerResponse } from 'node:http';
import type { HttpListenerConfig } from '../config/listener.ts';
import type { HttpServer } from '../downstream/listener/http-server.ts';
import { BridgeError } from '../errors.ts';
import { isLoopback } from '../http/addresses.ts';
import { WELL_KNOWN } from '../http/auth/protected-resource.ts';
import { isExposed } from '../http/server/listen-addresses.ts';
import { recordMount } from '../http/server/public-url.ts';
import { respondError } from '../http/server/respond.ts';
import { SESSION_ID_HEADER } from '../mcp/vocabulary/headers.ts';
import type { ServerList } from './server-list.ts';

/** A Node request with the members that frameworks add. */
export type HostRequest = IncomingMessage & {
  /** Path and query before the framework removed the path that the bridge is mounted at. */
  readonly originalUrl?: string;
  /** Body as parsed by the framework. */
  readonly body?: unknown;
};

export interface HostRequestParts {
  readonly listener: HttpListenerConfig;
  /** Path prefix of the bridge, other than what the framework removes; without a trailing slash. */
  readonly prefix: string;
  /** `seen` if the local address at which a request arrived can be determined. */
  readonly arrival: 'seen' | 'unseen';
  readonly http: Pick<HttpServer, 'handleOfHost'>;
  readonly servers: Pick<ServerList, 'isServed'>;
}

/**
 * Serves a request. False: the bridge serves nothing at its path, and neither the request nor the response was touched.
 */
export function handleOfHost(request: HostRequest, response: ServerResponse, parts: HostRequestParts): boolean {
  const { prefix, http } = parts;
  const url = servedUrlOf(request, parts);
  if (url === undefined) return false;
  const given = request.originalUrl ?? '';
  const above = given.endsWith(request.url ?? '/') ? given.slice(0, -(request.url ?? '/').length) : '';
  const taken = refuseRemoteCaller(request, parts) ?? refuseRepeated(request) ?? takeBody(request);
  if (taken instanceof BridgeError) {
    respondError(response, taken);
    return true;
  }
  taken.url = url;
  recordMount(taken, {
    prefix: PLAIN_PATH.test(above) ? above + prefix : prefix,
    scheme: 'encrypted' in request.socket ? 'https' : 'http',
  });
  http.handleOfHost(taken, response);
  return true;
}

export function isServedHere(request: HostRequest, parts: Pick<HostRequestParts, 'prefix' | 'servers'>): boolean {
  return servedUrlOf(request, parts) !== undefined;
}

/** Returns the URL as at a listener of our own; undefined: nothing is served there. */
function servedUrlOf(
  request: HostRequest,
  { prefix, servers }: Pick<HostRequestParts, 'prefix' | 'servers'>,
): string | undefined {
  const url = ownUrlOf(request.url ?? '/', prefix);
  return url !== undefined && servers.isServed(request, pathOf(url)) ? url : undefined;
}

/** Limits the prefix to plain paths, since it is sent back to the client as part of a URL. */
const PLAIN_PATH = /^(?:\/[\w\-.~!$&'()*+,;=:@%]+)*$/;

function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? '/';
}

/**
 * Removes the prefix from a URL; undefined: the URL does not have it. Metadata documents have their own path before the
 * prefix. [RFC 9728 3.1]
 */
function ownUrlOf(url: string, prefix: string): string | undefined {
  if (prefix === '') return url;
  if (url.startsWith(`${WELL_KNOWN}${prefix}/`)) return WELL_KNOWN + url.slice(WELL_KNOWN.length + prefix.length);
  return url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : undefined;
}

/**
 * Rejects callers from other machines if the bridge has no authentication. A listener of our own would be unreachable
 * for them; at the host's server this has to be checked for each request.
 */
function refuseRemoteCaller(
  { socket }: IncomingMessage,
  { listener: { addresses, access }, arrival }: Pick<HostRequestParts, 'listener' | 'arrival'>,
): BridgeError | undefined {
  if (access.auth !== undefined || addresses.some(isExposed)) return undefined;
  if (arrival === 'unseen') return refuseAddress('it cannot be seen where the request came in');
  // A Unix socket has no local address.
  const { localAddress } = socket;
  if (localAddress === undefined || isLoopback(localAddress.replace(/^::ffff:/i, ''))) return undefined;
  return refuseAddress('the request came in at another address of it');
}

function refuseAddress(why: string): BridgeError {
  return new BridgeError('ERR_HTTP_ADDRESS', `This bridge serves programs on this machine only, and ${why}.`);
}

/** Headers that decide whether a caller is admitted and to whom a session belongs. [RFC 9110 5.3] */
const ONCE = ['host', 'origin', 'authorization', 'content-type', SESSION_ID_HEADER];

/**
 * Rejects a request that repeats such a header: Node would use the first, and a proxy in front may have checked the
 * last. Our own listener joins the values instead.
 */
function refuseRepeated({ headersDistinct }: IncomingMessage): BridgeError | undefined {
  const repeated = ONCE.find((name) => (headersDistinct[name]?.length ?? 0) > 1);
  if (repeated === undefined) return undefined;
  return new BridgeError(
    'ERR_HTTP_HEADER',
    `The header ${repeated} may occur only once; this request has it several times.`,
  );
}

const NOT_READ = new BridgeError(
  'ERR_HTTP_BODY',
  'The body of this request was read before mcp-portage got the request, and is not in `request.body`. Mount the bridge before the body parser, or put the parsed body into `request.body`.',
);

/** Returns the request with a readable body: its own, or one restored from what a parser left behind. */
function takeBody(request: HostRequest): IncomingMessage | BridgeError {
  if (request.method !== 'POST' || !(request.readableDidRead || request.readableEnded)) return request;
  const bytes = bytesOf(request.body);
  return bytes === undefined ? NOT_READ : withBody(request, bytes);
}

function bytesOf(body: unknown): Buffer | undefined {
  if (typeof body === 'string') return Buffer.from(body);
  if (Buffer.isBuffer(body)) return body;
  if (body instanceof Uint8Array) return Buffer.from(body);
  return typeof body === 'object' && body !== null ? Buffer.from(JSON.stringify(body)) : undefined;
}

function withBody(request: IncomingMessage, bytes: Buffer): IncomingMessage {
  const copy = new IncomingMessage(request.socket);
  // A body that a parser has processed is decompressed and has another length.
  const { 'content-encoding': _packing, 'content-length': _length, ...headers } = request.headers;
  copy.httpVersion = request.httpVersion;
  copy.httpVersionMajor = request.httpVersionMajor;
  copy.httpVersionMinor = request.httpVersionMinor;
  copy.method = request.method ?? 'POST';
  copy.rawHeaders = request.rawHeaders;
  copy.headers = headers;
  copy.complete = true;
  copy.push(bytes);
  copy.push(null);
  return copy;
}
