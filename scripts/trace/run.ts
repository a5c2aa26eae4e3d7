/**
 * `npm run trace` prints how many files, functions and new objects one warm call of each path goes through;
 * `npm run trace -- NAME` prints the call on that path step by step. The functions of src/ report themselves
 * (instrument.js), from the arrival of the request until its response has ended and all is quiet (recorder.ts); paths.ts
 * says what a path consists of.
 */
import { register } from 'node:module';
import type { Path } from './paths.ts';
import type { Step } from './recorder.ts';

// What is imported from here on is instrumented.
register('./instrument.js', import.meta.url);
const { PATHS, trace } = await import('./paths.ts');

// Whoever has seen enough, as `head` does, closes the pipe.
process.stdout.on('error', () => process.exit());

const [name] = process.argv.slice(2);
if (name === undefined) await printSummary();
else if (PATHS[name] === undefined) refuse(name);
else printSteps(PATHS[name], await trace(PATHS[name]));

async function printSummary(): Promise<void> {
  const rows = [['path', 'name', 'files', 'functions', 'objects', 'goal']];
  for (const [name, path] of Object.entries(PATHS)) {
    const { files, functions, objects } = countsOf(await trace(path));
    rows.push([path.title, name, ...[files, functions, objects].map(String), goalOf(path)]);
  }
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows) print(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  print(
    '',
    'Files and functions of src/ that one warm call enters, and instances of the classes of src/ that it makes.',
  );
  print('Closures and object literals are not counted. `npm run trace -- NAME` prints every step of a path.');
}

function printSteps(path: Path, steps: readonly Step[]): void {
  const { files, functions, objects } = countsOf(steps);
  print(path.title, `${files} files, ${functions} functions, ${objects} new objects; goal: ${goalOf(path)}`, '');
  print('In order, each function below the one that calls it; Node calls those at the margin. What a function calls');
  print('again is left out where nothing new comes of it.', '');
  for (const { kind, file, line, name, depth } of withoutRepetitions(steps))
    print(`${'  '.repeat(depth)}${kind === 'object' ? 'new ' : ''}${name}  ${file}:${line}`);
  print('', 'Files, with how many of their functions are entered:', '');
  for (const [file, entered] of functionsByFile(steps)) print(`${String(entered.size).padStart(4)}  ${file}`);
  print('', 'New objects:', '');
  for (const { kind, name, file } of steps) if (kind === 'object') print(`  ${name}  ${file}`);
}

/** Scanners call a few functions for every byte: of those a reader wants to see the first. */
function* withoutRepetitions(steps: readonly Step[]): Iterable<Step> {
  const seen = new Set<string>();
  /** What has been called by the function that runs at each depth. */
  const called: Set<string>[] = [];
  for (let index = 0; index < steps.length; ) {
    const step = steps[index] as Step;
    called.length = Math.min(called.length, step.depth + 1);
    const siblings = called[step.depth] ?? new Set();
    called[step.depth] = siblings;
    const next = steps.findIndex(({ depth }, later) => later > index && depth <= step.depth);
    const end = next === -1 ? steps.length : next;
    const within = steps.slice(index, end);
    if (siblings.has(keyOf(step)) && within.every((one) => one.kind === 'function' && seen.has(keyOf(one)))) {
      index = end;
      continue;
    }
    siblings.add(keyOf(step));
    seen.add(keyOf(step));
    yield step;
    index += 1;
  }
}

function keyOf({ file, line, name }: Step): string {
  return `${file}:${line} ${name}`;
}

function countsOf(steps: readonly Step[]) {
  const byFile = [...functionsByFile(steps).values()];
  return {
    files: new Set(steps.map(({ file }) => file)).size,
    functions: byFile.reduce((sum, { size }) => sum + size, 0),
    objects: steps.filter(({ kind }) => kind === 'object').length,
  };
}

/** In the order in which the call comes to them. */
function functionsByFile(steps: readonly Step[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const step of steps) {
    const entered = found.get(step.file) ?? new Set();
    found.set(step.file, entered);
    if (step.kind === 'function') entered.add(keyOf(step));
  }
  return found;
}

function goalOf({ goal }: Path): string {
  return `≤ ${goal.files} files, ≤ ${goal.objects} objects`;
}

function refuse(name: string): void {
  console.error(`no path is called ${name}; there are: ${Object.keys(PATHS).join(', ')}`);
  process.exitCode = 2;
}

function print(...lines: readonly string[]): void {
  for (const line of lines) console.log(line);
}
