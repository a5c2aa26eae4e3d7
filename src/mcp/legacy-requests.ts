import { editFrame } from '../wire/edit-frame.ts';
import { isNullToken } from '../wire/envelope-members.ts';
import type { Frame } from '../wire/frame.ts';
import { ObjectEditor } from '../wire/object-editor.ts';
import { CALL_TOOL, COMPLETE } from './methods.ts';
import { featuresOf } from './revision-features.ts';
import type { RevisionId } from './revisions.ts';

const NO_ARGUMENTS = Buffer.from('{}');

/** A newer client's request, without its envelope, as a server of this revision takes it. */
export function toLegacyRequest(frame: Frame, serverRevision: RevisionId): Frame {
  const { bytes, method, payloadStart } = frame;
  if (method === CALL_TOOL) {
    const params = ObjectEditor.read(bytes, payloadStart, ['arguments']);
    const args = params?.value('arguments');
    // Optional by the schema, and still many servers read it unasked.
    if (args === undefined || isNullToken(bytes, args.start, args.end)) params?.set('arguments', NO_ARGUMENTS);
    return editFrame(frame, params?.edits() ?? []);
  }
  if (method === COMPLETE && !featuresOf(serverRevision).completionContext) {
    const params = ObjectEditor.read(bytes, payloadStart, ['context']);
    params?.remove('context');
    return editFrame(frame, params?.edits() ?? []);
  }
  return frame;
}
