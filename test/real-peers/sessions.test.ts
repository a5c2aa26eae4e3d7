import { McpError } from '@modelcontextprotocol/sdk/types.js';
import test from 'ava';
import { startBridge } from '../support/bridge.ts';
import { assertGone } from '../support/processes.ts';
import { connectSse, connectStreamable } from '../support/sdk-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { ask } from './recorded.ts';
import { RECORDER } from './servers/commands.ts';
import { VARIANTS } from './variants.ts';

const start = (...options: string[]) => startBridge([...options, '--', ...RECORDER]);

const pidOf = async (client: Parameters<typeof ask>[0]) => Number((await ask(client, 'test/pid')).pid);

test.serial('DELETE ends the session and its child, and nobody else', async (t) => {
  const bridge = await start();
  t.teardown(bridge.stop);
  const leaver = await connectStreamable(bridge.url);
  const stayer = await connectStreamable(bridge.url);
  t.teardown(stayer.close);
  const [leaving, staying] = [await pidOf(leaver.client), await pidOf(stayer.client)];
  const sessionId = leaver.transport.sessionId ?? '';

  await leaver.transport.terminateSession();
  await assertGone([leaving]);
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-session-id': sessionId,
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
  t.is((await fetch(bridge.url, { method: 'POST', headers, body })).status, 404);
  t.is(await pidOf(stayer.client), staying);
  await leaver.client.close();
});

test.serial('an SSE client that goes ends its session and its child', async (t) => {
  const bridge = await start();
  t.teardown(bridge.stop);
  const { client, close } = await connectSse(bridge.sseUrl);
  const pid = await pidOf(client);
  await close();
  await assertGone([pid]);
  t.pass();
});

test.serial('the shared child outlives the sessions that use it', async (t) => {
  const bridge = await start('--isolation', 'shared');
  t.teardown(bridge.stop);
  const first = await connectStreamable(bridge.url);
  const pid = await pidOf(first.client);
  await first.close();
  const second = await connectStreamable(bridge.url);
  t.teardown(second.close);
  t.is(await pidOf(second.client), pid);
});

for (const variant of VARIANTS) {
  test.serial(`${variant.title}: SIGTERM ends the bridge with status 0 and every child`, async (t) => {
    const bridge = await startBridge(['--isolation', variant.isolation, '--', ...RECORDER]);
    t.teardown(bridge.stop);
    const { client } = await variant.connect(bridge);
    const pid = await pidOf(client);
    t.true(bridge.children().includes(pid));
    bridge.kill('SIGTERM');
    t.deepEqual(await bridge.exited, { code: 0, signal: null });
    await assertGone([pid]);
    await client.close();
  });

  test.serial(`${variant.title}: a call whose server exits is told how it ended`, async (t) => {
    const bridge = await startBridge(['--isolation', variant.isolation, '--', ...RECORDER]);
    t.teardown(bridge.stop);
    const { client, close } = await variant.connect(bridge);
    t.teardown(close);
    const error = await t.throwsAsync(ask(client, 'test/exit', { code: 3 }), { instanceOf: McpError });
    t.regex(error?.message ?? '', /exited with code 3/);
  });
}

test.serial('a child that honors end of input does not outlive a bridge that is killed', async (t) => {
  const bridge = await start();
  const { client } = await connectStreamable(bridge.url);
  const children = bridge.children();
  t.is(children.length, 1);
  bridge.kill('SIGKILL');
  await bridge.exited;
  await assertGone(children);
  await client.close();
});

test.serial('a shared child that died is replaced for the next call', async (t) => {
  const bridge = await start('--isolation', 'shared');
  t.teardown(bridge.stop);
  const { client, close } = await connectStreamable(bridge.url);
  t.teardown(close);
  const before = await pidOf(client);
  await t.throwsAsync(ask(client, 'test/exit', { code: 1 }));
  const after = await waitFor(() => pidOf(client).catch(() => undefined), { message: 'a new child' });
  t.not(after, before);
});
