/** Changes what clients see of a server's tools: which ones, and by which names and descriptions. */
import { editFrame, type Frame, replaceSpans } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { findAllUnmistakable, findUnmistakable } from '../../wire/json/outline.ts';
import type { Edit } from '../../wire/json/scan-json.ts';
import { joinTools, readToolList } from '../classify/tool-list.ts';
import { encodeJson } from '../vocabulary/payload.ts';

/** Texts as JSON that replace those of a tool. A text that is undefined stays as the server wrote it. */
export interface ToolTexts {
  readonly name: Buffer | undefined;
  readonly title: Buffer | undefined;
  readonly description: Buffer | undefined;
}

/** Decides how the tool with this name is shown. */
export type ShapeTool = (name: string) => ToolTexts | 'as-is' | 'hidden';

/**
 * Returns a result of `tools/list` as clients see it. Items whose name is unclear are left out, as are tools of which a
 * text could be read in several ways that is replaced. Undefined if the list itself cannot be read.
 */
export function shapeTools(frame: Frame, shapeTool: ShapeTool): Frame | undefined {
  const { bytes, payloadStart } = frame;
  if (findUnmistakable(frame, payloadStart, 'tools') === undefined) return frame;
  const read = readToolList(frame);
  if (read === undefined) return undefined;
  const shown: Buffer[] = [];
  const edits: Edit[] = [];
  for (const { span, tool } of read.items) {
    const shape = tool === undefined ? 'hidden' : shapeTool(tool.name);
    if (shape === 'hidden') continue;
    const definition = bytes.subarray(span.start, span.end);
    const replacement = shape === 'as-is' ? definition : withTexts(definition, shape);
    if (replacement === undefined) continue;
    shown.push(replacement);
    if (replacement !== definition) edits.push({ ...span, replacement });
  }
  if (shown.length === read.items.length) return editFrame(frame, edits);
  return editFrame(frame, [{ ...read.list, replacement: joinTools(shown) }]);
}

const TEXTS = ['name', 'title', 'description', 'annotations'] as const;

/** Returns the definition of a tool with these texts. Undefined if a text that is replaced is unclear. */
function withTexts(definition: Buffer, { name, title, description }: ToolTexts): Buffer | undefined {
  const [, foundTitle, foundDescription, annotations] = findAllUnmistakable({ bytes: definition }, 0, TEXTS);
  const isUnclear =
    (title !== undefined && (foundTitle === 'unclear' || annotations === 'unclear')) ||
    (description !== undefined && foundDescription === 'unclear');
  const tool = isUnclear ? undefined : ObjectEditor.read(definition, 0, TEXTS);
  if (tool === undefined) return undefined;
  if (name !== undefined) tool.set('name', name);
  if (description !== undefined) tool.set('description', description);
  if (title !== undefined) {
    tool.set('title', title);
    // Clients of revisions before 2025-06-18 know only the title in the annotations.
    const start = typeof annotations === 'object' ? annotations.start : -1;
    const found = findUnmistakable({ bytes: definition }, start, 'title');
    if (found === 'unclear') return undefined;
    if (found !== undefined) tool.edit('annotations', [{ ...found, replacement: title }]);
  }
  return replaceSpans(definition, tool.edits());
}

/** Returns a `tools/call` with another name of the tool, as JSON. The name in the message is not unclear. */
export function withToolName(call: Frame, name: Buffer): Frame {
  const found = findUnmistakable(call, call.payloadStart, 'name');
  return typeof found === 'object' ? editFrame(call, [{ ...found, replacement: name }]) : call;
}

const PRIVATE = encodeJson('private');

/**
 * Returns a list that differs by caller, marked so that no cache shows it to another one. A result of the legacy era has
 * no such mark, and is not cached. [spec 2026-07-28 server/utilities/caching#cache-scope-field]
 */
export function asPrivate(list: Frame): Frame {
  const result = ObjectEditor.readIn(list, list.payloadStart, ['cacheScope']);
  if (result?.value('cacheScope') === undefined) return list;
  result.set('cacheScope', PRIVATE);
  return editFrame(list, result.edits());
}
