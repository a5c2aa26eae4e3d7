/** State that several bridges share, as far as the relay uses it. Implemented in replicas/. */
import type { BridgeError } from '../errors.ts';
import type { SessionStorage } from './sessions/session-storage.ts';

/** State of one server that the bridges in front of it share. */
export interface SharedState {
  /** Storage of the server's sessions. Undefined if they are bound to processes, which cannot move. */
  readonly sessions: SessionStorage | undefined;
  readonly outcomes: OutcomeStorage;
  /** Limits on the total of all bridges. Undefined if each bridge has its own. */
  readonly limits: SharedLimits | undefined;
}

export interface SharedLimits {
  readonly ofSessions: WiderLimits;
  readonly ofCalls: Pick<WiderLimits, 'refusalFor'>;
}

/** The state of a call or a task that its client may ask for again. */
export interface StoredOutcome {
  /** Unguessable id, which the client presents when it comes back. */
  readonly id: string;
  readonly principal: string;
  /** Digest of the request; undefined if any request of the caller may continue the call. */
  readonly digest: string | undefined;
  /**
   * - `begun`: the call was under way when it was stored last.
   * - `waiting`: the call waits for answers of its client. Another bridge can continue it from the text `call`.
   * - `over`: the call has this answer, under any id.
   */
  readonly state:
    | { readonly kind: 'begun' }
    | { readonly kind: 'waiting'; readonly call: string }
    | { readonly kind: 'over'; readonly answer: Buffer };
}

/** Storage for outcomes that outlive the process that has them. */
export interface OutcomeStorage {
  /**
   * Stores an outcome in place of an earlier one with its id. Resolves to true if it is stored, as far as that is known
   * soon: an outcome may be too large, or the storage full. A caller that answers first need not wait. Never rejects.
   */
  keep(outcome: StoredOutcome, ttlMs: number): Promise<boolean>;
  /** Resolves to undefined if this caller has no such outcome. Rejects with ERR_STORE_UNAVAILABLE. */
  find(id: string, principal: string): Promise<StoredOutcome | undefined>;
  /** True while no other bridge can have continued a call that waits here. */
  readonly isHeld: boolean;
  /** Calls `run` when other bridges may have continued what waits here. Returns a function that unsubscribes. */
  onLost(run: () => void): () => void;
}

/**
 * Limits on the total of several bridges, in addition to those of this one. Checked before a session or call is opened.
 */
export interface WiderLimits {
  /** Returns why no caller gets one more, or undefined if these limits allow it. */
  refusal(): WiderRefusal | undefined;
  /** Returns why this caller gets no more, or undefined if these limits allow it. */
  refusalFor(principal: string): WiderRefusal | undefined;
}

export interface WiderRefusal {
  readonly error: BridgeError;
  /** `end-one`: ending one on this bridge makes room for another. */
  readonly remedy: 'end-one' | 'wait';
}
