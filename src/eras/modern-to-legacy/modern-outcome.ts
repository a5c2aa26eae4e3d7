/** What a legacy server answered, as a modern client gets it; under an id that is not the client's. */
import { toModernError } from '../../mcp/era-errors.ts';
import { GET_PROMPT } from '../../mcp/methods.ts';
import { readServerInfo, toModernResult } from '../../mcp/modern-results.ts';
import { readPayload } from '../../mcp/payload.ts';
import { INTERNAL_ERROR } from '../../mcp/rpc-codes.ts';
import type { RpcError } from '../../mcp/rpc-errors.ts';
import type { InitializeResult } from '../../relay/shared/initialize-result.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';

export interface Answered {
  /** The client's. */
  readonly request: Frame;
  readonly server: InitializeResult | undefined;
}

export function modernOutcome(result: Frame, { request, server }: Answered): Frame {
  const serverInfo = readServerInfo(server?.serverInfo);
  return toModernResult(result, { method: request.method ?? '', serverInfo }) ?? errorFrame(0, NOT_A_RESULT);
}

export function modernFailure(error: RpcError, { request, server }: Answered): Frame {
  const method = request.method ?? '';
  const capability = method === GET_PROMPT ? 'prompts' : 'tools';
  const isDeclared = server?.capabilities[capability] !== undefined;
  const uri = readPayload(request)?.uri;
  const context = { method, isDeclared, uri: typeof uri === 'string' ? uri : undefined };
  return errorFrame(0, toModernError(error, context).error);
}

const NOT_A_RESULT: RpcError = { code: INTERNAL_ERROR, message: 'the server answered with a result that is no object' };
