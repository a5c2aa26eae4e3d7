/** Requests that came to somebody else's server: which of them are ours, and what they have to be like. */
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

/** What frameworks add to a request of Node. */
export type HostRequest = IncomingMessage & {
  /** The path and query before the framework took off what it had mounted us at. */
  readonly originalUrl?: string;
  /** What a parser of the framework made of the body. */
  readonly body?: unknown;
};

export interface HostRequestParts {
  readonly listener: HttpListenerConfig;
  /** What comes before our own paths, other than what the framework takes off; without a slash at the end. */
  readonly prefix: string;
  /** Whether it can be seen at which address of this machine a request came in. */
  readonly arrival: 'seen' | 'unseen';
  readonly http: Pick<HttpServer, 'handleOfHost'>;
  readonly servers: Pick<ServerList, 'isServed'>;
}

/** False: it is not ours, and neither the request nor the response was touched. */
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

/** The URL as it is at a listener of ours; undefined: nothing is served there. */
function servedUrlOf(
  request: HostRequest,
  { prefix, servers }: Pick<HostRequestParts, 'prefix' | 'servers'>,
): string | undefined {
  const url = ownUrlOf(request.url ?? '/', prefix);
  return url !== undefined && servers.isServed(request, pathOf(url)) ? url : undefined;
}

/** It is repeated to the client as a part of a URL. */
const PLAIN_PATH = /^(?:\/[\w\-.~!$&'()*+,;=:@%]+)*$/;

function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? '/';
}

/** Undefined: it does not begin with the prefix. The documents about a path have theirs in front of it. [RFC 9728 3.1] */
function ownUrlOf(url: string, prefix: string): string | undefined {
  if (prefix === '') return url;
  if (url.startsWith(`${WELL_KNOWN}${prefix}/`)) return WELL_KNOWN + url.slice(WELL_KNOWN.length + prefix.length);
  return url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : undefined;
}

/**
 * A bridge that asks nobody who they are is for this machine. Where it listens itself, nobody else reaches it; at somebody
 * else's server that has to be looked at.
 */
function refuseRemoteCaller(
  { socket }: IncomingMessage,
  { listener: { addresses, access }, arrival }: Pick<HostRequestParts, 'listener' | 'arrival'>,
): BridgeError | undefined {
  if (access.auth !== undefined || addresses.some(isExposed)) return undefined;
  if (arrival === 'unseen') return refuseAddress('it cannot be seen where the request came in');
  // A socket of the file system has none.
  const { localAddress } = socket;
  if (localAddress === undefined || isLoopback(localAddress.replace(/^::ffff:/i, ''))) return undefined;
  return refuseAddress('the request came in at another address of it');
}

function refuseAddress(why: string): BridgeError {
  return new BridgeError('ERR_HTTP_ADDRESS', `This bridge serves programs on this machine only, and ${why}.`);
}

/** Headers that decide whether a caller is admitted and to whom a session belongs. [RFC 9110 5.3] */
const ONCE = ['host', 'origin', 'authorization', 'content-type', SESSION_ID_HEADER];

/** Node takes the first of several, and a proxy before it may have looked at the last. Our own listener joins them. */
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

/** The request, with a body that can be read: its own, or one made of what a parser left behind. */
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
  // What a parser has made of a packed body is not packed any more, and has another length.
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
