import type {
  LeaseReading,
  LeaseStore,
  LogStore,
  RecordStore,
  Store,
  StoredRecord,
  StoreStatus,
} from '../../src/replicas/store/store.ts';

/** What the contract of a store says, with nothing that could fail: for tests of those who use one. */
export class MemoryStore implements Store {
  status: StoreStatus = { state: 'connected' };
  readonly #leases = new Map<string, LeaseReading>();
  #marks = 0;
  readonly #records = new Map<string, StoredRecord>();
  readonly #logs = new Map<string, Buffer[]>();

  readonly leases: LeaseStore = {
    renew: async (holder, sign) => {
      const known = this.#leases.get(holder);
      if (known?.kind === 'dead') return { kind: 'dead' };
      const isSign = known?.kind === 'sign' && /^\d+\.\d+$/.test(known.sign);
      const [first = sign, latest = 0] = isSign ? known.sign.split('.').map(Number) : [];
      if (latest < sign) this.#leases.set(holder, { kind: 'sign', sign: `${first}.${sign}` });
      return { kind: 'renewed', since: first };
    },
    read: async (holder) => {
      const reading = this.#leases.get(holder) ?? { kind: 'sign', sign: `0.0.${this.#marks++}` };
      this.#leases.set(holder, reading);
      return reading;
    },
    condemn: async (holder, seen) => {
      const now = this.#leases.get(holder);
      if (now?.kind === 'dead') return 'dead';
      if (JSON.stringify(now) !== JSON.stringify(seen)) return 'alive';
      this.#leases.set(holder, { kind: 'dead' });
      return 'dead';
    },
    release: async (holder) => void this.#leases.set(holder, { kind: 'dead' }),
  };

  readonly records: RecordStore = {
    read: async (name) => this.#records.get(name),
    put: async (name, { expected, next }) => {
      const known = this.#records.get(name);
      const isExpected =
        expected === 'absent' ? known === undefined : known?.owner === expected.owner && known.token === expected.token;
      if (isExpected) this.#records.set(name, next);
      return isExpected;
    },
    remove: async (name, { owner, token }) => {
      const known = this.#records.get(name);
      if (known?.owner === owner && known.token === token) this.#records.delete(name);
    },
  };

  readonly logs: LogStore = {
    append: async (name, entries, { maxEntries }) => {
      const kept = [...(this.#logs.get(name) ?? []), ...entries];
      this.#logs.set(name, kept.slice(-maxEntries));
    },
    read: async (name) => this.#logs.get(name) ?? [],
    remove: async (name) => void this.#logs.delete(name),
  };

  onAvailable(): () => void {
    return () => undefined;
  }

  /** Returns what takes it back to what it holds now, as a store that loses what it has said to have kept. */
  remember(): () => void {
    const [leases, records, logs] = [[...this.#leases], [...this.#records], [...this.#logs]];
    return () => {
      this.clear();
      for (const [name, reading] of leases) this.#leases.set(name, reading);
      for (const [name, record] of records) this.#records.set(name, record);
      for (const [name, entries] of logs) this.#logs.set(name, entries);
    };
  }

  /** It is started anew, with nothing in it. */
  clear(): void {
    this.#leases.clear();
    this.#records.clear();
    this.#logs.clear();
  }

  async close(): Promise<void> {}
}
