import type { BridgeError } from '../errors.ts';

/** Limits that hold for several bridges together, beside those of this one. Asked before one more is opened. */
export interface WiderLimits {
  /** Why nobody gets one more; undefined: it is not because of these limits. */
  refusal(): WiderRefusal | undefined;
  /** Why this caller gets no more. */
  refusalFor(principal: string): WiderRefusal | undefined;
}

export interface WiderRefusal {
  readonly error: BridgeError;
  /** Whether there is one more as soon as one has ended here. */
  readonly remedy: 'end-one' | 'wait';
}
