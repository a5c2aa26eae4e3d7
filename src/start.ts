/**
 * What bin/ runs: loads the program, dist/cli.cjs, with the code that V8 compiled of it at earlier starts. To compile it
 * takes a third of a cold start. Built into a file of its own, which is small.
 */
import { readFileSync } from 'node:fs';
import { createRequire, wrap } from 'node:module';
import { dirname, join } from 'node:path';
import { Script } from 'node:vm';
import { findCodeFile } from './start/code-file.ts';
import { VERSION } from './version.ts';

/** The digest of dist/cli.cjs; scripts/build.js puts it here. */
declare const PROGRAM_DIGEST: string;

interface Program {
  main(keepCompiledCode: () => void): Promise<void>;
}

/** Compiled code is kept anew this often: what a first run had no use for, a later one adds. */
const GENERATIONS = 4;

/** Runs the command line of this process. */
export function start(): void {
  const argv = process.argv.slice(2);
  if (isVersionOnly(argv)) return printVersion();
  const path = join(__dirname, 'cli.cjs');
  const file = findCodeFile({ argv, env: process.env, digest: PROGRAM_DIGEST });
  const kept = file?.read();
  // Beside comments nothing but ASCII is in there: esbuild escapes all but regular expressions, where a test looks.
  const source = wrap(readFileSync(path, 'latin1'));
  const script = new Script(source, { filename: path, cachedData: kept?.code });
  const generation = kept === undefined || script.cachedDataRejected ? 0 : kept.generation;
  const program: { exports: Partial<Program> } = { exports: {} };
  script.runInThisContext()(program.exports, createRequire(path), program, path, dirname(path));
  const keep = (): void => {
    if (generation < GENERATIONS) file?.write({ code: script.createCachedData(), generation: generation + 1 });
  };
  void program.exports.main?.(keep);
}

function printVersion(): void {
  // A reader that went away is no reason to crash.
  process.stdout.on('error', () => undefined);
  process.stdout.write(`${VERSION}\n`);
}

/** Who asks for the version only should not wait for the program. */
function isVersionOnly(argv: readonly string[]): boolean {
  return argv.length === 1 && (argv[0] === '--version' || argv[0] === '-v');
}
