/** Ids of tasks (2025-11-25 and the tasks extension) in messages: each server counts its own, and clients see who has which. */
import { META_RELATED_TASK } from '../mcp/vocabulary/meta.ts';
import { encodeJson, parseSpan } from '../mcp/vocabulary/payload.ts';
import { editFrame, type Frame } from '../wire/frame.ts';
import { OPEN_BRACE } from '../wire/json/ascii.ts';
import { itemSpans } from '../wire/json/object-editor.ts';
import { findMember } from '../wire/json/outline.ts';
import type { Edit, Span } from '../wire/json/scan-json.ts';

const TASK_MARK = Buffer.from('ask');

/**
 * Replaces each task id that the message has in the places that the specification knows: in the payload itself, in its
 * `task`, in each of its `tasks`, and in `_meta` for messages about a task. Undefined from `rename` leaves an id as it is.
 */
export function withTaskIds(frame: Frame, rename: (id: string) => string | undefined): Frame {
  const { bytes, payloadStart, outline } = frame;
  if (payloadStart === -1 || bytes[payloadStart] !== OPEN_BRACE || !bytes.includes(TASK_MARK, payloadStart))
    return frame;
  const find = (start: number | undefined, key: string): Span | undefined =>
    start === undefined || bytes[start] !== OPEN_BRACE ? undefined : findMember(bytes, start, key, outline);
  const tasks = find(payloadStart, 'tasks');
  const related = find(find(payloadStart, '_meta')?.start, META_RELATED_TASK);
  const owners = [
    payloadStart,
    find(payloadStart, 'task')?.start,
    related?.start,
    ...(tasks === undefined ? [] : (itemSpans(bytes, tasks.start) ?? []).map(({ start }) => start)),
  ];
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
