/** What a legacy server answered, as a modern client gets it; under an id that is not the client's. */
import { toModernError, translatedError } from '../../mcp/translate/errors.ts';
import { readServerInfo, toModernResult } from '../../mcp/translate/results.ts';
import { META_SERVER_INFO } from '../../mcp/vocabulary/meta.ts';
import { GET_PROMPT } from '../../mcp/vocabulary/methods.ts';
import { readField } from '../../mcp/vocabulary/payload.ts';
import { INTERNAL_ERROR } from '../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import type { TaskStatus } from '../../mcp/vocabulary/task-extension.ts';
import type { InitializeResult } from '../../relay/shared/initialize-result.ts';
import { withPayload } from '../../wire/edit-frame.ts';
import type { Frame } from '../../wire/frame.ts';
import { MAX_MEMBERS } from '../../wire/json/outline.ts';
import { skipValue } from '../../wire/json/scan-json.ts';
import { errorFrame, joinMembers, resultFrame } from '../../wire/write-message.ts';
import { readRpcError } from './legacy-answers.ts';

export interface Answered {
  /** The client's. */
  readonly request: Frame;
  readonly server: InitializeResult | undefined;
}

export function modernOutcome(result: Frame, { request, server }: Answered): Frame {
  const serverInfo = readServerInfo(server?.serverInfo);
  return toModernResult(result, { method: request.method ?? '', serverInfo }) ?? errorFrame(0, NOT_A_RESULT);
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

/** What the server refused it with. */
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
 * What a task ends with. To 2025-11-25 a tool that reports an error has failed; here it is a result like any other.
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
