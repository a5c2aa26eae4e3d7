import { Writable } from 'node:stream';
import test from 'ava';
import { pino } from 'pino';
import { listen } from '../../fixtures/http-servers/listen.ts';
import { answerResult, event, listenScripted, notification, openStream } from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { startStreamable } from '../../support/sdk-servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectClient, joinClient } from '../connect.ts';
import { dialStreamable } from '../remote-dialers.ts';

test('a server that is down at the start fails initialize in plain words', async (t) => {
  const server = await listenScripted();
  await server.close();
  const dialer = dialStreamable(server.url);
  const client = joinClient(t, server, dialer);
  t.is(dialer.readiness().state, 'ready');
  const { error } = await client.answer(client.startInitialize());
  t.regex(error?.message ?? '', /nothing listens there/);
  t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_CONNECT', cause: 'ECONNREFUSED' } });
  t.is(dialer.readiness().state, 'failing');
});

test('a server that goes away fails the calls of that time only', async (t) => {
  const server = await startStreamable({ hasSessions: false });
  const client = await connectClient(t, server, dialStreamable(server.url));
  await server.stop();
  for (const _ of [1, 2]) t.regex((await client.request('tools/list')).error?.message ?? '', /nothing listens there/);
  await server.restart();
  t.is(await client.call('echo', { value: 'back' }), 'back');
});

test('a stale connection does not fail initialize', async (t) => {
  const server = await listenScripted({
    initialize: (asked, response) => {
      if (asked.connection === 1) return void response.socket?.resetAndDestroy();
      answerResult(asked, response, { protocolVersion: '2025-11-25', capabilities: {} });
    },
  });
  const dialer = dialStreamable(server.url);
  // Leaves a kept connection behind.
  const first = joinClient(t, server, dialer);
  await first.request('ping');
  t.is(server.received[0]?.connection, 1);
  const { result } = await joinClient(t, server, dialer).initialize();
  t.is(result?.protocolVersion, '2025-11-25');
});

test('a redirect to another origin is refused before anything leaves for there', async (t) => {
  const other = await listen(() => {});
  t.teardown(() => other.close());
  const server = await listenScripted({
    initialize: (_, response) => void response.writeHead(307, { Location: other.url.href }).end(),
  });
  const client = joinClient(t, server, dialStreamable(server.url));
  const { error } = await client.answer(client.startInitialize());
  t.regex(error?.message ?? '', /redirect to another origin/);
  t.is(other.received.length, 0);
});

test('follows the slash a framework wants', async (t) => {
  const server = await listenScripted();
  const slashed = await listen(({ path, body }, response) => {
    if (path === '/mcp') return void response.writeHead(307, { Location: '/mcp/' }).end();
    if (body === '') return void response.writeHead(405).end();
    const { id } = JSON.parse(body);
    if (id === undefined) return void response.writeHead(202).end();
    const result = { protocolVersion: '2025-11-25', capabilities: {} };
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  });
  t.teardown(() => slashed.close());
  const client = await connectClient(t, server, dialStreamable(slashed.url));
  t.truthy((await client.request('tools/list')).result);
});

test('limits name their phase', async (t) => {
  const server = await listenScripted({
    'tools/call': ({ message: { params } }, response) => {
      if (params?.name === 'silent') openStream(response).write(event(notification('notifications/begun')));
    },
  });
  const clock = new FakeClock();
  const timeouts = { firstByteMs: 1000, idleMs: 1000 };
  const client = await connectClient(t, server, dialStreamable(server.url, { timeouts, client: { clock } }));
  const never = client.start('tools/call', { name: 'never' });
  const silent = client.start('tools/call', { name: 'silent' });
  await waitFor(() => client.notifications('notifications/begun').length === 1);
  await waitFor(() => server.order.filter((name) => name === 'tools/call').length === 2);
  clock.advance(999);
  await client.request('tools/list');
  clock.advance(1);
  const reasons = [await client.answer(never), await client.answer(silent)].map(({ error }) => error?.data);
  t.like(reasons[0], { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT', phase: 'first-byte' } });
  t.like(reasons[1], { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT', phase: 'idle' } });
  await waitFor(() => server.order.filter((name) => name === 'notifications/cancelled').length === 2);
});

test('neither logs nor errors hold credentials', async (t) => {
  const lines: string[] = [];
  const sink = new Writable({
    write(line, _, done) {
      lines.push(String(line));
      done();
    },
  });
  const server = await listenScripted({
    'tools/call': (_, response) => void response.writeHead(401).end('hunter2-page'),
  });
  const url = new URL(`${server.url}?api_key=hunter2`);
  const headers = new Map([
    ['authorization', 'Bearer hunter2'],
    ['x-key', 'hunter2'],
  ]);
  const log = pino({ level: 'trace' }, sink);
  const dialer = dialStreamable(url, { log, client: { headers } });
  const client = await connectClient(t, server, dialer);
  await client.request('tools/call', { name: 'x' });
  await server.close();
  await client.request('tools/call', { name: 'x' });
  client.close();
  await dialer.close();
  t.is(server.messages.at(-1)?.path, '/mcp?api_key=hunter2');
  t.true(lines.length > 0);
  t.false(
    lines.some((line) => line.includes('hunter2')),
    lines.join(''),
  );
  t.false(client.received.some((message) => JSON.stringify(message).includes('hunter2')));
});

// ---- the end

test('ends the session with DELETE, once', async (t) => {
  const server = await startStreamable();
  const dialer = dialStreamable(server.url);
  const client = await connectClient(t, server, dialer);
  await client.call('echo', { value: 'x' });
  t.is(server.sessions.size, 1);
  client.close();
  client.close();
  await dialer.close();
  await dialer.close();
  // The answer to it is not waited for without end.
  await waitFor(() => server.sessions.size === 0, { message: 'the session to end' });
  t.is(server.asked.filter(({ method }) => method === 'DELETE').length, 1);
});

for (const [name, status] of [
  ['does not allow it', 405],
  ['has forgotten the session', 404],
] as const) {
  test(`a server that ${name} is left all the same`, async (t) => {
    const server = await listenScripted({ DELETE: (_, response) => void response.writeHead(status).end() });
    const dialer = dialStreamable(server.url);
    await connectClient(t, server, dialer);
    await dialer.close();
    await waitFor(() => server.order.includes('DELETE'), { message: 'the end of the session' });
    t.throws(() => dialer.dial({} as never), { message: /shutting down/ });
  });
}

test('a server that does not answer DELETE holds up the end for a short time only', async (t) => {
  const server = await listenScripted({ DELETE: () => {} });
  const dialer = dialStreamable(server.url);
  await connectClient(t, server, dialer);
  const startMs = performance.now();
  await dialer.close();
  t.true(performance.now() - startMs < 20_000, 'two seconds; a call would be waited for longer');
  await waitFor(() => server.open.size === 0, { message: 'all connections to be closed' });
});
