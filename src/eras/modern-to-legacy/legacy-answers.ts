/** What a modern client answered, as a legacy server of a given revision can take it; and errors, read from frames. */

import { ELICIT, SAMPLE } from '../../mcp/vocabulary/methods.ts';
import { readField, readFields } from '../../mcp/vocabulary/payload.ts';
import type { RevisionFeatures } from '../../mcp/vocabulary/revisions.ts';
import { INTERNAL_ERROR } from '../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import { withPayload } from '../../wire/edit-frame.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { OPEN_BRACE, OPEN_BRACKET } from '../../wire/json/ascii.ts';
import { findMember } from '../../wire/json/find-member.ts';
import { itemSpans, ObjectEditor } from '../../wire/json/object-editor.ts';
import { isStringToken, MemberCursor } from '../../wire/json/scan-json.ts';
import { replaceSpans } from '../../wire/splice.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';

export interface Answering {
  /** The server's question. */
  readonly question: Frame;
  /** JSON text of the client's answer, of the right shape. */
  readonly response: Buffer;
  readonly features: RevisionFeatures;
}

/** The client's answer under the id of the question. */
export function legacyAnswer({ question, response, features }: Answering): Frame {
  const id = question.id as JsonRpcId; // questions are requests
  if (question.method === ELICIT) return elicitAnswer(id, question, response, features);
  if (question.method === SAMPLE && !features.samplingTools) return plainSample(id, response, features);
  return raw(id, response);
}

function elicitAnswer(id: JsonRpcId, question: Frame, response: Buffer, { elicitation }: RevisionFeatures): Frame {
  if (elicitation !== 'modes' && hasList(response)) return cancelAnswer(id);
  const mode = readField(question, 'mode');
  if (mode !== 'url') return raw(id, response);
  // [spec 2025-11-25 client/elicitation#response-actions] consent to open a URL says nothing else.
  const result = ObjectEditor.read(response, 0, ['content']);
  result?.remove('content');
  return raw(id, replaceSpans(response, result?.edits() ?? []));
}

/** Several choices in one field came with 2025-11-25; to join them into one text would put words into the user's mouth. */
function hasList(response: Buffer): boolean {
  const content = findMember(response, 0, 'content');
  if (content === undefined || response[content.start] !== OPEN_BRACE) return false;
  const members = new MemberCursor(response, content.start);
  while (members.next()) if (response[members.valueStart] === OPEN_BRACKET) return true;
  return false;
}

/** Before 2025-11-25 a message has one block, and none of them uses a tool; the first revision has no audio either. */
function plainSample(id: JsonRpcId, response: Buffer, { audio }: RevisionFeatures): Frame {
  const content = findMember(response, 0, 'content');
  const blocks = content && itemSpans(response, content.start);
  const [block] = blocks ?? (content === undefined ? [] : [content]);
  const type = block && findMember(response, block.start, 'type');
  const isOf = (name: string): boolean => type !== undefined && isStringToken(response, type.start, type.end, name);
  const isUnknown = isOf('tool_use') || (isOf('audio') && !audio);
  if (block === undefined || isUnknown || (blocks !== undefined && blocks.length > 1)) {
    return errorFrame(id, {
      code: INTERNAL_ERROR,
      message: 'the client answered with several blocks, or with one of a kind that this server cannot read',
    });
  }
  const editor = ObjectEditor.read(response, 0, ['content']);
  editor?.set('content', response.subarray(block.start, block.end));
  return raw(id, replaceSpans(response, editor?.edits() ?? []));
}

function raw(id: JsonRpcId, result: Buffer): Frame {
  return withPayload(resultFrame(id, null), result);
}

function cancelAnswer(id: JsonRpcId): Frame {
  return resultFrame(id, { action: 'cancel' });
}

/** What the server hears when nobody answers. */
export function refusedAnswer(question: Frame): Frame {
  const id = question.id as JsonRpcId; // questions are requests
  if (question.method === ELICIT) return cancelAnswer(id);
  return errorFrame(id, { code: INTERNAL_ERROR, message: 'the client did not answer' });
}

/** The error of a response, whatever its server took for one. */
export function readRpcError(frame: Frame): RpcError {
  const { code, message, data } = readFields(frame, ['code', 'message', 'data']);
  return {
    // What is no number stands for no code; the map of eras replaces it.
    code: typeof code === 'number' ? code : Number.NaN,
    message: typeof message === 'string' ? message : 'the server gave no reason',
    ...(data !== undefined && { data }),
  };
}
