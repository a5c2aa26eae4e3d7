/** A replica that is stopped for longer than a lease, and goes on: what others have said of its sessions meanwhile holds. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { startLegacyHttp } from '../../matrix/servers.ts';
import { serverProgram } from '../../support/server-program.ts';
import { waitFor } from '../../support/wait-for.ts';
import { WHY_NO_CLUSTER } from './balancer.ts';
import { openSession, type RawSession } from './raw-session.ts';
import { type Place, startTestBed } from './test-bed.ts';

/** Skipped with the reason where Redis or HAProxy is not installed. */
const test = (WHY_NO_CLUSTER === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_CLUSTER === undefined ? '' : ` (${WHY_NO_CLUSTER})`;
const LEGACY = serverProgram(new URL('../../matrix/servers/legacy.js', import.meta.url));
/** Requests that meet the replica as soon as it runs, and that the balancer leads to each replica in turn. */
const REQUESTS = 8;

interface Scene {
  readonly stopped: Place;
  readonly other: Place;
  readonly balancerPort: number;
}

async function startTwo(t: ExecutionContext, args: readonly string[]): Promise<Scene> {
  const bed = await startTestBed({ args, count: 2 });
  t.teardown(() => bed.stop());
  const [stopped, other] = bed.places;
  if (stopped === undefined || other === undefined) throw new Error('there are two');
  return { stopped, other, balancerPort: Number(bed.balancer.url.port) };
}

/** A request that waits in the socket of a stopped process. Resolves, when it was sent, with the response to come. */
async function sendToStopped(session: RawSession, { port }: Place): Promise<() => Promise<number | undefined>> {
  const sent = request({ host: '127.0.0.1', port, path: '/mcp', method: 'POST', headers: session.headers });
  const responded = once(sent, 'response') as Promise<[IncomingMessage]>;
  const finished = once(sent, 'finish');
  sent.end(JSON.stringify({ jsonrpc: '2.0', id: 'waiting', method: 'test/record' }));
  await finished;
  return async () => {
    const [response] = await responded;
    response.resume();
    return response.statusCode;
  };
}

/** Statuses of the responses to requests that have waited for the replica, and of those that come after them. */
async function goOn(session: RawSession, { stopped, balancerPort }: Scene): Promise<readonly unknown[]> {
  const waiting = await Promise.all(Array.from({ length: REQUESTS }, () => sendToStopped(session, stopped)));
  stopped.bridge.kill('SIGCONT');
  const statuses: unknown[] = await Promise.all(waiting.map((status) => status()));
  const isReady = () =>
    fetch(`http://127.0.0.1:${stopped.port}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await waitFor(isReady, { message: 'the replica to be ready again' });
  for (let count = 0; count < REQUESTS; count += 1) {
    for (const port of [balancerPort, stopped.port]) statuses.push((await session.post(port, 'test/record')).status);
  }
  return statuses;
}

test(`a replica that was stopped serves no session with a process of which others have said that it is gone${WHY}`, async (t) => {
  const scene = await startTwo(t, ['--', process.execPath, LEGACY, 'stdio']);
  const { stopped, other } = scene;
  const session = await openSession(stopped.port);
  t.is((await session.post(other.port, 'test/record')).status, 200);
  stopped.bridge.kill('SIGSTOP');
  // What was on its way to the stopped one fails, as nobody knows what became of it; then the session is gone.
  const isGone = async () => (await session.post(other.port, 'test/record')).status === 404;
  await waitFor(isGone, { message: 'the other one to say that the session is gone' });
  const statuses = await goOn(session, scene);
  t.deepEqual(new Set(statuses), new Set([404]));
});

test(`a replica that was stopped serves no session with a remote server that another has taken over${WHY}`, async (t) => {
  const server = await startLegacyHttp('stateful-resumable');
  t.teardown(() => server.stop());
  const scene = await startTwo(t, [server.url.href]);
  const { stopped, other } = scene;
  const session = await openSession(stopped.port);
  stopped.bridge.kill('SIGSTOP');
  await waitFor(() => session.answered(other.port, 'test/record'), { message: 'another to go on' });
  // All are answered by the replica that has the session now, also those that the other one leads there.
  const statuses = await goOn(session, scene);
  t.deepEqual(new Set(statuses), new Set([200]));
  t.false(stopped.bridge.logs.some(({ msg = '' }) => msg.startsWith('continuing a session')));
});
