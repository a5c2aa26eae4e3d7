/**
 * Limits the size of what a tool returns, block by block, for clients whose models have little room. Text that is too
 * long is cut and says so in its last line; everything else that is too long becomes a text that says so. All other
 * bytes stay as written.
 */

import { editFrame, type Frame } from '../../wire/frame.ts';
import { OPEN_BRACKET, QUOTE } from '../../wire/json/ascii.ts';
import { characterStart, cutString } from '../../wire/json/cut-string.ts';
import { itemEditors, itemSpans, ObjectEditor } from '../../wire/json/object-editor.ts';
import { findMember } from '../../wire/json/outline.ts';
import { type Edit, findText, type Span } from '../../wire/json/scan-json.ts';
import { CALL_TOOL, TASK_RESULT } from '../vocabulary/methods.ts';
import { encodeJson } from '../vocabulary/payload.ts';
import { GET_TASK, TASK_CHANGED } from '../vocabulary/task-extension.ts';
import { appendBlock, isTextBlock, textBlock } from './downgrade-results.ts';

/**
 * Limits the answer to a request with this method. Results of tools come as answers to calls and, if the call has
 * become a task, to requests about the task. All other answers, and results that report an error, stay whole.
 */
export function limitToolResult(answer: Frame, method: string, maxBytes: number): Frame {
  // A short message has no long part.
  if (answer.kind !== 'result' || answer.bytes.length <= maxBytes) return answer;
  switch (method) {
    case CALL_TOOL:
    case TASK_RESULT:
      return limitAt(answer, answer.payloadStart, maxBytes);
    case GET_TASK:
      return limitOutcome(answer, maxBytes);
    default:
      return answer;
  }
}

/** Limits the result in a notification that tells a client about a task. Other notifications stay whole. */
export function limitTaskNotification(notification: Frame, maxBytes: number): Frame {
  if (notification.method !== TASK_CHANGED || notification.bytes.length <= maxBytes) return notification;
  return limitOutcome(notification, maxBytes);
}

/** Limits the result among the members of a task. A task that has none is not completed, or has failed. */
function limitOutcome(frame: Frame, maxBytes: number): Frame {
  const { bytes, payloadStart, outline } = frame;
  return limitAt(frame, findMember(bytes, payloadStart, 'result', outline)?.start ?? -1, maxBytes);
}

const RESULT_MEMBERS = ['content', 'structuredContent', 'isError'];

/** Limits the tool's result at this offset. */
function limitAt(frame: Frame, resultStart: number, maxBytes: number): Frame {
  const { bytes } = frame;
  const result = ObjectEditor.readIn(frame, resultStart, RESULT_MEMBERS);
  if (result === undefined || isTrue(bytes, result.value('isError'))) return frame;
  const content = result.value('content');
  const blocks = content && itemSpans(bytes, content.start);
  // A list with more blocks than are read passes unread, like all such lists.
  if (content !== undefined && blocks === undefined && bytes[content.start] === OPEN_BRACKET) return frame;
  const large = (blocks ?? []).filter((block) => lengthOf(block) > maxBytes);
  const contentEdits = large.flatMap((block) => blockEdits(bytes, block, maxBytes));
  const structured = result.value('structuredContent');
  if (structured !== undefined && lengthOf(structured) > maxBytes) {
    result.remove('structuredContent');
    // Most servers repeat structured content as text, which is limited by itself.
    const isRepeated = blocks?.some(({ start }) => isTextBlock(bytes, start)) === true;
    const text = isRepeated
      ? notice('The structured content', lengthOf(structured), 0)
      : cutJson(bytes, structured, maxBytes);
    contentEdits.push(...appendBlock(bytes, result, encodeJson(textBlock(text))));
  }
  if (contentEdits.length > 0) result.edit('content', contentEdits);
  return editFrame(frame, result.edits());
}

function isTrue(bytes: Buffer, value: Span | undefined): boolean {
  return value !== undefined && bytes.toString('latin1', value.start, value.end) === 'true';
}

function lengthOf({ start, end }: Span): number {
  return end - start;
}

/** The last line of what is cut, and the only one of what is left out. */
function notice(subject: string, fullBytes: number, keptBytes: number): string {
  return `[${subject} has ${fullBytes} bytes, of which ${keptBytes} are kept: mcp-portage limits results by --max-result-bytes.]`;
}

/** The first bytes of a value's JSON text, with the notice. */
function cutJson(bytes: Buffer, { start, end }: Span, maxBytes: number): string {
  const kept = characterStart(bytes, start, start + maxBytes);
  return `${bytes.toString('utf8', start, kept)}\n${notice('The structured content', end - start, kept - start)}`;
}

const BLOCK_MEMBERS = ['type', 'text', 'data', 'mimeType', 'resource'];
const RESOURCE_MEMBERS = ['text', 'blob', 'mimeType'];
const TEXT_TYPE = encodeJson('text');

function blockEdits(bytes: Buffer, span: Span, maxBytes: number): readonly Edit[] {
  const block = ObjectEditor.read(bytes, span.start, BLOCK_MEMBERS);
  if (block === undefined) return [];
  const type = block.value('type');
  switch (type && findText(bytes, type.start, type.end, ['text', 'image', 'audio', 'resource'])) {
    case 'text':
      cutText(bytes, block, maxBytes);
      break;
    case 'image':
      replaceData(bytes, block, { subject: 'This image', maxBytes });
      break;
    case 'audio':
      replaceData(bytes, block, { subject: 'This audio', maxBytes });
      break;
    case 'resource':
      limitResource(bytes, block, maxBytes);
      break;
    default:
      // The members of other types are unknown, so such a block counts as a whole.
      return [{ ...span, replacement: encodeJson(textBlock(notice('This block', lengthOf(span), 0))) }];
  }
  return block.edits();
}

/** Cuts the member `text`, if it is too long. */
function cutText(bytes: Buffer, holder: ObjectEditor, maxBytes: number): void {
  const text = stringOf(bytes, holder, 'text');
  const cut = text && cutString(bytes, text, maxBytes);
  if (cut === undefined) return;
  const lastLine = JSON.stringify(`\n${notice('This text', cut.fullBytes, cut.keptBytes)}`);
  holder.set('text', Buffer.concat([bytes.subarray(text?.start, cut.at), Buffer.from(lastLine.slice(1))]));
}

interface DataLimit {
  readonly subject: string;
  readonly maxBytes: number;
}

/** Turns a block whose data is too long into a text. Its annotations stay. */
function replaceData(bytes: Buffer, block: ObjectEditor, { subject, maxBytes }: DataLimit): void {
  const data = stringOf(bytes, block, 'data');
  const cut = data && cutString(bytes, data, maxBytes);
  if (cut === undefined) return;
  becomeText(block, ['data', 'mimeType'], notice(`${subject} in Base64`, cut.fullBytes, 0));
}

/** Cuts the text of a resource. A resource whose bytes are too long becomes a text. */
function limitResource(bytes: Buffer, block: ObjectEditor, maxBytes: number): void {
  const resource = ObjectEditor.read(bytes, block.value('resource')?.start ?? -1, RESOURCE_MEMBERS);
  if (resource === undefined) return;
  const blob = stringOf(bytes, resource, 'blob');
  const cut = blob && cutString(bytes, blob, maxBytes);
  if (cut !== undefined) return becomeText(block, ['resource'], notice('This resource in Base64', cut.fullBytes, 0));
  cutText(bytes, resource, maxBytes);
  const edits = resource.edits();
  if (edits.length > 0) block.edit('resource', edits);
}

function becomeText(block: ObjectEditor, removed: readonly string[], text: string): void {
  block.set('type', TEXT_TYPE);
  for (const key of removed) block.remove(key);
  block.set('text', encodeJson(text));
}

function stringOf(bytes: Buffer, holder: ObjectEditor, key: string): Span | undefined {
  const value = holder.value(key);
  return value !== undefined && bytes[value.start] === QUOTE ? value : undefined;
}

/**
 * A list of tools without output schemas. A tool that has one must return structured content, and clients with an
 * official SDK refuse a result from which the limit has removed it. Without the schema, structured content is optional.
 * [spec 2025-11-25 server/tools#output-schema]
 */
export function withoutOutputSchemas(list: Frame): Frame {
  if (list.kind !== 'result') return list;
  const { bytes, payloadStart, outline } = list;
  const tools = itemEditors(bytes, findMember(bytes, payloadStart, 'tools', outline)?.start ?? -1, ['outputSchema']);
  for (const tool of tools ?? []) tool.remove('outputSchema');
  return editFrame(
    list,
    (tools ?? []).flatMap((tool) => tool.edits()),
  );
}
