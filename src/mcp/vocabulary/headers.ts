/** The HTTP headers that MCP defines: their names, and how they carry values of the body. */
import { isUtf8 } from 'node:buffer';

// ---- Names, in the two spellings Node wants: lower case to read, canonical to write.

export const SESSION_ID_HEADER = 'mcp-session-id';
export const SESSION_ID_HEADER_OUT = 'Mcp-Session-Id';
export const PROTOCOL_VERSION_HEADER = 'mcp-protocol-version';
export const PROTOCOL_VERSION_HEADER_OUT = 'MCP-Protocol-Version';
export const LAST_EVENT_ID_HEADER = 'last-event-id';
export const LAST_EVENT_ID_HEADER_OUT = 'Last-Event-ID';
/** [spec 2026-07-28 transports/streamable-http#standard-request-headers] */
export const METHOD_HEADER = 'mcp-method';
export const METHOD_HEADER_OUT = 'Mcp-Method';
export const NAME_HEADER = 'mcp-name';
export const NAME_HEADER_OUT = 'Mcp-Name';
/** Followed by the name that a tool's schema gives. [spec 2026-07-28 transports/streamable-http#schema-extension] */
export const PARAM_HEADER_PREFIX = 'mcp-param-';
export const PARAM_HEADER_PREFIX_OUT = 'Mcp-Param-';

const SINGLE = [PROTOCOL_VERSION_HEADER, SESSION_ID_HEADER];

/**
 * A proxy that adds a header which is there already sends it twice, and Node joins the copies: `2025-11-25, 2025-11-25`.
 * Equal copies become one value. Different ones stay joined, and no reader takes that for a value.
 */
export function mergeEqualCopies(headers: Record<string, string | string[] | undefined>): void {
  for (const name of SINGLE) {
    const value = headers[name];
    if (typeof value !== 'string' || !value.includes(',')) continue;
    const [first, ...others] = value.split(',').map(trimHeaderValue);
    if (others.every((other) => other === first)) headers[name] = first;
  }
}

// ---- Values of the body as values of headers, and back.
// [spec 2026-07-28 transports/streamable-http#value-encoding]

/** Names as Node gives them: lower case. A header that came as a list cannot mirror one value. */
export type HeaderMap = Readonly<Record<string, string | readonly string[] | undefined>>;

/** A header to be written: name, encoded value. */
export type HeaderLine = readonly [name: string, value: string];

const PREFIX = '=?base64?';
const SUFFIX = '?=';

/** A TAB is legal in a header and still encoded: many stacks trim or fold it. */
const PLAIN = /^[\x20-\x7e]+$/;
/** What may arrive: `field-vchar`, SP and HTAB, without the obsolete bytes above ASCII. */
const FIELD_VALUE = /^[\t\x20-\x7e]*$/;
const LONE_SURROGATE = /\p{Surrogate}/u;
/** Base64 with padding, as the encoder writes it. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** In place of a value that no header can have; an encoded value is never empty. */
export const INEXPRESSIBLE = '';
/** The fault of text that cannot be encoded. */
export const NO_UNICODE = 'is no Unicode text: it has half of a surrogate pair, which no header can repeat';

/** Servers and proxies cut or refuse longer lines. */
export const MAX_HEADER_BYTES = 8 * 1024;
/** Limits all headers together that mirror one body; Node's own limit for a whole head is 16 KiB. */
export const MAX_HEADERS_BYTES = 16 * 1024;
export const MAX_HEADERS = 64;

/**
 * Never holds a byte that could end the header, whatever the text. An empty one is encoded: some stacks drop it.
 * `INEXPRESSIBLE` where there is no UTF-8 to encode: with a replacement character in it, the header would name something
 * else than the body.
 */
export function encodeHeaderValue(text: string): string {
  const isPlain = PLAIN.test(text) && !text.startsWith(' ') && !text.endsWith(' ') && !isMarked(text);
  if (isPlain) return text;
  return isExpressible(text) ? `${PREFIX}${Buffer.from(text, 'utf8').toString('base64')}${SUFFIX}` : INEXPRESSIBLE;
}

/** JSON can spell half of a surrogate pair, which is no character. */
export function isExpressible(text: string): boolean {
  return !LONE_SURROGATE.test(text);
}

/** The markers may share the question mark: `=?base64?=` counts as well. */
function isMarked(text: string): boolean {
  return text.startsWith(PREFIX) && text.endsWith(SUFFIX);
}

/** Undefined: not a value that `encodeHeaderValue` or a sloppier encoder could have meant. */
export function decodeHeaderValue(value: string): string | undefined {
  const trimmed = trimHeaderValue(value);
  if (!FIELD_VALUE.test(trimmed)) return undefined;
  if (!isMarked(trimmed)) return trimmed;
  // Markers that overlap enclose nothing, not even the empty text.
  if (trimmed.length < PREFIX.length + SUFFIX.length) return undefined;
  const payload = trimmed.slice(PREFIX.length, -SUFFIX.length);
  if (!BASE64.test(payload)) return undefined;
  const bytes = Buffer.from(payload, 'base64');
  // Another spelling of the same bytes has stray bits before its padding.
  if (!isUtf8(bytes) || bytes.toString('base64') !== payload) return undefined;
  return bytes.toString('utf8');
}

/** [RFC 9110 §5.5] Blanks around a value are no part of it. Without a regular expression: those walk back and forth. */
export function trimHeaderValue(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isBlank(value, start)) start++;
  while (end > start && isBlank(value, end - 1)) end--;
  return value.slice(start, end);
}

function isBlank(text: string, at: number): boolean {
  return text[at] === ' ' || text[at] === '\t';
}

/** Why these headers are better not sent: cut off or replaced they would name something else than the body. */
export function findHeaderFault(headers: readonly HeaderLine[]): string | undefined {
  if (headers.length > MAX_HEADERS) return `${headers.length} headers; at most ${MAX_HEADERS} are sent`;
  let total = 0;
  for (const [name, value] of headers) {
    if (value === INEXPRESSIBLE) return `what ${name} would repeat ${NO_UNICODE}`;
    const length = name.length + value.length + 2;
    if (length > MAX_HEADER_BYTES) return `${name} has ${length} bytes; at most ${MAX_HEADER_BYTES} are sent`;
    total += length;
  }
  return total > MAX_HEADERS_BYTES ? `${total} bytes of headers; at most ${MAX_HEADERS_BYTES} are sent` : undefined;
}

/** [spec 2025-11-25 transports#session-management] a session id is visible ASCII; anything else could not be sent back. */
export function isSessionId(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,4096}$/.test(value);
}
