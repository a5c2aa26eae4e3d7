import type { BridgeError } from '../../errors.ts';
import type { ResponseHead } from '../../http/client.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Refusal } from '../remote/refusal.ts';
import type { ServerCall } from './server-call.ts';

/** How a call ended. */
export type CallEnd =
  /** It was answered, or needed no answer. */
  | { readonly kind: 'done' }
  /** The server refused the message itself and did not act on it. */
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** No answer will come. */
  | {
      readonly kind: 'failed';
      readonly error: BridgeError;
      /** The server may have got the message and be at work on it. */
      readonly wasSent: boolean;
      /** Of the response that put an end to it, if there was one. */
      readonly status: number | undefined;
    };

/** Who started a call. */
export interface CallHost {
  left(call: ServerCall): void;
  /** The POST has its response. Comes before everything in it. */
  responded(call: ServerCall, head: ResponseHead): void;
  /** A message of the server, on the answer to this call. */
  received(call: ServerCall, frame: Frame): void;
  /** The call is answered, but the server keeps its stream open. */
  lingers(call: ServerCall): void;
  /** Comes once and last, unless the call was aborted. */
  ended(call: ServerCall, end: CallEnd): void;
}
