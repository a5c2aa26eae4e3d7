/** Requests of a modern client as a legacy server wants them. */
import { CALL_TOOL, COMPLETE, isInteractive } from '../../mcp/methods.ts';
import { stripMetadata } from '../../mcp/request-metadata.ts';
import type { RevisionFeatures } from '../../mcp/revision-features.ts';
import { editFrame } from '../../wire/edit-frame.ts';
import type { Frame } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/object-editor.ts';

const NO_ARGUMENTS = Buffer.from('{}');

/** Without the envelope, and without what this revision does not know. */
export function legacyRequest(frame: Frame, features: RevisionFeatures): Frame {
  // In requests that never need input these names are a vendor's own.
  const inputs = isInteractive(frame.method ?? '') ? 'remove' : 'keep';
  const stripped = stripMetadata(frame, { inputs });
  const params = ObjectEditor.read(stripped.bytes, stripped.payloadStart, ['arguments', 'context']);
  if (params === undefined) return stripped;
  // Optional by the specification, but some servers read it without looking whether it is there.
  if (frame.method === CALL_TOOL && params.value('arguments') === undefined) params.set('arguments', NO_ARGUMENTS);
  if (frame.method === COMPLETE && !features.completionContext) params.remove('context');
  return editFrame(stripped, params.edits());
}
