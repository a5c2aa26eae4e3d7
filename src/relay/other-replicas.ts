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
