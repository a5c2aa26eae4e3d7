/** How much is done: everything for figures, or just enough to see every answer. */
export interface Effort {
  readonly rounds: number;
  /** How long each measurement goes on, beyond its first call. */
  readonly sliceMs: number;
  readonly maxCalls: number;
  readonly warmUpMs: number;
  /** What the peers get wrong is not ours to check. */
  readonly peers: 'all' | 'none';
}

export const FULL: Effort = {
  rounds: 3,
  sliceMs: 700,
  maxCalls: Number.POSITIVE_INFINITY,
  warmUpMs: 1000,
  peers: 'all',
};
export const QUICK: Effort = { rounds: 1, sliceMs: 300, maxCalls: 300, warmUpMs: 0, peers: 'none' };
