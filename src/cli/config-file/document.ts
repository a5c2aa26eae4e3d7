/** A configuration file as data, in which it is known where each part stands. JSON with comments, or TOML. */
import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import { type AST, parseTOML, ParseError as TomlError } from 'toml-eslint-parser';

export type Path = readonly (string | number)[];

/** Both count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** What is wrong with a file, and where. */
export interface Mistake {
  readonly place: Place;
  /** Empty: it is about the file itself. */
  readonly path: Path;
  readonly problem: string;
}

/** Objects have no prototype: a key may have any name. */
export interface Document {
  readonly value: unknown;
  /** Keys that stand twice in an object. */
  readonly mistakes: readonly Mistake[];
  /** Where this part begins; for what is not there, the nearest part around it. */
  placeOf(path: Path): Place;
}

/** Nesting beyond this is nobody's configuration, and would exhaust the stack. */
const MAX_DEPTH = 100;

/** Thrown for a file that cannot be read at all. */
export class SyntaxMistake extends Error {
  readonly place: Place;

  constructor(problem: string, place: Place) {
    super(problem);
    this.place = place;
  }
}

/** Throws a SyntaxMistake. */
export function parseDocument(text: string, format: 'json' | 'toml'): Document {
  return format === 'toml' ? parseToml(text) : parseJson(text);
}

/** Collects places while a tree is turned into data. */
class Places {
  readonly mistakes: Mistake[] = [];
  readonly #places = new Map<string, Place>();

  note(path: Path, place: Place): void {
    this.#places.set(JSON.stringify(path), place);
  }

  has(path: Path): boolean {
    return this.#places.has(JSON.stringify(path));
  }

  placeOf(path: Path): Place {
    for (let length = path.length; length >= 0; length -= 1) {
      const place = this.#places.get(JSON.stringify(path.slice(0, length)));
      if (place !== undefined) return place;
    }
    return { line: 1, column: 1 };
  }

  document(value: unknown): Document {
    return { value, mistakes: this.mistakes, placeOf: (path) => this.placeOf(path) };
  }
}

// ---- JSON with comments

function parseJson(text: string): Document {
  const lines = lineStartsOf(text);
  const placeAt = (offset: number): Place => placeOfOffset(lines, offset);
  refuseDeepText(text, placeAt);
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error !== undefined) {
    throw new SyntaxMistake(`this is no JSON: ${explainCode(printParseErrorCode(error.error))}`, placeAt(error.offset));
  }
  if (tree === undefined) throw new SyntaxMistake('the file is empty', { line: 1, column: 1 });
  const places = new Places();
  return places.document(jsonValueOf(tree, [], { places, placeAt }));
}

/** `ColonExpected` → `colon expected`. */
function explainCode(code: string): string {
  return code.replaceAll(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
}

/** Before the parser sees it, which calls itself for every level. */
function refuseDeepText(text: string, placeAt: (offset: number) => Place): void {
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (character === '{' || character === '[') depth += 1;
    if (character === '}' || character === ']') depth -= 1;
    // Brackets in texts and comments count, too: so many that are never closed are nothing to be served.
    if (depth > 10 * MAX_DEPTH) throw new SyntaxMistake('too many levels of objects and lists', placeAt(index));
  }
}

interface JsonPlaces {
  readonly places: Places;
  readonly placeAt: (offset: number) => Place;
}

function jsonValueOf(node: Node, path: Path, parts: JsonPlaces): unknown {
  const { places, placeAt } = parts;
  places.note(path, placeAt(node.offset));
  if (path.length > MAX_DEPTH) throw new SyntaxMistake('too many levels of objects and lists', placeAt(node.offset));
  if (node.type === 'array') {
    return (node.children ?? []).map((child, index) => jsonValueOf(child, [...path, index], parts));
  }
  if (node.type !== 'object') return node.value;
  const object = createObject();
  for (const { children: [key, value] = [] } of node.children ?? []) {
    if (key === undefined || value === undefined) continue;
    const name = String(key.value);
    const below = [...path, name];
    if (name in object) {
      places.mistakes.push({ place: placeAt(key.offset), path: below, problem: 'this key stands here twice' });
    }
    object[name] = jsonValueOf(value, below, parts);
    // A reader looks for the key.
    places.note(below, placeAt(key.offset));
  }
  return object;
}

function lineStartsOf(text: string): readonly number[] {
  const starts = [0];
  for (const match of text.matchAll(/\r\n|\n|\r/g)) starts.push(match.index + match[0].length);
  return starts;
}

function placeOfOffset(starts: readonly number[], offset: number): Place {
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
}

// ---- TOML

function parseToml(text: string): Document {
  let program: AST.TOMLProgram;
  try {
    program = parseTOML(text);
  } catch (thrown) {
    if (thrown instanceof TomlError) {
      throw new SyntaxMistake(`this is no TOML: ${thrown.message}`, {
        line: thrown.lineNumber,
        column: thrown.column + 1,
      });
    }
    throw thrown;
  }
  const places = new Places();
  const root = createObject();
  for (const node of program.body[0].body) {
    if (node.type === 'TOMLKeyValue') takeKeyValue(node, root, [], places);
    else {
      const at = [...node.resolvedKey];
      const table = objectAt(root, at, [], startOf(node), places);
      places.note(at, startOf(node));
      for (const pair of node.body) takeKeyValue(pair, table, at, places);
    }
  }
  return places.document(root);
}

function takeKeyValue(node: AST.TOMLKeyValue, table: LooseObject, path: Path, places: Places): void {
  const keys = node.key.keys.map((key) => (key.type === 'TOMLBare' ? key.name : key.value));
  const last = keys.at(-1) ?? '';
  const parents = keys.slice(0, -1);
  const object = objectAt(table, parents, path, startOf(node), places);
  const below = [...path, ...keys];
  places.note(below, startOf(node));
  object[last] = tomlValueOf(node.value, below, places);
}

function tomlValueOf(node: AST.TOMLContentNode, path: Path, places: Places): unknown {
  if (!places.has(path)) places.note(path, startOf(node));
  switch (node.type) {
    case 'TOMLValue':
      return node.value;
    case 'TOMLArray':
      return node.elements.map((element, index) => tomlValueOf(element, [...path, index], places));
    case 'TOMLInlineTable': {
      const object = createObject();
      for (const pair of node.body) takeKeyValue(pair, object, path, places);
      return object;
    }
  }
}

/** The parser has made sure that what stands on the way is an object or a list of them. */
function objectAt(root: LooseObject, keys: Path, above: Path, place: Place, places: Places): LooseObject {
  let value: unknown = root;
  for (const [index, key] of keys.entries()) {
    const parent = value as LooseObject;
    const isInList = typeof keys[index + 1] === 'number';
    parent[key] ??= isInList ? [] : createObject();
    const path = [...above, ...keys.slice(0, index + 1)];
    if (!places.has(path)) places.note(path, place);
    value = parent[key];
  }
  return value as LooseObject;
}

function startOf({ loc: { start } }: { readonly loc: AST.SourceLocation }): Place {
  return { line: start.line, column: start.column + 1 };
}

interface LooseObject {
  [key: string | number]: unknown;
}

function createObject(): LooseObject {
  return Object.create(null) as LooseObject;
}
