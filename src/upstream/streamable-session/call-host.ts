import type { BridgeError } from '../../errors.ts';
import type { ResponseHead } from '../../http/http-call.ts';
import type { ServerFault } from '../../relay/ports.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Refusal } from '../remote/refusal.ts';

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
      /** The status of the response that ended the call, if there was one. */
      readonly status: number | undefined;
    };

/** Hears what comes of the calls it has started. */
export interface ServerCallHost<Call> {
  left(call: Call): void;
  /** The POST has its response. Comes before everything in it. */
  responded(call: Call, head: ResponseHead): void;
  /** A message of the server, on the answer to this call. */
  received(call: Call, frame: Frame): void;
  /** Another message than the answer was too large to take. */
  faulted(fault: ServerFault): void;
  /** All that was wanted of the server is there, but its response has not ended. */
  lingers(call: Call): void;
  /** Comes once and last, unless the call was aborted. */
  ended(call: Call, end: CallEnd): void;
}
