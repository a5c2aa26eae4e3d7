/** Tells the runs of bridges apart whose lines are in one file. */

/** One run of a bridge, in which the numbers of calls are unique. */
export interface RecordedRun {
  readonly number: number;
  lastSeq: number;
}

/** Limit of the runs that may still go on: bridges that write to the same file, and runs that have ended. */
const MAX_RUNS = 8;

/**
 * Assigns each line to a run by its `seq`, which counts the lines of one run from 1. A line has no other mark of its run:
 * a restarted bridge appends to the file, and two bridges may write to it at once.
 */
export class RecordedRuns {
  /** The run of the latest line comes last. */
  readonly #runs: RecordedRun[] = [];
  #count = 0;

  /** Returns the run that this line continues, or a new one. */
  of(seq: number): RecordedRun {
    const next = this.#runs.findLastIndex(({ lastSeq }) => lastSeq === seq - 1);
    // Lines can be missing: they were dropped, or they stood at the start of a file that was rotated.
    const place = next !== -1 || seq === 1 ? next : this.#runs.findLastIndex(({ lastSeq }) => lastSeq < seq);
    const run = place === -1 ? { number: ++this.#count, lastSeq: 0 } : this.#runs.splice(place, 1)[0];
    if (run === undefined) throw new RangeError('no run at this place');
    run.lastSeq = seq;
    this.#runs.push(run);
    if (this.#runs.length > MAX_RUNS) this.#runs.shift();
    return run;
  }
}
