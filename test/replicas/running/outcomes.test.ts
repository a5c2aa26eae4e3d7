import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import anyTest, { type TestFn } from 'ava';
import { waitFor } from '../../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { answering, fromOther, post } from './modern-client.ts';
import { type Place, startTestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
const SERVER = fileURLToPath(new URL('servers/asking-server.js', import.meta.url));
const ASK = { name: 'ask', arguments: {} };

/** Calls a tool that asks its client, which has the answer. */
const begin = async (owner: Place) => answering(await post(owner.port, 'tools/call', ASK), ASK, 'Ada');

test(`outcomes are told by another replica when their own is gone, and no tool runs twice${WHY}`, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'portage-outcomes-'));
  const file = join(folder, 'runs');
  const bed = await startTestBed({ args: ['--', process.execPath, SERVER, file], count: 2 });
  const [owner, other] = bed.places;
  if (owner === undefined || other === undefined) throw new Error('there are two');
  t.teardown(async () => {
    await bed.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const ask = () => begin(owner);
  const finished = await ask();
  const answered = await post(owner.port, 'tools/call', finished);
  t.regex(JSON.stringify(answered), /hello Ada/);
  const unfinished = await ask();
  const start = async (name: string) => {
    const { result } = await post(owner.port, 'tools/call', { name, arguments: {} });
    return { taskId: result?.taskId ?? '' };
  };
  const [done, endless] = [await start('task'), await start('endless')];
  const over = await waitFor(async () => {
    const answer = await post(owner.port, 'tasks/get', done);
    return answer.result?.status === 'completed' && answer;
  });
  // By the time of another answer what was said before is stored.
  t.is((await post(owner.port, 'tasks/get', endless)).result?.status, 'working');
  owner.bridge.kill('SIGKILL');
  await owner.bridge.exited;
  const retold = await fromOther(other.port, 'tools/call', finished);
  t.deepEqual(retold.result, answered.result, JSON.stringify(retold));
  t.deepEqual((await fromOther(other.port, 'tasks/get', done)).result, over.result);
  const lost = [
    await fromOther(other.port, 'tools/call', unfinished),
    await fromOther(other.port, 'tasks/get', endless),
    await fromOther(other.port, 'tools/call', { ...finished, arguments: { other: 1 } }),
  ];
  t.deepEqual(
    lost.map(({ error }) => error?.data?.bridge?.reason),
    ['state_lost', 'task_lost', 'state_lost'],
  );
  t.deepEqual((await readFile(file, 'utf8')).trim().split('\n'), ['ask', 'ask', 'task', 'endless']);
});

test(`a call that waits for answers when its replica ends gets them through another one${WHY}`, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'portage-outcomes-'));
  const args = ['--shutdown-grace', '30s', '--', process.execPath, SERVER, join(folder, 'runs')];
  const bed = await startTestBed({ args, count: 2 });
  const [owner, other] = bed.places;
  if (owner === undefined || other === undefined) throw new Error('there are two');
  t.teardown(async () => {
    await bed.stop();
    await rm(folder, { recursive: true, force: true });
  });
  const call = await begin(owner);
  // Whoever has passed something on lately has a link to it, which stays when it accepts no new ones.
  await post(other.port, 'tools/list', {});
  owner.bridge.kill('SIGTERM');
  const isRefused = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${owner.port}/healthz`).then(
      () => false,
      () => true,
    );
  await waitFor(isRefused, { message: 'the replica to stop listening' });
  t.regex(JSON.stringify(await post(other.port, 'tools/call', call)), /hello Ada/);
  t.is((await owner.bridge.exited).code, 0);
});
