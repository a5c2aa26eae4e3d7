/**
 * Which arguments of a tool its schema wants repeated in headers.
 * [spec 2026-07-28 transports/streamable-http#schema-extension]
 */
import { asFields, type Fields } from './payload.ts';
import { isNameMap, isSchemaKeyword, PARAM_HEADER_KEYWORD } from './schema-keywords.ts';

/** `number` is not allowed. It is known here because servers that use it still check such headers. */
export type ParamType = 'string' | 'integer' | 'boolean' | 'number';

export interface ParamHeader {
  /** What follows `Mcp-Param-`: a token. */
  readonly name: string;
  /** Names of properties from the arguments down to the value. */
  readonly path: readonly string[];
  readonly type: ParamType;
}

export type HeaderAnnotations =
  | { readonly headers: readonly ParamHeader[] }
  /**
   * The tool must not be shown to a client over HTTP. `headers` are those to send should it be called all the same:
   * none, unless all that is wrong is the type `number`.
   */
  | { readonly invalid: string; readonly headers: readonly ParamHeader[] };

/** Far beyond any schema of use. What lies further down is not looked at. */
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

/** Where in the schema the walk is. */
interface SchemaPosition {
  readonly path: readonly string[];
  /** Only properties, and properties of those, lead here: the value has one place in any arguments. */
  readonly isReachable: boolean;
  readonly depth: number;
}

/** Characters of all there is to know of them, and some for each. */
export function lengthOf(annotations: HeaderAnnotations): number {
  const texts = annotations.headers.flatMap(({ name, path }) => [name, ...path]);
  const invalid = 'invalid' in annotations ? annotations.invalid.length : 0;
  return texts.reduce((sum, { length }) => sum + length + SPENT_ON_TEXT, invalid);
}

const SPENT_ON_TEXT = 32;

class AnnotationWalk {
  readonly headers: ParamHeader[] = [];
  /** The first that was found. */
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
