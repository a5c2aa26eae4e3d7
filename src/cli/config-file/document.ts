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

/** Where a part stands; found out when it is asked for, since most are never asked for. */
type Mark = () => Place;

/** Collects places while a tree is turned into data: of each member by the object or list that holds it. */
class Places {
  readonly mistakes: Mistake[] = [];
  readonly #root: Mark;
  readonly #marks = new Map<unknown, Map<string | number, Mark>>();

  constructor(root: Mark) {
    this.#root = root;
  }

  note(parent: unknown, key: string | number, mark: Mark): void {
    const marks = this.#marks.get(parent);
    if (marks === undefined) this.#marks.set(parent, new Map([[key, mark]]));
    else if (!marks.has(key)) marks.set(key, mark);
  }

  document(value: unknown): Document {
    return { value, mistakes: this.mistakes, placeOf: (path) => this.#placeOf(value, path) };
  }

  #placeOf(root: unknown, path: Path): Place {
    let mark = this.#root;
    let parent = root;
    for (const key of path) {
      const next = this.#marks.get(parent)?.get(key);
      if (next === undefined) break;
      mark = next;
      parent = (parent as Readonly<Record<string | number, unknown>>)[key];
    }
    return mark();
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
  const places = new Places(() => placeAt(tree.offset));
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
  if (path.length > MAX_DEPTH) throw new SyntaxMistake('too many levels of objects and lists', placeAt(node.offset));
  if (node.type === 'array') {
    const list: unknown[] = [];
    for (const [index, child] of (node.children ?? []).entries()) {
      list.push(jsonValueOf(child, [...path, index], parts));
      places.note(list, index, () => placeAt(child.offset));
    }
    return list;
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
    places.note(object, name, () => placeAt(key.offset));
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
  const places = new Places(() => ({ line: 1, column: 1 }));
  const root = createObject();
  for (const node of program.body[0].body) {
    if (node.type === 'TOMLKeyValue') takeKeyValue(node, root, places);
    else {
      const table = objectAt(root, node.resolvedKey, () => startOf(node), places);
      for (const pair of node.body) takeKeyValue(pair, table, places);
    }
  }
  return places.document(root);
}

function takeKeyValue(node: AST.TOMLKeyValue, table: LooseObject, places: Places): void {
  const keys = node.key.keys.map((key) => (key.type === 'TOMLBare' ? key.name : key.value));
  const last = keys.at(-1) ?? '';
  const object = objectAt(table, keys.slice(0, -1), () => startOf(node), places);
  object[last] = tomlValueOf(node.value, places);
  places.note(object, last, () => startOf(node));
}

function tomlValueOf(node: AST.TOMLContentNode, places: Places): unknown {
  switch (node.type) {
    case 'TOMLValue':
      return node.value;
    case 'TOMLArray': {
      const list = node.elements.map((element) => tomlValueOf(element, places));
      for (const [index, element] of node.elements.entries()) places.note(list, index, () => startOf(element));
      return list;
    }
    case 'TOMLInlineTable': {
      const object = createObject();
      for (const pair of node.body) takeKeyValue(pair, object, places);
      return object;
    }
  }
}

/** The parser has made sure that what stands on the way is an object or a list of them. */
function objectAt(root: LooseObject, keys: Path, mark: Mark, places: Places): LooseObject {
  let value: unknown = root;
  for (const [index, key] of keys.entries()) {
    const parent = value as LooseObject;
    parent[key] ??= typeof keys[index + 1] === 'number' ? [] : createObject();
    places.note(parent, key, mark);
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
