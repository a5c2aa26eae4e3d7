import type { Logger } from 'pino';
import type { Clock } from '../deps.ts';
import { toBridgeError } from '../errors.ts';
import type { LeaseStore } from '../store/store.ts';

export interface ReplicaLeaseOptions {
  readonly leases: LeaseStore;
  /** Names one run of one replica, and never another. */
  readonly holder: string;
  /** After this much silence others may take over what the replica has. */
  readonly ttlMs: number;
  readonly clock: Clock;
  /** Time of day. A machine that sleeps stops the other clock. */
  readonly wallClock: () => number;
  readonly log: Logger;
  /**
   * Others may have taken over what the replica has. Called once for each way, and never with `doubted` after `dead`.
   */
  readonly lost: (how: LeaseLoss) => void;
}

/**
 * - `doubted`: another replica may have declared this one dead, though the store does not say it.
 * - `dead`: another replica has, or has done so since.
 */
export type LeaseLoss = 'doubted' | 'dead';

/**
 * - `none`: no sign was left yet.
 * - `held`: no replica can take over what this one has, until it has been silent for too long.
 * - `doubted`: another may have done so, though the store does not say it. Nothing ends that. Signs go on, so that what
 *   cannot be taken over is still found here.
 * - `lost`: it was declared dead, or has left.
 */
type LeaseState = 'none' | 'held' | 'doubted' | 'lost';

/** A moment by both clocks. A machine that sleeps stops one of them, and somebody may set the other. */
interface Moment {
  readonly ms: number;
  readonly wallMs: number;
}

/** How much of the time passes before the holder stops to rely on it: the rest is for what is slow between two machines. */
const RELIED_ON = 2 / 3;
/** Renewals within that time, of which some may be lost. */
const RENEWALS = 6;
/** As long as a command may take: a store that answers by then is not away. */
const CONFIRM_MS = 2000;
/** Between two attempts meanwhile. A connection that broke while the process was stopped is made again soon. */
const CONFIRM_AGAIN_MS = 100;

/**
 * A replica's own lease. It shows signs of life, and stops to serve what could be taken over from it before anybody may
 * take that over: others wait for `ttlMs` without a new sign, measured from a moment after the last one was there.
 */
export class ReplicaLease {
  readonly #options: ReplicaLeaseOptions;
  #state: LeaseState = 'none';
  #sign = 0;
  /** The sign that the lease began with, as the store knows it. */
  #since = 0;
  /** When the last renewal left that the store has answered, and the last that it has answered or not. */
  #renewed: Moment | undefined;
  #tried: Moment | undefined;
  #renewing: Promise<void> | undefined;
  #confirming: Promise<void> | undefined;
  /** The store was waited for in vain, and has not answered since; renewals have been tried all the time. */
  #isStoreAway = false;
  #stopTimer: () => void = () => {};

  constructor(options: ReplicaLeaseOptions) {
    this.#options = options;
  }

  /** Rejects with ERR_STORE_UNAVAILABLE when no first sign could be left. */
  async start(): Promise<void> {
    await this.#renew();
    if (this.#state === 'lost') return;
    const { clock, ttlMs } = this.#options;
    this.#stopTimer = clock.every(ttlMs / RENEWALS, () => void this.renewSoon());
  }

  /** Whether what could be taken over is certainly still here. */
  get isHeld(): boolean {
    return this.#state === 'held' && this.#isRecent(this.#renewed);
  }

  get isLost(): boolean {
    return this.#state === 'lost' || this.#state === 'doubted';
  }

  /** Two clocks are asked, and the one that says more is believed. */
  #isRecent(moment: Moment | undefined): boolean {
    if (moment === undefined) return false;
    const { clock, wallClock, ttlMs } = this.#options;
    return Math.max(clock.now() - moment.ms, wallClock() - moment.wallMs) < ttlMs * RELIED_ON;
  }

  /**
   * To be awaited before anything is served under this name: a replica that was stopped may have been declared dead
   * meanwhile. Undefined: that is not so, or known already, or nobody can tell, since the store is away.
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

  /** One renewal at a time; whoever finds the lease in doubt need not wait for the timer. Never rejects. */
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
    // The moment before it leaves: however late its reply is, nobody has waited from an earlier one on.
    const sent = { ms: clock.now(), wallMs: wallClock() };
    // A replica that has not tried for so long was stopped, and knows nothing of the store.
    if (!this.#isRecent(this.#tried)) this.#isStoreAway = false;
    this.#sign += 1;
    const renewal = await leases.renew(holder, this.#sign).finally(() => {
      this.#tried = sent;
    });
    if (this.#state === 'lost') return;
    if (renewal.kind === 'dead') return this.#lose('dead');
    // A store that has lost the lease may have lost the verdict, too. As long as the lease holds there can have been none.
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

  /** Others need not wait for what this replica leaves behind. */
  async release(): Promise<void> {
    this.close();
    await this.#options.leases.release(this.#options.holder);
  }

  /** Shows no more signs of life. */
  close(): void {
    this.#stopTimer();
    this.#state = 'lost';
  }
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}
