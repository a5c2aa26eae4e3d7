/** The answer of another replica, or the reason why there is none. */
export type ReplicaAnswer =
  | { readonly kind: 'answered'; readonly address: string; readonly body: Buffer }
  | { readonly kind: 'silent'; readonly address: string; readonly problem: string };

/** The bridges that serve the same servers behind one address. The status page and the metrics show them together. */
export interface OtherReplicas {
  /** Address at which the others reach this replica. */
  readonly ownAddress: string;
  /** Returns the addresses of all replicas, this one included. Rejects with a BridgeError. */
  addresses(): Promise<readonly string[]>;
  /**
   * Asks each of the others. The result names all of them, also those that did not answer. Rejects with a BridgeError
   * if the others are not known.
   * @param target a path that every replica serves
   */
  ask(target: string): Promise<readonly ReplicaAnswer[]>;
}
