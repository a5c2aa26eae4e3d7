/** The matrix again while replicas die: what is tried here of each pair, and what is not, says docs/internals/decisions/0036. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import anyTest, { type TestFn } from 'ava';
import type { ClientName } from '../matrix/clients.ts';
import { fromServer, type MatrixClient } from '../matrix/matrix-client.ts';
import { serverProgram } from '../support/server-program.ts';
import { waitFor } from '../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { type Seen, wrongRuns } from './counted-runs.ts';
import { REMOTE_NAMES, type RemoteName, startRemoteServers } from './remote-servers.ts';
import { answerQuestions, CALLS_WITHOUT_QUESTIONS, ESSENTIAL_CALLS } from './steady-calls.ts';
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

interface Cell {
  readonly client: ClientName;
  readonly server: RemoteName;
}

/** Clients whose sessions move with every server; those that have none with one of each era. */
const CELLS: readonly Cell[] = [
  ...REMOTE_NAMES.map((server) => ({ client: 'streamable', server }) as const),
  { client: 'modernHttp', server: 'resumable' },
  { client: 'modernHttp', server: 'modernHttp' },
];

/** A server without sessions keeps no subscriptions, and asks nothing. */
const hasSessions = ({ server }: Cell): boolean => server !== 'stateless';

function createClient(cell: Cell, { balancer }: TestBed): SteadyClient {
  const { client: kind, server } = cell;
  const setUp = async (client: MatrixClient): Promise<void> => {
    answerQuestions(client);
    if (kind === 'streamable' && hasSessions(cell)) await client.subscribe(URI);
  };
  const calls = hasSessions(cell) ? ESSENTIAL_CALLS : CALLS_WITHOUT_QUESTIONS;
  return new SteadyClient({
    name: `${kind} to ${server}`,
    kind,
    url: new URL(`/${server}/mcp`, balancer.url),
    setUp,
    calls,
  });
}

test(`with remote servers, over whatever carrier, every session outlives the replicas that had it${WHY}`, async (t) => {
  const servers = await startRemoteServers(REMOTE_NAMES);
  const bed = await startTestBed({ args: servers.args });
  const cells = CELLS.map((cell) => ({ cell, client: createClient(cell, bed) }));
  const clients = cells.map(({ client }) => client);
  t.teardown(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await bed.stop();
    await servers.stop();
  });
  await Promise.all(clients.map((client) => client.call()));
  await callWhileReplicasDie(bed, clients, 6);
  for (const { name, answered, failures } of clients) {
    t.log(`${name}: ${answered} answered, ${failures.length} failed`);
    t.true(answered >= ESSENTIAL_CALLS.length, `${name} made each of its calls`);
  }
  t.log(...new Set(clients.flatMap(({ failures }) => failures.map((reason) => reason.slice(0, 150)))));
  t.deepEqual(
    clients.map(({ name, connections }) => [name, connections]),
    clients.map(({ name }) => [name, 1]),
  );
  for (const { cell, client } of cells) {
    t.deepEqual(wrongRuns(client.attempts, await servers.seenBy(cell.server)), [], client.name);
  }
  // A server that knows its sessions has the same one all the time.
  const handshakes = JSON.stringify(await servers.seenBy('resumable')).split('"name":"streamable to resumable"');
  t.is(handshakes.length - 1, 1);
  // The subscriptions are there, and so are the streams on which their clients hear of them.
  const subscribed = cells.filter(({ cell }) => cell.client === 'streamable' && hasSessions(cell));
  for (const { client } of subscribed) {
    const connected = await client.client();
    const before = fromServer(connected, UPDATED).length;
    await connected.callTool('touch', { uri: URI });
    await waitFor(() => client.heard(UPDATED, before), { message: `${client.name} to hear of the resource` });
  }
});

test(`with processes every client is told and starts anew, and no call runs twice${WHY}`, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'portage-cluster-'));
  const file = join(folder, 'record');
  const bed = await startTestBed({ args: ['--', process.execPath, LEGACY, 'stdio', file] });
  const clients = Array.from(
    { length: CLIENTS },
    (_, index) => new SteadyClient({ name: `steady ${index}`, kind: 'streamable', url: bed.url }),
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
