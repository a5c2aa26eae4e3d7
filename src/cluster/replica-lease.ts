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
  /** The replica was declared dead, or may have been: others may have taken over whatever it had. Called once. */
  readonly lost: () => void;
}

/**
 * - `held`: since the renewal that was sent then, no replica can take over what this one has.
 * - `doubted`: another may have done so, though the store does not say it. Nothing ends that. Signs go on, so that what
 *   cannot be taken over is still found here.
 * - `lost`: it was declared dead, or has left.
 */
type LeaseState =
  | { readonly kind: 'held'; readonly sentMs: number; readonly sentWallMs: number }
  | { readonly kind: 'none' | 'doubted' | 'lost' };

/** How much of the time passes before the holder stops to rely on it: the rest is for what is slow between two machines. */
const RELIED_ON = 2 / 3;
/** Renewals within that time, of which some may be lost. */
const RENEWALS = 6;

/**
 * A replica's own lease. It shows signs of life, and stops to serve what could be taken over from it before anybody may
 * take that over: others wait for `ttlMs` without a new sign, measured from a moment after the last one was there.
 */
export class ReplicaLease {
  readonly #options: ReplicaLeaseOptions;
  #state: LeaseState = { kind: 'none' };
  #sign = 0;
  /** The sign that the lease began with, as the store knows it. */
  #since = 0;
  #isRenewing = false;
  #stopTimer: () => void = () => {};

  constructor(options: ReplicaLeaseOptions) {
    this.#options = options;
  }

  /** Rejects with ERR_STORE_UNAVAILABLE when no first sign could be left. */
  async start(): Promise<void> {
    await this.#renew();
    const { clock, ttlMs } = this.#options;
    this.#stopTimer = clock.every(ttlMs / RENEWALS, () => this.renewSoon());
  }

  /** Whether what could be taken over is certainly still here. Two clocks are asked, and the one that says more is believed. */
  get isHeld(): boolean {
    if (this.#state.kind !== 'held') return false;
    const { clock, wallClock, ttlMs } = this.#options;
    const passedMs = Math.max(clock.now() - this.#state.sentMs, wallClock() - this.#state.sentWallMs);
    return passedMs < ttlMs * RELIED_ON;
  }

  get isLost(): boolean {
    return this.#state.kind === 'lost' || this.#state.kind === 'doubted';
  }

  /** One renewal at a time; whoever finds the lease in doubt need not wait for the timer. */
  renewSoon(): void {
    if (this.#isRenewing || this.#state.kind === 'lost') return;
    this.#isRenewing = true;
    void this.#renew()
      .catch((thrown: unknown) => {
        this.#options.log.debug({ code: toBridgeError(thrown).code }, 'the lease of this replica was not renewed');
      })
      .finally(() => {
        this.#isRenewing = false;
      });
  }

  async #renew(): Promise<void> {
    const { leases, holder, clock, wallClock } = this.#options;
    // The moment before it leaves: however late its reply is, nobody has waited from an earlier one on.
    const held = { kind: 'held', sentMs: clock.now(), sentWallMs: wallClock() } as const;
    this.#sign += 1;
    const renewal = await leases.renew(holder, this.#sign);
    if (this.#state.kind === 'lost') return;
    if (renewal.kind === 'renewed' && this.#state.kind === 'doubted') return;
    // A store that has lost the lease may have lost the verdict, too. As long as the lease holds there can have been none.
    if (renewal.kind === 'renewed' && (renewal.since === this.#since || this.#state.kind === 'none' || this.isHeld)) {
      this.#since = renewal.since;
      this.#state = held;
      return;
    }
    const wasDoubted = this.#state.kind === 'doubted';
    this.#state = { kind: renewal.kind === 'dead' ? 'lost' : 'doubted' };
    if (renewal.kind === 'dead') this.#stopTimer();
    if (!wasDoubted) this.#options.lost();
  }

  /** Others need not wait for what this replica leaves behind. */
  async release(): Promise<void> {
    this.close();
    await this.#options.leases.release(this.#options.holder);
  }

  /** Shows no more signs of life. */
  close(): void {
    this.#stopTimer();
    this.#state = { kind: 'lost' };
  }
}
