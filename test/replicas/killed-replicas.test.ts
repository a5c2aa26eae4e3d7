import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import anyTest, { type TestFn } from 'ava';
import { fromServer } from '../matrix/matrix-client.ts';
import { startLegacyHttp } from '../matrix/servers.ts';
import { serverProgram } from '../support/server-program.ts';
import { waitFor } from '../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { type Seen, wrongRuns } from './counted-runs.ts';
import { SteadyClient } from './steady-client.ts';
import { LEASE_MS, startTestBed, type TestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
const LEGACY = serverProgram(new URL('../matrix/servers/legacy.js', import.meta.url));
const CLIENTS = 6;
const UPDATED = 'notifications/resources/updated';
const URI = 'test://static';

/** Everybody calls, while one replica after the other dies without a word and another run of it starts. */
async function callWhileReplicasDie(bed: TestBed, clients: readonly SteadyClient[], kills: number): Promise<void> {
  let isOver = false;
  const callers = clients.map(async (client) => {
    while (!isOver) {
      await client.call();
      await delay(20);
    }
  });
  for (let kill = 0; kill < kills; kill += 1) {
    await delay(LEASE_MS / 2);
    const place = bed.places[kill % bed.places.length];
    if (place === undefined) throw new Error('there are places');
    place.bridge.kill('SIGKILL');
    await place.bridge.exited;
    await delay(LEASE_MS / 4);
    await place.start();
  }
  isOver = true;
  await Promise.all(callers);
}

test(`with a remote server every session outlives the replicas that had it${WHY}`, async (t) => {
  const server = await startLegacyHttp('stateful-resumable');
  const bed = await startTestBed({ args: [server.url.href] });
  const clients = Array.from(
    { length: CLIENTS },
    (_, index) =>
      new SteadyClient(`steady ${index}`, 'streamable', bed.url, async (client) => {
        await client.subscribe(URI);
      }),
  );
  t.teardown(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await bed.stop();
    await server.stop();
  });
  await Promise.all(clients.map((client) => client.call()));
  await callWhileReplicasDie(bed, clients, 6);
  const record = await fetch(new URL('/record', server.url));
  const { entries } = (await record.json()) as { readonly entries: readonly Seen[] };
  t.log(
    `calls: ${clients.map(({ attempts }) => attempts.length)}; failed: ${clients.map(({ failures }) => failures.length)}`,
  );
  t.log(...new Set(clients.flatMap(({ failures }) => failures.map((reason) => reason.slice(0, 150)))));
  t.deepEqual(
    clients.map(({ connections }) => connections),
    clients.map(() => 1),
  );
  t.is(entries.filter(({ kind }) => kind === 'opened').length, CLIENTS);
  t.deepEqual(
    wrongRuns(
      clients.flatMap(({ attempts }) => attempts),
      entries,
    ),
    [],
  );
  // The subscriptions are there, and so are the streams on which their clients hear of them.
  const before = await Promise.all(clients.map(async (client) => fromServer(await client.client(), UPDATED).length));
  await (await clients[0]?.client())?.callTool('touch', { uri: URI });
  await waitFor(
    async () => {
      const heard = await Promise.all(clients.map((client, index) => client.heard(UPDATED, before[index] ?? 0)));
      return heard.every(Boolean);
    },
    { message: 'everybody to hear of the resource' },
  );
});

test(`with processes every client is told and starts anew, and no call runs twice${WHY}`, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'portage-cluster-'));
  const file = join(folder, 'record');
  const bed = await startTestBed({ args: ['--', process.execPath, LEGACY, 'stdio', file] });
  const clients = Array.from(
    { length: CLIENTS },
    (_, index) => new SteadyClient(`steady ${index}`, 'streamable', bed.url),
  );
  t.teardown(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await bed.stop();
    await rm(folder, { recursive: true, force: true });
  });
  await Promise.all(clients.map((client) => client.call()));
  await callWhileReplicasDie(bed, clients, 6);
  const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');
  const entries = lines.map((line): Seen => JSON.parse(line));
  t.log(
    `calls: ${clients.map(({ attempts }) => attempts.length)}; connections: ${clients.map(({ connections }) => connections)}`,
  );
  t.log(...new Set(clients.flatMap(({ failures }) => failures.map((reason) => reason.slice(0, 150)))));
  t.true(clients.some(({ connections }) => connections > 1));
  t.deepEqual(
    wrongRuns(
      clients.flatMap(({ attempts }) => attempts),
      entries,
    ),
    [],
  );
});
