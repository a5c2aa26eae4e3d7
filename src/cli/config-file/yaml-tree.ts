/**
 * Parses YAML, the language of LibreChat, goose, Continue and Hermes. This module imports only types of ours, so that
 * it and its parser can be a separate file in dist/; see scripts/build.js.
 */
import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  type ParsedNode,
  parseDocument,
} from 'yaml';
import { type ConfigNode, MAX_DEPTH, type ParsedTree, type Position, type SyntaxProblem } from './config-tree.ts';

/** A few lines of nested aliases can stand for a billion nodes. The files of hosts have some thousands. */
const MAX_NODES = 100_000;
/** The parser takes a second or two for this size. A file of a hundredth of it is large for a host. */
const MAX_YAML_BYTES = 256 * 1024;

export function parseYamlTree(text: string): ParsedTree {
  if (text.length > MAX_YAML_BYTES) return refuse({ line: 1, column: 1 }, 'a YAML file of more than 256 KiB.');
  const lines = new LineCounter();
  try {
    const document = parseDocument(text, {
      lineCounter: lines,
      // Pretty errors would quote the text, and the parser's check for repeated keys is quadratic.
      prettyErrors: false,
      logLevel: 'silent',
      uniqueKeys: false,
    });
    const problems = document.errors.slice(0, MAX_PROBLEMS).map(({ code, pos: [offset] }) => {
      return { at: toPosition(lines, offset), problem: PROBLEMS[code] ?? 'something that is not YAML begins here.' };
    });
    if (problems.length > 0) return { ok: false, problems };
    if (document.contents === null) return refuse({ line: 1, column: 1 }, 'expected an object, got nothing.');
    return { ok: true, root: new TreeReader(lines).read(document.contents, 0) };
  } catch (thrown) {
    if (thrown instanceof Refused) return refuse(thrown.at, thrown.message);
    // The parser recurses for each level.
    if (thrown instanceof RangeError) return refuse({ line: 1, column: 1 }, TOO_DEEP);
    throw thrown;
  }
}

const TOO_DEEP = `nested more than ${MAX_DEPTH} levels deep.`;

function refuse(at: Position, problem: string): ParsedTree {
  return { ok: false, problems: [{ at, problem }] };
}

class Refused extends Error {
  readonly at: Position;

  constructor(at: Position, problem: string) {
    super(problem);
    this.at = at;
  }
}

type Node = ParsedNode | null;

/** Builds our tree. Aliases are replaced by their values, within the limits. */
class TreeReader {
  readonly #lines: LineCounter;
  readonly #anchors = new Map<string, ParsedNode>();
  #nodes = 0;

  constructor(lines: LineCounter) {
    this.#lines = lines;
  }

  /** @param at the position of an empty node */
  read(node: Node, depth: number, at: Position = { line: 1, column: 1 }): ConfigNode {
    if (node === null) return { kind: 'null', at };
    const here = this.#positionOf(node);
    if (depth > MAX_DEPTH) throw new Refused(here, TOO_DEEP);
    this.#nodes += 1;
    if (this.#nodes > MAX_NODES) throw new Refused(here, `more than ${MAX_NODES} values, with those of aliases.`);
    if (isAlias(node)) return this.read(this.#resolve(node), depth + 1);
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node);
    if (isMap(node)) return this.#readMap(node.items, here, depth);
    if (isSeq(node)) {
      return { kind: 'list', at: here, items: node.items.map((item) => this.read(item, depth + 1, here)) };
    }
    return toScalar(node.value, here);
  }

  #readMap(pairs: readonly Pair<ParsedNode, Node>[], at: Position, depth: number): ConfigNode {
    const members = new Map<string, ConfigNode>();
    const repeated: { readonly key: string; readonly at: Position }[] = [];
    const merged: ConfigNode[] = [];
    for (const { key, value } of pairs) {
      const keyAt = this.#positionOf(key);
      const name = isScalar(key) ? (key.source ?? String(key.value)) : undefined;
      if (name === undefined) throw new Refused(keyAt, 'expected a string as a key.');
      const member = this.read(value, depth + 1, keyAt);
      if (name === '<<' && isScalar(key) && key.type === 'PLAIN') merged.push(member);
      else if (members.has(name)) repeated.push({ key: name, at: keyAt });
      else members.set(name, member);
    }
    for (const other of merged.flatMap((node) => (node.kind === 'list' ? node.items : [node]))) {
      if (other.kind !== 'object') throw new Refused(other.at, 'expected an object to merge in.');
      for (const [name, member] of other.members) if (!members.has(name)) members.set(name, member);
    }
    return { kind: 'object', at, members, repeated };
  }

  /**
   * Returns the node of an alias. Its anchor comes before it. An alias within its own anchor never ends, and runs into
   * `MAX_DEPTH`.
   */
  #resolve(alias: Alias.Parsed): ParsedNode {
    const found = this.#anchors.get(alias.source);
    if (found !== undefined) return found;
    throw new Refused(this.#positionOf(alias), 'an alias of something that has no such anchor above.');
  }

  #positionOf({ range: [offset] }: ParsedNode): Position {
    return toPosition(this.#lines, offset);
  }
}

function toPosition(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

function toScalar(value: unknown, at: Position): ConfigNode {
  if (typeof value === 'string') return { kind: 'text', at, value };
  if (typeof value === 'number') return { kind: 'number', at, value };
  if (typeof value === 'boolean') return { kind: 'boolean', at, value };
  return { kind: 'null', at };
}

/** A single syntax error causes many more. */
const MAX_PROBLEMS = 20;

/** Messages by the parser's error codes. */
const PROBLEMS: Readonly<Record<string, SyntaxProblem['problem']>> = {
  BAD_ALIAS: 'an alias that cannot be read begins here.',
  BAD_DQ_ESCAPE: 'a backslash before a character that needs none; a backslash in double quotes is written twice.',
  BAD_INDENT: 'this line is indented in a way that does not fit those above.',
  BAD_SCALAR_START: 'a string that begins with this character stands in quotes.',
  BLOCK_AS_IMPLICIT_KEY:
    'a key and its value begin here, where only a value can stand; indent them on a line of their own.',
  MISSING_CHAR: 'a character is missing here, such as a closing quote or bracket, or the space behind a colon.',
  MULTILINE_IMPLICIT_KEY: 'a key stands on one line; expected a colon.',
  RESOURCE_EXHAUSTION: TOO_DEEP,
  MULTIPLE_DOCS: 'a second document begins here; expected one.',
  TAB_AS_INDENT: 'a tab; lines are indented with spaces.',
  UNEXPECTED_TOKEN: 'something that does not belong here.',
};
