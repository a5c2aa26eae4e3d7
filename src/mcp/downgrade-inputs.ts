/**
 * What a server asks, for a client of an older revision. Where that has no words for it, it is not asked in other words:
 * the answer would be to those.
 */
import { ObjectEditor } from '../wire/object-editor.ts';
import { isStringToken } from '../wire/scan-json.ts';
import { replaceSpans } from '../wire/splice.ts';
import { olderFormParams } from './downgrade-form.ts';
import { olderSamplingParams } from './downgrade-sampling.ts';
import type { InputFault, InputRequest } from './input-required.ts';
import { ELICIT, SAMPLE } from './methods.ts';
import { asFields, type Fields, parseSpan } from './payload.ts';
import { featuresOf, type RevisionFeatures } from './revision-features.ts';
import type { RevisionId } from './revisions.ts';

export interface LegacyInputOptions {
  readonly clientRevision: RevisionId;
  /** Unlike that of any other elicitation: the revision that has URLs wants one. */
  readonly elicitationId: string;
}

/** The params that a legacy client gets, as JSON text; undefined: none. */
export function toLegacyInput(
  { method, params }: InputRequest,
  { clientRevision, elicitationId }: LegacyInputOptions,
): { readonly params: Buffer | undefined } | InputFault {
  if (params === undefined) return { params };
  const features = featuresOf(clientRevision);
  if (method === ELICIT) return toLegacyElicitation(params, features, elicitationId);
  if (method !== SAMPLE || features.samplingTools) return { params };
  return rewrite(params, (fields) => olderSamplingParams(fields, features));
}

function toLegacyElicitation(
  params: Buffer,
  { elicitation }: RevisionFeatures,
  elicitationId: string,
): { readonly params: Buffer } | InputFault {
  if (elicitation === 'none') return { fault: 'the revision of the client has no elicitation' };
  if (elicitation === 'form') return rewrite(params, olderFormParams);
  const editor = ObjectEditor.read(params, 0, ['mode', 'elicitationId']);
  const mode = editor?.value('mode');
  if (editor === undefined || mode === undefined || !isStringToken(params, mode.start, mode.end, 'url'))
    return { params };
  // [spec 2025-11-25 client/elicitation#url-mode-elicitation-requests]
  editor.set('elicitationId', Buffer.from(JSON.stringify(elicitationId)));
  return { params: replaceSpans(params, editor.edits()) };
}

type Older = (fields: Fields) => { readonly value: Fields } | InputFault;

function rewrite(text: Buffer, older: Older): { readonly params: Buffer } | InputFault {
  const fields = asFields(parseSpan(text, { start: 0, end: text.length }));
  if (fields === undefined) return { fault: 'an input request cannot be read' };
  const rewritten = older(fields);
  return 'fault' in rewritten ? rewritten : { params: Buffer.from(JSON.stringify(rewritten.value)) };
}
