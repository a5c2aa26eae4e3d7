/**
 * Settings of V8 that suit a bridge better than its defaults: the growth of the heap between two full collections, and
 * the time at which compiled code is saved for the next start. By default V8 derives the growth from the size of the
 * heap, which is small in a bridge, but also counts the bytes of messages. It would then mark the whole heap for every
 * 30 MB that pass through.
 */
import { getHeapStatistics } from 'node:v8';
import type { Clock } from '../deps.ts';
import type { ProcessEvents } from './lifecycle.ts';
import type { V8Flags } from './v8-flags.ts';

/**
 * The growth allowed to a small heap: half a second of messages of a megabyte each, and less than the process takes
 * anyway.
 */
export const HEADROOM_BYTES = 64 * 1024 * 1024;
/** V8 lets a heap larger than the headroom at least double, so that its own choice is better from there on. */
const LEAST_PERCENT = 100;
/** The flag's value for the default, with which V8 decides. */
const V8_DECIDES = 0;
/** A heap takes longer than this to become large. */
const REVIEW_MS = 2000;

/** Returns the growth in percent that gives a heap of this size its headroom, or 0 to let V8 decide. */
export function growthPercent(usedBytes: number): number {
  const percent = Math.floor((HEADROOM_BYTES / Math.max(1, usedBytes)) * 100);
  return percent <= LEAST_PERCENT ? V8_DECIDES : percent;
}

/**
 * Gives the heap its headroom at once, and keeps it. V8 reads the flag at the end of each full collection, the first of
 * which are part of the start: with the flag set later, the first few hundred messages of a megabyte take twice the
 * processor time. Modules of Node that are loaded after this are compiled anew, which takes some 4 ms of a start.
 * `usedBytes` tells how much of the heap is in use.
 */
export function giveHeapHeadroom(clock: Clock, flags: V8Flags, usedBytes: () => number = usedHeap): void {
  const review = (): void => {
    const value = roundDown(growthPercent(usedBytes()));
    flags.set('heap-growing-percent', { value, byDefault: V8_DECIDES });
  };
  review();
  clock.every(REVIEW_MS, review);
}

function usedHeap(): number {
  return getHeapStatistics().used_heap_size;
}

/** Rounds to a multiple of 100, so that the flag is set less often: the used size is different each time. */
function roundDown(percent: number): number {
  return percent - (percent % 100);
}

/**
 * Runs a function, once at the start, without V8's optimizing compiler. A configuration file of a hundred servers is
 * read before the compiler has finished with the functions that read it, and the compiler keeps about 5 MiB for them.
 */
export async function withoutOptimizer<Result>(flags: V8Flags, run: () => Promise<Result>): Promise<Result> {
  // The size above which the compiler ignores a function. Switching the compiler off and on again would be simpler, but
  // V8 12 then rejects compiled code that was saved with the defaults.
  const optimizeUpTo = (value: number): void =>
    flags.set('max-optimized-bytecode-size', { value, byDefault: DEFAULT_OPTIMIZED_BYTES });
  optimizeUpTo(0);
  try {
    return await run();
  } finally {
    optimizeUpTo(DEFAULT_OPTIMIZED_BYTES);
  }
}

/** The default of V8 in Node 20, 22 and 24. */
const DEFAULT_OPTIMIZED_BYTES = 61_440;

/** Most clients have connected by then. Much later, V8 has discarded code that only the start needs. */
export const KEEP_AFTER_MS = 10_000;

/** Saves the compiled code some time after the start, or at the end of the process if that comes first. */
export function keepOnce(
  keep: () => void,
  { clock, events }: { readonly clock: Clock; readonly events: ProcessEvents },
): void {
  let isKept = false;
  const once = (): void => {
    if (isKept) return;
    isKept = true;
    keep();
  };
  clock.after(KEEP_AFTER_MS, once);
  events.on('exit', once);
}
