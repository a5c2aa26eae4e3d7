/** What a client is told when its call ends between the eras. */
import { BridgeError } from '../../errors.ts';
import { CALL_TOOL } from '../../mcp/vocabulary/methods.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';

/** The server did what its revision forbids. */
export function violation(serverName: string, fault: string): BridgeError {
  return new BridgeError('ERR_UPSTREAM_PROTOCOL', `${serverName} violates the protocol: ${fault}.`);
}

export function tooManyRounds(serverName: string, maxRounds: number): BridgeError {
  return new BridgeError(
    'ERR_CLIENT_INPUT',
    `${serverName} asked for input ${maxRounds} times within one call, the most allowed, and wants more.`,
  );
}

export function noCapacity(serverName: string): BridgeError {
  return new BridgeError(
    'ERR_CLIENT_INPUT',
    `${serverName} asked for input, but as much as may be is held for calls that wait for their clients; try again later.`,
  );
}

export function errorAnswer(id: JsonRpcId, error: BridgeError): Frame {
  return errorFrame(id, rpcErrorOf(error));
}

/**
 * The call needed something that its client did not give. Of a tool the model should hear it, so that it can go on
 * without; anything else fails.
 */
export function inputFailure(id: JsonRpcId, method: string, error: BridgeError): Frame {
  if (method !== CALL_TOOL) return errorAnswer(id, error);
  return resultFrame(id, { content: [{ type: 'text', text: error.message }], isError: true });
}
