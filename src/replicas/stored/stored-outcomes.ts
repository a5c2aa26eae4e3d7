import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { toBridgeError } from '../../errors.ts';
import type { OutcomeStorage, StoredOutcome } from '../../relay/shared-state.ts';
import type { Cluster } from '../ownership/cluster.ts';

/** Largest outcome that is stored. Larger ones are kept by this replica alone. */
export const MAX_OUTCOME_BYTES = 1024 * 1024;
/** Limit of what one replica stores for one server. Further outcomes are kept by this replica alone. */
export const MAX_STORED_BYTES = 64 * 1024 * 1024;
const MAX_STORED = 10_000;
/** Longest time that `keep` waits for the store. */
const MAX_WAIT_MS = 1000;
/**
 * Fixed owner of all outcome records. Replicas do not compete for a record, since its id belongs to the replica that
 * made it.
 */
const OWNERSHIP = { owner: 'outcome', token: 1 } as const;

export interface StoredOutcomesOptions {
  readonly cluster: Pick<Cluster, 'store' | 'isHeld' | 'onLost'>;
  /** Name of the server that the outcomes belong to, the same on all replicas. */
  readonly server: string;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Kept {
  readonly bytes: number;
  readonly untilMs: number;
  /** Resolves to whether the write succeeded. Writes of one id are sequential. */
  readonly written: Promise<boolean>;
}

interface StoredValue {
  readonly principal: string;
  readonly digest: string | undefined;
  /** In base64, or undefined before there is an answer. */
  readonly answer: string | undefined;
  /** Text from which another replica continues the call, or undefined if the call cannot be continued. */
  readonly call: string | undefined;
}

/**
 * The outcomes of calls and tasks at one server. Any replica can answer from them after the replica that served the
 * call is gone.
 */
export class StoredOutcomes implements OutcomeStorage {
  readonly #options: StoredOutcomesOptions;
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  constructor(options: StoredOutcomesOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  keep(outcome: StoredOutcome, ttlMs: number): Promise<boolean> {
    const { clock, log } = this.#options;
    const { id, principal, digest, state } = outcome;
    const answer = state.kind === 'over' ? state.answer.toString('base64') : undefined;
    const call = state.kind === 'waiting' ? state.call : undefined;
    const value: StoredValue = { principal, digest, answer, call };
    const text = JSON.stringify(value);
    const before = this.#kept.get(id);
    this.#forgetExpired();
    const replaced = this.#kept.get(id);
    const bytes = this.#bytes - (replaced?.bytes ?? 0) + text.length;
    const isTooLarge = text.length > MAX_OUTCOME_BYTES;
    const isFull = bytes > MAX_STORED_BYTES || (replaced === undefined && this.#kept.size >= MAX_STORED);
    if (isTooLarge || isFull) {
      const why = isTooLarge ? 'it is too large for the store' : 'the store has as many as one replica may have there';
      log.debug({ bytes: text.length }, `an outcome is kept by this replica alone: ${why}`);
      return Promise.resolve(false);
    }
    this.#forget(id);
    this.#bytes += text.length;
    const written = (before?.written ?? Promise.resolve(true)).then(() => this.#write(id, text, ttlMs));
    this.#kept.set(id, { bytes: text.length, untilMs: clock.now() + ttlMs, written });
    return new Promise((resolve) => {
      const cancel = clock.after(MAX_WAIT_MS, () => resolve(false));
      void written.then((isStored) => {
        cancel();
        resolve(isStored);
      });
    });
  }

  async #write(id: string, value: string, ttlMs: number): Promise<boolean> {
    const { records } = this.#options.cluster.store;
    const [name, next] = [this.#nameOf(id), { ...OWNERSHIP, value }];
    try {
      if (await records.put(name, { expected: OWNERSHIP, next, ttlMs })) return true;
      return await records.put(name, { expected: 'absent', next, ttlMs });
    } catch (thrown) {
      this.#options.log.debug({ code: toBridgeError(thrown).code }, 'an outcome could not be stored');
      return false;
    }
  }

  async find(id: string, principal: string): Promise<StoredOutcome | undefined> {
    // A write by this replica that is still under way is finished first.
    await this.#kept.get(id)?.written;
    const stored = await this.#options.cluster.store.records.read(this.#nameOf(id));
    if (stored === undefined) return undefined;
    const value = JSON.parse(stored.value) as StoredValue; // sealed by a replica
    if (value.principal !== principal) return undefined;
    return { id, principal, digest: value.digest, state: toState(value) };
  }

  get isHeld(): boolean {
    return this.#options.cluster.isHeld;
  }

  onLost(run: () => void): () => void {
    return this.#options.cluster.onLost(run);
  }

  #nameOf(id: string): string {
    return `outcome ${JSON.stringify([this.#options.server, id])}`;
  }

  #forgetExpired(): void {
    const nowMs = this.#options.clock.now();
    for (const [id, { untilMs }] of this.#kept) if (untilMs <= nowMs) this.#forget(id);
  }

  #forget(id: string): void {
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    this.#kept.delete(id);
    this.#bytes -= kept.bytes;
  }
}

function toState({ answer, call }: StoredValue): StoredOutcome['state'] {
  if (answer !== undefined) return { kind: 'over', answer: Buffer.from(answer, 'base64') };
  return call === undefined ? { kind: 'begun' } : { kind: 'waiting', call };
}
