/** The tools of a legacy server as a modern client expects them. */

import { itemSpans } from '../wire/array-items.ts';
import { OPEN_BRACE, OPEN_BRACKET } from '../wire/ascii.ts';
import { ObjectEditor } from '../wire/object-editor.ts';
import { decodeString, isStringToken, MemberCursor, type Span } from '../wire/scan-json.ts';
import type { Edit } from '../wire/splice.ts';
import { isDataKeyword, isNameMap, PARAM_HEADER_KEYWORD } from './schema-keywords.ts';

const KEYWORD = Buffer.from(`"${PARAM_HEADER_KEYWORD}"`);
/** Only escapes of this kind could spell the keyword otherwise. */
const UNICODE_ESCAPE = Buffer.from('\\u');
const OBJECT_SCHEMA = Buffer.from('{"type":"object"}');
const OBJECT_TYPE = Buffer.from('"object"');

/** No sensible schema nests deeper; what lies below stays as it is. */
const MAX_SCHEMA_DEPTH = 64;

/**
 * Edits of the list of tools at `toolsStart`. No schema is printed anew: the largest integer of 64 bits, a common
 * `maximum`, would come out as another number.
 */
export function modernToolEdits(bytes: Buffer, toolsStart: number): readonly Edit[] {
  const tools = itemSpans(bytes, toolsStart) ?? [];
  return tools.flatMap((tool) => toolEdits(bytes, tool));
}

function toolEdits(bytes: Buffer, { start }: Span): readonly Edit[] {
  const tool = ObjectEditor.read(bytes, start, ['execution', 'inputSchema']);
  if (tool === undefined) return [];
  // How to run it as a task of 2025-11-25, of which a modern client cannot make use.
  tool.remove('execution');
  const schema = tool.value('inputSchema');
  const edits = schema && schemaEdits(bytes, schema);
  if (edits === undefined) tool.set('inputSchema', OBJECT_SCHEMA);
  else if (edits.length > 0) tool.edit('inputSchema', edits);
  return tool.edits();
}

/** Undefined: it is no object. */
function schemaEdits(bytes: Buffer, { start, end }: Span): readonly Edit[] | undefined {
  const root = ObjectEditor.read(bytes, start, ['type', PARAM_HEADER_KEYWORD]);
  if (root === undefined) return undefined;
  const type = root.value('type');
  const isObject = type !== undefined && isStringToken(bytes, type.start, type.end, 'object');
  if (!isObject) root.set('type', OBJECT_TYPE);
  // A native search says at once that there is nothing to walk for.
  const schema = bytes.subarray(start, end);
  if (!schema.includes(KEYWORD) && !schema.includes(UNICODE_ESCAPE)) return root.edits();
  root.remove(PARAM_HEADER_KEYWORD);
  const below = placesBelow(bytes, { start, depth: 0, isNameMap: false });
  return [...root.edits(), ...annotationEdits(bytes, below)].sort((a, b) => a.start - b.start);
}

/** A place where a schema, a map of names to schemas or a list of schemas begins. */
interface Place {
  readonly start: number;
  readonly depth: number;
  readonly isNameMap: boolean;
}

/**
 * Takes the names of headers out of a schema: a legacy server does not know what they oblige it to, and a modern client
 * hides a tool whose names are not right.
 */
function annotationEdits(bytes: Buffer, roots: readonly Place[]): readonly Edit[] {
  const edits: Edit[] = [];
  const places = [...roots];
  for (let place = places.pop(); place !== undefined; place = places.pop()) {
    if (place.depth > MAX_SCHEMA_DEPTH) continue;
    if (bytes[place.start] === OPEN_BRACKET) {
      const depth = place.depth + 1;
      for (const item of itemSpans(bytes, place.start) ?? []) {
        places.push({ start: item.start, depth, isNameMap: false });
      }
      continue;
    }
    if (bytes[place.start] !== OPEN_BRACE) continue;
    // One by one: there may be more than a call can have arguments.
    for (const edit of place.isNameMap ? [] : removeAnnotation(bytes, place.start)) edits.push(edit);
    for (const below of placesBelow(bytes, place)) places.push(below);
  }
  return edits;
}

function removeAnnotation(bytes: Buffer, start: number): readonly Edit[] {
  const schema = ObjectEditor.read(bytes, start, [PARAM_HEADER_KEYWORD]);
  schema?.remove(PARAM_HEADER_KEYWORD);
  return schema?.edits() ?? [];
}

function placesBelow(bytes: Buffer, place: Place): readonly Place[] {
  const below: Place[] = [];
  const depth = place.depth + 1;
  const members = new MemberCursor(bytes, place.start);
  while (members.next()) {
    const first = bytes[members.valueStart];
    if (first !== OPEN_BRACE && first !== OPEN_BRACKET) continue;
    const keyword = place.isNameMap ? undefined : decodeString(bytes, members.keyStart, members.keyEnd);
    if (keyword === PARAM_HEADER_KEYWORD || (keyword !== undefined && isDataKeyword(keyword))) continue;
    below.push({ start: members.valueStart, depth, isNameMap: keyword !== undefined && isNameMap(keyword) });
  }
  return below;
}
