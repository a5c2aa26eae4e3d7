/** The HTTP headers that the bridge reads, and the rules for forwarding a client's headers. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { ForwardedHeader } from '../config/remote.ts';
import type { TraceContext } from '../mcp/vocabulary/meta.ts';

// ---- Content-Type, Accept and Content-Encoding

export const JSON_TYPE = 'application/json';
export const EVENT_STREAM_TYPE = 'text/event-stream';

/** Returns true if every part of a repeated header, which Node joins, names JSON, so that all readers agree. */
export function isJson(contentType: string | undefined): boolean {
  if (contentType === JSON_TYPE) return true;
  return contentType?.split(',').every((part) => mediaType(part) === JSON_TYPE) ?? false;
}

/**
 * The response format that a client asks for. `json`: JSON; an event stream is also acceptable. `only-json`: JSON, even
 * if other messages precede the response. `stream`: an event stream. `neither`: the client accepts no type that the
 * bridge sends.
 */
export type AnswerType = 'json' | 'only-json' | 'stream' | 'neither';

const USUAL = 'application/json, text/event-stream';

/**
 * Reads the Accept header of a request. A missing header accepts everything. [RFC 9110 12.5.1] If both types have the
 * same weight, the server may choose; treating the first one as preferred lets a client ask for a stream.
 */
export function readAccept(accept: string | undefined): AnswerType {
  if (accept === undefined || accept === USUAL) return 'json';
  const ranges = accept.split(',').map(parseRange);
  const json = mostSpecific(ranges, JSON_TYPE);
  const stream = mostSpecific(ranges, EVENT_STREAM_TYPE);
  if (stream.weight === 0) return json.weight === 0 ? 'neither' : 'only-json';
  const isStreamFirst = stream.weight > json.weight || (stream.weight === json.weight && stream.index < json.index);
  return isStreamFirst ? 'stream' : 'json';
}

/** Returns true if the client's Accept header allows event streams. */
export function acceptsStream(accept: string | undefined): boolean {
  const type = readAccept(accept);
  return type === 'json' || type === 'stream';
}

interface MediaRange {
  readonly type: string;
  /** The quality value, from 0 (not acceptable) to 1. */
  readonly weight: number;
  readonly index: number;
}

const NO_RANGE: MediaRange = { type: '', weight: 0, index: -1 };

function parseRange(text: string, index: number): MediaRange {
  const weight = /;\s*q=([\d.]+)/i.exec(text)?.[1];
  return { type: mediaType(text), weight: weight === undefined ? 1 : Number(weight) || 0, index };
}

/** Returns the most specific range for a type: the type itself, its group, or everything. */
function mostSpecific(ranges: readonly MediaRange[], type: string): MediaRange {
  const group = type.replace(/\/.*/, '/*');
  for (const name of [type, group, '*/*']) {
    const range = ranges.find((candidate) => candidate.type === name);
    if (range !== undefined) return range;
  }
  return NO_RANGE;
}

function mediaType(value: string): string {
  const end = value.indexOf(';');
  return (end < 0 ? value : value.slice(0, end)).trim().toLowerCase();
}

/**
 * Content-Encoding values of a body that is not encoded. Some senders leave the header empty or put a character set
 * there. If such a body is compressed after all, it is rejected as invalid JSON.
 */
const UNPACKED: ReadonlySet<string> = new Set(['', 'identity', 'utf-8', 'utf8']);

/** Returns the encoding that must be undone before the body can be read; undefined if there is none. [RFC 9110 8.4] */
export function packingOf(contentEncoding: string | undefined): string | undefined {
  return contentEncoding === undefined || UNPACKED.has(contentEncoding.toLowerCase()) ? undefined : contentEncoding;
}

/**
 * The mark of the bridge that sends a request: random for each run, or derived by all replicas from their key. A bridge
 * that receives its own mark was configured with its own URL as a server's, and would call itself endlessly.
 */
export const BRIDGE_MARK_HEADER = 'x-mcp-portage-bridge';

/**
 * Stands among the headers of a client's request that pass to a server, where callers have tokens of their own there, and
 * tells whose request it is. Like all headers of MCP it cannot be forwarded, so it is never sent.
 */
export const CALLER_HEADER = 'mcp-portage-caller';

// ---- Which header names may come from outside. The transports alone write the headers of HTTP framing and of MCP;
// configuration may add others, and a client's inbound request far fewer.

/** Headers about a single connection, which are never forwarded. [RFC 9110 7.6.1] */
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

/** Headers about the bridge's own connection or about the body, which the bridge writes. */
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

const AUTHORIZATION = 'authorization';

/** A client authorizes itself to the bridge; what it shows is for nobody else. */
const NEVER_FORWARDED: ReadonlySet<string> = new Set([
  AUTHORIZATION,
  'dpop',
  'cookie',
  'host',
  'origin',
  'x-forwarded-for',
  'forwarded',
]);

/** Returns true if the user may set this header for every request. */
export function isConfigurable(name: string): boolean {
  return !OWN.has(name) && !name.startsWith(MCP_PREFIX);
}

/**
 * May this header of a client's request go on to the server, once the user named it? What it shows to the bridge is for
 * nobody else. `Authorization` may still become another header, and another may become `Authorization`, where the user says
 * both names.
 */
export function isForwardable({ name, sentAs }: ForwardedHeader): boolean {
  return [name, sentAs].every((either) => isPlain(either) || (either === AUTHORIZATION && name !== sentAs));
}

function isPlain(name: string): boolean {
  return isConfigurable(name) && !NEVER_FORWARDED.has(name);
}

/** May a header that was forwarded have this name in a request to the server? */
export function isForwardTarget(name: string): boolean {
  return isPlain(name) || name === AUTHORIZATION;
}

/** The headers of a client's request that go on to the server, as they are called there; undefined: none. */
export function forwardedHeaders(
  request: IncomingMessage,
  passed: readonly ForwardedHeader[],
): Readonly<Record<string, string>> | undefined {
  let forwarded: Record<string, string> | undefined;
  for (const header of passed) {
    const value = request.headers[header.name];
    if (typeof value !== 'string' || !isForwardable(header)) continue;
    forwarded ??= {};
    forwarded[header.sentAs] = value;
  }
  return forwarded;
}

/** A copy of the headers whose name (in lower case) is allowed. */
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

// ---- Trace context

/** Reads the trace context of a client's request; undefined if it has none. */
export function traceContextOf({ traceparent, tracestate, baggage }: IncomingHttpHeaders): TraceContext | undefined {
  if (traceparent === undefined && baggage === undefined) return undefined;
  return { traceparent: textOf(traceparent), tracestate: textOf(tracestate), baggage: textOf(baggage) };
}

/** Joins a repeated header to one list, as both specifications define. */
function textOf(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === 'object' ? header.join(',') : header;
}
