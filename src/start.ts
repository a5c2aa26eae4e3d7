/**
 * The entry point of bin/: loads the program, dist/cli.cjs, with code that V8 compiled at earlier starts. Compiling it
 * takes a third of a cold start. This file is built separately and is small.
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

/** Number of runs that store the compiled code again, because later runs use functions that the first one did not. */
const GENERATIONS = 4;

/** Runs the command line of this process. */
export function start(): void {
  const argv = process.argv.slice(2);
  if (isVersionOnly(argv)) return printVersion();
  const path = join(__dirname, 'cli.cjs');
  const file = findCodeFile({ argv, env: process.env, digest: PROGRAM_DIGEST });
  const kept = file?.read();
  // Outside of comments the file is ASCII: esbuild escapes everything except regular expressions, which a test checks.
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
  // A closed stdout must not crash the process.
  process.stdout.on('error', () => undefined);
  process.stdout.write(`${VERSION}\n`);
}

/** Prints the version without loading the whole program. */
function isVersionOnly(argv: readonly string[]): boolean {
  return argv.length === 1 && (argv[0] === '--version' || argv[0] === '-v');
}
