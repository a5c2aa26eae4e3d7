/** Edits of a message that leave its kind and method alone. */

import { Frame } from './frame.ts';
import { CLOSE_BRACE } from './json/ascii.ts';
import { ObjectEditor } from './json/object-editor.ts';
import { type Edit, skipValue } from './json/scan-json.ts';
import { replaceSpans } from './splice.ts';

/**
 * Edits as `replaceSpans` takes them. One that covers the start of the payload removes it; one that replaces the whole
 * id token comes with the new `id`, and no other may touch it.
 */
export function editFrame(frame: Frame, edits: readonly Edit[], id = frame.id): Frame {
  if (edits.length === 0) return frame;
  const { kind, method } = frame;
  const bytes = replaceSpans(frame.bytes, edits);
  const envelope = {
    kind,
    id,
    idStart: shifted(frame.idStart, edits),
    idEnd: shifted(frame.idEnd, edits),
    method,
    payloadStart: shifted(frame.payloadStart, edits),
  };
  return new Frame(bytes, envelope, frame.outlineOfEdited(bytes, edits));
}

/** Where an offset comes to lie; -1 when it is gone or was none. */
function shifted(offset: number, edits: readonly Edit[]): number {
  if (offset === -1) return -1;
  let shift = 0;
  for (const { start, end, replacement } of edits) {
    if (start >= offset) break;
    if (end > offset) return -1;
    shift += replacement.length - (end - start);
  }
  return offset + shift;
}

const PARAMS_KEY = Buffer.from(',"params":');

/** Replaces the params, result or error of a message by this JSON text. The message must have one of them already. */
export function withPayload(frame: Frame, payload: Buffer): Frame {
  const { bytes, payloadStart } = frame;
  if (payloadStart === -1) throw new Error(`a ${frame.kind} without a payload has none to replace`);
  const end = skipValue(bytes, payloadStart);
  return editFrame(frame, [{ start: payloadStart, end, replacement: payload }]);
}

/** Gives a request or notification these params, which are JSON text. */
export function withParams(frame: Frame, params: Buffer): Frame {
  const { bytes, payloadStart } = frame;
  if (payloadStart !== -1) return withPayload(frame, params);
  const end = bytes.lastIndexOf(CLOSE_BRACE);
  const replacement = Buffer.concat([PARAMS_KEY, params]);
  const { kind, id, idStart, idEnd, method } = frame;
  return new Frame(replaceSpans(bytes, [{ start: end, end, replacement }]), {
    kind,
    id,
    idStart,
    idEnd,
    method,
    payloadStart: end + PARAMS_KEY.length,
  });
}

/** Removes the params of a request or notification. */
export function withoutParams(frame: Frame): Frame {
  const editor = ObjectEditor.read(frame.bytes, 0, ['params']);
  editor?.remove('params');
  return editFrame(frame, editor?.edits() ?? []);
}
