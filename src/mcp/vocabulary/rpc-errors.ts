import { BridgeError, ERROR_CODES, type ErrorCode } from '../../errors.ts';
import type { Frame } from '../../wire/frame.ts';
import { asFields, readFields, showText } from './payload.ts';
import { INTERNAL_ERROR } from './rpc-codes.ts';

/** Longer messages than ours are some server's. */
const MAX_RETOLD_LENGTH = 1000;

/** The `error` member of a JSON-RPC response. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** How a failure of the bridge looks to a JSON-RPC peer: its stable code and details are in `error.data.bridge`. */
export function rpcErrorOf(error: BridgeError): RpcError {
  return {
    code: error.audiences.rpc ?? INTERNAL_ERROR,
    message: error.message,
    data: { bridge: { ...error.data, reason: error.code } },
  };
}

/** What a bridge, this one or one behind it, has told with an error; without its details. Undefined: the server's own. */
export function failureToldBy(answer: Frame): BridgeError | undefined {
  const { data, message } = readFields(answer, ['data', 'message']);
  const reason = asFields(asFields(data)?.bridge)?.reason;
  if (typeof reason !== 'string' || !Object.hasOwn(ERROR_CODES, reason)) return undefined;
  return new BridgeError(reason as ErrorCode, showText(message).slice(0, MAX_RETOLD_LENGTH));
}
