/** `fetch` of a bridge, in a web server of the Fetch standard, with official clients. */
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import test, { type ExecutionContext } from 'ava';
import { KIND_NAMES, openClient } from '../support/config-bridge.ts';
import { waitFor } from '../support/wait-for.ts';
import { codeOf, openBridge, postInitialize } from './host.ts';

const FOR_ALL = { host: '0.0.0.0', allowAnonymous: true } as const;

/** Closed when the test ends. */
async function startHono(t: ExecutionContext, fetch: (request: Request) => Promise<Response>): Promise<URL> {
  const server = createAdaptorServer({ fetch });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void server.close());
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}

for (const kind of KIND_NAMES) {
  test(`serves a client: ${kind}`, async (t) => {
    const bridge = await openBridge(t, { ...FOR_ALL, prefix: '/tools' });
    const url = await startHono(t, bridge.fetch);
    const client = await openClient(t, new URL('/tools/', url), kind);
    t.true((await client.listTools()).tools.length > 5);
    const message = 'x'.repeat(3 * 2 ** 20);
    const answer = await client.callTool({ name: 'echo', arguments: { message } });
    t.true(JSON.stringify(answer).length > message.length);
    await client.close();
  });
}

test('answers 404 to what is not for it, and refuses everybody where nothing was said of callers', async (t) => {
  const bridge = await openBridge(t, FOR_ALL);
  const url = await startHono(t, bridge.fetch);
  const nothing = await fetch(new URL('/orders', url));
  t.is(nothing.status, 404);
  t.is(await codeOf(nothing), 'ERR_HTTP_PATH');
  const forThisMachine = await openBridge(t);
  const refused = await forThisMachine.fetch(new Request('http://localhost/healthz', { method: 'POST' }));
  t.is(refused.status, 403);
  t.is(await codeOf(refused), 'ERR_HTTP_ADDRESS');
});

test('a client that leaves its stream is gone, however it leaves', async (t) => {
  const bridge = await openBridge(t, FOR_ALL);
  const sessions = () => bridge.inspect()[0]?.sessions;
  const leave = new AbortController();
  const aborted = await bridge.fetch(new Request('http://localhost/sse', { signal: leave.signal }));
  const canceled = await bridge.fetch(new Request('http://localhost/sse'));
  t.is(aborted.headers.get('content-type'), 'text/event-stream');
  t.is(sessions(), 2);
  leave.abort();
  await canceled.body?.cancel();
  await waitFor(() => sessions() === 0, { message: 'the sessions to end' });
});

test('a body that is too large is refused before it has been read', async (t) => {
  const bridge = await openBridge(t, { ...FOR_ALL, maxMessageBytes: '4k' });
  let pulled = 0;
  const body = new ReadableStream({
    pull(controller) {
      pulled += 1;
      controller.enqueue(new Uint8Array(1024).fill(32));
    },
  });
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const init = { method: 'POST', headers, body, duplex: 'half' } as const;
  const response = await bridge.fetch(new Request('http://localhost/mcp', init));
  t.is(response.status, 413);
  t.true(pulled < 100, String(pulled));
});

test('ends its streams when it closes', async (t) => {
  const bridge = await openBridge(t, { ...FOR_ALL, shutdownGrace: 0 });
  const url = await startHono(t, bridge.fetch);
  t.is((await postInitialize(new URL('/mcp', url))).status, 200);
  const stream = await fetch(new URL('/sse', url));
  await bridge.close();
  await stream.text().catch(() => undefined);
  t.is((await bridge.fetch(new Request('http://localhost/mcp'))).status, 503);
});
