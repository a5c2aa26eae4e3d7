/** Reads from a recorded JSON-RPC message what a line about it shows. Members are a peer's, so each of them is checked. */
import { CALL_TOOL, GET_PROMPT, READ_RESOURCE, SUBSCRIBE, UNSUBSCRIBE } from '../../mcp/vocabulary/methods.ts';
import { asFields } from '../../mcp/vocabulary/payload.ts';
import type { RecordedMessage } from '../../recording/recorded-message.ts';

/** `id` is the JSON text of the id, since 1 and "1" are different ids. */
export type MessageRole =
  | { readonly kind: 'request'; readonly id: string; readonly method: string; readonly subject: string | undefined }
  /** `cancels` is the id of the request that a cancellation names. */
  | { readonly kind: 'notification'; readonly method: string; readonly cancels: string | undefined }
  | { readonly kind: 'answer'; readonly id: string; readonly outcome: AnswerOutcome };

/** `input-required`: a modern server asks its client, who makes the request again. [spec 2026-07-28 input_required] */
export type AnswerOutcome =
  | { readonly kind: 'answered' | 'tool-error' | 'input-required' }
  | { readonly kind: 'error'; readonly code: number | undefined };

/** Longer names and methods are cut, since calls that never end are kept for long. */
const MAX_TEXT_LENGTH = 256;
/** The members by whose value requests of a method are told apart. */
const SUBJECTS: ReadonlyMap<string, string> = new Map([
  [CALL_TOOL, 'name'],
  [GET_PROMPT, 'name'],
  [READ_RESOURCE, 'uri'],
  [SUBSCRIBE, 'uri'],
  [UNSUBSCRIBE, 'uri'],
]);

export function readRole({ message }: RecordedMessage): MessageRole {
  const { id, method, params } = message;
  if (typeof method !== 'string') return { kind: 'answer', id: idText(id), outcome: outcomeOf(message) };
  const shown = boundedText(method);
  if (id === undefined) {
    const canceled = asFields(params)?.requestId;
    return { kind: 'notification', method: shown, cancels: canceled === undefined ? undefined : idText(canceled) };
  }
  const member = SUBJECTS.get(method);
  const subject = member === undefined ? undefined : textMember(params, member);
  return { kind: 'request', id: idText(id), method: shown, subject: subject && boundedText(subject) };
}

/** Copies the text: a part of a string would keep the whole of it in memory. */
export function boundedText(text: string): string {
  if (text.length <= MAX_TEXT_LENGTH) return text;
  return `${Buffer.from(text.slice(0, MAX_TEXT_LENGTH)).toString()}…`;
}

function idText(id: unknown): string {
  return boundedText(typeof id === 'string' || typeof id === 'number' ? JSON.stringify(id) : 'null');
}

/** Of a cut message, `params` is the beginning of its JSON text. */
function textMember(params: unknown, name: string): string | undefined {
  if (typeof params === 'string') return /"(?:name|uri)":"([^"\\]{1,256})"/.exec(params)?.[1];
  const value = asFields(params)?.[name];
  return typeof value === 'string' ? value : undefined;
}

function outcomeOf({ result, error }: RecordedMessage['message']): AnswerOutcome {
  if (error !== undefined) return { kind: 'error', code: codeOf(error) };
  // The flags of a result that was cut may be in the part that is missing.
  if (typeof result === 'string') return { kind: /"isError":true/.test(result) ? 'tool-error' : 'answered' };
  const { isError, resultType } = asFields(result) ?? {};
  if (isError === true) return { kind: 'tool-error' };
  return { kind: resultType === 'input_required' ? 'input-required' : 'answered' };
}

function codeOf(error: unknown): number | undefined {
  if (typeof error === 'string') return Number(/"code":(-?\d{1,9})/.exec(error)?.[1] ?? Number.NaN) || undefined;
  const code = asFields(error)?.code;
  return typeof code === 'number' ? code : undefined;
}
