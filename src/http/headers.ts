/** What the bridge reads of the headers of HTTP, and which of a client's headers it passes on. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { ForwardedHeader } from '../config/remote.ts';
import type { TraceContext } from '../mcp/vocabulary/meta.ts';

// ---- Content-Type, Accept and Content-Encoding

export const JSON_TYPE = 'application/json';
export const EVENT_STREAM_TYPE = 'text/event-stream';

/** A header that came more than once is joined, and each part has to say so: whoever reads one of them reads JSON. */
export function isJson(contentType: string | undefined): boolean {
  if (contentType === JSON_TYPE) return true;
  return contentType?.split(',').every((part) => mediaType(part) === JSON_TYPE) ?? false;
}

/**
 * How a client wants its answers.
 * - `json`: as JSON; an event stream is acceptable as well.
 * - `only-json`: as JSON, whatever else is said before the answer.
 * - `stream`: as an event stream.
 * - `neither`: the client reads no type that a bridge sends.
 */
export type AnswerType = 'json' | 'only-json' | 'stream' | 'neither';

const USUAL = 'application/json, text/event-stream';

/**
 * Reads the Accept header of a request. An absent header accepts everything. [RFC 9110 12.5.1] With the same weight for
 * both types the server may choose; taking their order as the client's wish lets a client ask for a stream.
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

/** Whether a client reads event streams, by its Accept header. */
export function acceptsStream(accept: string | undefined): boolean {
  const type = readAccept(accept);
  return type === 'json' || type === 'stream';
}

interface MediaRange {
  readonly type: string;
  /** The quality value, from 0, which is not acceptable, to 1. */
  readonly weight: number;
  readonly index: number;
}

const NO_RANGE: MediaRange = { type: '', weight: 0, index: -1 };

function parseRange(text: string, index: number): MediaRange {
  const weight = /;\s*q=([\d.]+)/i.exec(text)?.[1];
  return { type: mediaType(text), weight: weight === undefined ? 1 : Number(weight) || 0, index };
}

/** What the header says about a type: the range that names it, else its group, else everything. */
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
 * Names under which a body is sent as it is. Some senders leave the header empty, or take it for that of the character
 * set; were such a body packed after all, it would be read as what it is not and refused for that.
 */
const UNPACKED: ReadonlySet<string> = new Set(['', 'identity', 'utf-8', 'utf8']);

/** What has to be undone before a body can be read, by its Content-Encoding; undefined: nothing. [RFC 9110 8.4] */
export function packingOf(contentEncoding: string | undefined): string | undefined {
  return contentEncoding === undefined || UNPACKED.has(contentEncoding.toLowerCase()) ? undefined : contentEncoding;
}

/**
 * The mark of the bridge that sends a request: a random text for each run, or one that all replicas derive from their key. A
 * bridge that gets its own mark has been given its own URL as that of a server, and would call itself without end.
 */
export const BRIDGE_MARK_HEADER = 'x-mcp-portage-bridge';

/**
 * Stands among the headers of a client's request that pass to a server, where callers have tokens of their own there, and
 * tells whose request it is. Like all headers of MCP it cannot be forwarded, so it is never sent.
 */
export const CALLER_HEADER = 'mcp-portage-caller';

// ---- Which header names may come from outside. The transports alone write the headers of HTTP framing and of MCP;
// configuration may add others, and a client's inbound request far fewer.

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

/** May the user set this header for every request? */
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

// ---- Traces

/** What the headers of a client's request say of its trace; undefined: nothing. */
export function traceContextOf({ traceparent, tracestate, baggage }: IncomingHttpHeaders): TraceContext | undefined {
  if (traceparent === undefined && baggage === undefined) return undefined;
  return { traceparent: textOf(traceparent), tracestate: textOf(tracestate), baggage: textOf(baggage) };
}

/** A header that came several times counts as one list, as both of the specifications say. */
function textOf(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === 'object' ? header.join(',') : header;
}
