/** A call that reports progress for ever has an end all the same. */
import test, { type ExecutionContext } from 'ava';
import { headersOf, modern } from '../downstream/streamable-stateless/modern-posts.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { callHttp } from '../support/http-call.ts';
import { call, openHttpSession } from '../support/legacy-clients.ts';
import { waitFor } from '../support/wait-for.ts';

/** Long enough for a busy machine to start a server. */
const LIMITS = ['--max-call-time', '8s'];
const serverOf = (era: string) => ['--', process.execPath, 'test/fixtures/servers/reports-progress-for-ever.js', era];

async function start(t: ExecutionContext, args: readonly string[]): Promise<Bridge> {
  const bridge = await startBridge(args);
  t.teardown(() => bridge.stop());
  return bridge;
}

/** What each kind of client is told on a call, up to its end. */
const CLIENTS = {
  'a client with a session': async (port: number) => {
    const session = await openHttpSession(port);
    await (await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).text();
    return (await session.post(call(1, 'work', { progressToken: 'p' }))).text();
  },
  'a client without': async (port: number) => {
    const message = modern(1, 'tools/call', { name: 'work', arguments: {} }, { progressToken: 'p' });
    const body = JSON.stringify(message);
    return (await callHttp({ port, method: 'POST', headers: headersOf(message), body })).text();
  },
};

for (const [client, callTool] of Object.entries(CLIENTS)) {
  for (const era of ['legacy', 'modern']) {
    for (const isolation of ['session', 'shared']) {
      test(`${client} of a ${era} server (${isolation}): the call ends at --max-call-time, and the server hears of it`, async (t) => {
        const bridge = await start(t, [...LIMITS, '--protocol', era, '--isolation', isolation, ...serverOf(era)]);
        await assertEnds(t, { server: bridge, told: await callTool(Number(bridge.url.port)) });
      });
    }
    test(`${client} of a remote ${era} server: the call ends at --max-call-time, and the server hears of it`, async (t) => {
      const server = await start(t, ['--protocol', era, '--max-call-time', '0', ...serverOf(era)]);
      const bridge = await start(t, [...LIMITS, '--protocol', era, server.url.href]);
      await assertEnds(t, { server, told: await callTool(Number(bridge.url.port)) });
    });
  }
}

async function assertEnds(
  t: ExecutionContext,
  { server, told }: { readonly server: Bridge; readonly told: string },
): Promise<void> {
  t.true(told.split('"method":"notifications/progress"').length > 2, 'it was alive');
  t.regex(told, /did not finish tools\/call within 8000 ms.*--max-call-time.*"phase":"call"/s);
  const stopped = () => server.logs.some(({ msg = '' }) => msg.includes('stopped by a cancellation'));
  await waitFor(stopped, { message: 'the server to hear of it' });
}
