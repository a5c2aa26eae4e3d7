/**
 * The state that replicas of the bridge share: everything that outlives a replica or that another replica must find.
 * Implemented by redis/.
 *
 * Every operation is atomic, ends within a limited time, and rejects with ERR_STORE_UNAVAILABLE if its outcome is
 * unknown. The caller chooses the names, which are never stored in plain text; values are sealed before they are
 * stored.
 */
export interface Store {
  readonly leases: LeaseStore;
  readonly records: RecordStore;
  readonly logs: LogStore;
  /** The result of the latest attempt to reach the store. */
  readonly status: StoreStatus;
  /** Calls `run` each time the store responds again after a failure. Returns the function that ends these calls. */
  onAvailable(run: () => void): () => void;
  close(): Promise<void>;
}

export type StoreStatus =
  | { readonly state: 'connected' }
  /** The connection is retried without limit. */
  | { readonly state: 'unavailable'; readonly reason: string };

/**
 * A sign of life for each replica. The store only compares signs and knows no time: each reader measures how long a
 * sign stays unchanged, so that no other machine's clock has to be right.
 */
export interface LeaseStore {
  /** Stores a sign, a number larger than all previous ones. */
  renew(holder: string, sign: number): Promise<Renewal>;
  /**
   * Reads the latest sign. If there is none, a unique mark is stored in its place, so that two readings of a missing
   * sign differ.
   */
  read(holder: string): Promise<LeaseReading>;
  /** Declares the holder dead if `read` would still return `seen`. Resolves with the holder's state afterward. */
  condemn(holder: string, seen: LeaseReading): Promise<'dead' | 'alive'>;
  /** Declares the holder itself dead, because it leaves. */
  release(holder: string): Promise<void>;
}

export type Renewal =
  /** `since` is the sign that the lease began with. It changes only if the store has lost its data. */
  | { readonly kind: 'renewed'; readonly since: number }
  /** Another replica has declared this one dead, which is final. */
  | { readonly kind: 'dead' };

export type LeaseReading = { readonly kind: 'sign'; readonly sign: string } | { readonly kind: 'dead' };

/**
 * The replica that may write a record. The token grows with each new owner, so that a previous owner cannot write any
 * more.
 */
export interface Ownership {
  readonly owner: string;
  readonly token: number;
}

export interface StoredRecord extends Ownership {
  readonly value: string;
}

/** Records, each with a single owner. */
export interface RecordStore {
  read(name: string): Promise<StoredRecord | undefined>;
  /** Resolves with false if the record has another owner by now, or if it exists although `expected` is `absent`. */
  put(name: string, write: RecordWrite): Promise<boolean>;
  remove(name: string, expected: Ownership): Promise<void>;
}

export interface RecordWrite {
  readonly expected: Ownership | 'absent';
  readonly next: StoredRecord;
  /** Lifetime in milliseconds, which may be fractional. */
  readonly ttlMs: number;
}

/** Logs of entries in the order of their arrival, limited to the latest ones. */
export interface LogStore {
  /** Appends entries and renews the log's lifetime. Without entries it only renews the lifetime. */
  append(name: string, entries: readonly Buffer[], limits: LogLimits): Promise<void>;
  read(name: string): Promise<readonly Buffer[]>;
  remove(name: string): Promise<void>;
}

export interface LogLimits {
  /** An approximate limit: a few more may be kept if that is cheaper. */
  readonly maxEntries: number;
  readonly ttlMs: number;
}
