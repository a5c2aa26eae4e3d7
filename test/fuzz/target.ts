import fc from 'fast-check';

/**
 * How many inputs and with which random numbers; the same as fast-check takes it. Not how long: an input that is
 * interrupted at the end of its time may have been one that hangs.
 */
export type FuzzBudget = Pick<fc.Parameters, 'seed' | 'path' | 'numRuns'>;

/** One part of the bridge under random input. */
export interface FuzzTarget {
  /** What `--target` calls it. */
  readonly name: string;
  /** What must hold whatever comes; the title of a test. */
  readonly promise: string;
  /** How many inputs the ordinary test tries. */
  readonly runs: number;
  check(budget: FuzzBudget): Promise<FuzzOutcome>;
  /** What there is to say when all rounds are over. */
  report?(): string;
}

export interface FuzzOutcome {
  readonly tried: number;
  /** What went wrong with which input, in words; undefined: nothing. */
  readonly failure: string | undefined;
}

interface TargetParts<Input> {
  readonly name: string;
  readonly promise: string;
  readonly runs: number;
  readonly input: fc.Arbitrary<Input>;
  /** Throws when the promise is broken. */
  readonly holds: (input: Input) => void | Promise<void>;
  /** Called once before and after the inputs of one check, for what all of them share. */
  readonly open?: () => Promise<void>;
  readonly close?: () => Promise<void>;
}

/** An input that takes longer hangs. Far beyond what any takes on a busy machine. */
const HANG_MS = 20_000;

export function fuzzTarget<Input>(parts: TargetParts<Input>): FuzzTarget {
  const { name, promise, runs, input, holds, open, close } = parts;
  return {
    name,
    promise,
    runs,
    async check(budget) {
      await open?.();
      const property = fc.asyncProperty(input, async (value) => holds(value)).beforeEach(() => beat());
      const details = await fc.check(property, { timeout: HANG_MS, ...budget });
      const failures = details.failed ? [await fc.asyncDefaultReportMessage(details), details.errorInstance] : [];
      await close?.().catch((error: unknown) => failures.push(`after all inputs: ${error}`));
      return { tried: details.numRuns, failure: failures.length === 0 ? undefined : failures.join('\n') };
    },
  };
}

const noBeat = (): void => {};
let beat = noBeat;

/** Has `listener` called with each input, so that somebody else can notice when none follows. */
export function onEachInput(listener: () => void): void {
  beat = listener;
}

/** Fails a check in words. */
export function insist(condition: boolean, message: () => string): asserts condition {
  if (!condition) throw new Error(message());
}
