import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Deps } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { DAY_MS, MAX_DAYS, parseUsage, type Usage, type UsageRow } from '../../observe/usage/usage.ts';
import { UsageRows } from '../../observe/usage/usage-rows.ts';
import { UsageTable } from '../../observe/usage/usage-table.ts';
import type { RecordStore, StoredRecord } from '../store/store.ts';

export interface SharedUsageOptions {
  readonly records: RecordStore;
  readonly deps: Pick<Deps, 'clock' | 'wallClock' | 'randomId' | 'log'>;
}

/**
 * Interval of writes: the longest time whose counts are lost if a replica is killed, and by which the counts of others
 * may lag.
 */
export const WRITE_EVERY_MS = 60_000;
const RECORD = 'usage';
const KEPT_MS = MAX_DAYS * DAY_MS;
/** Attempts to write, as replicas that write at the same time have to take turns. */
const MAX_ATTEMPTS = 20;
/** Runs of replicas whose latest batch is remembered: more than the number that write during one replica's retries. */
const MAX_RUNS = 500;
/** Limit of the decompressed counts, which are bounded where they are created. */
const MAX_BYTES = 64 * 1024 * 1024;

const pack = promisify(gzip);
const unpack = promisify(gunzip);

/** The counts since the last batch. They are added once, even if the write is retried. */
interface Batch {
  readonly number: number;
  readonly usage: Usage;
}

interface StoredUsage {
  /** Latest batch of each run that is included in the counts, most recent last. */
  readonly batches: readonly (readonly [run: string, number: number])[];
  readonly usage: Usage;
}

/** The counts of all replicas in one record of the store, including those of replicas that are gone. */
export class SharedUsage {
  /** Counts of this replica that are not in the store yet. */
  readonly table: UsageTable;
  readonly #options: SharedUsageOptions;
  readonly #run: string;
  readonly #stop: () => void;
  #batch: Batch | undefined;
  #number = 0;
  /** Rows whose open sessions were already counted on this day, since they are carried into a day only once. */
  #carried = { day: -1, rows: new Set<string>() };
  #flushing: Promise<void> | undefined;

  constructor(options: SharedUsageOptions) {
    const { clock, wallClock, randomId, log } = options.deps;
    this.#options = options;
    this.table = new UsageTable({ wallClock, served: [] });
    this.#run = randomId();
    this.#stop = clock.every(WRITE_EVERY_MS, () => {
      this.flush().catch((thrown: unknown) => {
        const { code, message } = toBridgeError(thrown);
        log.warn({ code }, `The usage could not be written to the store, which is tried again: ${message}`);
      });
    });
  }

  /**
   * Returns the counts of all replicas: of this one until now, of the others until their latest write. Rejects with a
   * BridgeError.
   */
  async read(): Promise<Usage> {
    await this.flush();
    return (await this.#parse(await this.#options.records.read(RECORD))).usage;
  }

  /** Writes the counts. Rejects with a BridgeError; the counts are then written with the next batch. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #flush(): Promise<void> {
    if (this.#batch !== undefined) await this.#write(this.#batch);
    this.table.watch();
    this.#number += 1;
    const usage = this.#withoutCarriedTwice(this.table.usage());
    this.table.clear();
    this.#batch = { number: this.#number, usage };
    await this.#write(this.#batch);
  }

  async #write(batch: Batch): Promise<void> {
    const { records, deps } = this.#options;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const stored = await records.read(RECORD);
      const { batches, usage } = await this.#parse(stored);
      const isIn = batches.some(([run, number]) => run === this.#run && number >= batch.number);
      if (!isIn) {
        const rows = new UsageRows();
        const nowMs = Math.floor(deps.wallClock());
        for (const part of [usage, batch.usage]) rows.add(part, nowMs);
        const others = batches.filter(([run]) => run !== this.#run).slice(-MAX_RUNS + 1);
        const text = JSON.stringify([...others, [this.#run, batch.number]]);
        const packed = await pack(`{"batches":${text},"usage":${rows.toJson()}}`);
        const next = { owner: this.#run, token: (stored?.token ?? 0) + 1, value: packed.toString('base64') };
        if (!(await records.put(RECORD, { expected: stored ?? 'absent', next, ttlMs: KEPT_MS }))) continue;
      }
      this.#batch = undefined;
      return;
    }
    throw new BridgeError('ERR_STORE_UNAVAILABLE', 'The usage in the store changes faster than it can be added to.');
  }

  async #parse(stored: StoredRecord | undefined): Promise<StoredUsage> {
    if (stored === undefined) return { batches: [], usage: { format: 1, served: [], rows: [] } };
    try {
      const text = await unpack(Buffer.from(stored.value, 'base64'), { maxOutputLength: MAX_BYTES });
      const fields = JSON.parse(text.toString()) as StoredUsage; // sealed by a replica
      return { batches: fields.batches, usage: parseUsage(fields.usage) };
    } catch (cause) {
      const message = 'The usage in the store is of another version of mcp-portage, and cannot be read by this one.';
      throw new BridgeError('ERR_STORE_UNREADABLE', message, { cause });
    }
  }

  /**
   * Removes repeated counts of carried sessions: each batch starts with the open sessions, which count only in the
   * first batch of a day.
   */
  #withoutCarriedTwice(usage: Usage): Usage {
    return { ...usage, rows: usage.rows.map((row) => this.#carriedOnce(row)) };
  }

  #carriedOnce(row: UsageRow): UsageRow {
    const name = JSON.stringify([row.client, row.server]);
    const days = row.days.map((counts) => {
      if (counts.day > this.#carried.day) this.#carried = { day: counts.day, rows: new Set() };
      const isCounted = counts.day < this.#carried.day || this.#carried.rows.has(name);
      if (counts.day === this.#carried.day) this.#carried.rows.add(name);
      return isCounted ? { ...counts, carried: 0 } : counts;
    });
    return { ...row, days };
  }

  /** Writes the last counts, which are lost if that fails. Never rejects. */
  async close(): Promise<void> {
    this.#stop();
    await this.flush().catch((thrown: unknown) => {
      const { code, message } = toBridgeError(thrown);
      this.#options.deps.log.warn({ code }, `The last of the usage could not be written to the store: ${message}`);
    });
  }
}
