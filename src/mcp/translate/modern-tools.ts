/** Adapts the tools of a legacy server to what modern clients expect. */

import { CLOSE_BRACE, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET } from '../../wire/json/ascii.ts';
import { itemEditors, ObjectEditor } from '../../wire/json/object-editor.ts';
import {
  type Edit,
  isStringToken,
  MemberCursor,
  type Span,
  skipValue,
  skipWhitespace,
} from '../../wire/json/scan-json.ts';
import { classifyKeyword, PARAM_HEADER_KEYWORD } from '../vocabulary/schema-keywords.ts';

const KEYWORD = Buffer.from(`"${PARAM_HEADER_KEYWORD}"`);
/** Only escapes of this kind could spell the keyword otherwise. */
const UNICODE_ESCAPE = Buffer.from('\\u');
const OBJECT_SCHEMA = Buffer.from('{"type":"object"}');
const OBJECT_TYPE = Buffer.from('"object"');

/** Limit for nested schemas, deeper than any sensible one. Deeper parts stay unchanged. */
const MAX_SCHEMA_DEPTH = 64;

/**
 * Edits for the list of tools at `toolsStart`. Schemas are edited in place rather than parsed and printed, because a
 * 64-bit `maximum`, which is common, would lose precision.
 */
export function modernToolEdits(bytes: Buffer, toolsStart: number): readonly Edit[] {
  const tools = itemEditors(bytes, toolsStart, ['execution', 'inputSchema']) ?? [];
  return tools.flatMap((tool) => toolEdits(bytes, tool));
}

function toolEdits(bytes: Buffer, tool: ObjectEditor): readonly Edit[] {
  // `execution` describes tasks of 2025-11-25, which modern clients cannot use.
  tool.remove('execution');
  const schema = tool.value('inputSchema');
  const edits = schema && schemaEdits(bytes, schema);
  if (edits === undefined) tool.set('inputSchema', OBJECT_SCHEMA);
  else if (edits.length > 0) tool.edit('inputSchema', edits);
  return tool.edits();
}

/** Returns undefined if the schema is no object. */
function schemaEdits(bytes: Buffer, { start, end }: Span): readonly Edit[] | undefined {
  const root = ObjectEditor.read(bytes, start, ['type', PARAM_HEADER_KEYWORD]);
  if (root === undefined) return undefined;
  const type = root.value('type');
  const isObject = type !== undefined && isStringToken(bytes, type.start, type.end, 'object');
  if (!isObject) root.set('type', OBJECT_TYPE);
  // Most schemas have no annotation, which a native search shows without a walk.
  const schema = bytes.subarray(start, end);
  if (!schema.includes(KEYWORD) && !schema.includes(UNICODE_ESCAPE)) return root.edits();
  root.remove(PARAM_HEADER_KEYWORD);
  const walk = new AnnotationWalk(bytes);
  walk.visitBelow(start);
  return [...root.edits(), ...walk.edits].sort((a, b) => a.start - b.start);
}

/**
 * The role of a value in a schema: `schema` for a schema or a list of schemas, `names` for a map of names to schemas,
 * `root` for the outermost schema.
 */
type Role = 'schema' | 'names' | 'root';

/**
 * Removes header annotations from a schema: a legacy server does not know the duties that come with them, and a modern
 * client hides a tool with an invalid one. Visits each byte once, at any depth.
 */
class AnnotationWalk {
  /** In ascending order. Filled by single pushes, because there may be more edits than a call can have arguments. */
  readonly edits: Edit[] = [];
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Visits everything nested in the schema at `start`, but does not remove members of that schema itself. */
  visitBelow(start: number): void {
    this.#visitMembers(start, 'root', 0);
  }

  /** Like the two methods below, returns the offset after the value, or -1 if the value is malformed. */
  #visit(start: number, role: Role, depth: number): number {
    const first = this.#bytes[start];
    const second = this.#bytes[start + 1];
    // Fast path for empty values, of which a schema can have a million.
    const isEmpty = first === OPEN_BRACE ? second === CLOSE_BRACE : first === OPEN_BRACKET && second === CLOSE_BRACKET;
    if (isEmpty) return start + 2;
    if (depth <= MAX_SCHEMA_DEPTH && first === OPEN_BRACE) return this.#visitMembers(start, role, depth);
    if (depth <= MAX_SCHEMA_DEPTH && first === OPEN_BRACKET) return this.#visitItems(start, depth);
    return skipValue(this.#bytes, start);
  }

  #visitItems(start: number, depth: number): number {
    const bytes = this.#bytes;
    let at = skipWhitespace(bytes, start + 1);
    while (at < bytes.length && bytes[at] !== CLOSE_BRACKET) {
      const end = this.#visit(at, 'schema', depth + 1);
      if (end === -1) return -1;
      const next = skipWhitespace(bytes, end);
      at = bytes[next] === COMMA ? skipWhitespace(bytes, next + 1) : next;
    }
    return at < bytes.length ? at + 1 : -1;
  }

  #visitMembers(start: number, role: Role, depth: number): number {
    const bytes = this.#bytes;
    const members = new MemberCursor(bytes, start);
    let hasKept = false;
    let previousEnd = -1;
    /**
     * Start of a removed member with no kept member before it. It is removed together with the comma after it, up to
     * the key of the next member.
     */
    let leadingStart = -1;
    while (members.next()) {
      const { keyStart, keyEnd, valueStart } = members;
      if (leadingStart !== -1) this.#remove(leadingStart, keyStart);
      leadingStart = -1;
      const keyword = role === 'names' ? 'other' : classifyKeyword(bytes, keyStart, keyEnd);
      if (keyword === 'header' && role === 'schema') {
        if (hasKept) this.#remove(previousEnd, members.valueEnd());
        else leadingStart = keyStart;
      } else {
        hasKept = true;
        if (keyword === 'names' || keyword === 'other') {
          const end = this.#visit(valueStart, keyword === 'names' ? 'names' : 'schema', depth + 1);
          if (end === -1) return -1;
          members.passTo(end);
        }
      }
      previousEnd = members.valueEnd();
    }
    if (leadingStart !== -1) this.#remove(leadingStart, previousEnd);
    return members.objectEnd;
  }

  #remove(start: number, end: number): void {
    this.edits.push({ start, end, replacement: NOTHING });
  }
}

const NOTHING = Buffer.alloc(0);
