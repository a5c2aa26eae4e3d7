/** How a child is ended: a ladder of steps, between which it has time. */
import type { Logger } from 'pino';
import type { Clock } from '../deps.ts';
import type { EndReason } from './child.ts';
import type { EndingSignal, ProcessGroup } from './process-group.ts';

export type TerminationAction = 'close-stdin' | EndingSignal;

export interface TerminationStep {
  readonly action: TerminationAction;
  /** How long the next step waits. */
  readonly waitMs: number;
}

/** Between SIGKILL and giving up on a process the kernel does not let go of (stuck in a device, say). */
const AFTER_KILL_MS = 1000;
/** Members that outlive their leader get at most this long to follow it. */
const MAX_FOLLOW_MS = 1000;
/** The pause between two looks at a process group, for the end of which there is no event. */
const GROUP_POLL_MS = 40;

/**
 * [spec 2025-11-25 lifecycle#stdio] close the input, wait, SIGTERM, wait, SIGKILL. On a raw pseudo-terminal there is no
 * end of input short of hanging up, so SIGHUP stands in its place. A child that ignores everything is gone after the grace
 * period: half of it is for the end of its input, half for SIGTERM; by default 2 s each, as the official SDKs have it. On
 * Windows SIGTERM and SIGKILL are taskkill without and with /F.
 *
 * One that hangs has not looked at its input for long and would not see the end of it, while others wait for the one that
 * replaces it: SIGTERM follows at once, as it does where it is urgent. That ends most of them, for it needs no help of
 * theirs.
 * @param graceMs all that a child has to end by itself
 */
export function terminationLadder(
  carrier: 'pipe' | 'pty',
  graceMs: number,
  why: EndReason = 'unwanted',
): readonly TerminationStep[] {
  const waitMs = graceMs / 2;
  return [
    { action: carrier === 'pipe' ? 'close-stdin' : 'SIGHUP', waitMs: why === 'unwanted' ? waitMs : 0 },
    { action: 'SIGTERM', waitMs },
    { action: 'SIGKILL', waitMs: AFTER_KILL_MS },
  ];
}

/** What becomes of members of the group that are left when the leader has exited, whatever made it exit. */
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
  /** Ends the child's input after what has been written to it. */
  readonly closeStdin: () => void;
  readonly clock: Clock;
  /** Carries the child's name and pid. */
  readonly log: Logger;
}

/**
 * - `idle`: the child runs and nobody wants it to end.
 * - `ending`: the leader still runs; `nextSteps` are those of the ladder that have not been taken.
 * - `following`: the leader has exited, others of its group have not; `stopLooking` ends the watch on them.
 * - `gone`: nobody is left, or only what even SIGKILL does not end. The pid may belong to another program by now.
 */
type TerminationState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'ending'; readonly nextSteps: readonly TerminationStep[] }
  | { readonly kind: 'following'; readonly stopLooking: () => void }
  | { readonly kind: 'gone' };

const GONE: TerminationState = { kind: 'gone' };

/** The end of one child. Owns the timers that this takes. */
export class Termination {
  readonly gone: Promise<void>;
  readonly #options: TerminationOptions;
  #state: TerminationState = { kind: 'idle' };
  #resolveGone: () => void = () => undefined;
  /** Cancels the step that is taken when the time of the latest one is over. */
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

  /** May be called twice; the first reason counts, unless it has become urgent. */
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

  /** The leader has exited; called once, by whoever waits for it. */
  leaderExited(): void {
    if (this.#state.kind === 'gone') return;
    this.#cancelStep();
    const { group, clock, graceMs } = this.#options;
    if (!group.hasMembers()) return this.#finish();
    // The clock's timers and processes that are not our children keep no event loop alive; whoever waits would not
    // see the end.
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
    // The end is still reported through leaderExited.
    if (this.#state.kind === 'idle') this.#state = { kind: 'ending', nextSteps: [] };
  }

  #takeStep([step, ...rest]: readonly TerminationStep[]): void {
    const { log, group, closeStdin, clock } = this.#options;
    if (step === undefined) {
      // The group has ended, but the event loop was held up and has not delivered the exit yet.
      if (!group.hasMembers()) return;
      log.warn('still there after SIGKILL; left to the system');
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
