/** How much is done: everything for figures, or just enough to see every answer. */
export interface Effort {
  readonly rounds: number;
  /** How long each measurement goes on, beyond its first call. */
  readonly sliceMs: number;
  readonly maxCalls: number;
  /** Small calls before anything is measured: code is compiled by being used. No longer than `maxWarmUpMs`. */
  readonly warmUpCalls: number;
  readonly maxWarmUpMs: number;
  /** What the peers get wrong is not ours to check. */
  readonly peers: 'all' | 'none';
}

export const FULL: Effort = {
  rounds: 3,
  sliceMs: 600,
  maxCalls: Number.POSITIVE_INFINITY,
  warmUpCalls: 40_000,
  maxWarmUpMs: 6000,
  peers: 'all',
};
export const QUICK: Effort = {
  rounds: 1,
  sliceMs: 300,
  maxCalls: 300,
  warmUpCalls: 0,
  maxWarmUpMs: 0,
  peers: 'none',
};
