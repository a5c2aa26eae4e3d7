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
  /** Of the tests that have to notice, with `*` for any text, where others in the same files would notice, too. */
  readonly title?: string;
  /** For tests of the built program. */
  readonly needsBuild?: true;
}

/** Why the code cannot be taken out of `text`, which is in the file, and what to do; undefined: it can. */
export function findStaleness({ promise, file, code }: Protection, text: string): string | undefined {
  const found = text.split(code).length - 1;
  if (found === 1) return undefined;
  const wayOut = 'find the line that keeps the promise now, and name it with its file in test/protections/';
  return `"${promise}": ${file} holds this ${found} times instead of once; ${wayOut}: ${code}`;
}
