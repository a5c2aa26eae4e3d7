/** Clients that leave without a word, and those who come after them. Needs a current build. */
import test, { type ExecutionContext } from 'ava';
import { fixture } from '../process/child-spec.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { callHttp } from '../support/http-call.ts';
import { call, type HttpSession, notification, openHttpSession } from '../support/legacy-clients.ts';
import { waitFor } from '../support/wait-for.ts';

async function start(t: ExecutionContext, ...options: string[]): Promise<Bridge> {
  const bridge = await startBridge([...options, '--', process.execPath, fixture('echo')]);
  t.teardown(() => bridge.stop());
  return bridge;
}

/** As a client that has been there: it says that it is initialized and calls. */
async function open({ url }: Bridge): Promise<HttpSession> {
  const session = await openHttpSession(Number(url.port));
  await (await session.post(notification('notifications/initialized'))).text();
  await (await session.post(call(1, 'echo'))).text();
  return session;
}

for (const [options, what] of [
  [['--max-sessions', '3'], 'as many sessions as there may be'],
  [['--max-children', '3'], 'as many processes as there may be'],
  [['--max-sessions', '3', '--max-children', '3'], 'as many of both'],
] as const) {
  test(`clients that never say goodbye, and have ${what}, lock nobody out`, async (t) => {
    const bridge = await start(t, ...options);
    const abandoned = [await open(bridge), await open(bridge), await open(bridge)] as const;
    t.is(bridge.children().length, 3);
    for (let clients = 0; clients < 4; clients += 1) await open(bridge);
    t.is((await abandoned[0].post(call(2, 'echo'))).status, 404, 'it was evicted');
    t.deepEqual(await (await callHttp({ port: Number(bridge.url.port), path: '/readyz' })).json(), { status: 'ready' });
    await waitFor(() => bridge.children().length === 3);
    await bridge.stop();
    const evicted = bridge.logs.reduce((count, line) => count + Number(line.evicted ?? 0), 0);
    t.is(evicted, 4);
    t.true(bridge.logs.filter((line) => line.evicted !== undefined).length <= 2, 'not a line for each');
  });
}

test('the process of a client that left without a word ends after --session-idle-timeout', async (t) => {
  const bridge = await start(t, '--session-idle-timeout', '300ms');
  const kept = await open(bridge);
  const stream = (await kept.get()).events();
  await open(bridge);
  t.is(bridge.children().length, 2);
  await waitFor(() => bridge.children().length === 1);
  t.is((await kept.post(call(2, 'echo'))).status, 200, 'somebody is connected to this one');
  stream.leave();
  await waitFor(() => bridge.children().length === 0);
});
