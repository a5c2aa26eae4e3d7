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
 * - `ending`: on the ladder, the leader still runs.
 * - `following`: the leader has exited, others of its group have not.
 * - `gone`: nobody is left, or only what even SIGKILL does not end. The pid may belong to a stranger by now.
 */
type TerminationState = 'idle' | 'ending' | 'following' | 'gone';

/** The end of one child. Owns the timers that brings. */
export class Termination {
  readonly gone: Promise<void>;
  readonly #options: TerminationOptions;
  #state: TerminationState = 'idle';
  #resolveGone: () => void = () => undefined;
  #cancelStep: () => void = () => undefined;
  /** Below the step that was taken last. */
  #stepsLeft: readonly TerminationStep[] = [];
  #cancelPoll: () => void = () => undefined;
  #hold: NodeJS.Timeout | undefined;

  constructor(options: TerminationOptions) {
    this.#options = options;
    this.gone = new Promise((resolve) => {
      this.#resolveGone = resolve;
    });
  }

  get hasBegun(): boolean {
    return this.#state !== 'idle';
  }

  /** May be called twice; the first reason counts, unless it has become urgent. */
  begin(why?: EndReason): Promise<void> {
    if (this.#state === 'idle') {
      this.#state = 'ending';
      this.#takeStep(terminationLadder(this.#options.carrier, this.#options.graceMs, why));
    } else if (why === 'urgent' && this.#state === 'ending' && this.#stepsLeft[0]?.action === 'SIGTERM') {
      this.#cancelStep();
      this.#takeStep(this.#stepsLeft);
    }
    return this.gone;
  }

  /** The leader has exited; called once, by whoever waits for it. */
  leaderExited(): void {
    if (this.#state === 'gone') return;
    this.#cancelStep();
    const { group, clock, graceMs } = this.#options;
    if (!group.hasMembers()) return this.#finish();
    this.#state = 'following';
    // The clock's timers and processes that are not our children keep no event loop alive; whoever waits would not
    // see the end.
    this.#hold = setInterval(() => undefined, AFTER_KILL_MS);
    this.#cancelPoll = clock.every(GROUP_POLL_MS, () => {
      if (!group.hasMembers()) this.#finish();
    });
    this.#takeStep(followLadder(graceMs));
  }

  killNow(): void {
    if (this.#state === 'gone') return;
    this.#options.group.killNow();
    // Whoever waits for the end still hears of it through leaderExited.
    if (this.#state === 'idle') this.#state = 'ending';
  }

  #takeStep([step, ...rest]: readonly TerminationStep[]): void {
    const { log, group, closeStdin, clock } = this.#options;
    if (step === undefined) {
      // It has ended, and who was held up for so long has yet to hear of it.
      if (!group.hasMembers()) return;
      log.warn('still there after SIGKILL; left to the system');
      return this.#finish();
    }
    this.#stepsLeft = rest;
    log.debug({ step: step.action, phase: this.#state }, `ending the child: ${step.action}`);
    if (step.action === 'close-stdin') closeStdin();
    else group.signal(step.action);
    this.#cancelStep = clock.after(step.waitMs, () => this.#takeStep(rest));
  }

  #finish(): void {
    this.#state = 'gone';
    this.#cancelStep();
    this.#cancelPoll();
    clearInterval(this.#hold);
    this.#resolveGone();
  }
}
