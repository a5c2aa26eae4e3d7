/** What the relay asks of a cluster, where it is part of one. Implemented in replicas/. */
import type { BridgeError } from '../errors.ts';

/** What became of a call or a task that its client may ask for again. */
export interface StoredOutcome {
  /** Unguessable, and the one its client comes back with. */
  readonly id: string;
  readonly principal: string;
  /** Identifies the request, where only the same one may continue it. */
  readonly digest: string | undefined;
  /**
   * - `begun`: it was under way when this was stored last.
   * - `waiting`: for answers of its client, and another bridge can go on with it from this.
   * - `over`: this is the answer, under any id.
   */
  readonly state:
    | { readonly kind: 'begun' }
    | { readonly kind: 'waiting'; readonly call: string }
    | { readonly kind: 'over'; readonly answer: Buffer };
}

/** Where outcomes outlive the process that has them, for whoever its clients come to then. */
export interface OutcomeStorage {
  /**
   * The latest of one id counts. Resolves to whether it is stored, as far as that is known soon: it may be too large, or too much
   * be stored already. Whoever stores behind what is answered need not wait for it. Never rejects.
   */
  keep(outcome: StoredOutcome, ttlMs: number): Promise<boolean>;
  /** Undefined: there is none of this caller. Rejects with ERR_STORE_UNAVAILABLE. */
  find(id: string, principal: string): Promise<StoredOutcome | undefined>;
  /** Nobody else can have gone on with what waits here. */
  readonly isHeld: boolean;
  /** Called when other bridges may have gone on with what waits here. Returns what stops that. */
  onLost(run: () => void): () => void;
}

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

/** What another replica says when it is asked, or why it says nothing. */
export type ReplicaAnswer =
  | { readonly kind: 'answered'; readonly address: string; readonly body: Buffer }
  | { readonly kind: 'silent'; readonly address: string; readonly problem: string };

/** The bridges that serve the same servers behind one address, and know of each other. */
export interface OtherReplicas {
  /** Where the others reach this one. */
  readonly ownAddress: string;
  /**
   * Asks each of them; each is named in the result, whether or not it answers. Rejects with a BridgeError where it cannot be
   * known who there is.
   * @param target a path that is for any of them
   */
  ask(target: string): Promise<readonly ReplicaAnswer[]>;
}
