/** Requests of a modern client as a legacy server wants them. */

import { stripMetadata } from '../../mcp/classify/request-metadata.ts';
import { CALL_TOOL, COMPLETE, isInteractive } from '../../mcp/vocabulary/methods.ts';
import type { RevisionFeatures } from '../../mcp/vocabulary/revisions.ts';
import type { Frame } from '../../wire/frame.ts';
import type { ObjectEditor } from '../../wire/json/object-editor.ts';

const CHANGED = ['arguments', 'context'];
const NO_ARGUMENTS = Buffer.from('{}');

/** Without the envelope, and without what this revision does not know. */
export function legacyRequest(frame: Frame, features: RevisionFeatures): Frame {
  // In requests that never need input these names are a vendor's own.
  const inputs = isInteractive(frame.method ?? '') ? 'remove' : 'keep';
  const change = (params: ObjectEditor): void => {
    // Optional by the specification, but some servers read it without looking whether it is there.
    if (frame.method === CALL_TOOL && params.value('arguments') === undefined) params.set('arguments', NO_ARGUMENTS);
    if (frame.method === COMPLETE && !features.completionContext) params.remove('context');
  };
  return stripMetadata(frame, { inputs, also: { keys: CHANGED, change } });
}
