import { setTimeout as delay } from 'node:timers/promises';
import anyTest, { type TestFn } from 'ava';
import { Redis } from 'ioredis';
import { startLegacyHttp } from '../../matrix/servers.ts';
import { startFaultProxy } from '../../support/fault-proxy.ts';
import { serverProgram } from '../../support/server-program.ts';
import { waitFor } from '../../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { openSession } from './raw-session.ts';
import { SteadyClient } from './steady-client.ts';
import { LEASE_MS, PATIENT_LEASE_MS, type Place, startTestBed, type TestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
const LEGACY = serverProgram(new URL('../../matrix/servers/legacy.js', import.meta.url));
const PROCESSES = ['--', process.execPath, LEGACY, 'stdio'];

const readinessOf = async ({ port }: Place): Promise<{ readonly status: number; readonly store?: string }> => {
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
  return { ...((await answer.json()) as object), status: answer.status };
};

/** Which replica has gone on with sessions of others. */
const tookOver = ({ bridge }: Place): boolean =>
  bridge.logs.some(({ msg = '' }) => msg.startsWith('continuing a session'));

function clientsOf(bed: TestBed, count = 3): readonly SteadyClient[] {
  return Array.from(
    { length: count },
    (_, index) => new SteadyClient({ name: `client ${index}`, kind: 'streamable', url: bed.url }),
  );
}

const callAll = (clients: readonly SteadyClient[]): Promise<unknown> =>
  Promise.all(clients.map((client) => client.call()));

test(`while the store is gone sessions with processes go on, and it is told${WHY}`, async (t) => {
  const bed = await startTestBed({ args: PROCESSES });
  const clients = clientsOf(bed);
  t.teardown(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await bed.stop();
  });
  await callAll(clients);
  bed.redis.kill('SIGSTOP');
  const endMs = Date.now() + 2 * LEASE_MS;
  while (Date.now() < endMs) {
    await callAll(clients);
    await delay(50);
  }
  t.deepEqual(
    clients.flatMap(({ failures }) => failures),
    [],
  );
  for (const place of bed.places) t.is((await readinessOf(place)).store, 'unavailable');
  bed.redis.kill('SIGCONT');
  for (const place of bed.places) {
    await waitFor(async () => (await readinessOf(place)).store === undefined, { message: 'the store to be found' });
  }
  await callAll(clients);
  // Nobody has lost a lease that nobody could take.
  t.deepEqual(
    clients.map(({ connections }) => connections),
    [1, 1, 1],
  );
});

test(`a store that starts anew, with nothing in it, costs no session with a process${WHY}`, async (t) => {
  const bed = await startTestBed({ args: PROCESSES, leaseMs: PATIENT_LEASE_MS });
  const clients = clientsOf(bed);
  t.teardown(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await bed.stop();
  });
  await callAll(clients);
  await bed.redis.restart();
  for (let round = 0; round < 10; round += 1) {
    await callAll(clients);
    await delay(100);
  }
  t.deepEqual(
    clients.map(({ connections }) => connections),
    [1, 1, 1],
  );
});

test(`a replica that loses the store alone stops to serve what others may take over, and comes back${WHY}`, async (t) => {
  const server = await startLegacyHttp('stateful-resumable');
  const bed = await startTestBed({ args: [server.url.href], count: 1 });
  const proxy = await startFaultProxy(bed.redis.url);
  const apart = await bed.addPlace(proxy.through(bed.redis.url));
  const client = new SteadyClient({
    name: 'client',
    kind: 'streamable',
    url: new URL(`http://127.0.0.1:${apart.port}/mcp`),
  });
  t.teardown(async () => {
    await client.close();
    await bed.stop();
    await proxy.close();
    await server.stop();
  });
  await client.call();
  proxy.fault = { kind: 'silence' };
  await waitFor(async () => (await readinessOf(apart)).status === 503, { message: 'the replica to give up its lease' });
  const connected = await client.client();
  const error = await t.throwsAsync(connected.callTool('echo', { value: 'x' }));
  t.regex(error?.message ?? '', /not been able to reach the store/);
  proxy.fault = { kind: 'none' };
  await waitFor(async () => (await readinessOf(apart)).status === 200, { message: 'the replica to be ready again' });
  await client.call();
  t.is(client.connections, 1);
});

test(`a replica that is stopped loses its sessions to another, and does not come back to them${WHY}`, async (t) => {
  const server = await startLegacyHttp('stateful-resumable');
  const bed = await startTestBed({ args: [server.url.href], count: 2 });
  t.teardown(async () => {
    await bed.stop();
    await server.stop();
  });
  const [stopped, other] = bed.places;
  if (stopped === undefined || other === undefined) throw new Error('there are two');
  const client = await openSession(stopped.port);
  const { text } = await client.post(stopped.port, 'test/record');
  const session = /"session":"([^"]+)"/.exec(text)?.[1] ?? failed();
  stopped.bridge.kill('SIGSTOP');
  // What was on its way to the stopped one fails, as nobody knows what became of it; then the session is elsewhere.
  const found = await waitFor(() => client.answered(other.port, 'test/record'), { message: 'another to go on' });
  t.true(found.includes(session));
  t.true(tookOver(other));
  stopped.bridge.kill('SIGCONT');
  await waitFor(() => stopped.bridge.logs.some(({ code }) => code === 'ERR_CLUSTER_OWNER'), {
    message: 'the stopped replica to find out',
  });
  // It leads to where the session is now.
  const led = await waitFor(() => client.answered(stopped.port, 'test/record'), { message: 'it to lead there' });
  t.true(led.includes(session));
  t.false(tookOver(stopped));
});

test(`replicas that are restarted one after the other hand their sessions over${WHY}`, async (t) => {
  const server = await startLegacyHttp('stateful-resumable');
  const bed = await startTestBed({ args: [server.url.href], leaseMs: PATIENT_LEASE_MS });
  const clients = clientsOf(bed, 4);
  t.teardown(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await bed.stop();
    await server.stop();
  });
  await callAll(clients);
  let isOver = false;
  const callers = clients.map(async (client) => {
    while (!isOver) {
      await client.call();
      await delay(30);
    }
  });
  for (const place of bed.places) {
    const { code } = await place.bridge.stop();
    t.is(code, 0);
    await place.start();
    await delay(500);
  }
  isOver = true;
  await Promise.all(callers);
  t.log(`calls: ${clients.map(({ attempts }) => attempts.length)}`);
  t.deepEqual(
    clients.flatMap(({ failures }) => failures),
    [],
  );
  t.deepEqual(
    clients.map(({ connections }) => connections),
    clients.map(() => 1),
  );
});

test(`what is said on a stream while its replica dies is said once, by the next one${WHY}`, async (t) => {
  const server = await startLegacyHttp('stateful');
  const bed = await startTestBed({ args: [server.url.href], count: 2 });
  const [dying, other] = bed.places;
  if (dying === undefined || other === undefined) throw new Error('there are two');
  t.teardown(async () => {
    await bed.stop();
    await server.stop();
  });
  const { headers } = await openSession(dying.port);
  // A call whose answer never comes, on a stream of its own. A server without event ids sends it to nobody else.
  const streaming = { ...headers, Accept: 'text/event-stream, application/json;q=0.1' };
  const params = { name: 'hold', arguments: { value: 'held' }, _meta: { progressToken: 'p' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'held', method: 'tools/call', params });
  const stream = await fetch(`http://127.0.0.1:${dying.port}/mcp`, { method: 'POST', headers: streaming, body });
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
  let said = '';
  while (!said.includes('notifications/progress')) said += (await reader?.read())?.value ?? failed();
  const lastId = [...said.matchAll(/^id: (\S+)$/gm)].at(0)?.[1] ?? failed();
  // What a call says is stored when the call takes a while.
  await waitFor(() => holdsStream(bed), { message: 'the stream to be stored' });
  dying.bridge.kill('SIGKILL');
  await dying.bridge.exited;
  const resumed = await waitFor(
    async () => {
      const answer = await fetch(`http://127.0.0.1:${other.port}/mcp`, {
        headers: { ...headers, 'Last-Event-ID': lastId, Accept: 'text/event-stream' },
      });
      return answer.status === 200 && answer;
    },
    { message: 'the stream to be resumed' },
  );
  const rest = await resumed.text();
  t.regex(rest, /notifications\/progress/);
  t.regex(rest, /"id":"held".*ERR_CLUSTER_OWNER/);
});

/** Whether anything that was said on streams is stored. */
async function holdsStream({ redis: { url } }: TestBed): Promise<boolean> {
  const redis = new Redis(url.href);
  try {
    const types = await Promise.all((await redis.keys('*')).map((key) => redis.type(key)));
    return types.includes('stream');
  } finally {
    redis.disconnect();
  }
}

function failed(): never {
  throw new Error('it was to be there');
}
