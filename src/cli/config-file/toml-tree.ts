/**
 * Parses TOML, the language of Codex. This module imports only types of ours, so that it and its parser can be a
 * separate file in dist/; see scripts/build.js.
 */
import { type AST, ParseError, parseTOML } from 'toml-eslint-parser';
import { type ConfigNode, MAX_DEPTH, type ParsedTree, type Position } from './config-tree.ts';

export function parseTomlTree(text: string): ParsedTree {
  try {
    const [table] = parseTOML(text).body;
    const root = createTable(table);
    for (const part of table.body) {
      if (part.type === 'TOMLKeyValue') addKeyValue(root, part, 1);
      else addTable(root, part);
    }
    return { ok: true, root: freeze(root) };
  } catch (thrown) {
    return { ok: false, problems: [explain(thrown)] };
  }
}

/** An object that members are still added to: the parts of a table may be anywhere in the file. */
interface GrowingObject {
  readonly kind: 'growing';
  readonly at: Position;
  readonly members: Map<string, Growing>;
}

interface GrowingList {
  readonly kind: 'growing list';
  readonly at: Position;
  readonly items: Growing[];
}

type Growing = GrowingObject | GrowingList | Exclude<ConfigNode, { kind: 'object' | 'list' }>;

class TooDeep extends Error {
  readonly at: Position;

  constructor(at: Position) {
    super('too deep');
    this.at = at;
  }
}

function createTable(node: AST.TOMLNode): GrowingObject {
  return { kind: 'growing', at: positionOf(node), members: new Map() };
}

/**
 * Adds the members of `[a.b]` or `[[a.b]]`. The parser has numbered the items of `[[a.b]]` and refused conflicting
 * keys.
 */
function addTable(root: GrowingObject, table: AST.TOMLTable): void {
  if (table.resolvedKey.length > MAX_DEPTH) throw new TooDeep(positionOf(table));
  let object = root;
  let list: GrowingList | undefined;
  table.resolvedKey.forEach((step, index) => {
    const next = table.resolvedKey[index + 1];
    if (typeof step === 'number') {
      if (list === undefined) return;
      const item = list.items[step] ?? createTable(table);
      list.items[step] = item;
      list = undefined;
      if (item.kind === 'growing') object = item;
      return;
    }
    const found =
      object.members.get(step) ??
      (typeof next === 'number'
        ? ({ kind: 'growing list', at: positionOf(table), items: [] } as const)
        : createTable(table));
    object.members.set(step, found);
    if (found.kind === 'growing list') list = found;
    else if (found.kind === 'growing') object = found;
  });
  for (const keyValue of table.body) addKeyValue(object, keyValue, table.resolvedKey.length + 1);
}

function addKeyValue(object: GrowingObject, { key, value }: AST.TOMLKeyValue, depth: number): void {
  const names = key.keys.map((part) => (part.type === 'TOMLBare' ? part.name : part.value));
  const last = names.pop() ?? '';
  let parent = object;
  for (const name of names) {
    const found = parent.members.get(name) ?? createTable(key);
    parent.members.set(name, found);
    if (found.kind === 'growing') parent = found;
  }
  parent.members.set(last, toGrowing(value, depth + names.length));
}

function toGrowing(node: AST.TOMLContentNode, depth: number): Growing {
  const at = positionOf(node);
  if (depth > MAX_DEPTH) throw new TooDeep(at);
  if (node.type === 'TOMLArray') {
    return { kind: 'growing list', at, items: node.elements.map((element) => toGrowing(element, depth + 1)) };
  }
  if (node.type === 'TOMLInlineTable') {
    const table = createTable(node);
    for (const keyValue of node.body) addKeyValue(table, keyValue, depth + 1);
    return table;
  }
  if (typeof node.value === 'string') return { kind: 'text', at, value: node.value };
  if (typeof node.value === 'number') return { kind: 'number', at, value: node.value };
  if (typeof node.value === 'boolean') return { kind: 'boolean', at, value: node.value };
  return { kind: 'date', at };
}

function freeze(node: Growing): ConfigNode {
  if (node.kind === 'growing list') return { kind: 'list', at: node.at, items: node.items.map(freeze) };
  if (node.kind !== 'growing') return node;
  const members = new Map([...node.members].map(([key, member]) => [key, freeze(member)]));
  // The parser refuses repeated keys.
  return { kind: 'object', at: node.at, members, repeated: [] };
}

function positionOf({ loc: { start } }: AST.TOMLNode): Position {
  return { line: start.line, column: start.column + 1 };
}

/** The parser's message describes the syntax error and quotes nothing from the text. */
function explain(thrown: unknown): { readonly at: Position; readonly problem: string } {
  if (thrown instanceof ParseError) {
    const at = { line: thrown.lineNumber, column: thrown.column + 1 };
    return { at, problem: `something that is not TOML: ${thrown.message.toLowerCase()}.` };
  }
  const at = thrown instanceof TooDeep ? thrown.at : { line: 1, column: 1 };
  if (thrown instanceof TooDeep || thrown instanceof RangeError) {
    return { at, problem: `nested more than ${MAX_DEPTH} levels deep.` };
  }
  return { at, problem: 'cannot be read as TOML.' };
}
