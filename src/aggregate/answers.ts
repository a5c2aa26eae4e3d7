/** The aggregate's own answers to requests that no server gets. */

import { readField } from '../mcp/vocabulary/payload.ts';
import { INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND } from '../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../mcp/vocabulary/rpc-errors.ts';
import type { Frame } from '../wire/frame.ts';

export const INVALID_CURSOR: RpcError = {
  code: INVALID_PARAMS,
  message: 'The cursor is of no page of this list; ask for the list without a cursor.',
};
export const MALFORMED: RpcError = {
  code: INVALID_PARAMS,
  message: 'The request does not say what it is for: its name, uri, ref or taskId is missing, or is no string.',
};
export const NO_SERVER: RpcError = {
  code: METHOD_NOT_FOUND,
  message: 'No server is there that could know this method.',
};

const UNKNOWN_THERE: ReadonlySet<unknown> = new Set([METHOD_NOT_FOUND, INVALID_PARAMS, RESOURCE_NOT_FOUND]);

/** Returns true if a server that was asked in passing does not know the method, or does not have the resource. */
export function isUnknownThere(answer: Frame): boolean {
  return answer.kind === 'error' && UNKNOWN_THERE.has(readField(answer, 'code'));
}
