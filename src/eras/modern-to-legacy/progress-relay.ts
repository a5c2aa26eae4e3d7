import { readProgress } from '../../mcp/progress.ts';
import { rewriteProgress } from '../../mcp/rewrite.ts';
import type { Frame } from '../../wire/frame.ts';

export interface ProgressFollower {
  readonly progressToken: Buffer | undefined;
  notify(frame: Frame): void;
}

/**
 * Progress of one call for the requests that follow it. It must increase, which not all servers see to; what comes
 * while nobody follows is kept as far as it is the latest. [spec 2026-07-28 basic/patterns/progress]
 */
export class ProgressRelay {
  #latest = Number.NEGATIVE_INFINITY;
  /** Not seen by anybody yet. */
  #kept: Frame | undefined;

  take(frame: Frame, followers: Iterable<ProgressFollower>): void {
    const progress = readProgress(frame);
    if (progress === undefined || progress <= this.#latest) return;
    this.#latest = progress;
    this.#kept = frame;
    for (const follower of followers) if (tell(follower, frame)) this.#kept = undefined;
  }

  /** A request follows from now on. */
  joined(follower: ProgressFollower): void {
    if (this.#kept !== undefined && tell(follower, this.#kept)) this.#kept = undefined;
  }
}

/** False: it did not ask for progress. */
function tell(follower: ProgressFollower, frame: Frame): boolean {
  const told = follower.progressToken && rewriteProgress(frame, follower.progressToken);
  if (told !== undefined) follower.notify(told);
  return told !== undefined;
}
