/**
 * What replicas of the bridge keep together: whatever outlives one of them, or is found by another. Implemented by redis/.
 *
 * Every operation is atomic, ends within a bounded time, and rejects with ERR_STORE_UNAVAILABLE when it cannot be told
 * whether it was done. Names are chosen by the caller and never stored as they are; values are sealed before they are.
 */
export interface Store {
  readonly leases: LeaseStore;
  readonly records: RecordStore;
  readonly logs: LogStore;
  /** As known from the last attempt to reach it. */
  readonly status: StoreStatus;
  /** Called each time the store answers after it did not. Returns what stops that. */
  onAvailable(run: () => void): () => void;
  close(): Promise<void>;
}

export type StoreStatus =
  | { readonly state: 'connected' }
  /** It is tried again without end. */
  | { readonly state: 'unavailable'; readonly reason: string };

/**
 * A sign of life for each replica. The store compares signs only and knows no time: how long one stands unchanged is
 * measured by whoever looks at it, so that no clock of another machine has to be right.
 */
export interface LeaseStore {
  /** Leaves a sign, a number larger than those before. */
  renew(holder: string, sign: number): Promise<Renewal>;
  /** The latest sign. Where there is none a mark is left in its place, so that two times of nothing differ. */
  read(holder: string): Promise<LeaseReading>;
  /** Declares the holder dead if this is still what `read` returns. Resolves with what holds from then on. */
  condemn(holder: string, seen: LeaseReading): Promise<'dead' | 'alive'>;
  /** The holder leaves: it is dead at once. */
  release(holder: string): Promise<void>;
}

export type Renewal =
  /** `since`: the sign that the lease began with. It differs from then on where the store has lost what it knew. */
  | { readonly kind: 'renewed'; readonly since: number }
  /** Another replica has declared this one dead, for good. */
  | { readonly kind: 'dead' };

export type LeaseReading = { readonly kind: 'sign'; readonly sign: string } | { readonly kind: 'dead' };

/** Who may write a record. The token grows with each new owner, so that one that was replaced cannot write any more. */
export interface Ownership {
  readonly owner: string;
  readonly token: number;
}

export interface StoredRecord extends Ownership {
  readonly value: string;
}

/** Values that have one owner each. */
export interface RecordStore {
  read(name: string): Promise<StoredRecord | undefined>;
  /** False: it belongs to somebody else by now, or exists already where `expected` is `absent`. */
  put(name: string, write: RecordWrite): Promise<boolean>;
  remove(name: string, expected: Ownership): Promise<void>;
}

export interface RecordWrite {
  readonly expected: Ownership | 'absent';
  readonly next: StoredRecord;
  /** Milliseconds, which need not be whole. */
  readonly ttlMs: number;
}

/** Entries in the order of their arrival, of which the latest are kept. */
export interface LogStore {
  /** Without entries, what is there lasts as long as if some were added. */
  append(name: string, entries: readonly Buffer[], limits: LogLimits): Promise<void>;
  read(name: string): Promise<readonly Buffer[]>;
  remove(name: string): Promise<void>;
}

export interface LogLimits {
  /** About as many: a few more may be kept where that is cheaper. */
  readonly maxEntries: number;
  readonly ttlMs: number;
}
