/**
 * Arguments of a tool call repeated in headers. [spec 2026-07-28 transports/streamable-http#custom-headers-from-tool-parameters]
 */
import { OPEN_BRACE, OPEN_BRACKET } from '../wire/ascii.ts';
import type { Frame } from '../wire/frame.ts';
import { findUniqueMember } from '../wire/scan-json.ts';
import type { ParamHeader, ParamType } from './header-annotations.ts';
import {
  decodeHeaderValue,
  encodeHeaderValue,
  type HeaderLine,
  type HeaderMap,
  isExpressible,
  NO_UNICODE,
} from './header-value.ts';
import { PARAM_HEADER_PREFIX, PARAM_HEADER_PREFIX_OUT } from './headers.ts';
import { findUnmistakable } from './look-alikes.ts';
import { parseSpan } from './payload.ts';

/** A value that a header can repeat. */
type Primitive = string | number | boolean;

/** No exponent and no sign but a minus: what numbers in headers look like. */
const DECIMAL = /^-?\d+(?:\.\d+)?$/;

/**
 * The headers a `tools/call` is sent with. A value that is absent, null or not of its type has none; if the server
 * wants one, it has better words for what is wrong.
 */
export function paramHeadersFor(annotations: readonly ParamHeader[], frame: Frame): readonly HeaderLine[] {
  const headers: HeaderLine[] = [];
  for (const { name, path, type } of annotations) {
    const value = readArgument(frame, path);
    const text = value === 'unclear' || value === undefined ? undefined : textOfType(value.value, type);
    if (text !== undefined) headers.push([`${PARAM_HEADER_PREFIX_OUT}${name}`, encodeHeaderValue(text)]);
  }
  return headers;
}

/**
 * What is wrong with the headers of a `tools/call`, in English; undefined: nothing. A header for a value that is not
 * there says nothing, as does one that no annotation names.
 */
export function checkParamHeaders(
  annotations: readonly ParamHeader[],
  frame: Frame,
  headers: HeaderMap,
): string | undefined {
  for (const annotation of annotations) {
    const fault = checkParamHeader(annotation, frame, headers);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function checkParamHeader({ name, path, type }: ParamHeader, frame: Frame, headers: HeaderMap): string | undefined {
  const header = `${PARAM_HEADER_PREFIX_OUT}${name}`;
  const read = readArgument(frame, path);
  if (read === 'unclear') return `the value that ${header} repeats occurs several times`;
  const text = read && textOf(read.value);
  if (read === undefined || text === undefined) return undefined;
  if (!isExpressible(text)) return `the value that ${header} repeats ${NO_UNICODE}`;
  const given = headers[`${PARAM_HEADER_PREFIX}${name.toLowerCase()}`];
  if (given === undefined) return `the ${header} header is missing`;
  const decoded = typeof given === 'string' ? decodeHeaderValue(given) : undefined;
  if (decoded === undefined) return `the ${header} header is not encoded as it should be`;
  const isNumber = (type === 'integer' || type === 'number') && typeof read.value === 'number' && DECIMAL.test(decoded);
  const isEqual = isNumber ? Number(decoded) === read.value : decoded === text;
  return isEqual ? undefined : `the ${header} header does not match the arguments`;
}

/**
 * The value at a path of the arguments, read where it stands: arguments can be large, and one that occurs twice may be
 * read in two ways. Undefined: none, or none that a header could repeat.
 */
function readArgument(frame: Frame, path: readonly string[]): { readonly value: Primitive } | 'unclear' | undefined {
  const { bytes } = frame;
  let span = findUnmistakable(frame, frame.payloadStart, 'arguments');
  for (const key of path) {
    if (span === undefined || span === 'unclear') return span;
    const found = findUniqueMember(bytes, span.start, key);
    span = found === 'duplicate' ? 'unclear' : found;
  }
  if (span === undefined || span === 'unclear') return span;
  if (bytes[span.start] === OPEN_BRACE || bytes[span.start] === OPEN_BRACKET) return undefined;
  const value = parseSpan(bytes, span);
  return isPrimitive(value) ? { value } : undefined;
}

function textOfType(value: Primitive, type: ParamType): string | undefined {
  if (type === 'integer') return Number.isSafeInteger(value) ? textOf(value) : undefined;
  return typeof value === type ? textOf(value) : undefined;
}

/** Undefined: a number that JSON parsers do not agree about. */
function textOf(value: Primitive): string | undefined {
  const isDoubtful = typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER;
  return isDoubtful ? undefined : String(value);
}

function isPrimitive(value: unknown): value is Primitive {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}
