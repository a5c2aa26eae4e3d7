/**
 * JSON with comments and commas at ends of lists, as hosts read it. Nothing of ours is imported but types, so that this
 * module and its parser can be a file of their own in dist/; see scripts/build.js.
 */
import { createScanner, type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import { type ConfigNode, MAX_DEPTH, type ParsedTree, type Position } from './config-tree.ts';

export function parseJsonTree(text: string): ParsedTree {
  const positionOf = locate(text);
  const tooDeep = findTooDeep(text);
  if (tooDeep !== undefined) {
    return {
      ok: false,
      problems: [{ at: positionOf(tooDeep), problem: `nested more than ${MAX_DEPTH} levels deep.` }],
    };
  }
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  if (root === undefined || errors.length > 0) {
    const problems = errors.map(({ error, offset }) => ({ at: positionOf(offset), problem: explain(error) }));
    return { ok: false, problems: problems.length > 0 ? problems : [{ at: positionOf(0), problem: EMPTY }] };
  }
  return { ok: true, root: toConfigNode(root, positionOf) };
}

function toConfigNode(node: Node, positionOf: (offset: number) => Position): ConfigNode {
  const at = positionOf(node.offset);
  const { type, children = [], value } = node;
  if (type === 'array') {
    return { kind: 'list', at, items: children.map((child) => toConfigNode(child, positionOf)) };
  }
  if (type === 'object') {
    const members = new Map<string, ConfigNode>();
    const repeated: { key: string; at: Position }[] = [];
    for (const { children: [key, member] = [] } of children) {
      if (key === undefined || member === undefined) continue;
      const name = String(key.value);
      if (members.has(name)) repeated.push({ key: name, at: positionOf(key.offset) });
      else members.set(name, toConfigNode(member, positionOf));
    }
    return { kind: 'object', at, members, repeated };
  }
  if (typeof value === 'string') return { kind: 'text', at, value };
  if (typeof value === 'number') return { kind: 'number', at, value };
  if (typeof value === 'boolean') return { kind: 'boolean', at, value };
  return { kind: 'null', at };
}

/** The parser calls itself for each level, which a file of brackets alone would bring to an end. */
function findTooDeep(text: string): number | undefined {
  const scanner = createScanner(text, true);
  let depth = 0;
  let previous = -1;
  for (scanner.scan(); scanner.getPosition() > previous; scanner.scan()) {
    previous = scanner.getPosition();
    const start = text[scanner.getTokenOffset()];
    if (start === '{' || start === '[') depth += 1;
    if (start === '}' || start === ']') depth -= 1;
    if (depth > MAX_DEPTH) return scanner.getTokenOffset();
  }
  return undefined;
}

/** Finds lines by halving: a file may have a hundred thousand of them. */
function locate(text: string): (offset: number) => Position {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}

const EMPTY = 'expected an object, got nothing.';

/** By the names that the parser gives its errors. */
const PROBLEMS: Readonly<Record<string, string>> = {
  InvalidSymbol: 'a word that is no JSON begins here; texts stand in double quotes.',
  InvalidNumberFormat: 'expected a number as JSON writes it.',
  PropertyNameExpected: 'expected a key in double quotes.',
  ValueExpected: 'expected a value.',
  ColonExpected: 'expected a colon.',
  CommaExpected: 'expected a comma.',
  CloseBraceExpected: 'expected the closing } of an object.',
  CloseBracketExpected: 'expected the closing ] of a list.',
  EndOfFileExpected: 'expected the end of the file.',
  UnexpectedEndOfComment: 'a comment that begins here does not end.',
  UnexpectedEndOfString: 'a text that begins here does not end on its line.',
  UnexpectedEndOfNumber: 'a number that begins here does not end.',
  InvalidUnicode: 'expected \\u and four hexadecimal digits.',
  InvalidEscapeCharacter: 'a backslash before a character that needs none; a backslash itself is written twice.',
  InvalidCharacter: 'a character that JSON texts write with a backslash, such as a tab.',
};

function explain(error: ParseError['error']): string {
  return PROBLEMS[printParseErrorCode(error)] ?? 'something that is not JSON begins here.';
}
