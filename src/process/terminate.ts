/** Ends a child in a ladder of steps, with time between them. */
import type { Logger } from 'pino';
import type { Clock } from '../deps.ts';
import type { EndReason } from './child.ts';
import type { EndingSignal, ProcessGroup } from './process-group.ts';

export type TerminationAction = 'close-stdin' | EndingSignal;

export interface TerminationStep {
  readonly action: TerminationAction;
  /** Time before the next step. */
  readonly waitMs: number;
}

/**
 * Time after SIGKILL before the bridge gives up on a process that the kernel does not end (for example, blocked on a
 * device).
 */
const AFTER_KILL_MS = 1000;
/** Members that outlive their leader get at most this long to follow it. */
const MAX_FOLLOW_MS = 1000;
/**
 * Time that a child which is replaced has after the end of its input. Most servers exit at once; those that keep the event
 * loop alive never do, and their clients wait meanwhile.
 */
const MAX_REPLACED_MS = 500;
/** The interval at which a process group is polled, because its end causes no event. */
const GROUP_POLL_MS = 40;

/**
 * [spec 2025-11-25 lifecycle#stdio] close the input, wait, SIGTERM, wait, SIGKILL. A raw pseudo-terminal has no end of
 * input except a hang-up, so SIGHUP replaces it. A child that ignores everything is gone after the grace period: half
 * of it follows the end of its input, half SIGTERM; by default 2 s each, as in the official SDKs. On Windows SIGTERM
 * and SIGKILL are taskkill without and with /F.
 *
 * A child that hangs would not notice the end of its input, and its clients wait for its replacement. SIGTERM therefore
 * follows at once, as it does if the end is urgent. It ends most such children, because they need not handle it.
 *
 * @param graceMs total time for the child to end by itself
 */
export function terminationLadder(
  carrier: 'pipe' | 'pty',
  graceMs: number,
  why: EndReason = 'unwanted',
): readonly TerminationStep[] {
  const waitMs = graceMs / 2;
  const firstMs = why === 'unwanted' ? waitMs : why === 'replaced' ? Math.min(waitMs, MAX_REPLACED_MS) : 0;
  return [
    { action: carrier === 'pipe' ? 'close-stdin' : 'SIGHUP', waitMs: firstMs },
    { action: 'SIGTERM', waitMs },
    { action: 'SIGKILL', waitMs: AFTER_KILL_MS },
  ];
}

/** Steps for members of the group that still run after the leader has exited, for whatever reason. */
export function followLadder(graceMs: number): readonly TerminationStep[] {
  return [
    { action: 'SIGTERM', waitMs: Math.min(graceMs, MAX_FOLLOW_MS) },
    { action: 'SIGKILL', waitMs: AFTER_KILL_MS },
  ];
}

export interface TerminationOptions {
  readonly carrier: 'pipe' | 'pty';
  readonly graceMs: number;
  readonly group: ProcessGroup;
  /** Ends the child's input after everything written so far. */
  readonly closeStdin: () => void;
  readonly clock: Clock;
  /** A child logger with the child's name and pid. */
  readonly log: Logger;
}

/**
 * State of the termination. `idle`: the child runs and was not told to end. `ending`: the leader still runs;
 * `nextSteps` are the remaining steps. `following`: the leader has exited, but other members of its group run;
 * `stopLooking` ends the polling. `gone`: no member is left, or only one that even SIGKILL does not end. The pid may
 * belong to another program from then on.
 */
type TerminationState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'ending'; readonly nextSteps: readonly TerminationStep[] }
  | { readonly kind: 'following'; readonly stopLooking: () => void }
  | { readonly kind: 'gone' };

const GONE: TerminationState = { kind: 'gone' };

/** The termination of one child. Owns all its timers. */
export class Termination {
  readonly gone: Promise<void>;
  readonly #options: TerminationOptions;
  #state: TerminationState = { kind: 'idle' };
  #resolveGone: () => void = () => undefined;
  /** Cancels the next step's timer. */
  #cancelStep: () => void = () => undefined;

  constructor(options: TerminationOptions) {
    this.#options = options;
    this.gone = new Promise((resolve) => {
      this.#resolveGone = resolve;
    });
  }

  get hasBegun(): boolean {
    return this.#state.kind !== 'idle';
  }

  /** Begins the termination. A second call changes nothing, unless its reason is `urgent`. */
  begin(why?: EndReason): Promise<void> {
    const state = this.#state;
    if (state.kind === 'idle') {
      this.#state = { kind: 'ending', nextSteps: [] };
      this.#takeStep(terminationLadder(this.#options.carrier, this.#options.graceMs, why));
    } else if (why === 'urgent' && state.kind === 'ending' && state.nextSteps[0]?.action === 'SIGTERM') {
      this.#cancelStep();
      this.#takeStep(state.nextSteps);
    }
    return this.gone;
  }

  /** Called once, by the code that watches the process, when the leader has exited. */
  leaderExited(): void {
    if (this.#state.kind === 'gone') return;
    this.#cancelStep();
    const { group, clock, graceMs } = this.#options;
    if (!group.hasMembers()) return this.#finish();
    // The clock's timers and processes that are no children of this one do not keep the event loop alive. Without this
    // timer the bridge could exit before the group has ended.
    const hold = setInterval(() => undefined, AFTER_KILL_MS);
    const cancelPoll = clock.every(GROUP_POLL_MS, () => {
      if (!group.hasMembers()) this.#finish();
    });
    const stopLooking = (): void => {
      cancelPoll();
      clearInterval(hold);
    };
    this.#state = { kind: 'following', stopLooking };
    this.#takeStep(followLadder(graceMs));
  }

  killNow(): void {
    if (this.#state.kind === 'gone') return;
    this.#options.group.killNow();
    // `leaderExited` still reports the end.
    if (this.#state.kind === 'idle') this.#state = { kind: 'ending', nextSteps: [] };
  }

  #takeStep([step, ...rest]: readonly TerminationStep[]): void {
    const { log, group, closeStdin, clock } = this.#options;
    if (step === undefined) {
      // The group has ended, but a blocked event loop has not delivered the exit yet.
      if (!group.hasMembers()) return;
      log.warn('the process is still there after SIGKILL; leaving it to the system');
      return this.#finish();
    }
    if (this.#state.kind === 'ending') this.#state = { kind: 'ending', nextSteps: rest };
    log.debug({ step: step.action, phase: this.#state.kind }, `ending the child: ${step.action}`);
    if (step.action === 'close-stdin') closeStdin();
    else group.signal(step.action);
    this.#cancelStep = clock.after(step.waitMs, () => this.#takeStep(rest));
  }

  #finish(): void {
    this.#cancelStep();
    if (this.#state.kind === 'following') this.#state.stopLooking();
    this.#state = GONE;
    this.#resolveGone();
  }
}
