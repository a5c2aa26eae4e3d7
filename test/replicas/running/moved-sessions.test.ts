/** Sessions with remote servers that do not know them anymore once their replica is gone: another one opens them anew. */
import { setTimeout as delay } from 'node:timers/promises';
import anyTest, { type TestFn } from 'ava';
import type { ClientName } from '../../matrix/clients.ts';
import { fromServer } from '../../matrix/matrix-client.ts';
import { waitFor } from '../../support/wait-for.ts';
import { urlOf, WHY_NO_CLUSTER } from './balancer.ts';
import { wrongRuns } from './counted-runs.ts';
import { type RemoteName, startServers } from './served-servers.ts';
import { answerQuestions, LASTING_CALLS } from './steady-calls.ts';
import { SteadyClient } from './steady-client.ts';
import { PATIENT_LEASE_MS, startTestBed, type TestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
const UPDATED = 'notifications/resources/updated';
const URI = 'test://static';
const MOVED: readonly RemoteName[] = [
  'httpSse',
  'webSocket',
  'stream',
  'modernHttp',
  'modernWebSocket',
  'modernStream',
];

/** Everybody calls, and goes on to call after each replica has handed over what it has, and another run of it has started. */
async function callWhileEachIsRestarted({ places }: TestBed, clients: readonly SteadyClient[]): Promise<void> {
  let isOver = false;
  const callers = clients.map(async (client) => {
    while (!isOver) {
      await client.call();
      await delay(20);
    }
  });
  for (const place of places) {
    await place.bridge.stop();
    await place.start();
    const before = clients.map(({ answered }) => answered);
    await waitFor(() => clients.every(({ answered }, index) => answered >= (before[index] ?? 0) + 3), {
      message: 'everybody to be answered again',
    });
  }
  isOver = true;
  await Promise.all(callers);
}

test(`sessions with servers that do not know them anymore lose nothing where replicas are restarted${WHY}`, async (t) => {
  const servers = await startServers(MOVED);
  const bed = await startTestBed({ args: servers.args, leaseMs: PATIENT_LEASE_MS });
  const clients = MOVED.map(
    (server) =>
      new SteadyClient({
        name: server,
        kind: 'streamable',
        url: new URL(`/${server}/mcp`, bed.balancer.url),
        async setUp(client) {
          answerQuestions(client);
          await client.subscribe(URI);
          await client.setLevel('error');
        },
        calls: LASTING_CALLS,
      }),
  );
  t.teardown(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await bed.stop();
    await servers.stop();
  });
  await Promise.all(clients.map((client) => client.call()));
  await callWhileEachIsRestarted(bed, clients);
  t.log(`calls: ${clients.map(({ attempts }) => attempts.length)}`);
  t.deepEqual(
    clients.flatMap(({ name, failures }) => failures.map((reason) => `${name}: ${reason}`)),
    [],
  );
  t.deepEqual(
    clients.map(({ connections }) => connections),
    clients.map(() => 1),
  );
  for (const [index, server] of MOVED.entries()) {
    const attempts = clients[index]?.attempts ?? [];
    t.deepEqual(wrongRuns(attempts, await servers.seenBy(server)), [], server);
  }
  // The subscriptions are there, and so are the streams on which their clients hear of them.
  for (const client of clients) {
    const connected = await client.client();
    const before = fromServer(connected, UPDATED).length;
    await connected.callTool('touch', { uri: URI });
    await waitFor(() => client.heard(UPDATED, before), { message: `${client.name} to hear of the resource` });
  }
});

/** Clients whose calls stand on their own, or whose session is a connection: they have nothing to move. */
const OTHERS = [
  'modernHttp',
  'httpSse',
  'webSocket',
  'modernWebSocket',
  'stream',
] as const satisfies readonly ClientName[];

test(`clients without sessions that could move are answered, or find their connection ended, where replicas are restarted${WHY}`, async (t) => {
  const servers = await startServers(['resumable']);
  const bed = await startTestBed({ args: servers.args, leaseMs: PATIENT_LEASE_MS, streams: ['resumable'] });
  const clients = OTHERS.map(
    (kind) =>
      new SteadyClient({
        name: kind,
        kind,
        url: urlOf(kind, 'resumable', bed.balancer),
        setUp: async (client) => answerQuestions(client),
        calls: LASTING_CALLS,
        endsWith: kind === 'modernHttp' ? 'session' : 'connection',
      }),
  );
  t.teardown(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await bed.stop();
    await servers.stop();
  });
  await Promise.all(clients.map((client) => client.call()));
  await callWhileEachIsRestarted(bed, clients);
  const seen = await servers.seenBy('resumable');
  for (const { name, answered, attempts, failures, connections } of clients) {
    t.log(`${name}: ${answered} answered, ${failures.length} failed, ${connections} connections`, ...new Set(failures));
    t.deepEqual(wrongRuns(attempts, seen), [], name);
    if (name === 'modernHttp') t.deepEqual(failures, []);
    // Each failure is the end of a connection, after which there is another.
    else t.true(failures.length < connections, name);
  }
});
