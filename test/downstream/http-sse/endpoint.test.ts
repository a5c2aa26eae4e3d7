import test from 'ava';
import { KEEP_ALIVE_MS } from '../../../src/downstream/http/event-stream-writer.ts';
import { BridgeError } from '../../../src/errors.ts';
import { callHttp, callHttpAndArrive } from '../../support/http-call.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import {
  call,
  cancellation,
  initialize,
  JSON_HEADERS,
  notification,
  openInitializedSse,
  openSse,
  openStreamable,
  POST_HEADERS,
} from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';
import { modern } from '../streamable-stateless/modern-posts.ts';

test('names the URL for messages first: relative, with an unguessable session id', async (t) => {
  const harness = await startHttpHarness(t);
  const sessions = [await openSse(harness), await openSse(harness)];
  const ids = sessions.map(({ endpoint }) => /^\/messages\?sessionId=([\w-]+)$/.exec(endpoint)?.[1] ?? '');
  for (const id of ids) t.true(id.length * 6 >= 128);
  t.not(ids[0], ids[1]);
});

test('puts the path of a reverse proxy before the URL it names', async (t) => {
  const session = await openSse(await startHttpHarness(t, { baseUrl: new URL('https://a.example/tools/mcp') }));
  t.regex(session.endpoint, /^\/tools\/mcp\/messages\?sessionId=/);
});

test('takes messages with 202 and answers on the stream, byte for byte', async (t) => {
  const session = await openSse(await startHttpHarness(t));
  const answer = await session.post(initialize('2024-11-05'));
  t.is(answer.status, 202);
  t.is(await answer.text(), 'Accepted');
  const { event, id, data } = await session.stream.next();
  t.is(event, 'message');
  t.is(id, undefined, 'nothing can be resumed here');
  t.like(JSON.parse(data), { id: 0, result: { protocolVersion: '2024-11-05' } });
  await session.post(notification('notifications/initialized'));
  await session.connection.next('notifications/initialized');
  await session.post(call('x'));
  const text = '{"result":{"n":1.50,"s":"\\u00e9é"},"jsonrpc":"2.0","id":"x"}';
  session.connection.say(text);
  t.is((await session.stream.next()).data, text);
});

test('sends everything on the one stream: progress, logs, questions, changes, unknown methods', async (t) => {
  const session = await openInitializedSse(await startHttpHarness(t));
  await session.post(call(1, 'work', { progressToken: 'p' }));
  const request = await session.connection.next('tools/call');
  session.connection.notify('notifications/progress', { progressToken: 'p', progress: 1 });
  session.connection.notify('notifications/message', { level: 'info', data: 'x' });
  session.connection.ask('q', 'sampling/createMessage');
  session.connection.notify('notifications/tools/list_changed');
  session.connection.notify('vendor/news');
  session.connection.answer(request);
  const methods = [];
  for (let count = 0; count < 6; count += 1) {
    const { method, id } = await session.stream.message();
    methods.push(method ?? id);
  }
  t.deepEqual(methods, [
    'notifications/progress',
    'notifications/message',
    'sampling/createMessage',
    'notifications/tools/list_changed',
    'vendor/news',
    1,
  ]);
  t.is((await session.post({ jsonrpc: '2.0', id: 'q', result: { ok: 1 } })).status, 202);
  t.like(session.connection.answers[0]?.json(), { id: 'q', result: { ok: 1 } });
});

test('passes a cancellation on and drops the late answer', async (t) => {
  const session = await openInitializedSse(await startHttpHarness(t));
  await session.post(call(1));
  const request = await session.connection.next('tools/call');
  await session.post(cancellation(1));
  await session.connection.next('notifications/cancelled');
  session.connection.answer(request);
  session.connection.notify('notifications/last');
  t.like(await session.stream.message(), { method: 'notifications/last' });
});

interface Refusal {
  readonly status: number;
  readonly reason: string;
  readonly way: RegExp;
}

const refused = test.macro({
  title: (what = '') => `refuses a message ${what}`,
  async exec(t, body: string, headers: Record<string, string | undefined>, { status, reason, way }: Refusal) {
    const session = await openInitializedSse(await startHttpHarness(t, { maxMessageBytes: 1000 }));
    const answer = await session.post(body, headers);
    t.is(answer.status, status);
    const { error } = await answer.json<{ error: { message: string; data: { bridge: { reason: string } } } }>();
    t.is(error.data.bridge.reason, reason);
    t.regex(error.message, way);
    t.is(session.connection.received.length, 1, 'only initialize');
  },
});

test('that is not JSON: 400', refused, '{"jsonrpc"', {}, { status: 400, reason: 'ERR_WIRE_PARSE', way: /valid JSON/ });
test('that is no JSON-RPC: 400', refused, '{"id":1}', {}, { status: 400, reason: 'ERR_WIRE_MESSAGE', way: /./ });
test(
  'in an array: 400',
  refused,
  `[${JSON.stringify(call(1))}]`,
  {},
  {
    status: 400,
    reason: 'ERR_WIRE_BATCH',
    way: /send each message by itself/,
  },
);
test(
  'of another type: 415',
  refused,
  '{}',
  { 'Content-Type': 'text/plain' },
  {
    status: 415,
    reason: 'ERR_HTTP_CONTENT_TYPE',
    way: /application\/json/,
  },
);
test(
  'over the size limit: 413',
  refused,
  `{"x":"${'x'.repeat(2000)}"}`,
  {},
  {
    status: 413,
    reason: 'ERR_WIRE_FRAME_TOO_LARGE',
    way: /--max-message-bytes/,
  },
);

const wrongMethod = test.macro({
  title: (_, path: string, method: string) => `answers 405 to ${method} ${path}`,
  async exec(t, path: string, method: string, allow: string) {
    const { port } = await startHttpHarness(t);
    const answer = await callHttp({ port, path, method });
    t.is(answer.status, 405);
    t.is(answer.headers.allow, allow);
  },
});

test(wrongMethod, '/sse', 'POST', 'GET');
test(wrongMethod, '/sse', 'DELETE', 'GET');
test(wrongMethod, '/messages', 'GET', 'POST');
test(wrongMethod, '/messages', 'PUT', 'POST');

test('tells a client that posts to the stream’s URL where Streamable HTTP is, and serves it when it falls back to GET', async (t) => {
  for (const [baseUrl, streamable] of [
    [undefined, 'http://127.0.0.1:PORT/mcp'],
    [new URL('https://a.example/tools'), 'https://a.example/tools/mcp'],
  ] as const) {
    const harness = await startHttpHarness(t, baseUrl === undefined ? {} : { baseUrl });
    for (const message of [initialize(), modern(1, 'server/discover')]) {
      const body = JSON.stringify(message);
      const answer = await callHttp({ port: harness.port, method: 'POST', path: '/sse', headers: POST_HEADERS, body });
      t.is(answer.status, 405);
      t.is(answer.headers.allow, 'GET');
      const { error } = await answer.json<{ error: { message: string } }>();
      t.true(error.message.includes(`Streamable HTTP is at ${streamable.replace('PORT', `${harness.port}`)}.`));
    }
    t.is(harness.server.connections.length, 0);
    const { endpoint } = await openSse(harness);
    t.regex(endpoint, /\/messages\?sessionId=/);
  }
});

/** Whether a GET without a session opens HTTP+SSE at the path of Streamable HTTP where it is served. */
const OPENS_AT_MCP = { '*/*': true, absent: false, 'text/event-stream': true };

for (const [accept, opensAtMcp] of Object.entries(OPENS_AT_MCP)) {
  test(`switched off, it is found nowhere by a client whose Accept is ${accept}`, async (t) => {
    const headers = accept === 'absent' ? {} : { Accept: accept };
    const on = await startHttpHarness(t);
    t.is((await callHttp({ port: on.port, path: '/mcp', headers })).isEventStream, opensAtMcp);
    const { port, server } = await startHttpHarness(t, { httpSse: 'off' });
    const atMcp = await callHttp({ port, path: '/mcp', headers });
    t.is(atMcp.status, 405);
    for (const [method, path] of [
      ['GET', '/sse'],
      ['POST', '/sse'],
      ['POST', '/messages?sessionId=x'],
    ] as const) {
      const answer = await callHttp({ port, method, path, headers });
      t.is(answer.status, 404);
      const { error } = await answer.json<{ error: { message: string; data: { bridge: { reason: string } } } }>();
      t.is(error.data.bridge.reason, 'ERR_HTTP_PATH');
      t.regex(error.message, new RegExp(`--no-sse.*Streamable HTTP is at http://127.0.0.1:${port}/mcp\\.`));
    }
    t.is(server.connections.length, 0);
  });
}

test('switched off, it takes nothing from Streamable HTTP', async (t) => {
  const harness = await startHttpHarness(t, { httpSse: 'off' });
  const session = await openStreamable(harness);
  const stream = await callHttp({
    port: harness.port,
    headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': session.id },
  });
  t.true(stream.isEventStream);
});

test('answers 400 to a message without a session id, and 404 to one of an unknown session', async (t) => {
  const { port } = await startHttpHarness(t);
  const post = { port, method: 'POST', headers: JSON_HEADERS, body: JSON.stringify(call(1)) };
  const missing = await callHttp({ ...post, path: '/messages' });
  t.is(missing.status, 400);
  t.regex(await missing.text(), /endpoint event/);
  const unknown = await callHttp({ ...post, path: '/messages?sessionId=nobody' });
  t.is(unknown.status, 404);
  t.regex(await unknown.text(), /open a new stream/);
});

test('does not take the id of a Streamable HTTP session', async (t) => {
  const harness = await startHttpHarness(t);
  const { id } = await openStreamable(harness);
  const path = `/messages?sessionId=${id}`;
  const body = JSON.stringify(call(1));
  t.is((await callHttp({ port: harness.port, method: 'POST', path, headers: JSON_HEADERS, body })).status, 404);
});

test('the end of the stream is the end of the session: the link closes and later messages get 404', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openInitializedSse(harness);
  session.stream.leave();
  await waitFor(() => session.connection.closedFor);
  t.is(session.connection.closedFor?.code, 'ERR_SESSION_CLOSED');
  t.is((await session.post(call(1))).status, 404);
  t.is(harness.sessions.size, 0);
});

test('answers a server’s open questions when the client leaves', async (t) => {
  const session = await openInitializedSse(await startHttpHarness(t));
  session.connection.ask('q', 'roots/list');
  await session.stream.next();
  session.stream.leave();
  await waitFor(() => session.connection.closedFor);
  t.like(session.connection.answers[0]?.json(), { id: 'q', error: { code: -32000 } });
});

test('when the server dies, open calls get the reason and the stream ends', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openInitializedSse(harness);
  await session.post(call(1));
  await session.post(call(2));
  await session.connection.next('tools/call');
  session.connection.die(new BridgeError('ERR_UPSTREAM_EXITED', 'exited with code 3'));
  const events = await session.stream.rest();
  t.deepEqual(
    events.map(({ data }) => [JSON.parse(data).id, JSON.parse(data).error.message]),
    [
      [1, 'exited with code 3'],
      [2, 'exited with code 3'],
    ],
  );
  t.is(await session.stream.closed, 'ended');
  t.is((await session.post(call(3))).status, 404);
});

test('two clients with the same ids see only their own messages', async (t) => {
  const harness = await startHttpHarness(t);
  const one = await openInitializedSse(harness);
  const other = await openInitializedSse(harness);
  await one.post(call(1));
  await other.post(call(1));
  other.connection.answer(await other.connection.next('tools/call'), { for: 'other' });
  one.connection.answer(await one.connection.next('tools/call'), { for: 'one' });
  t.like(await one.stream.message(), { id: 1, result: { for: 'one' } });
  t.like(await other.stream.message(), { id: 1, result: { for: 'other' } });
  one.stream.leave();
  await waitFor(() => one.connection.closedFor);
  other.connection.notify('notifications/still-there');
  t.like(await other.stream.message(), { method: 'notifications/still-there' });
});

test('sends a comment after 15 s of silence', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openInitializedSse(harness);
  harness.clock.advance(KEEP_ALIVE_MS);
  await waitFor(() => session.stream.comments.length === 1);
  t.deepEqual(session.stream.unread, []);
});

test('a client that only listens is not idle', async (t) => {
  const harness = await startHttpHarness(t, { sessionTimeoutMs: 1000 });
  await openInitializedSse(harness);
  harness.clock.advance(60_000);
  t.is(harness.sessions.size, 1);
});

test('answers with the reason when no session can be opened', async (t) => {
  const harness = await startHttpHarness(t, { maxSessions: 1 });
  harness.server.refusal = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such command');
  const failed = await callHttp({ port: harness.port, path: '/sse' });
  t.is(failed.status, 502);
  t.like(await failed.json(), { error: { message: 'no such command' } });
  harness.server.refusal = undefined;
  await openSse(harness);
  const full = await callHttp({ port: harness.port, path: '/sse' });
  t.is(full.status, 503);
  t.truthy(full.headers['retry-after']);
});

test('accepts and ignores any protocol version header', async (t) => {
  const session = await openInitializedSse(await startHttpHarness(t));
  const answer = await session.post(notification('notifications/x'), { 'MCP-Protocol-Version': '1999-01-01' });
  t.is(answer.status, 202);
});

test('takes a batch of a client of 2025-03-26 and answers on the stream', async (t) => {
  const session = await openInitializedSse(await startHttpHarness(t), '2025-03-26');
  const items = [call(1), { id: 'bad' }, notification('notifications/x')];
  t.is((await session.post(JSON.stringify(items))).status, 202);
  session.connection.answer(await session.connection.next('tools/call'));
  await session.connection.next('notifications/x');
  const ids = [(await session.stream.message()).id, (await session.stream.message()).id];
  t.deepEqual(ids, ['bad', 1]);
});

test('answers 404 to a message that was held back until its session was over', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openInitializedSse(harness);
  session.connection.isFull = true;
  await session.post(notification('notifications/fills'));
  const post = { port: harness.port, method: 'POST', path: session.endpoint, headers: JSON_HEADERS };
  const held = callHttpAndArrive({ ...post, body: JSON.stringify(call(1)) });
  await held.arrived;
  session.stream.leave();
  t.is((await held.answer).status, 404);
});
