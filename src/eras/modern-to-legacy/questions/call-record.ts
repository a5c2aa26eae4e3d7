import { BridgeError } from '../../../errors.ts';
import type { OutcomeStorage, StoredOutcome } from '../../../relay/shared-state.ts';
import { encodeWaitingCall, type WaitingCallParts } from './waiting-call.ts';

export interface CallRecordOptions extends Pick<StoredOutcome, 'id' | 'principal'> {
  readonly storage: OutcomeStorage;
  readonly digest: string;
}

/**
 * - `unknown`: other bridges know nothing of it, or that it is over.
 * - `storing`: another bridge may know that it waits.
 * - `waiting`: another bridge could go on with it.
 */
type RecordState = 'unknown' | 'storing' | 'waiting';

/**
 * The record of one call in the store: that it waits for its client, how another bridge can go on with it, and its
 * outcome.
 */
export class CallRecord {
  readonly #options: CallRecordOptions;
  #state: RecordState = 'unknown';

  constructor(options: CallRecordOptions) {
    this.#options = options;
  }

  /** Another bridge could go on with it, or may have done so. */
  get isElsewhere(): boolean {
    return this.#state === 'waiting' || this.isDoubtful;
  }

  /** Another bridge may have gone on with it. */
  get isDoubtful(): boolean {
    return this.#state !== 'unknown' && !this.#options.storage.isHeld;
  }

  /** Undefined: no other bridge could go on with it. Resolves when one can, none will, or that takes too long. */
  waits(parts: WaitingCallParts | undefined): Promise<void> | undefined {
    const call = parts && encodeWaitingCall(parts);
    if (parts === undefined || call === undefined) return void this.lost();
    this.#state = 'storing';
    return this.#keep({ kind: 'waiting', call }, parts.leftMs).then((isStored) => {
      if (isStored && this.#state === 'storing') this.#state = 'waiting';
    });
  }

  /** The call ended without an outcome, and no other bridge shall go on with it. */
  lost(): void {
    if (this.#state === 'unknown') return;
    this.#state = 'unknown';
    void this.#keep({ kind: 'begun' }, LOST_MS);
  }

  ended(answer: Buffer, ttlMs: number): void {
    this.#state = 'unknown';
    void this.#keep({ kind: 'over', answer }, ttlMs);
  }

  #keep(state: StoredOutcome['state'], ttlMs: number): Promise<boolean> {
    const { storage, id, principal, digest } = this.#options;
    return storage.keep({ id, principal, digest, state }, ttlMs);
  }
}

/**
 * The time for which the record of a lost call is kept. After that, a client is told no more than of a call that was
 * never stored.
 */
const LOST_MS = 1000;

export const MAYBE_ELSEWHERE = new BridgeError(
  'ERR_CLUSTER_OWNER',
  'This replica has not reached the store for so long that another one may have gone on with the call; send the same request again.',
);
