/**
 * `npm run fuzz -- --minutes N [--seed S] [--target name]`: tries random input until the time is over, each target in
 * turn, and prints the seed of each round. A round that fails is printed with all it takes to see it again, and the
 * exit code is 1.
 */
import { parseArgs } from 'node:util';
import { type FuzzTarget, onEachInput } from './target.ts';
import { TARGETS } from './targets.ts';
import { startWatchdog } from './watchdog.ts';

/** How many times the inputs of the ordinary test in one turn: thousands, and yet each target has its turn soon. */
const TURN = 5;

interface Options {
  readonly endMs: number;
  readonly seed: number;
  readonly targets: readonly FuzzTarget[];
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: { minutes: { type: 'string' }, seed: { type: 'string' }, target: { type: 'string' } },
  });
  const minutes = Number(values.minutes ?? 1);
  const seed = Number(values.seed ?? Date.now() % 0x7fffffff);
  const targets = TARGETS.filter(({ name }) => values.target === undefined || name === values.target);
  if (!(minutes > 0)) throw new Error('--minutes must be a positive number');
  if (!Number.isInteger(seed)) throw new Error('--seed must be an integer');
  if (targets.length === 0) throw new Error(`--target must be one of ${TARGETS.map(({ name }) => name).join(', ')}`);
  return { endMs: Date.now() + minutes * 60_000, seed, targets };
}

async function run({ endMs, seed, targets }: Options): Promise<boolean> {
  const watchdog = startWatchdog();
  onEachInput(watchdog.beat);
  const tried = new Map<string, number>();
  let hasFailed = false;
  for (let round = 0; Date.now() < endMs; round += 1) {
    const target = targets[round % targets.length] as FuzzTarget;
    const roundSeed = (seed + Math.floor(round / targets.length)) | 0;
    watchdog.watch(`${target.name} --seed ${roundSeed}`);
    const { tried: inputs, failure } = await target.check({ seed: roundSeed, numRuns: TURN * target.runs });
    tried.set(target.name, (tried.get(target.name) ?? 0) + inputs);
    console.log(`${target.name.padEnd(18)} seed ${roundSeed}  ${inputs} inputs`);
    if (failure === undefined) continue;
    hasFailed = true;
    console.log(`FAILED: ${target.promise}\n${failure}`);
    console.log(`again: npm run fuzz -- --target ${target.name} --seed ${roundSeed} --minutes 0.001`);
  }
  watchdog.stop();
  for (const { name, report } of targets) if (report !== undefined) console.log(`${name}:\n${report()}`);
  console.log([...tried].map(([name, count]) => `${name}: ${count}`).join(', '));
  return !hasFailed;
}

process.exitCode = (await run(readOptions())) ? 0 : 1;
