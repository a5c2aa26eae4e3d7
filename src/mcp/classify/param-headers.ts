/**
 * Arguments of a tool call repeated in headers. [spec 2026-07-28
 * transports/streamable-http#custom-headers-from-tool-parameters]
 */

import type { Frame } from '../../wire/frame.ts';
import { OPEN_BRACE, OPEN_BRACKET } from '../../wire/json/ascii.ts';
import { findUniqueMembers, findUnmistakable } from '../../wire/json/outline.ts';
import type { Span } from '../../wire/json/scan-json.ts';
import {
  decodeHeaderValue,
  encodeHeaderValue,
  type HeaderLine,
  type HeaderMap,
  isExpressible,
  missingHeader,
  NO_UNICODE,
  PARAM_HEADER_PREFIX,
  PARAM_HEADER_PREFIX_OUT,
} from '../vocabulary/headers.ts';
import { asFields, type Fields, parseSpan } from '../vocabulary/payload.ts';
import { isNameMap, isSchemaKeyword, PARAM_HEADER_KEYWORD } from '../vocabulary/schema-keywords.ts';

/** A value that a header can repeat. */
type Primitive = string | number | boolean;

/** Numbers in this notation, without exponent or plus sign, are compared by value. */
const DECIMAL = /^-?\d+(?:\.\d+)?$/;

/**
 * The `Mcp-Param-*` headers to send with a `tools/call`. A value that is absent, null or not of its type gets no
 * header; if the server requires one, the server's own error explains it best.
 */
export function paramHeadersFor(annotations: readonly ParamHeader[], frame: Frame): readonly HeaderLine[] {
  const headers: HeaderLine[] = [];
  const values = readArguments(frame, annotations);
  for (const [index, { name, type }] of annotations.entries()) {
    const value = values[index];
    const text = value === 'unclear' || value === undefined ? undefined : textOfType(value.value, type);
    if (text !== undefined) headers.push([`${PARAM_HEADER_PREFIX_OUT}${name}`, encodeHeaderValue(text)]);
  }
  return headers;
}

/**
 * Compares the headers of a `tools/call` with its arguments. Returns the mismatch in English, or undefined if there is
 * none. Headers for absent values and headers that no annotation names are ignored.
 */
export function checkParamHeaders(
  annotations: readonly ParamHeader[],
  frame: Frame,
  headers: HeaderMap,
): string | undefined {
  const values = readArguments(frame, annotations);
  for (const [index, annotation] of annotations.entries()) {
    const fault = checkParamHeader(annotation, values[index], headers);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function checkParamHeader({ name, type }: ParamHeader, read: Argument, headers: HeaderMap): string | undefined {
  const header = `${PARAM_HEADER_PREFIX_OUT}${name}`;
  if (read === 'unclear') return `the value that ${header} repeats occurs several times`;
  const text = read && textOf(read.value);
  if (read === undefined || text === undefined) return undefined;
  if (!isExpressible(text)) return `the value that ${header} repeats ${NO_UNICODE}`;
  const given = headers[`${PARAM_HEADER_PREFIX}${name.toLowerCase()}`];
  if (given === undefined) return missingHeader(header);
  const decoded = typeof given === 'string' ? decodeHeaderValue(given) : undefined;
  if (decoded === undefined) return `the ${header} header is not encoded as it should be`;
  const isNumber = (type === 'integer' || type === 'number') && typeof read.value === 'number' && DECIMAL.test(decoded);
  const isEqual = isNumber ? Number(decoded) === read.value : decoded === text;
  return isEqual ? undefined : `the ${header} header does not match the arguments`;
}

/**
 * Undefined if the argument is absent or not primitive; `unclear` if its key occurs twice, so that parsers may
 * disagree.
 */
type Argument = { readonly value: Primitive } | 'unclear' | undefined;

interface Wanted {
  readonly index: number;
  /** Names of properties from the object being searched down to the value. */
  readonly path: readonly string[];
}

/** Reads the values at the paths of these annotations in one walk, because arguments can be large. */
function readArguments(frame: Frame, annotations: readonly ParamHeader[]): readonly Argument[] {
  const found: Argument[] = annotations.map(() => undefined);
  const given = findUnmistakable(frame, frame.payloadStart, 'arguments');
  if (given === 'unclear') return found.fill('unclear');
  const wanted = annotations.map(({ path }, index) => ({ index, path }));
  if (given !== undefined) findArguments(frame.bytes, given.start, wanted, found);
  return found;
}

function findArguments(bytes: Buffer, start: number, wanted: readonly Wanted[], found: Argument[]): void {
  const byKey = new Map<string, Wanted[]>();
  for (const one of wanted) {
    const [key = ''] = one.path;
    const same = byKey.get(key);
    if (same === undefined) byKey.set(key, [one]);
    else same.push(one);
  }
  const keys = [...byKey.keys()];
  for (const [at, span] of findUniqueMembers(bytes, start, keys).entries()) {
    const here = byKey.get(keys[at] ?? '') ?? [];
    if (span === undefined) continue;
    if (span === 'duplicate') {
      for (const { index } of here) found[index] = 'unclear';
      continue;
    }
    const below: Wanted[] = [];
    for (const { index, path } of here) {
      if (path.length === 1) found[index] = readPrimitive(bytes, span);
      else below.push({ index, path: path.slice(1) });
    }
    if (below.length > 0) findArguments(bytes, span.start, below, found);
  }
}

function readPrimitive(bytes: Buffer, span: Span): Argument {
  if (bytes[span.start] === OPEN_BRACE || bytes[span.start] === OPEN_BRACKET) return undefined;
  const value = parseSpan(bytes, span);
  return isPrimitive(value) ? { value } : undefined;
}

function textOfType(value: Primitive, type: ParamType): string | undefined {
  if (type === 'integer') return Number.isSafeInteger(value) ? textOf(value) : undefined;
  return typeof value === type ? textOf(value) : undefined;
}

/** Returns undefined for a number beyond the safe integers, which JSON parsers may read differently. */
function textOf(value: Primitive): string | undefined {
  const isDoubtful = typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER;
  return isDoubtful ? undefined : String(value);
}

function isPrimitive(value: unknown): value is Primitive {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

// ---- Which arguments of a tool its schema wants repeated in headers. [spec 2026-07-28
// transports/streamable-http#schema-extension]

/** The specification does not allow `number`. It is known here because servers that use it still check such headers. */
export type ParamType = 'string' | 'integer' | 'boolean' | 'number';

export interface ParamHeader {
  /** The part of the header name after `Mcp-Param-`, a token. */
  readonly name: string;
  /** Names of properties from the arguments down to the value. */
  readonly path: readonly string[];
  readonly type: ParamType;
}

export type HeaderAnnotations =
  | { readonly headers: readonly ParamHeader[] }
  /**
   * The tool must not be shown to a client over HTTP. If it is called all the same, `headers` are sent; there are none
   * unless the only fault is the type `number`.
   */
  | { readonly invalid: string; readonly headers: readonly ParamHeader[] };

/** Limits of the walk over a schema, far beyond any schema in use. Deeper or later parts are ignored. */
const MAX_DEPTH = 32;
const MAX_NODES = 10_000;

/** [RFC 9110 §5.6.2] */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const types: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean', 'number']);

export function readHeaderAnnotations(inputSchema: unknown): HeaderAnnotations {
  const walk = new AnnotationWalk();
  walk.visit(inputSchema, { path: [], isReachable: true, depth: 0 });
  if (walk.fault !== undefined) return { invalid: walk.fault, headers: [] };
  const { headers } = walk;
  const number = headers.find(({ type }) => type === 'number');
  if (number === undefined) return { headers };
  return { invalid: `"${number.name}" names a header for a value of type number`, headers };
}

/**
 * A position of the walk in a schema. `isReachable` is true if only `properties` lead to it, so that the value has
 * exactly one place in any arguments.
 */
interface SchemaPosition {
  readonly path: readonly string[];
  readonly isReachable: boolean;
  readonly depth: number;
}

/** Approximate size in characters: the length of all texts and a fixed overhead for each. */
export function lengthOf(annotations: HeaderAnnotations): number {
  const texts = annotations.headers.flatMap(({ name, path }) => [name, ...path]);
  const invalid = 'invalid' in annotations ? annotations.invalid.length : 0;
  return texts.reduce((sum, { length }) => sum + length + SPENT_ON_TEXT, invalid);
}

const SPENT_ON_TEXT = 32;

class AnnotationWalk {
  readonly headers: ParamHeader[] = [];
  /** The first fault found. It ends the walk. */
  fault: string | undefined = undefined;
  readonly #names = new Set<string>();
  #nodes = 0;

  visit(node: unknown, position: SchemaPosition): void {
    if (this.fault !== undefined || position.depth > MAX_DEPTH || ++this.#nodes > MAX_NODES) return;
    const below: SchemaPosition = { path: position.path, isReachable: false, depth: position.depth + 1 };
    if (Array.isArray(node)) {
      for (const item of node) this.visit(item, below);
      return;
    }
    const schema = asFields(node);
    if (schema === undefined) return;
    if (Object.hasOwn(schema, PARAM_HEADER_KEYWORD)) this.#read(schema, position);
    for (const [keyword, value] of Object.entries(schema)) {
      if (isNameMap(keyword)) this.#visitNamed(keyword, value, position);
      else if (isSchemaKeyword(keyword)) this.visit(value, below);
    }
  }

  #visitNamed(keyword: string, named: unknown, position: SchemaPosition): void {
    const isReachable = position.isReachable && keyword === 'properties';
    for (const [name, schema] of Object.entries(asFields(named) ?? {})) {
      this.visit(schema, { path: [...position.path, name], isReachable, depth: position.depth + 1 });
    }
  }

  #read(schema: Fields, { path, isReachable }: SchemaPosition): void {
    const name = schema[PARAM_HEADER_KEYWORD];
    const { type } = schema;
    if (!isReachable || path.length === 0) this.fault = 'a header is named where no single argument has its place';
    else if (typeof name !== 'string' || !TOKEN.test(name)) this.fault = 'the name of a header is no token';
    else if (!isParamType(type)) this.fault = `"${name}" names a header for a value that is not primitive`;
    else if (this.#names.has(name.toLowerCase())) this.fault = `"${name}" names two headers`;
    else {
      this.#names.add(name.toLowerCase());
      this.headers.push({ name, path, type });
    }
  }
}

function isParamType(type: unknown): type is ParamType {
  return types.has(type);
}
