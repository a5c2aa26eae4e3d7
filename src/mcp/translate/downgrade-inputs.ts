/**
 * Input requests of a server for a client of an older revision. If that revision cannot express a request, the result
 * is a fault: a reworded request would get an answer to something else.
 */

import { replaceSpans } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { isStringToken } from '../../wire/json/scan-json.ts';
import type { InputFault, InputRequest } from '../classify/input-required.ts';
import { ELICIT, SAMPLE } from '../vocabulary/methods.ts';
import { asFields, type Fields, parseSpan } from '../vocabulary/payload.ts';
import { featuresOf, type RevisionFeatures, type RevisionId } from '../vocabulary/revisions.ts';

export interface LegacyInputOptions {
  readonly clientRevision: RevisionId;
  /** A unique id of the elicitation, which URL mode in 2025-11-25 requires. */
  readonly elicitationId: string;
}

/** The params for a legacy client as JSON text; undefined if the request has none. */
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

// ---- Forms of elicitation for a revision that knows no modes, no titled choices and no choice of several values.

/** The params of `elicitation/create`. [spec 2025-06-18 client/elicitation#supported-schema-types] */
export function olderFormParams(params: Fields): { readonly value: Fields } | InputFault {
  const { mode, ...rest } = params;
  if (mode === 'url') return { fault: 'the client cannot open URLs' };
  const schema = asFields(rest.requestedSchema);
  const properties = asFields(schema?.properties);
  if (properties === undefined) return { value: rest };
  const fields: [string, unknown][] = [];
  for (const [name, field] of Object.entries(properties)) {
    const older = olderField(field);
    if (older === undefined) return { fault: `the client has no form for the field ${JSON.stringify(name)}` };
    fields.push([name, older]);
  }
  return { value: { ...rest, requestedSchema: { ...schema, properties: Object.fromEntries(fields) } } };
}

/** Returns undefined if the older revision has no form for this field. */
function olderField(field: unknown): unknown {
  const schema = asFields(field);
  if (schema === undefined) return field;
  if (schema.type === 'array') return undefined;
  const { oneOf, ...rest } = schema;
  if (oneOf === undefined) return schema;
  const choices = Array.isArray(oneOf) ? oneOf.map(readChoice) : [undefined];
  const known = choices.filter((choice) => choice !== undefined);
  if (known.length < choices.length) return undefined;
  return { ...rest, enum: known.map(({ value }) => value), enumNames: known.map(({ title }) => title) };
}

function readChoice(choice: unknown): { readonly value: string; readonly title: string } | undefined {
  const { const: value, title } = asFields(choice) ?? {};
  if (typeof value !== 'string') return undefined;
  return { value, title: typeof title === 'string' ? title : value };
}

// ---- Messages of sampling for a revision whose messages hold one block, and no tools.

/** The params of a request. [spec 2026-07-28 client/sampling] */
export function olderSamplingParams(
  params: Fields,
  features: RevisionFeatures,
): { readonly value: Fields } | InputFault {
  if (params.tools !== undefined || params.toolChoice !== undefined) return { fault: 'the client cannot use tools' };
  if (!Array.isArray(params.messages)) return { value: params };
  const messages: unknown[] = [];
  for (const message of params.messages) {
    const fields = asFields(message);
    const content = olderContent(fields?.content, features);
    if ('fault' in content) return content;
    messages.push(fields === undefined ? message : { ...fields, content: content.value });
  }
  return { value: { ...params, messages } };
}

function olderContent(content: unknown, features: RevisionFeatures): { readonly value: unknown } | InputFault {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [content];
  for (const block of blocks) {
    const type = asFields(block)?.type;
    if (type === 'tool_use' || type === 'tool_result') return { fault: 'the other side cannot use tools' };
    if (type === 'audio' && !features.audio) return { fault: 'the other side cannot take audio' };
  }
  if (blocks.length === 1) return { value: blocks[0] };
  const texts = blocks.map(readText).filter((text) => text !== undefined);
  if (texts.length === 0 || texts.length < blocks.length) return { fault: 'the other side takes one block of content' };
  return { value: { type: 'text', text: texts.join('\n\n') } };
}

function readText(block: unknown): string | undefined {
  const fields = asFields(block);
  return fields?.type === 'text' && typeof fields.text === 'string' ? fields.text : undefined;
}
