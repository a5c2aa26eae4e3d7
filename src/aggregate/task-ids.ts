/** Ids of tasks (2025-11-25 and the tasks extension) in messages: each server counts its own, and clients see who has which. */
import { META_RELATED_TASK } from '../mcp/vocabulary/meta.ts';
import { isTaskRequest, TASK_STATUS } from '../mcp/vocabulary/methods.ts';
import { encodeJson, parseSpan } from '../mcp/vocabulary/payload.ts';
import { TASK_CHANGED } from '../mcp/vocabulary/task-extension.ts';
import { editFrame, type Frame } from '../wire/frame.ts';
import { OPEN_BRACE } from '../wire/json/ascii.ts';
import { itemSpans } from '../wire/json/object-editor.ts';
import { findMember } from '../wire/json/outline.ts';
import { type Edit, isStringToken, type Span } from '../wire/json/scan-json.ts';

const TASK_MARK = Buffer.from('ask');

/**
 * - `about`: the message may belong to a task, which its `_meta` names.
 * - `created`: the message is an answer, which may also have the new task in its member `task`.
 * - `whole`: the message is about tasks itself, so it may also have `taskId`, or several `tasks`.
 */
export type TaskPlaces = 'about' | 'created' | 'whole';

/** Returns where the answer to a request, or a notification, may name tasks. */
export function placesOf(method: string, answer: Frame | undefined): TaskPlaces {
  if (isTaskRequest(method) || method === TASK_STATUS || method === TASK_CHANGED) return 'whole';
  return answer === undefined ? 'about' : 'created';
}

/** Replaces the ids of a server's tasks in a message. Undefined from `rename` leaves an id as it is. */
export function withTaskIds(frame: Frame, places: TaskPlaces, rename: (id: string) => string | undefined): Frame {
  const { bytes, payloadStart, outline } = frame;
  if (payloadStart === -1 || bytes[payloadStart] !== OPEN_BRACE || !bytes.includes(TASK_MARK, payloadStart))
    return frame;
  const find = (start: number | undefined, key: string): Span | undefined =>
    start === undefined || bytes[start] !== OPEN_BRACE ? undefined : findMember(bytes, start, key, outline);
  const owners = [find(find(payloadStart, '_meta')?.start, META_RELATED_TASK)?.start];
  // In the modern era, a new task is the result itself, which says so.
  const isWhole = places === 'whole' || (places === 'created' && isTask(frame, find(payloadStart, 'resultType')));
  if (isWhole) {
    const tasks = find(payloadStart, 'tasks');
    const items = tasks === undefined ? [] : (itemSpans(bytes, tasks.start) ?? []);
    owners.push(payloadStart, ...items.map(({ start }) => start));
  }
  if (places !== 'about') owners.push(find(payloadStart, 'task')?.start);
  const edits: Edit[] = owners.flatMap((start) => {
    const span = find(start, 'taskId');
    const id = span && parseSpan(bytes, span);
    const renamed = typeof id === 'string' ? rename(id) : undefined;
    return span === undefined || renamed === undefined ? [] : [{ ...span, replacement: encodeJson(renamed) }];
  });
  return editFrame(
    frame,
    edits.sort((a, b) => a.start - b.start),
  );
}

function isTask({ bytes }: Frame, type: Span | undefined): boolean {
  return type !== undefined && isStringToken(bytes, type.start, type.end, 'task');
}
