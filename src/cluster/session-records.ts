import type { Logger } from 'pino';
import type { Clock } from '../deps.ts';
import { BridgeError, toBridgeError } from '../errors.ts';
import { SessionState } from '../relay/sessions/session-state.ts';
import type { ReplayLog, SessionStorage, StoredReplay } from '../relay/sessions/session-storage.ts';
import type { Ownership } from '../store/store.ts';
import type { Cluster } from './cluster.ts';
import type { Owner } from './owner-tags.ts';
import { FIRST_TOKEN, MAX_REPLAY_ENTRIES, SessionReplay } from './session-replay.ts';

export interface SessionRecordsOptions {
  readonly cluster: Cluster;
  /** Whose sessions these are: the same for all replicas. */
  readonly server: string;
  /** A record that nobody has written for this long is of no use to anybody. */
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * How a session stands in the store. Its token counts its owners.
 * - `unwritten`: it has not begun at the server, so there is nothing to go on with.
 * - `written`: it is there, and ours.
 * - `gone`: it has ended, or is somebody else's.
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
  /** Writes follow each other; what changes meanwhile goes with the next one. */
  writing: Promise<void> | undefined;
  hasChanged: boolean;
}

/** What a stored session is. */
interface StoredValue {
  readonly server: string;
  readonly principal: string;
  /** Where the owner is reached. */
  readonly address: string;
  /** As `SessionState` writes it. */
  readonly state: string;
}

export type TakenSession =
  /** From now on it is ours. */
  | {
      readonly kind: 'taken';
      readonly state: SessionState;
      readonly replay: StoredReplay;
      /** How many have had it before, and ours. */
      readonly token: number;
    }
  /** It lives there. */
  | { readonly kind: 'owned'; readonly owner: Owner }
  /** There is none that could be gone on with, or not for this caller. */
  | { readonly kind: 'unknown' };

/** The owner of what a replica has let go of. No replica is called so. */
export const NOBODY = 'nobody';
/** Records are written again within their time, so that those of long sessions do not expire. */
const REFRESHES = 3;
/** Sessions written at a time where all are: more would keep the store from what calls wait for. */
const MAX_TOGETHER = 100;

/** The sessions of one server that other replicas can go on with: stored with each change, and taken over. */
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
    // What changes in one turn is stored together. Clients may have been told that what is not stored by now is gone, if
    // this replica was silent for too long.
    await cluster.confirm();
    while (kept.hasChanged && kept.record.kind !== 'gone' && kept.state.offer !== undefined && cluster.isHeld) {
      kept.hasChanged = false;
      try {
        await this.#put(kept);
      } catch (thrown) {
        // It is tried again when the store answers. Until then another replica would go on with an older state, or not at all.
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

  /** False: it is another replica's by now. */
  async #store(kept: KeptSession, record: RecordState, owner: Ownership): Promise<boolean> {
    const { cluster, ttlMs } = this.#options;
    const { records } = cluster.store;
    const known = record.kind === 'written' ? record.ownership : undefined;
    const next = { ...owner, value: this.#valueOf(kept) };
    if (await records.put(kept.id, { expected: known ?? 'absent', next, ttlMs })) return true;
    const stored = await records.read(kept.id);
    // The store has lost it, or has it without having been able to say so: it is written anew.
    const isWritten = stored?.owner === owner.owner && stored.token === owner.token;
    const again = stored === undefined ? known && 'absent' : isWritten && owner;
    return again ? records.put(kept.id, { expected: again, next, ttlMs }) : false;
  }

  /** It may have ended while it was written. */
  #wrote(kept: KeptSession, ownership: Ownership): void {
    if (kept.record.kind === 'gone') this.#remove(kept.id, ownership);
    else kept.record = { kind: 'written', ownership };
  }

  #valueOf({ principal, state }: Pick<KeptSession, 'principal' | 'state'>): string {
    const { cluster, server } = this.#options;
    const value: StoredValue = { server, principal, address: cluster.self.address, state: JSON.stringify(state) };
    return JSON.stringify(value);
  }

  /** The store has forgotten all of them. */
  #storeAgain(): void {
    for (const { replay } of this.#kept.values()) replay.forgotten();
    this.#refresh();
  }

  /** All of them are about to expire. */
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
        // One after the other, since what is kept of a session may be some megabytes.
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
    // If it cannot be told now it expires.
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
    // What is not told now others find out when the lease is over.
    await this.#store(kept, record, { owner: NOBODY, token: record.ownership.token + 1 }).catch(() => undefined);
  }

  /** All that is kept is somebody else's from now on. */
  lost(): void {
    for (const id of [...this.#kept.keys()]) {
      const kept = this.#forget(id);
      if (kept === undefined) continue;
      kept.replay.close();
      kept.record = { kind: 'gone' };
    }
  }

  /**
   * Takes over a session whose owner is gone, and that belongs to this caller. Rejects with ERR_STORE_UNAVAILABLE, and with
   * ERR_SESSION_UNKNOWN for what cannot be read.
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
    // Only now: nobody else writes any more.
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
