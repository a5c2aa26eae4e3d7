import type { BridgeError } from '../errors.ts';
import { INTERNAL_ERROR } from './rpc-codes.ts';

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
