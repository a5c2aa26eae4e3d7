/**
 * The entry point of bin/: runs the command line with code that V8 compiled at earlier starts. This file is built
 * separately and is small.
 */
import { type BuiltFile, ProgramFiles } from './start/program-files.ts';
import { VERSION } from './version.ts';

/** The files of the program by their names; scripts/build.js puts them here. */
declare const PROGRAM_FILES: Readonly<Record<string, BuiltFile>>;

interface CommandLine {
  main(files: ProgramFiles): Promise<void>;
}

/** Runs the command line of this process. */
export function start(): void {
  const argv = process.argv.slice(2);
  if (isVersionOnly(argv)) return printVersion();
  const files = new ProgramFiles({ directory: __dirname, built: PROGRAM_FILES, argv, env: process.env });
  const { modules } = files.load('./cli.cjs') as { readonly modules: { 'src/program.ts'(): CommandLine } };
  void modules['src/program.ts']().main(files);
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
