import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { readUsage } from '../../../src/observe/usage/usage-folder.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { TYPESCRIPT } from '../../support/typescript.ts';
import { waitFor } from '../../support/wait-for.ts';
import { createStateDirectory, openFile } from './usage-world.ts';

const PROGRAM = fileURLToPath(new URL('./counting-process.ts', import.meta.url));

interface CountingProcess {
  readonly child: ChildProcess;
  /** Calls that it has told of. */
  readonly calls: () => number;
  readonly problems: () => string;
  /** Resolves when it has gone and everything that it said was read. */
  readonly ended: Promise<unknown>;
}

function start(t: ExecutionContext, stateDirectory: string, name: string): CountingProcess {
  const child = spawn(process.execPath, [TYPESCRIPT, PROGRAM, stateDirectory, name], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let calls = 0;
  let problems = '';
  createInterface({ input: child.stdout }).on('line', (line) => {
    calls = Number(line);
  });
  child.stderr.on('data', (chunk: Buffer) => {
    problems += chunk.toString();
  });
  return { child, calls: () => calls, problems: () => problems, ended: once(child, 'close') };
}

async function countsIn(stateDirectory: string): Promise<ReadonlyMap<string | undefined, number>> {
  const { usage, problems } = await readUsage(stateDirectory, Date.now());
  if (problems.length > 0) throw new Error(problems.join());
  return new Map(usage.rows.map(({ client, days }) => [client.name, days.reduce((sum, { calls }) => sum + calls, 0)]));
}

test('two processes that write at once lose nothing and spoil nothing', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const processes = ['one', 'two'].map((name) => start(t, stateDirectory, name));
  await waitFor(async () => {
    const counts = await countsIn(stateDirectory);
    return (counts.get('one') ?? 0) > 300 && (counts.get('two') ?? 0) > 300;
  });
  for (const { child } of processes) child.stdin?.end();
  await Promise.all(processes.map(({ ended }) => ended));
  const [one, two] = processes;
  const counts = await countsIn(stateDirectory);
  t.deepEqual([counts.get('one'), counts.get('two')], [one?.calls(), two?.calls()]);
  t.is(processes.map(({ problems }) => problems()).join(''), '');
  t.is((await readdir(join(stateDirectory, 'usage'))).length, 2);
});

test('a process that is killed loses only what it had not written yet, and the next one goes on from there', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const killed = start(t, stateDirectory, 'killed');
  await waitFor(async () => ((await countsIn(stateDirectory)).get('killed') ?? 0) > 200);
  const written = (await countsIn(stateDirectory)).get('killed') ?? 0;
  killed.child.kill('SIGKILL');
  await killed.ended;
  const kept = (await countsIn(stateDirectory)).get('killed') ?? 0;
  t.true(kept >= written && kept <= killed.calls() + 1);

  const next = openFile(stateDirectory, new FakeClock());
  await next.file.close();
  t.is((await countsIn(stateDirectory)).get('killed'), kept);
  t.is((await readdir(join(stateDirectory, 'usage'))).length, 1);
  t.deepEqual(next.lines, []);
});

test('processes that are killed one after the other, in the middle of taking over, leave whole files', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  let least = 0;
  let told = 0;
  for (let round = 0; round < 6; round += 1) {
    const { child, calls, ended } = start(t, stateDirectory, 'again');
    const before = least;
    await waitFor(() => calls() > 5 * (round + 1));
    child.kill('SIGKILL');
    await ended;
    // One more may have been counted than was told.
    told += calls() + 1;
    least = (await countsIn(stateDirectory)).get('again') ?? 0;
    t.true(least >= before && least <= told, `${least} after ${before}, of ${told}`);
  }
  const next = openFile(stateDirectory, new FakeClock());
  await next.file.close();
  t.is((await countsIn(stateDirectory)).get('again'), least === 0 ? undefined : least);
  t.deepEqual(next.lines, []);
});
