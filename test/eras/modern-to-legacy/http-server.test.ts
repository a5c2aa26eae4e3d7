import type { ServerResponse } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { answerJson } from '../../fixtures/http-servers/listen.ts';
import {
  event,
  listenScripted,
  notification,
  openStream,
  resultOf,
  type Script,
  type ScriptedOptions,
} from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { startStreamable } from '../../support/sdk-servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { dialStreamable } from '../../upstream/remote-dialers.ts';
import { Conversations } from './modern-conversations.ts';

async function bridgeTo(t: ExecutionContext, script: Script, options?: ScriptedOptions) {
  const server = await listenScripted(script, options);
  t.teardown(() => server.close());
  return { server, client: new Conversations(t, dialStreamable(server.url)) };
}

function times(order: readonly string[], name: string): number {
  return order.filter((asked) => asked === name).length;
}

test('an array of messages on the stream of a call is taken apart: progress, then the answer', async (t) => {
  const { server, client } = await bridgeTo(
    t,
    {
      'tools/call': (asked, response) => {
        const { progressToken } = asked.message.params?._meta as { progressToken: number };
        const progress = notification('notifications/progress', { progressToken, progress: 1 });
        openStream(response).end(event([progress, resultOf(asked, 'both')]));
      },
    },
    { protocolVersion: '2025-03-26' },
  );
  const call = client.open();
  const id = call.start('tools/call', { name: 'x', _meta: { progressToken: 'mine' } });
  const { result } = await call.answer(id);
  t.like(result, { resultType: 'complete', content: [{ text: 'both' }] });
  t.deepEqual(
    call.received.map(({ method, params }) => [method, params?.progressToken]),
    [
      ['notifications/progress', 'mine'],
      [undefined, undefined],
    ],
  );
  t.is(times(server.order, 'tools/call'), 1);
});

test('a stream that the server lets go is resumed when it said, and the result comes once', async (t) => {
  let letGoMs = 0;
  const resumed: { readonly from: unknown; readonly atMs: number }[] = [];
  let answer = (_response: ServerResponse): void => {};
  const { server, client } = await bridgeTo(t, {
    'tools/call': (asked, response) => {
      answer = (later) => {
        const result = event(resultOf(asked, 'at last'), 'e-2');
        openStream(later).end(result + result);
      };
      openStream(response).end('id: e-1\nretry: 500\ndata:\n\n');
      letGoMs = performance.now();
    },
    GET: ({ headers }, response) => {
      const from = headers['last-event-id'];
      if (from === undefined) return void response.writeHead(405).end();
      resumed.push({ from, atMs: performance.now() });
      answer(response);
    },
  });
  const call = client.open();
  const id = call.start('tools/call', { name: 'x' });
  t.like((await call.answer(id)).result, { resultType: 'complete', content: [{ text: 'at last' }] });
  t.deepEqual(
    resumed.map(({ from }) => from),
    ['e-1'],
  );
  // Timers of the two sides are rounded to milliseconds.
  t.true((resumed[0]?.atMs ?? 0) - letGoMs >= 499);
  t.is(call.received.length, 1);
  t.is(times(server.order, 'tools/call'), 1);
});

test('a server that was restarted gets a new handshake, and the call once', async (t) => {
  const server = await startStreamable();
  t.teardown(() => server.close());
  const client = new Conversations(t, dialStreamable(server.url));
  t.is(await client.tool('echo', { value: 'before' }), 'before');
  const [before] = server.sessions.keys();
  await server.forget();
  const call = client.open();
  const id = call.start('tools/call', { name: 'echo', arguments: { value: 'after' } });
  t.is((await call.answer(id)).result?.content?.[0]?.text, 'after');
  t.is(call.received.length, 1);
  const [after, ...others] = server.sessions.keys();
  t.deepEqual(others, []);
  t.not(after, before);
});

test('what a call does in a session that is new again is done once', async (t) => {
  let current = 'session-1';
  const calls: unknown[] = [];
  const { server, client } = await bridgeTo(t, {
    'tools/call': (asked, response) => {
      const session = asked.headers['mcp-session-id'];
      if (session !== current) return void response.writeHead(404).end();
      calls.push(session);
      answerJson(response, resultOf(asked, 'done'));
    },
  });
  t.is(await client.tool('x'), 'done');
  current = 'session-2';
  t.is(await client.tool('x'), 'done');
  t.deepEqual(calls, ['session-1', 'session-2']);
  t.is(times(server.order, 'initialize'), 2);
  t.is(times(server.order, 'notifications/initialized'), 2);
});

for (const status of [401, 403]) {
  test(`a server that answers ${status} is a failure of the bridge's, which its client cannot mend`, async (t) => {
    const { client } = await bridgeTo(t, {
      'tools/call': (_, response) => void response.writeHead(status, { 'WWW-Authenticate': 'Bearer' }).end(),
    });
    const { error } = await client.request('tools/call', { name: 'x' });
    t.like(error, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_AUTH', status } } });
  });
}

test('a server in trouble fails the call, and says how', async (t) => {
  const { server, client } = await bridgeTo(t, {
    'tools/call': (_, response) => void response.writeHead(503).end(),
  });
  const unavailable = await client.request('tools/call', { name: 'x' });
  t.like(unavailable.error, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_HTTP', status: 503 } } });
  server.rewrite({ 'tools/call': (_, response) => void response.destroy() });
  const reset = await client.request('tools/call', { name: 'x' });
  t.is(reset.error?.code, -32603);
  t.regex((reset.error?.data as { bridge: { reason: string } }).bridge.reason, /^ERR_UPSTREAM_/);
  t.is(times(server.order, 'tools/call'), 2, 'neither was sent again');
});

test('a call that takes too long is withdrawn from the server', async (t) => {
  const server = await listenScripted({ 'tools/call': () => {} });
  t.teardown(() => server.close());
  const clock = new FakeClock();
  const client = new Conversations(t, dialStreamable(server.url, { timeouts: { callMs: 2000 }, clock }));
  const call = client.request('tools/call', { name: 'x' });
  await waitFor(() => server.order.includes('tools/call'));
  clock.advance(2000);
  const { error } = await call;
  t.like(error, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT' } } });
  await waitFor(() => server.order.includes('notifications/cancelled'));
});

for (const [name, reason, initialize] of [
  ['refuses the bridge', 'ERR_UPSTREAM_AUTH', (_, response) => void response.writeHead(401).end()],
  ['is in trouble', 'ERR_UPSTREAM_HTTP', (_, response) => void response.writeHead(503).end()],
  ['hangs up', 'ERR_UPSTREAM_CONNECT', (_, response) => void response.destroy()],
  ['answers with a page', 'ERR_UPSTREAM_PROTOCOL', (_, response) => void response.writeHead(200).end('<html>')],
] as const satisfies readonly (readonly [string, string, Script[string]])[]) {
  test(`a server that ${name} fails discover with ${reason}`, async (t) => {
    const { client } = await bridgeTo(t, { initialize });
    const { error } = await client.request('server/discover');
    t.like(error, { code: -32603, data: { bridge: { reason } } });
  });
}
