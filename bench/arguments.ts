/** The options of the command line. */
import { parseArgs } from 'node:util';
import { type Effort, FULL, QUICK } from './measure/effort.ts';

export interface Arguments {
  readonly mode: 'full' | 'quick';
  readonly effort: Effort;
  /** Only what has one of these names; everything when there is none. */
  readonly only: readonly string[];
  readonly jsonPath: string | undefined;
  readonly isWriting: boolean;
}

export const USAGE = `Usage: npm run bench -- [options]
  --quick          only check that every answer is right, without figures; needs no peers
  --case <name>    only this case (repeatable): see bench/README.md
  --rounds <n>     measure each thing that often [${FULL.rounds}]
  --json <file>    write the figures there, besides bench/last-run.json
  --write          measure nothing: make docs/internals/performance.md, its plot and bench/results.md from bench/last-run.json`;

/** Undefined if they make no sense. */
export function parseArguments(argv: readonly string[]): Arguments | undefined {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        quick: { type: 'boolean', default: false },
        case: { type: 'string', multiple: true, default: [] },
        rounds: { type: 'string' },
        json: { type: 'string' },
        write: { type: 'boolean', default: false },
      },
    });
    const base = values.quick ? QUICK : FULL;
    const rounds = Number(values.rounds ?? base.rounds);
    if (!Number.isInteger(rounds) || rounds < 1) return undefined;
    return {
      mode: values.quick ? 'quick' : 'full',
      effort: { ...base, rounds },
      only: values.case,
      jsonPath: values.json,
      isWriting: values.write,
    };
  } catch {
    return undefined;
  }
}
