/**
 * What V8 is told to do otherwise than by itself: how far the heap may grow between two full collections, and when
 * compiled code is kept for the next start.
 *
 * V8 takes the growth from the size of the heap, which is small in a bridge, but counts the bytes of messages: left alone,
 * it marks everything for every 30 MB that pass through.
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import type { Clock } from '../deps.ts';
import type { ProcessEvents } from './lifecycle.ts';

/** Growth allowed to a small heap. Half a second of messages of a megabyte; less than the process takes anyway. */
export const HEADROOM_BYTES = 64 * 1024 * 1024;
/** A heap that is larger than the headroom may double at least, whoever decides; V8 knows better then. */
const LEAST_PERCENT = 100;
/** What the flag means when it is not set: V8 decides. */
const V8_DECIDES = 0;
/** A heap does not become a large one faster than this. */
const REVIEW_MS = 2000;

/** The growth in percent that gives a heap of this size its headroom; 0: V8 decides. */
export function growthPercent(usedBytes: number): number {
  const percent = Math.floor((HEADROOM_BYTES / Math.max(1, usedBytes)) * 100);
  return percent <= LEAST_PERCENT ? V8_DECIDES : percent;
}

export interface HeapHeadroom {
  /** Runs something without the headroom: V8 does not use compiled code again that was kept with other flags. */
  without(run: () => void): void;
}

/** Gives the heap of this process headroom from now on. V8 reads the flag at the end of each full collection. */
export function giveHeapHeadroom(clock: Clock): HeapHeadroom {
  let current = V8_DECIDES;
  const set = (percent: number): void => {
    if (percent === current) return;
    current = percent;
    setFlagsFromString(`--heap-growing-percent=${percent}`);
  };
  const review = (): void => set(roundDown(growthPercent(getHeapStatistics().used_heap_size)));
  review();
  clock.every(REVIEW_MS, review);
  return {
    without(run) {
      set(V8_DECIDES);
      run();
      review();
    },
  };
}

/** Few different values: the used size is another one each time. */
function roundDown(percent: number): number {
  return percent - (percent % 100);
}

/**
 * Runs something that happens once at the start without V8's optimizing compiler. A configuration file of a hundred servers
 * is read before the compiler is done with the functions that read it, and the compiler keeps some 5 MiB for them.
 */
export async function withoutOptimizer<Result>(run: () => Promise<Result>): Promise<Result> {
  optimizeUpTo(0);
  try {
    return await run();
  } finally {
    optimizeUpTo(DEFAULT_OPTIMIZED_BYTES);
  }
}

/** V8's own default in Node 20, 22 and 24. */
const DEFAULT_OPTIMIZED_BYTES = 61_440;

/**
 * The optimizing compiler leaves larger functions alone. It is not switched off and on again: after that V8 12 does not
 * take compiled code that it kept with the defaults.
 */
function optimizeUpTo(bytesOfBytecode: number): void {
  setFlagsFromString(`--max-optimized-bytecode-size=${bytesOfBytecode}`);
}

/** By then most clients have come; long after, V8 has thrown away what only the start needed. */
export const KEEP_AFTER_MS = 10_000;

/** Keeps the compiled code some time after the start, or when the process ends before that. */
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
