import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import test, { type ExecutionContext } from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { SharedModernServer } from '../../../src/relay/shared/modern/modern-era.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { dialScript } from '../../support/dialers.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { serverProgram } from '../../support/server-program.ts';
import { waitFor } from '../../support/wait-for.ts';
import { META, modern, postModern, REVISION, type RpcBody } from './modern-posts.ts';

const SERVER = serverProgram(new URL('../../fixtures/modern-server/stdio.js', import.meta.url));

/** A listener before one process of a server made with the official SDK v2. */
async function startHarness(t: ExecutionContext) {
  const { deps } = createTestDeps();
  const dialer = dialScript(SERVER, { deps });
  const server = new SharedModernServer({ dialer, deps, prewarm: false });
  t.teardown(() => server.close());
  const harness = await startHttpHarness(t, { modernDialer: server });
  return { harness, server };
}

type Mode = 'auto' | { readonly pin: string };

async function connect(t: ExecutionContext, port: number, mode: Mode = { pin: '2026-07-28' }): Promise<Client> {
  const client = new Client(
    { name: 'sdk-v2', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } },
  );
  const transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`));
  await client.connect(transport);
  t.teardown(() => client.close());
  return client;
}

function textOf({ content }: { readonly content?: unknown }): unknown {
  return (content as { text?: string }[] | undefined)?.[0]?.text;
}

for (const mode of [{ pin: '2026-07-28' }, 'auto'] as const) {
  test(`the official client finds a modern server and calls its tools: ${JSON.stringify(mode)}`, async (t) => {
    const { harness } = await startHarness(t);
    const client = await connect(t, harness.port, mode);
    t.is(client.getServerVersion()?.name, 'modern');
    t.true((await client.listTools()).tools.some(({ name }) => name === 'echo'));
    t.is(textOf(await client.callTool({ name: 'echo', arguments: { text: 'hello' } })), 'hello');
    t.is(textOf(await client.callTool({ name: 'route', arguments: { region: 'eu' } })), 'eu by undefined');
    t.is(harness.sessions.size, 0);
  });
}

/** The messages of all progress from now on, off the wire: the SDK drops what comes in one chunk with its answer. */
function hearProgress({ transport }: Client): readonly unknown[] {
  if (transport === undefined) throw new Error('the client is not connected');
  const { onmessage } = transport;
  const heard: unknown[] = [];
  transport.onmessage = (message, extra) => {
    if ('method' in message && message.method === 'notifications/progress') heard.push(message.params?.message);
    onmessage?.(message, extra);
  };
  return heard;
}

test('calls of several official clients at once each get their own answer and progress', async (t) => {
  const { harness } = await startHarness(t);
  const clients = await Promise.all(Array.from({ length: 3 }, () => connect(t, harness.port)));
  await Promise.all(
    clients.map(async (client, n) => {
      const progress = hearProgress(client);
      const call = { name: 'work', arguments: { steps: 5, name: `client ${n}` } };
      const result = await client.callTool(call, { onprogress: () => undefined });
      t.is(textOf(result), `client ${n}`);
      t.deepEqual(progress, Array(5).fill(`client ${n}`));
    }),
  );
});

test('raw calls under one id, answered in another order, each get their own answer', async (t) => {
  const { harness } = await startHarness(t);
  const work = (steps: number, name: string) =>
    postModern(harness, modern(1, 'tools/call', { name: 'work', arguments: { steps, name } }));
  const [slow, quick] = await Promise.all([work(30, 'slow'), work(1, 'quick')]);
  t.is(textOf((await quick.json<RpcBody>()).result), 'quick');
  t.is(textOf((await slow.json<RpcBody>()).result), 'slow');
});

test('progress and logs of a real server come as a stream that ends with the answer', async (t) => {
  const { harness } = await startHarness(t);
  const meta = { progressToken: 'p', [`${META}logLevel`]: 'info' };
  const answer = await postModern(
    harness,
    modern(4, 'tools/call', { name: 'work', arguments: { steps: 2, name: 'w' } }, meta),
  );
  t.is(answer.headers['x-accel-buffering'], 'no');
  const events = answer.events();
  const received = await events.rest();
  t.is(await events.closed, 'ended');
  t.deepEqual(
    received.map(({ data }) => JSON.parse(data).method ?? 'response'),
    [...Array.from({ length: 2 }, () => ['notifications/message', 'notifications/progress']).flat(), 'response'],
  );
  t.true(received.every(({ id }) => id === undefined));
});

test('the versions that are served are among those the server discovers', async (t) => {
  const { harness } = await startHarness(t);
  const { result } = await (await postModern(harness, modern(1, 'server/discover'))).json<RpcBody>();
  const odd = modern(1, 'tools/list', {}, { [`${META}protocolVersion`]: 'v999' });
  const { error } = await (await postModern(harness, odd, { 'MCP-Protocol-Version': 'v999' })).json<RpcBody>();
  t.deepEqual(error?.data.supported, [REVISION]);
  t.true(result.supportedVersions.includes(REVISION));
});

test('a call that the official client aborts is withdrawn at the server', async (t) => {
  const { harness } = await startHarness(t);
  const client = await connect(t, harness.port);
  const controller = new AbortController();
  const waiting = client.callTool({ name: 'wait', arguments: { name: 'aborted' } }, { signal: controller.signal });
  // A call that is withdrawn before its tool runs leaves no trace in it.
  await waitFor(async () => textOf(await client.callTool({ name: 'waiting', arguments: {} })) === 'aborted');
  controller.abort();
  await t.throwsAsync(waiting);
  await waitFor(async () => textOf(await client.callTool({ name: 'withdrawn', arguments: {} })) === 'aborted');
});

test('input that a tool needs is asked of the official client and given with the repeated call', async (t) => {
  const { harness } = await startHarness(t);
  const client = await connect(t, harness.port);
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Bo' } }));
  t.is(textOf(await client.callTool({ name: 'ask', arguments: {} })), 'hello Bo');
});

test('a subscription of the official client hears of changes, and ends as it should when the bridge does', async (t) => {
  const { harness } = await startHarness(t);
  const client = await connect(t, harness.port);
  let changes = 0;
  client.setNotificationHandler('notifications/tools/list_changed', () => {
    changes += 1;
  });
  const subscription = await client.listen({ toolsListChanged: true });
  await client.callTool({ name: 'change', arguments: { kind: 'tools' } });
  await waitFor(() => changes === 1);
  harness.modernCalls.close(new BridgeError('ERR_SESSION_CLOSED', 'shutting down'));
  t.is(await subscription.closed, 'graceful');
});

test('the official client that finds out eras does not take a server that is away for a legacy one', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.refusal = new BridgeError('ERR_UPSTREAM_CONNECT', 'cannot be reached');
  await t.throwsAsync(connect(t, harness.port, 'auto'));
  const answered = harness.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
  t.true(answered.length > 0);
  // An initialize would have been answered with 200.
  for (const { method, status } of answered) t.deepEqual([method, status], ['POST', 502]);
});
