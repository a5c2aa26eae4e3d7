/** The messages of a call as the other side wants them: its request, its outcome, and the answers to questions in it. */
import { stripMetadata } from '../../mcp/classify/request-metadata.ts';
import { toModernError, translatedError } from '../../mcp/translate/errors.ts';
import { readServerInfo, toModernResult } from '../../mcp/translate/results.ts';
import { META_SERVER_INFO } from '../../mcp/vocabulary/meta.ts';
import { CALL_TOOL, COMPLETE, ELICIT, GET_PROMPT, isInteractive, SAMPLE } from '../../mcp/vocabulary/methods.ts';
import { readField, readFields } from '../../mcp/vocabulary/payload.ts';
import type { RevisionFeatures } from '../../mcp/vocabulary/revisions.ts';
import { INTERNAL_ERROR } from '../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import type { TaskStatus } from '../../mcp/vocabulary/task-extension.ts';
import type { InitializeResult } from '../../relay/shared/legacy/initialize-result.ts';
import type { StoredOutcome } from '../../relay/shared-state.ts';
import { type Frame, type JsonRpcId, replaceSpans, withPayload } from '../../wire/frame.ts';
import { OPEN_BRACE, OPEN_BRACKET } from '../../wire/json/ascii.ts';
import { itemSpans, ObjectEditor } from '../../wire/json/object-editor.ts';
import { findMember, MAX_MEMBERS } from '../../wire/json/outline.ts';
import { isStringToken, skipValue, walkMembers } from '../../wire/json/scan-json.ts';
import { readMessage, SERVER_LIMITS } from '../../wire/read-message.ts';
import { errorFrame, joinMembers, resultFrame } from '../../wire/write-message.ts';

const CHANGED = ['arguments', 'context', 'task'];
const NO_ARGUMENTS = Buffer.from('{}');

/** Without the envelope, and without what this revision does not know. */
export function legacyRequest(frame: Frame, features: RevisionFeatures): Frame {
  // In requests that never need input these names are a vendor's own.
  const inputs = isInteractive(frame.method ?? '') ? 'remove' : 'keep';
  const change = (params: ObjectEditor): void => {
    // Optional by the specification, but some servers read it without looking whether it is there.
    if (frame.method === CALL_TOOL && params.value('arguments') === undefined) params.set('arguments', NO_ARGUMENTS);
    // [SEP-2663] In the modern era the server alone decides whether a call becomes a task, whatever a client asks for.
    if (frame.method === CALL_TOOL && params.value('task') !== undefined) params.remove('task');
    if (frame.method === COMPLETE && !features.completionContext) params.remove('context');
  };
  return stripMetadata(frame, { inputs, also: { keys: CHANGED, change } });
}

// ---- What a legacy server answered, as a modern client gets it. But for results it is under an id that is not the client's.

export interface Answered {
  /** The client's. */
  readonly request: Frame;
  readonly server: InitializeResult | undefined;
}

export function modernOutcome(result: Frame, { request, server }: Answered): Frame {
  const serverInfo = readServerInfo(server?.serverInfo);
  const { method = '' } = request;
  return toModernResult(result, { method, serverInfo, under: request }) ?? errorFrame(0, NOT_A_RESULT);
}

/** A result of the bridge's own, of these members. */
export function modernResult(
  resultType: string,
  members: ReadonlyMap<string, Buffer>,
  server: InitializeResult | undefined,
): Frame {
  const serverInfo = readServerInfo(server?.serverInfo);
  const result = new Map([['resultType', Buffer.from(JSON.stringify(resultType))], ...members]);
  if (serverInfo !== undefined) result.set('_meta', Buffer.from(JSON.stringify({ [META_SERVER_INFO]: serverInfo })));
  return withPayload(resultFrame(0, null), joinMembers(result));
}

/** Translates the error that the server has answered with. */
export function modernFailure(answer: Frame, { request, server }: Answered): Frame {
  const method = request.method ?? '';
  const capability = method === GET_PROMPT ? 'prompts' : 'tools';
  const isDeclared = server?.capabilities[capability] !== undefined;
  const uri = readField(request, 'uri');
  const context = { method, isDeclared, uri: typeof uri === 'string' ? uri : undefined };
  const said = readRpcError(answer);
  return translatedError(answer, { id: 0, said, meant: toModernError(said, context).error });
}

/**
 * Returns the end of a task. To 2025-11-25 a tool that reports an error has failed; in the extension, its task is
 * completed like any other.
 */
export function taskEnd(answer: Frame, answered: Answered): { status: TaskStatus; members: Map<string, Buffer> } {
  const outcome = answer.kind === 'error' ? modernFailure(answer, answered) : modernOutcome(answer, answered);
  const { bytes, payloadStart } = outcome;
  const payload = bytes.subarray(payloadStart, skipValue(bytes, payloadStart));
  if (outcome.kind === 'error') return { status: 'failed', members: new Map([['error', payload]]) };
  return { status: 'completed', members: new Map([['result', payload]]) };
}

const NOT_A_RESULT: RpcError = {
  code: INTERNAL_ERROR,
  message: `the server answered with a result that is no object, or has more than ${MAX_MEMBERS} members`,
};

// ---- What a modern client answered, as a legacy server of a given revision can take it; and errors, read from
// frames.

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
  let isFound = false;
  walkMembers(response, content.start, (_keyStart, _keyEnd, valueStart) => {
    isFound = response[valueStart] === OPEN_BRACKET;
    return !isFound;
  });
  return isFound;
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

/** The answer that the server gets when no client answers. */
export function refusedAnswer(question: Frame): Frame {
  const id = question.id as JsonRpcId; // questions are requests
  if (question.method === ELICIT) return cancelAnswer(id);
  return errorFrame(id, { code: INTERNAL_ERROR, message: 'the client did not answer' });
}

/** The error of a response, whatever its server took for one. */
export function readRpcError(frame: Frame): RpcError {
  const { code, message, data } = readFields(frame, ['code', 'message', 'data']);
  return {
    // Only a number is a code; the map of eras replaces anything else.
    code: typeof code === 'number' ? code : Number.NaN,
    message: typeof message === 'string' ? message : 'the server gave no reason',
    ...(data !== undefined && { data }),
  };
}

/** The answer to a call or a task that another replica has run; undefined: it has none yet. */
export function answerOf({ state }: StoredOutcome): Frame | undefined {
  if (state.kind !== 'over') return undefined;
  const read = readMessage(state.answer, SERVER_LIMITS);
  return read.kind === 'message' ? read.frame : undefined;
}
