/** What became of a call or a task that its client may ask for again. */
export interface StoredOutcome {
  /** Unguessable, and the one its client comes back with. */
  readonly id: string;
  readonly principal: string;
  /** Of the request, where only the same one may continue it. */
  readonly digest: string | undefined;
  /**
   * - `begun`: it was under way when this was stored last.
   * - `over`: this is the answer, under any id.
   */
  readonly state: { readonly kind: 'begun' } | { readonly kind: 'over'; readonly answer: Buffer };
}

/** Where outcomes outlive the process that has them, for whoever its clients come to then. */
export interface OutcomeStorage {
  /** Stored behind what is answered, and not at all where too much is stored already. The latest of one id counts. */
  keep(outcome: StoredOutcome, ttlMs: number): void;
  /** Undefined: there is none of this caller. Rejects with ERR_STORE_UNAVAILABLE. */
  find(id: string, principal: string): Promise<StoredOutcome | undefined>;
}
