import { parseCommandLine } from '../../src/cli/command-line.ts';
import { parseConfig } from '../../src/cli/parse/config.ts';
import type { Config } from '../../src/config.ts';

/** What these words of a command line configure, for the machine that runs the tests. */
export function configOf(...words: string[]): Config {
  const commandLine = parseCommandLine(words);
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  const { config } = parseConfig(commandLine, {
    env: { PATH: process.env.PATH ?? '' },
    cwd: process.cwd(),
    platform: process.platform,
    stderrIsTerminal: false,
    readFile: () => ({ text: '', isOpenToAll: false }),
  });
  return config;
}
