import { parseCommandLine } from '../../src/cli/command-line.ts';

/** What is said of a command line; `accepted` when nothing is wrong with it. */
export function refusal(...argv: readonly string[]): string {
  try {
    parseCommandLine(argv);
  } catch (thrown) {
    return (thrown as Error).message;
  }
  return 'accepted';
}
