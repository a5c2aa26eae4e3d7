import type { ServerResponse } from 'node:http';
import { JSON_TYPE } from '../../http/headers.ts';
import type { ModernRefusal } from '../../mcp/classify/modern-request.ts';
import { modernHttpStatus } from '../../mcp/translate/errors.ts';
import { DISCOVER } from '../../mcp/vocabulary/methods.ts';
import { parseSpan } from '../../mcp/vocabulary/payload.ts';
import { failureToldBy } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { findUniqueMember } from '../../wire/json/outline.ts';
import { errorFrame } from '../../wire/write-message.ts';

/** Answers in JSON where no response has started. */
export function respondFrame(response: ServerResponse, status: number, { bytes }: Frame): void {
  response.writeHead(status, { 'Content-Type': JSON_TYPE, 'Content-Length': bytes.length }).end(bytes);
}

/** Refuses a message of a modern client. Without a readable id there is none. */
export function respondRefusal(response: ServerResponse, refusal: ModernRefusal, id: JsonRpcId | undefined): void {
  const { httpStatus, code, message, data } = refusal;
  respondFrame(response, httpStatus, errorFrame(id, { code, message: `The request was refused: ${message}.`, data }));
}

/** The HTTP status of an answer that travels as JSON. */
export function answerStatus(method: string, answer: Frame): number {
  if (answer.kind === 'result') return 200;
  return (method === DISCOVER ? failureStatus(answer) : undefined) ?? modernHttpStatus(readCode(answer));
}

/**
 * A client that finds out eras takes nearly every error of `server/discover` for that of a legacy server, but no status
 * from 500 on. So a bridge that cannot reach its server says it with one. Undefined: the error is the server's own.
 */
function failureStatus(answer: Frame): number | undefined {
  const failure = failureToldBy(answer);
  if (failure === undefined) return undefined;
  const { http } = failure.audiences;
  return http !== undefined && http >= 500 ? http : BAD_GATEWAY;
}

const BAD_GATEWAY = 502;

function readCode({ bytes, payloadStart, outline }: Frame): number {
  const span = findUniqueMember(bytes, payloadStart, 'code', outline);
  const code = span === undefined || span === 'duplicate' ? undefined : parseSpan(bytes, span);
  return typeof code === 'number' ? code : 0;
}
