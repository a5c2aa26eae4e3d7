import type { Logger } from 'pino';
import type { Clock } from '../../deps.ts';
import { toBridgeError } from '../../errors.ts';
import type { LeaseStore } from '../store/store.ts';

export interface ReplicaLeaseOptions {
  readonly leases: LeaseStore;
  /** Names one run of one replica. Ids are not reused. */
  readonly holder: string;
  /** Other replicas may take over from this one when it shows no sign of life for this long. */
  readonly ttlMs: number;
  readonly clock: Clock;
  /** Time of day. A sleeping machine stops the monotonic clock. */
  readonly wallClock: () => number;
  readonly log: Logger;
  /**
   * Called when other replicas may have taken over from this one: at most once per kind of loss, and never with
   * `doubted` after `dead`.
   */
  readonly lost: (how: LeaseLoss) => void;
}

/**
 * - `doubted`: another replica may have declared this one dead, but the store has no record of it.
 * - `dead`: another replica has declared this one dead.
 */
export type LeaseLoss = 'doubted' | 'dead';

/**
 * - `none`: no sign of life has been stored yet.
 * - `held`: no replica can take over from this one unless it stays silent for too long.
 * - `doubted`: another replica may have taken over, but the store has no record of it. This state is not left for
 *   `held`. Signs of life continue, so that sessions that cannot be taken over are still reached here.
 * - `lost`: this replica was declared dead, or has left.
 */
type LeaseState = 'none' | 'held' | 'doubted' | 'lost';

/** A moment by both clocks. A sleeping machine stops the monotonic clock, and a user may set the wall clock. */
interface Moment {
  readonly ms: number;
  readonly wallMs: number;
}

/** Fraction of the lease for which its holder relies on it. The rest allows for delays between two machines. */
const RELIED_ON = 2 / 3;
/** Renewals per lease, of which some may fail. */
const RENEWALS = 6;
/**
 * Longest time `confirm` waits for the store. A store command may take this long, so a store that answers within it is
 * available.
 */
const CONFIRM_MS = 2000;
/**
 * Delay between two attempts of `confirm`. A connection that broke while the process was stopped is usually reopened
 * soon.
 */
const CONFIRM_AGAIN_MS = 100;

/**
 * A replica's own lease. The replica shows signs of life, and stops serving anything that others could take over before
 * they may do so: they wait `ttlMs` without a new sign, measured from a moment after the last one was stored.
 */
export class ReplicaLease {
  readonly #options: ReplicaLeaseOptions;
  #state: LeaseState = 'none';
  #sign = 0;
  /** First sign of the current lease, as recorded in the store. */
  #since = 0;
  /**
   * `renewed` is when the last answered renewal was sent; `tried` is when the last renewal was sent, answered or not.
   */
  #renewed: Moment | undefined;
  #tried: Moment | undefined;
  #renewing: Promise<void> | undefined;
  #confirming: Promise<void> | undefined;
  /** True after `confirm` waited in vain, until the store answers again. Renewals are still being attempted. */
  #isStoreAway = false;
  #stopTimer: () => void = () => {};

  constructor(options: ReplicaLeaseOptions) {
    this.#options = options;
  }

  /**
   * Stores the first sign of life and keeps renewing it. Rejects with ERR_STORE_UNAVAILABLE when the first write fails.
   */
  async start(): Promise<void> {
    await this.#renew();
    if (this.#state === 'lost') return;
    const { clock, ttlMs } = this.#options;
    this.#stopTimer = clock.every(ttlMs / RENEWALS, () => void this.renewSoon());
  }

  /** True while no other replica can have taken over from this one. */
  get isHeld(): boolean {
    return this.#state === 'held' && this.#isRecent(this.#renewed);
  }

  get isLost(): boolean {
    return this.#state === 'lost' || this.#state === 'doubted';
  }

  /** Compares both clocks and uses the larger elapsed time. */
  #isRecent(moment: Moment | undefined): boolean {
    if (moment === undefined) return false;
    const { clock, wallClock, ttlMs } = this.#options;
    return Math.max(clock.now() - moment.ms, wallClock() - moment.wallMs) < ttlMs * RELIED_ON;
  }

  /**
   * Await this before serving anything under this name, because a replica that was stopped may have been declared dead
   * meanwhile. Returns undefined if the lease was renewed recently, if it is lost, or if the store is known to be
   * unavailable. Never rejects.
   */
  confirm(): Promise<void> | undefined {
    if (this.#state === 'lost' || this.#isRecent(this.#renewed)) return undefined;
    if (this.#isStoreAway && this.#isRecent(this.#tried)) return undefined;
    this.#confirming ??= this.#confirm().finally(() => {
      this.#confirming = undefined;
    });
    return this.#confirming;
  }

  async #confirm(): Promise<void> {
    const { clock } = this.#options;
    const untilMs = clock.now() + CONFIRM_MS;
    while (this.#state !== 'lost' && !this.#isRecent(this.#renewed)) {
      if (clock.now() >= untilMs) {
        this.#isStoreAway = true;
        return;
      }
      await Promise.race([this.renewSoon(), pause(clock, untilMs - clock.now())]);
      if (!this.#isRecent(this.#renewed)) await pause(clock, CONFIRM_AGAIN_MS);
    }
  }

  /** Renews the lease now instead of at the next timer. Concurrent calls share one renewal. Never rejects. */
  renewSoon(): Promise<void> {
    if (this.#state === 'lost') return Promise.resolve();
    this.#renewing ??= this.#renew()
      .catch((thrown: unknown) => {
        this.#options.log.debug({ code: toBridgeError(thrown).code }, 'the lease of this replica was not renewed');
      })
      .finally(() => {
        this.#renewing = undefined;
      });
    return this.#renewing;
  }

  async #renew(): Promise<void> {
    const { leases, holder, clock, wallClock } = this.#options;
    // Taken before the renewal is sent: however late its reply is, other replicas measure from a later moment.
    const sent = { ms: clock.now(), wallMs: wallClock() };
    // Without a recent attempt this process was stopped, so the state of the store is unknown.
    if (!this.#isRecent(this.#tried)) this.#isStoreAway = false;
    this.#sign += 1;
    const renewal = await leases.renew(holder, this.#sign).finally(() => {
      this.#tried = sent;
    });
    if (this.#state === 'lost') return;
    if (renewal.kind === 'dead') return this.#lose('dead');
    // A store that lost the lease may also have lost a verdict on this replica. While the lease holds, there can have
    // been no verdict.
    const isCertain = renewal.since === this.#since || this.#state === 'none' || this.isHeld;
    this.#renewed = sent;
    this.#isStoreAway = false;
    if (this.#state === 'doubted') return;
    if (!isCertain) return this.#lose('doubted');
    this.#since = renewal.since;
    this.#state = 'held';
  }

  #lose(how: LeaseLoss): void {
    this.#state = how === 'dead' ? 'lost' : 'doubted';
    if (how === 'dead') this.#stopTimer();
    this.#options.lost(how);
  }

  /** Gives up the lease, so that other replicas can take over without waiting for it to expire. */
  async release(): Promise<void> {
    this.close();
    await this.#options.leases.release(this.#options.holder);
  }

  /** Stops renewing the lease. */
  close(): void {
    this.#stopTimer();
    this.#state = 'lost';
  }
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}
