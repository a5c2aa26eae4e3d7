import { BridgeError, ERROR_CODES, type ErrorCode } from '../../errors.ts';
import type { Frame } from '../../wire/frame.ts';
import type { RpcError } from '../../wire/write-message.ts';
import { asFields, readFields, showText } from './payload.ts';
import { INTERNAL_ERROR } from './rpc-codes.ts';

export type { RpcError } from '../../wire/write-message.ts';

/** The bridge's own messages are shorter; a longer one comes from a server and is cut. */
const MAX_RETOLD_LENGTH = 1000;

/** Converts a failure of the bridge to a JSON-RPC error. `error.data.bridge` has its stable code and details. */
export function rpcErrorOf(error: BridgeError): RpcError {
  return {
    code: error.audiences.rpc ?? INTERNAL_ERROR,
    message: error.message,
    data: { bridge: { ...error.data, reason: error.code } },
  };
}

/**
 * Restores a bridge's failure from an error response, without its details. The bridge may be this one or one behind it.
 * Undefined if the error is the server's own.
 */
export function failureToldBy(answer: Frame): BridgeError | undefined {
  const { data, message } = readFields(answer, ['data', 'message']);
  const reason = asFields(asFields(data)?.bridge)?.reason;
  if (typeof reason !== 'string' || !Object.hasOwn(ERROR_CODES, reason)) return undefined;
  return new BridgeError(reason as ErrorCode, showText(message).slice(0, MAX_RETOLD_LENGTH));
}
