import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { BridgeError, toBridgeError } from '../../errors.ts';
import { SessionState } from '../../relay/sessions/session-state.ts';
import type { ReplayLog, SessionStorage, StoredReplay } from '../../relay/sessions/session-storage.ts';
import type { Cluster } from '../ownership/cluster.ts';
import type { Owner } from '../ownership/owner-tags.ts';
import type { Ownership } from '../store/store.ts';
import { FIRST_TOKEN, MAX_REPLAY_ENTRIES, SessionReplay } from './session-replay.ts';

export interface SessionRecordsOptions {
  readonly cluster: Cluster;
  /** Name of the server that the sessions belong to, the same on all replicas. */
  readonly server: string;
  /** Time to live of a record that is not written again. */
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * State of a session's record in the store. The token of a record counts its owners.
 * - `unwritten`: the session has not begun at the server, so another replica could not continue it.
 * - `written`: the record is stored, and this replica owns it.
 * - `gone`: the session has ended, or another replica owns it.
 */
type RecordState =
  | { readonly kind: 'unwritten' }
  | { readonly kind: 'written'; readonly ownership: Ownership }
  | { readonly kind: 'gone' };

interface KeptSession {
  readonly id: string;
  readonly principal: string;
  readonly state: SessionState;
  readonly replay: SessionReplay;
  record: RecordState;
  /** The write under way. Changes made meanwhile are stored by the next one. */
  writing: Promise<void> | undefined;
  hasChanged: boolean;
}

/**
 * Value of a session's record. `address` is where the owner can be reached, and `state` is the text that `SessionState`
 * serializes to.
 */
interface StoredValue {
  readonly server: string;
  readonly principal: string;
  readonly address: string;
  readonly state: string;
}

/**
 * Result of an attempt to take a session over.
 * - `taken`: this replica owns the session from now on. `token` counts the owners so far, this replica included.
 * - `owned`: the session is live on another replica.
 * - `unknown`: no session of this id can be continued for this caller.
 */
export type TakenSession =
  | {
      readonly kind: 'taken';
      readonly state: SessionState;
      readonly replay: StoredReplay;
      readonly token: number;
    }
  | { readonly kind: 'owned'; readonly owner: Owner }
  | { readonly kind: 'unknown' };

/** Owner of records that a replica has released. No replica has this id. */
export const NOBODY = 'nobody';
/** Rewrites per time to live, so that records of long sessions do not expire. */
const REFRESHES = 3;
/** Sessions written concurrently when all are written. More would delay store access that calls wait for. */
const MAX_TOGETHER = 100;

/**
 * The sessions of one server that other replicas can continue. Each change is stored, and sessions of replicas that are
 * gone can be taken over.
 */
export class SessionRecords implements SessionStorage {
  readonly #options: SessionRecordsOptions;
  readonly #kept = new Map<string, KeptSession>();
  readonly #stops: readonly (() => void)[];
  #stopTimer: (() => void) | undefined;
  #isWritingAll = false;
  #isWritingWanted = false;

  constructor(options: SessionRecordsOptions) {
    this.#options = options;
    const { cluster } = options;
    this.#stops = [
      cluster.onStoreBack(() => this.#writeChanged()),
      cluster.members.onNewEpoch(() => this.#storeAgain()),
    ];
  }

  begin(id: string, principal: string): SessionState {
    return this.#keep(id, principal, { state: new SessionState(), record: { kind: 'unwritten' } });
  }

  #keep(id: string, principal: string, { state, record }: Pick<KeptSession, 'state' | 'record'>): SessionState {
    const { cluster, ttlMs, clock, log } = this.#options;
    const limits = { maxEntries: MAX_REPLAY_ENTRIES, ttlMs };
    const token = record.kind === 'written' ? record.ownership.token : FIRST_TOKEN;
    const replay = new SessionReplay({ name: id, token, logs: cluster.store.logs, limits, clock, log });
    const kept: KeptSession = { id, principal, state, replay, record, writing: undefined, hasChanged: false };
    state.changed = () => this.#changed(kept);
    state.positions = replay;
    this.#kept.set(id, kept);
    this.#stopTimer ??= clock.every(ttlMs / REFRESHES, () => this.#refresh());
    return state;
  }

  replayOf(id: string): ReplayLog | undefined {
    return this.#kept.get(id)?.replay;
  }

  #changed(kept: KeptSession): void {
    kept.hasChanged = true;
    kept.writing ??= this.#write(kept).finally(() => {
      kept.writing = undefined;
    });
  }

  async #write(kept: KeptSession): Promise<void> {
    const { cluster } = this.#options;
    // Changes made in one turn of the event loop are stored together. If this replica was silent for too long, other
    // replicas may have told clients that the session's unstored state is gone, so the lease is confirmed first.
    await cluster.confirm();
    while (kept.hasChanged && kept.record.kind !== 'gone' && kept.state.offer !== undefined && cluster.isHeld) {
      kept.hasChanged = false;
      try {
        await this.#put(kept);
      } catch (thrown) {
        // The write is repeated when the store answers again. Until then another replica would continue from an older
        // state or could not continue the session.
        kept.hasChanged = true;
        this.#options.log.debug({ code: toBridgeError(thrown).code }, 'a session could not be stored');
        return;
      }
    }
  }

  async #put(kept: KeptSession): Promise<void> {
    const { record } = kept;
    if (record.kind === 'gone') return;
    const next =
      record.kind === 'written' ? record.ownership : { owner: this.#options.cluster.self.id, token: FIRST_TOKEN };
    if (await this.#store(kept, record, next)) this.#wrote(kept, next);
  }

  /** Returns false if another replica owns the session by now. */
  async #store(kept: KeptSession, record: RecordState, owner: Ownership): Promise<boolean> {
    const { cluster, ttlMs } = this.#options;
    const { records } = cluster.store;
    const known = record.kind === 'written' ? record.ownership : undefined;
    const next = { ...owner, value: this.#valueOf(kept) };
    if (await records.put(kept.id, { expected: known ?? 'absent', next, ttlMs })) return true;
    const stored = await records.read(kept.id);
    // The store has lost the record, or has stored it although the reply did not arrive. Either way it is written
    // again.
    const isWritten = stored?.owner === owner.owner && stored.token === owner.token;
    const again = stored === undefined ? known && 'absent' : isWritten && owner;
    return again ? records.put(kept.id, { expected: again, next, ttlMs }) : false;
  }

  /** Records a successful write. A session that ended during the write is removed from the store again. */
  #wrote(kept: KeptSession, ownership: Ownership): void {
    if (kept.record.kind === 'gone') this.#remove(kept.id, ownership);
    else kept.record = { kind: 'written', ownership };
  }

  #valueOf({ principal, state }: Pick<KeptSession, 'principal' | 'state'>): string {
    const { cluster, server } = this.#options;
    const value: StoredValue = { server, principal, address: cluster.self.address, state: JSON.stringify(state) };
    return JSON.stringify(value);
  }

  /** Stores all sessions again after the store has lost its records. */
  #storeAgain(): void {
    for (const { replay } of this.#kept.values()) replay.forgotten();
    this.#refresh();
  }

  /** Rewrites all records, so that they do not expire. */
  #refresh(): void {
    for (const kept of this.#kept.values()) kept.hasChanged = true;
    this.#writeChanged();
  }

  #writeChanged(): void {
    this.#isWritingWanted = true;
    if (!this.#isWritingAll) void this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    this.#isWritingAll = true;
    while (this.#isWritingWanted) {
      this.#isWritingWanted = false;
      const changed = [...this.#kept.values()].filter(({ hasChanged, replay }) => hasChanged || replay.isIncomplete);
      for (let from = 0; from < changed.length; from += MAX_TOGETHER) {
        const together = changed.slice(from, from + MAX_TOGETHER);
        for (const kept of together) this.#changed(kept);
        await Promise.all(together.map(({ writing }) => writing));
        // Replays are renewed sequentially, because one of them may have some megabytes.
        for (const { replay } of together) if (!(await replay.renew())) break;
      }
    }
    this.#isWritingAll = false;
  }

  ended(id: string): void {
    const kept = this.#forget(id);
    if (kept === undefined) return;
    kept.replay.close();
    const { record } = kept;
    kept.record = { kind: 'gone' };
    if (record.kind === 'written') this.#remove(id, record.ownership);
  }

  #remove(id: string, ownership: Ownership): void {
    const { store } = this.#options.cluster;
    // If the store cannot be reached now, the record expires by itself.
    store.records.remove(id, ownership).catch(() => undefined);
    store.logs.remove(id).catch(() => undefined);
  }

  #forget(id: string): KeptSession | undefined {
    const kept = this.#kept.get(id);
    if (kept === undefined) return undefined;
    this.#kept.delete(id);
    kept.state.changed = () => {};
    if (this.#kept.size === 0) {
      this.#stopTimer?.();
      this.#stopTimer = undefined;
    }
    return kept;
  }

  async handedOver(id: string): Promise<void> {
    const kept = this.#forget(id);
    if (kept === undefined) return;
    await Promise.all([kept.writing, kept.replay.flushed()]);
    kept.replay.close();
    const { record } = kept;
    kept.record = { kind: 'gone' };
    if (record.kind !== 'written') return;
    // If this write fails, other replicas can take the session over once this replica's lease has expired.
    await this.#store(kept, record, { owner: NOBODY, token: record.ownership.token + 1 }).catch(() => undefined);
  }

  /** Stops storing all sessions, since other replicas may own them from now on. */
  lost(): void {
    for (const id of [...this.#kept.keys()]) {
      const kept = this.#forget(id);
      if (kept === undefined) continue;
      kept.replay.close();
      kept.record = { kind: 'gone' };
    }
  }

  /**
   * Takes over a session of this caller whose owner is gone. Rejects with ERR_STORE_UNAVAILABLE, or with
   * ERR_SESSION_UNKNOWN if the stored state cannot be read.
   */
  async take(id: string, principal: string): Promise<TakenSession> {
    const { cluster, server, ttlMs } = this.#options;
    const { records } = cluster.store;
    const stored = await records.read(id);
    if (stored === undefined) return { kind: 'unknown' };
    const { value, owner, token } = stored;
    const parsed = JSON.parse(value) as StoredValue; // sealed by a replica
    if (parsed.server !== server || parsed.principal !== principal) return { kind: 'unknown' };
    if (owner === cluster.self.id) return { kind: 'unknown' };
    const isFree = owner === NOBODY || cluster.wasCalled(owner);
    if (!isFree && (await cluster.peers.judge(owner)) === 'alive') {
      return { kind: 'owned', owner: { id: owner, address: parsed.address } };
    }
    if (!cluster.isHeld) throw NOT_A_MEMBER;
    const state = SessionState.from(parsed.state);
    const next = { owner: cluster.self.id, token: token + 1, value: this.#valueOf({ principal, state }) };
    if (!(await records.put(id, { expected: { owner, token }, next, ttlMs }))) return this.take(id, principal);
    // Read after the record is ours, because the former owner cannot write anymore.
    const replay = await SessionReplay.read(cluster.store.logs, id);
    this.#keep(id, principal, { state, record: { kind: 'written', ownership: next } });
    return { kind: 'taken', state, replay, token: next.token };
  }

  close(): void {
    for (const stop of this.#stops) stop();
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }
}

const NOT_A_MEMBER = new BridgeError(
  'ERR_STORE_UNAVAILABLE',
  'This replica has not been able to reach the store for a while, so it takes over no sessions; try again later.',
  { retryAfterMs: 1000 },
);
