/** A balancer that remembers which replica opened a session, as the guide offers: nothing depends on that, but less is forwarded. */
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { startBridge } from '../../support/bridge.ts';
import { ownPort } from '../../support/own-port.ts';
import { startRedis } from '../../support/redis-server.ts';
import { serverProgram } from '../../support/server-program.ts';
import { type Balancing, startBalancer, WHY_NO_CLUSTER } from './balancer.ts';
import { openSession } from './raw-session.ts';
import { startServers } from './served-servers.ts';
import { SteadyClient } from './steady-client.ts';
import { KEY, LEASE_MS, PATIENT_LEASE_MS, startTestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
const SERVER = [process.execPath, serverProgram(new URL('../../fixtures/contract-server/server.js', import.meta.url))];
const SESSIONS = 6;
const CALLS = 4;

/** The port of a balancer before replicas that cannot forward anything, since their addresses are wrong. */
async function startSeparated(t: ExecutionContext, balancing: Balancing, leaseMs: number): Promise<number> {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const start = async (): Promise<{ readonly port: number }> => {
    const [port, nobody] = [await ownPort(), await ownPort()];
    const address = ['--port', String(port), '--advertise', `http://127.0.0.1:${nobody}`];
    const shared = ['--store', redis.url.href, '--cluster-key', 'env:TEST_CLUSTER_KEY', '--lease', `${leaseMs}ms`];
    const bridge = await startBridge([...address, ...shared, '--', ...SERVER], { env: { TEST_CLUSTER_KEY: KEY } });
    t.teardown(() => bridge.stop());
    return { port };
  };
  const balancer = await startBalancer([await start(), await start(), await start()], balancing);
  t.teardown(() => balancer.stop());
  return Number(balancer.url.port);
}

/** How some calls of each of some sessions ended, as a status. */
async function callAll(port: number): Promise<readonly number[]> {
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => openSession(port)));
  const statuses: number[] = [];
  for (let call = 0; call < CALLS; call += 1) {
    const answers = await Promise.all(sessions.map((session) => session.post(port, 'ping')));
    statuses.push(...answers.map(({ status }) => status));
  }
  return statuses;
}

test(`each request reaches the replica that has its session${WHY}`, async (t) => {
  const statuses = await callAll(await startSeparated(t, 'remembered sessions', PATIENT_LEASE_MS));
  t.deepEqual(
    statuses,
    Array.from({ length: SESSIONS * CALLS }, () => 200),
  );
});

// A replica looks for the owner of a session for two leases before it says that it cannot be reached.
test(`without that memory, requests have to be forwarded${WHY}`, async (t) => {
  const port = await startSeparated(t, 'round robin', LEASE_MS);
  const session = await openSession(port);
  // Each of the three replicas gets one.
  const answers = await Promise.all([1, 2, 3].map(() => session.post(port, 'ping')));
  t.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 503, 503]);
});

test(`sessions go on elsewhere when the replica that the balancer remembers is restarted${WHY}`, async (t) => {
  const servers = await startServers(['resumable']);
  const bed = await startTestBed({
    args: servers.args,
    leaseMs: PATIENT_LEASE_MS,
    balancing: 'remembered sessions',
  });
  const url = new URL('/resumable/mcp', bed.balancer.url);
  const clients = Array.from(
    { length: 4 },
    (_, index) => new SteadyClient({ name: `client ${index}`, kind: 'streamable', url }),
  );
  t.teardown(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await bed.stop();
    await servers.stop();
  });
  const callTwice = async (): Promise<void> => {
    for (const client of [...clients, ...clients]) await client.call();
  };
  await callTwice();
  for (const place of bed.places) {
    await place.bridge.stop();
    await callTwice();
    await place.start();
    await callTwice();
  }
  t.deepEqual(
    clients.map(({ connections, failures }) => ({ connections, failures })),
    clients.map(() => ({ connections: 1, failures: [] })),
  );
});
