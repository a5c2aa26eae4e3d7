import { modernHttpStatus } from '../../mcp/era-errors.ts';
import { DISCOVER } from '../../mcp/methods.ts';
import { parseSpan } from '../../mcp/payload.ts';
import { failureToldBy } from '../../mcp/rpc-errors.ts';
import { findUniqueMember } from '../../wire/find-member.ts';
import type { Frame } from '../../wire/frame.ts';

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
