/**
 * Results for clients of a revision that lacks some of their members or content types. Unchanged parts stay byte for
 * byte.
 */

import { editFrame, type Frame } from '../../wire/frame.ts';
import { OPEN_BRACE } from '../../wire/json/ascii.ts';
import { itemEditors, itemSpans, ObjectEditor } from '../../wire/json/object-editor.ts';
import { findMember } from '../../wire/json/outline.ts';
import { type Edit, findText, isStringToken, type Span } from '../../wire/json/scan-json.ts';
import { CALL_TOOL, GET_PROMPT, LIST_TOOLS } from '../vocabulary/methods.ts';
import { asFields, encodeJson, type Fields, PartReader, parseSpan, showText } from '../vocabulary/payload.ts';
import { featuresOf, type RevisionFeatures, type RevisionId } from '../vocabulary/revisions.ts';
import { isNameMap, isSchemaKeyword } from '../vocabulary/schema-keywords.ts';

export interface DowngradeOptions {
  /** The method of the request that the result answers. */
  readonly method: string;
  readonly clientRevision: RevisionId;
  /**
   * True for a `tools/call` if `downgradeTools` listed the tool as wrapped. Undefined if that is unknown; the value
   * then decides.
   */
  readonly isWrapped?: boolean | undefined;
}

/** A server's result for a client of an older revision. */
export function downgradeResult(frame: Frame, options: DowngradeOptions): Frame {
  if (frame.kind !== 'result') return frame;
  const features = featuresOf(options.clientRevision);
  switch (options.method) {
    case CALL_TOOL:
      return downgradeToolResult(frame, features, options.isWrapped);
    case LIST_TOOLS:
      return downgradeTools(frame, options.clientRevision).frame;
    case GET_PROMPT:
      return editValues(frame, 'messages', (parts, message, index) =>
        messageEdits(parts, message, { features, index }),
      );
    default:
      return frame;
  }
}

export interface DowngradedTools {
  readonly frame: Frame;
  /** Names of the tools whose output is wrapped in an object for older clients. */
  readonly wrapped: readonly string[];
}

/** Downgrades a page of `tools/list` for an older client, and lists the tools whose results must be wrapped. */
export function downgradeTools(frame: Frame, clientRevision: RevisionId): DowngradedTools {
  const { bytes, payloadStart, outline } = frame;
  const list = frame.kind === 'result' ? findMember(bytes, payloadStart, 'tools', outline) : undefined;
  const tools = itemEditors(bytes, list?.start ?? -1, ['name', 'outputSchema']) ?? [];
  const parts = new PartReader(bytes);
  const features = featuresOf(clientRevision);
  const wrapped: string[] = [];
  const edits = tools.flatMap((tool) => {
    const schema = tool.value('outputSchema');
    if (schema === undefined) return [];
    const isWrapped = !hasObjectRoot(bytes, schema);
    const name = isWrapped ? tool.value('name') : undefined;
    const read = name && parseSpan(bytes, name);
    if (typeof read === 'string') wrapped.push(read);
    if (!features.structuredContent) tool.remove('outputSchema');
    else if (isWrapped) wrapOutput(tool, parts.read(schema));
    return tool.edits();
  });
  return { frame: editFrame(frame, edits), wrapped };
}

function wrapOutput(tool: ObjectEditor, schema: unknown): void {
  const fields = asFields(schema);
  if (fields === undefined) tool.remove('outputSchema');
  else tool.set('outputSchema', encodeJson(wrapOutputSchema(fields)));
}

type ItemEdits = (parts: PartReader, item: Span, index: number) => readonly Edit[];

/** Edits the items of an array in the result. */
function editValues(frame: Frame, key: string, edit: ItemEdits): Frame {
  const { bytes, payloadStart, outline } = frame;
  const items = itemSpans(bytes, findMember(bytes, payloadStart, key, outline)?.start ?? -1) ?? [];
  const parts = new PartReader(bytes);
  return editFrame(
    frame,
    items.flatMap((item, index) => edit(parts, item, index)),
  );
}

/**
 * Returns true if the output schema has `"type": "object"` at its root, as legacy revisions require. Outputs of all
 * other schemas are wrapped, even if every valid value is an object.
 */
function hasObjectRoot(bytes: Buffer, schema: Span): boolean {
  const type = findMember(bytes, schema.start, 'type');
  return type !== undefined && isStringToken(bytes, type.start, type.end, 'object');
}

function downgradeToolResult(frame: Frame, features: RevisionFeatures, isWrapped: boolean | undefined): Frame {
  const { bytes, payloadStart } = frame;
  if (isWrapped !== true && passesAsItIs(frame, features)) return frame;
  const result = ObjectEditor.readIn(frame, payloadStart, ['content', 'structuredContent']);
  const parts = new PartReader(bytes);
  if (result === undefined) return frame;
  const content = itemSpans(bytes, result.value('content')?.start ?? -1) ?? [];
  const contentEdits = content.flatMap((block, index) => blockEdits(parts, block, { features, index }));
  const structured = result.value('structuredContent');
  if (structured !== undefined && !features.structuredContent) {
    result.remove('structuredContent');
    // Without a text block the structured content was the only output, so it is repeated as text.
    if (!content.some(({ start }) => isTextBlock(bytes, start))) {
      const text = bytes.toString('utf8', structured.start, structured.end);
      contentEdits.push(...appendBlock(bytes, result, encodeJson(textBlock(text))));
    }
  } else if (structured !== undefined && (isWrapped === true || bytes[structured.start] !== OPEN_BRACE)) {
    const value = bytes.subarray(structured.start, structured.end);
    result.set('structuredContent', Buffer.concat([Buffer.from(`{"${WRAPPED_OUTPUT}":`), value, Buffer.from('}')]));
  }
  if (contentEdits.length > 0) result.edit('content', contentEdits);
  return editFrame(frame, result.edits());
}

/** Returns true for most results: the revision has every content type, and the output is missing or an object. */
function passesAsItIs({ bytes, payloadStart, outline }: Frame, features: RevisionFeatures): boolean {
  if (!features.audio || !features.resourceLinks || !features.structuredContent) return false;
  const structured = findMember(bytes, payloadStart, 'structuredContent', outline);
  return structured === undefined || bytes[structured.start] === OPEN_BRACE;
}

export function isTextBlock(bytes: Buffer, blockStart: number): boolean {
  const type = findMember(bytes, blockStart, 'type');
  return type !== undefined && isStringToken(bytes, type.start, type.end, 'text');
}

/**
 * Appends a block, given as JSON text, to the content of a result. The returned edits apply to the existing list; a
 * missing list is set directly.
 */
export function appendBlock(bytes: Buffer, result: ObjectEditor, block: Buffer): readonly Edit[] {
  const content = result.value('content');
  const items = content && itemSpans(bytes, content.start);
  if (content === undefined || items === undefined) {
    result.set('content', Buffer.concat([Buffer.from('['), block, Buffer.from(']')]));
    return [];
  }
  const last = items.at(-1);
  const at = last?.end ?? content.start + 1;
  return [{ start: at, end: at, replacement: last === undefined ? block : Buffer.concat([Buffer.from(','), block]) }];
}

interface BlockContext {
  readonly features: RevisionFeatures;
  /** The position of the block among its siblings. */
  readonly index: number;
}

function messageEdits(parts: PartReader, { start }: Span, context: BlockContext): readonly Edit[] {
  const content = findMember(parts.bytes, start, 'content');
  return content === undefined ? [] : blockEdits(parts, content, context);
}

const newTypes = ['audio', 'resource_link'] as const;

function blockEdits(parts: PartReader, block: Span, { features, index }: BlockContext): readonly Edit[] {
  const { bytes } = parts;
  const type = findMember(bytes, block.start, 'type');
  if (type === undefined || findText(bytes, type.start, type.end, newTypes) === undefined) return [];
  const fields = asFields(parts.read(block));
  const older = fields && downgradeBlock(fields, features, index);
  return older === undefined || older === fields ? [] : [{ ...block, replacement: encodeJson(older) }];
}

// ---- Content blocks for clients of a revision without their type

/**
 * Returns the block unchanged if the revision knows its type. `index` is its position among its siblings, which makes
 * the URI of a converted block unique.
 */
export function downgradeBlock(block: Fields, features: RevisionFeatures, index: number): Fields {
  if (block.type === 'audio' && !features.audio) return audioAsResource(block, index);
  if (block.type === 'resource_link' && !features.resourceLinks) return linkAsText(block);
  return block;
}

export function textBlock(text: string): Fields {
  return { type: 'text', text };
}

/**
 * Embeds audio as a resource. [spec 2024-11-05 schema#embeddedresource] no other type of that revision holds arbitrary
 * bytes.
 */
function audioAsResource({ data, mimeType, annotations }: Fields, index: number): Fields {
  const resource = { uri: `embedded:audio-${index + 1}`, mimeType, blob: data };
  return { type: 'resource', resource, ...(annotations !== undefined && { annotations }) };
}

function linkAsText({ name, title, uri, description, annotations }: Fields): Fields {
  const label = [title, name].find((text) => typeof text === 'string' && text !== '');
  const link = label === undefined ? showText(uri) : `${label}: ${showText(uri)}`;
  const text = typeof description === 'string' && description !== '' ? `${link}\n${description}` : link;
  return { ...textBlock(text), ...(annotations !== undefined && { annotations }) };
}

// ---- Structured output of a modern tool may be any JSON value, of a legacy tool only an object. Clients of those
// revisions get an object with the value in it, and a schema that says so. [spec 2026-07-28 changelog, SEP-2106] The
// same object the official SDK makes.

/** The only member of the wrapping object. */
export const WRAPPED_OUTPUT = 'result';

const WRAPPED_POINTER = `/properties/${WRAPPED_OUTPUT}`;

/** Limit of the recursion, beyond any schema in use. */
const MAX_DEPTH = 200;

/** The output schema of a wrapped output. References inside the original schema still resolve. */
export function wrapOutputSchema(schema: Fields): Fields {
  const dialect = typeof schema.$schema === 'string' ? { $schema: schema.$schema } : {};
  return {
    ...dialect,
    type: 'object',
    properties: { [WRAPPED_OUTPUT]: moved(schema, 0) },
    required: [WRAPPED_OUTPUT],
  };
}

/** Adjusts a schema whose root is now nested in the wrapping schema. */
function moved(schema: unknown, depth: number): unknown {
  if (depth > MAX_DEPTH) return schema;
  if (Array.isArray(schema)) return schema.map((item) => moved(item, depth + 1));
  const fields = asFields(schema);
  // References in a schema with its own base URI are relative to that URI and stay valid.
  if (fields === undefined || hasBase(fields)) return schema;
  return Object.fromEntries(
    Object.entries(fields).map(([keyword, value]) => [keyword, movedMember(keyword, value, depth)]),
  );
}

/** [RFC 3986; JSON Schema draft-07] an `$id` that is only a fragment is an anchor and no base URI. */
function hasBase({ $id }: Fields): boolean {
  return typeof $id === 'string' && !$id.startsWith('#');
}

function movedMember(keyword: string, value: unknown, depth: number): unknown {
  if (keyword === '$ref' || keyword === '$dynamicRef') return movedReference(value);
  if (isNameMap(keyword)) {
    const named = asFields(value);
    if (named === undefined) return value;
    return Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, moved(schema, depth + 1)]));
  }
  return isSchemaKeyword(keyword) ? moved(value, depth + 1) : value;
}

/** Only JSON pointers from the root change; anchors and references to other documents stay valid. */
function movedReference(reference: unknown): unknown {
  if (typeof reference !== 'string' || (reference !== '#' && !reference.startsWith('#/'))) return reference;
  return `#${WRAPPED_POINTER}${reference.slice(1)}`;
}
