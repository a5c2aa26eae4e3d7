import type { ExecutionContext } from 'ava';
import type { Cell } from './cell.ts';
import type { Feature } from './features.ts';

/** Something that has to be the same whatever stands at either end. */
export interface Scenario {
  /** Behavior, as a sentence. */
  readonly title: string;
  /** What the pair has to be able to do for it. */
  readonly needs: readonly Feature[];
  /** The honest outcome where the pair tries and cannot: runs in those cells only. */
  readonly without?: Feature;
  run(t: ExecutionContext, cell: Cell): Promise<void>;
}
