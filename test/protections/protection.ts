/** One promise, the line that keeps it, and the test that has to notice when the line is gone. */
export interface Protection {
  readonly promise: string;
  /** From the project's root. */
  readonly file: string;
  /** Found exactly once in the file. */
  readonly code: string;
  /** What stands there without the protection; nothing if left out. */
  readonly without?: string;
  /** Test files, from the project's root. */
  readonly tests: readonly string[];
  /** For tests of the built program. */
  readonly needsBuild?: true;
}
