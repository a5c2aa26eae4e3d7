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
/** Followed by the name in a tool's schema. [spec 2026-07-28 transports/streamable-http#schema-extension] */
export const PARAM_HEADER_PREFIX = 'mcp-param-';
export const PARAM_HEADER_PREFIX_OUT = 'Mcp-Param-';

/**
 * Says that a header is missing, without a period. Whoever reads this may be sure that the client sends the header, so
 * it names the other cause: a proxy that passes on only the headers it knows.
 */
export function missingHeader(name: string): string {
  return `the ${name} header is missing; if the client sends it, a proxy on the way removes it`;
}

const SINGLE = [PROTOCOL_VERSION_HEADER, SESSION_ID_HEADER];

/**
 * A proxy that adds a header which is already present sends it twice, and Node joins the copies: `2025-11-25,
 * 2025-11-25`. Equal copies become one value. Different ones stay joined, and no code accepts that as a value.
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
/** Accepted in received headers: `field-vchar`, SP and HTAB, without the obsolete bytes above ASCII. */
const FIELD_VALUE = /^[\t\x20-\x7e]*$/;
/** Base64 with padding, as the encoder writes it. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Stands for a value that no header can have. Encoded values are never empty. */
export const INEXPRESSIBLE = '';
/** The fault of text that cannot be encoded. */
export const NO_UNICODE = 'is no Unicode text: it has half of a surrogate pair, which no header can repeat';

/** Servers and proxies truncate or reject longer lines. */
export const MAX_HEADER_BYTES = 8 * 1024;
/** Limits all headers together that mirror one body; Node's own limit for a whole head is 16 KiB. */
export const MAX_HEADERS_BYTES = 16 * 1024;
export const MAX_HEADERS = 64;

/**
 * The result never holds a byte that could end the header. Empty text is encoded, because some HTTP stacks drop empty
 * headers. Returns `INEXPRESSIBLE` if the text has no UTF-8 encoding: with a replacement character the header would
 * differ from the body.
 */
export function encodeHeaderValue(text: string): string {
  const isPlain = PLAIN.test(text) && !text.startsWith(' ') && !text.endsWith(' ') && !isMarked(text);
  if (isPlain) return text;
  return isExpressible(text) ? `${PREFIX}${Buffer.from(text, 'utf8').toString('base64')}${SUFFIX}` : INEXPRESSIBLE;
}

/** JSON can contain half of a surrogate pair, which is no character and has no UTF-8 encoding. */
export function isExpressible(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/** The markers may share the question mark, so `=?base64?=` counts as well. */
function isMarked(text: string): boolean {
  return text.startsWith(PREFIX) && text.endsWith(SUFFIX);
}

/** Returns undefined for a value that neither `encodeHeaderValue` nor a laxer encoder could have written. */
export function decodeHeaderValue(value: string): string | undefined {
  const trimmed = trimHeaderValue(value);
  if (!FIELD_VALUE.test(trimmed)) return undefined;
  if (!isMarked(trimmed)) return trimmed;
  // Overlapping markers enclose no value, not even an empty one.
  if (trimmed.length < PREFIX.length + SUFFIX.length) return undefined;
  const payload = trimmed.slice(PREFIX.length, -SUFFIX.length);
  if (!BASE64.test(payload)) return undefined;
  const bytes = Buffer.from(payload, 'base64');
  // A different encoding of the same bytes has stray bits before its padding.
  if (!isUtf8(bytes) || bytes.toString('base64') !== payload) return undefined;
  return bytes.toString('utf8');
}

/**
 * [RFC 9110 §5.5] Blanks around a value are not part of it. Uses no regular expression, because that would backtrack.
 */
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

/** Returns why these headers must not be sent: if they were truncated or replaced, they would differ from the body. */
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

/**
 * [spec 2025-11-25 transports#session-management] a session id is visible ASCII; other characters could not be sent
 * back.
 */
export function isSessionId(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,4096}$/.test(value);
}
