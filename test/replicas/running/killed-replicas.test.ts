/** The matrix again while replicas die: `Consequence` says what each pair allows, and docs/internals/decisions/0022-tests.md why. */
import { setTimeout as delay } from 'node:timers/promises';
import anyTest, { type TestFn } from 'ava';
import type { ClientName } from '../../matrix/clients.ts';
import { fromServer, type MatrixClient } from '../../matrix/matrix-client.ts';
import { waitFor } from '../../support/wait-for.ts';
import { urlOf, WHY_NO_CLUSTER } from './balancer.ts';
import { wrongRuns } from './counted-runs.ts';
import { COMMAND_NAMES, REMOTE_NAMES, type ServedName, startServers } from './served-servers.ts';
import { answerQuestions, CALLS_WITHOUT_QUESTIONS, ESSENTIAL_CALLS } from './steady-calls.ts';
import { SteadyClient } from './steady-client.ts';
import { LEASE_MS, startTestBed, type TestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
const UPDATED = 'notifications/resources/updated';
const URI = 'test://static';
/** Each replica dies, and one of them again. */
const KILLS = 4;
/** Everybody is idle for most of the time, so that a machine with two cores keeps up. */
const PAUSE_MS = 200;
const TIMEOUT_MS = 4 * 60_000;

/**
 * What a client has to do when the replica dies that serves it.
 * - `nothing`: its session, or its next call, goes on at another replica.
 * - `a new session`: it is told that its session does not exist anymore.
 * - `a new connection`: its connection ends, and its session with it.
 */
type Consequence = 'nothing' | 'a new session' | 'a new connection';

interface Cell {
  readonly client: ClientName;
  readonly server: ServedName;
  readonly consequence: Consequence;
}

const cellsOf = (client: ClientName, servers: readonly ServedName[], consequence: Consequence): readonly Cell[] =>
  servers.map((server) => ({ client, server, consequence }));

/** One server of each kind, for clients to which it makes no difference: they have to connect anew in any case. */
const ONE_OF_EACH: readonly ServedName[] = ['resumable', 'modernHttp', 'command'];

const CELLS: readonly Cell[] = [
  ...cellsOf('streamable', REMOTE_NAMES, 'nothing'),
  ...cellsOf('streamable', COMMAND_NAMES, 'a new session'),
  // These have no sessions that could be lost.
  ...cellsOf('modernHttp', [...REMOTE_NAMES, ...COMMAND_NAMES], 'nothing'),
  ...cellsOf('httpSse', ONE_OF_EACH, 'a new connection'),
  ...cellsOf('webSocket', ONE_OF_EACH, 'a new connection'),
  ...cellsOf('modernWebSocket', ONE_OF_EACH, 'a new connection'),
  ...cellsOf('stream', ONE_OF_EACH, 'a new connection'),
];

/** A server without sessions keeps no subscriptions, and asks nothing. */
const hasSessions = ({ server }: Cell): boolean => server !== 'stateless';
const isSubscribed = (cell: Cell): boolean =>
  cell.client === 'streamable' && cell.consequence === 'nothing' && hasSessions(cell);

function createClient(cell: Cell, { balancer }: TestBed): SteadyClient {
  const { client: kind, server, consequence } = cell;
  const setUp = async (client: MatrixClient): Promise<void> => {
    answerQuestions(client);
    if (isSubscribed(cell)) await client.subscribe(URI);
  };
  return new SteadyClient({
    name: `${kind} to ${server}`,
    kind,
    url: urlOf(kind, server, balancer),
    setUp,
    calls: hasSessions(cell) ? ESSENTIAL_CALLS : CALLS_WITHOUT_QUESTIONS,
    endsWith: consequence === 'a new connection' ? 'connection' : 'session',
  });
}

/** Everybody calls, while one replica after the other dies without a word and another run of it starts. */
async function callWhileReplicasDie({ places }: TestBed, clients: readonly SteadyClient[]): Promise<void> {
  let isOver = false;
  const callers = clients.map(async (client) => {
    while (!isOver) {
      await client.call();
      await delay(PAUSE_MS);
    }
  });
  const called = Promise.all(callers);
  // Whoever is not answered is also waited for below, which says so.
  called.catch(() => undefined);
  for (let kill = 0; kill < KILLS; kill += 1) {
    await delay(LEASE_MS / 2);
    const place = places[kill % places.length];
    if (place === undefined) throw new Error('there are places');
    place.bridge.kill('SIGKILL');
    await place.bridge.exited;
    await delay(LEASE_MS / 4);
    await place.start();
  }
  const before = new Map(clients.map((client) => [client, client.answered]));
  // Each kind of call has been made by then, however slow the machine is.
  const isBack = (client: SteadyClient): boolean =>
    client.answered > (before.get(client) ?? 0) + 1 && client.answered >= ESSENTIAL_CALLS.length;
  const waiting = (): readonly string[] =>
    clients.filter((client) => !isBack(client)).map(({ name, failures }) => `${name}, after ${failures.at(-1)}`);
  await waitFor(() => clients.every(isBack), { message: () => `responses to ${waiting().join(' and ')}` });
  isOver = true;
  await called;
}

test(`while replicas die nobody loses more than it has to, and no call runs twice${WHY}`, async (t) => {
  // Everybody has to be answered again after the last kill, however busy the machine is.
  t.timeout(TIMEOUT_MS);
  const servers = await startServers([...REMOTE_NAMES, ...COMMAND_NAMES]);
  const bed = await startTestBed({ args: servers.args, streams: ONE_OF_EACH });
  const cells = CELLS.map((cell) => ({ cell, client: createClient(cell, bed) }));
  const clients = cells.map(({ client }) => client);
  t.teardown(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await bed.stop();
    await servers.stop();
  });
  await Promise.all(clients.map((client) => client.call()));
  await callWhileReplicasDie(bed, clients);
  for (const { name, answered, failures, connections } of clients) {
    t.log(`${name}: ${answered} answered, ${failures.length} failed, ${connections} connections`);
    // A wrong response is none, and whoever hears nothing was not told.
    for (const reason of failures) t.notRegex(reason, /^answered with|Request timed out/, name);
  }
  t.log(...new Set(clients.flatMap(({ failures }) => failures.map((reason) => reason.slice(0, 150)))));
  for (const { cell, client } of cells) {
    if (cell.consequence === 'nothing') t.is(client.connections, 1, client.name);
    t.deepEqual(wrongRuns(client.attempts, await servers.seenBy(cell.server)), [], client.name);
  }
  // Some had to start anew, or nothing was shown about those who need not.
  for (const consequence of ['a new session', 'a new connection']) {
    const those = cells.filter(({ cell }) => cell.consequence === consequence);
    t.true(
      those.some(({ client }) => client.connections > 1),
      consequence,
    );
  }
  // A server that knows its sessions has the same one all the time.
  const handshakes = JSON.stringify(await servers.seenBy('resumable')).split('"name":"streamable to resumable"');
  t.is(handshakes.length - 1, 1);
  // The subscriptions are there, and so are the streams on which their clients hear of them.
  for (const { client } of cells.filter(({ cell }) => isSubscribed(cell))) {
    const connected = await client.client();
    const before = fromServer(connected, UPDATED).length;
    await connected.callTool('touch', { uri: URI });
    await waitFor(() => client.heard(UPDATED, before), { message: `${client.name} to hear of the resource` });
  }
});
