import { RecentNames } from '../../collections/recent-names.ts';
import type { Clock } from '../../deps.ts';

/** Two streams tell of one change within this time of each other. */
export const OVERLAP_MS = 250;
/** Beyond so many within that time, or so many characters of what has changed, a change may be told twice. */
export const MAX_RECENT = 1000;
export const MAX_RECENT_LENGTH = 256 * 1024;

/**
 * While one stream takes over from another, both tell of each change. A change that one and the same stream tells twice
 * has happened twice.
 */
export class RecentChanges<Stream> {
  readonly #clock: Clock;
  readonly #seen = new RecentNames<{ readonly stream: Stream; readonly atMs: number }>({
    count: MAX_RECENT,
    length: MAX_RECENT_LENGTH,
  });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Has another stream told of it just now? If not, this one has. */
  isRepeated(stream: Stream, change: string): boolean {
    const nowMs = this.#clock.now();
    const seen = this.#seen.get(change);
    if (seen !== undefined && seen.stream !== stream && nowMs - seen.atMs <= OVERLAP_MS) return true;
    this.#seen.set(change, { stream, atMs: nowMs });
    return false;
  }

  clear(): void {
    this.#seen.clear();
  }
}
