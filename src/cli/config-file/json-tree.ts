/**
 * Parses JSON with comments and trailing commas, as hosts do. This module imports only types of ours, so that it and
 * its parser can be a separate file in dist/; see scripts/build.js.
 */
import { type JSONVisitor, type ParseErrorCode, printParseErrorCode, visit } from 'jsonc-parser';
import { type ConfigNode, MAX_DEPTH, type ParsedTree, type Position, type SyntaxProblem } from './config-tree.ts';

export function parseJsonTree(text: string): ParsedTree {
  const builder = new TreeBuilder();
  try {
    visit(text, builder.visitor, { allowTrailingComma: true });
  } catch (thrown) {
    // The parser recurses for each level, so a file of nothing but brackets would exhaust the stack.
    if (!(thrown instanceof TooDeep)) throw thrown;
    return { ok: false, problems: [{ at: thrown.at, problem: `nested more than ${MAX_DEPTH} levels deep.` }] };
  }
  const { root, problems } = builder;
  if (problems.length > 0) return { ok: false, problems };
  return root === undefined ? { ok: false, problems: [{ at: START, problem: EMPTY }] } : { ok: true, root };
}

const START: Position = { line: 1, column: 1 };

class TooDeep extends Error {
  readonly at: Position;

  constructor(at: Position) {
    super('too deep');
    this.at = at;
  }
}

/** An object or list whose end has not been reached. */
type OpenNode = OpenObject | { readonly kind: 'list'; readonly at: Position; readonly items: ConfigNode[] };

interface OpenObject {
  readonly kind: 'object';
  readonly at: Position;
  readonly members: Map<string, ConfigNode>;
  readonly repeated: { readonly key: string; readonly at: Position }[];
  /** The key of the next value. Undefined after a repeated key, whose value is dropped. */
  key: string | undefined;
}

/** Builds our tree from the parser's events, which avoids a second tree of the parser's own. */
class TreeBuilder {
  readonly problems: SyntaxProblem[] = [];
  readonly #open: OpenNode[] = [];
  #root: ConfigNode | undefined;

  get root(): ConfigNode | undefined {
    return this.#root;
  }

  readonly visitor: JSONVisitor = {
    onObjectBegin: (_offset, _length, line, column) => {
      this.#begin({ kind: 'object', at: toPosition(line, column), members: new Map(), repeated: [], key: undefined });
    },
    onObjectProperty: (key, _offset, _length, line, column) => {
      const object = this.#open.at(-1);
      if (object?.kind !== 'object') return;
      const isRepeated = object.members.has(key);
      if (isRepeated) object.repeated.push({ key, at: toPosition(line, column) });
      object.key = isRepeated ? undefined : key;
    },
    onObjectEnd: () => this.#end(),
    onArrayBegin: (_offset, _length, line, column) => {
      this.#begin({ kind: 'list', at: toPosition(line, column), items: [] });
    },
    onArrayEnd: () => this.#end(),
    onLiteralValue: (value, _offset, _length, line, column) => this.#add(toScalar(value, toPosition(line, column))),
    onError: (error, _offset, _length, line, column) => {
      if (this.problems.length < MAX_PROBLEMS)
        this.problems.push({ at: toPosition(line, column), problem: explain(error) });
    },
  };

  #begin(node: OpenNode): void {
    if (this.#open.length >= MAX_DEPTH) throw new TooDeep(node.at);
    this.#add(node);
    this.#open.push(node);
  }

  #end(): void {
    this.#open.pop();
  }

  #add(node: ConfigNode): void {
    const parent = this.#open.at(-1);
    if (parent === undefined) this.#root ??= node;
    else if (parent.kind === 'list') parent.items.push(node);
    else if (parent.key !== undefined) parent.members.set(parent.key, node);
  }
}

/** A single syntax error causes many more. */
const MAX_PROBLEMS = 20;

/** Converts a position of the parser, which counts from 0. */
function toPosition(line: number, column: number): Position {
  return { line: line + 1, column: column + 1 };
}

function toScalar(value: unknown, at: Position): ConfigNode {
  if (typeof value === 'string') return { kind: 'text', at, value };
  if (typeof value === 'number') return { kind: 'number', at, value };
  if (typeof value === 'boolean') return { kind: 'boolean', at, value };
  return { kind: 'null', at };
}

const EMPTY = 'expected an object, got nothing.';

/** Messages by the parser's names of its errors. */
const PROBLEMS: Readonly<Record<string, string>> = {
  InvalidSymbol: 'a word that is no JSON begins here; strings stand in double quotes.',
  InvalidNumberFormat: 'expected a number as JSON writes it.',
  PropertyNameExpected: 'expected a key in double quotes.',
  ValueExpected: 'expected a value.',
  ColonExpected: 'expected a colon.',
  CommaExpected: 'expected a comma.',
  CloseBraceExpected: 'expected the closing } of an object.',
  CloseBracketExpected: 'expected the closing ] of an array.',
  EndOfFileExpected: 'expected the end of the file.',
  UnexpectedEndOfComment: 'a comment that begins here does not end.',
  UnexpectedEndOfString: 'a string that begins here does not end on its line.',
  UnexpectedEndOfNumber: 'a number that begins here does not end.',
  InvalidUnicode: 'expected \\u and four hexadecimal digits.',
  InvalidEscapeCharacter: 'a backslash before a character that needs none; a backslash itself is written twice.',
  InvalidCharacter: 'a character that JSON strings write with a backslash, such as a tab.',
};

function explain(error: ParseErrorCode): string {
  return PROBLEMS[printParseErrorCode(error)] ?? 'something that is not JSON begins here.';
}
