import test from 'ava';
import { COMMIT_AFTER_MS } from '../../../src/downstream/streamable-session/post-lane.ts';
import { BridgeError } from '../../../src/errors.ts';
import { callHttp, type HttpAnswer } from '../../support/http-call.ts';
import { type HttpHarness, startHttpHarness } from '../../support/http-harness.ts';
import {
  call,
  type Headers,
  initialize,
  notification,
  openInitializedSse,
  openStreamable,
  POST_HEADERS,
  type StreamableSession,
} from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';

function postInitialize(harness: HttpHarness, headers: Headers = {}): Promise<HttpAnswer> {
  const body = JSON.stringify(initialize());
  return callHttp({ port: harness.port, method: 'POST', headers: { ...POST_HEADERS, ...headers }, body });
}

const STREAM_FIRST = { Accept: 'text/event-stream, application/json' };

test('gives a session id of at least 128 bits in visible ASCII with the InitializeResult, another one each time', async (t) => {
  const harness = await startHttpHarness(t);
  const answers = [await postInitialize(harness), await postInitialize(harness)];
  const ids = answers.map((answer) => String(answer.headers['mcp-session-id']));
  for (const id of ids) {
    t.regex(id, /^[\x21-\x7e]+$/);
    // 6 bits a character at most.
    t.true(id.length * 6 >= 128);
  }
  t.not(ids[0], ids[1]);
  const { result } = await (answers[0] as HttpAnswer).json<{ result: { protocolVersion: string } }>();
  t.is(result.protocolVersion, '2025-11-25');
});

test('gives no session id with any later answer', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  const pending = session.post(call(1));
  session.connection.answer(await session.connection.next('tools/call'));
  t.is((await pending).headers['mcp-session-id'], undefined);
  t.is((await session.post(notification('notifications/x'))).headers['mcp-session-id'], undefined);
  t.is((await session.get()).headers['mcp-session-id'], undefined);
});

test('passes the error of an initialize on without a session id, and the session is over', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.scripts.set('initialize', (request, connection) =>
    connection.refuse(request, -32602, 'not that version'),
  );
  const answer = await postInitialize(harness);
  t.is(answer.status, 200);
  t.is(answer.headers['mcp-session-id'], undefined);
  t.deepEqual(await answer.json(), { jsonrpc: '2.0', id: 0, error: { code: -32602, message: 'not that version' } });
  t.is(harness.sessions.size, 0);
  t.truthy(harness.server.latest.closedFor);
});

test('gives the session id with an InitializeResult that comes as an event', async (t) => {
  const harness = await startHttpHarness(t);
  const answer = await postInitialize(harness, STREAM_FIRST);
  t.true(answer.isEventStream);
  t.truthy(answer.headers['mcp-session-id']);
  const [priming, result, ...others] = await answer.events().rest();
  t.is(priming?.data, '', 'the revision is known by then');
  t.is(JSON.parse(result?.data ?? '').id, 0);
  t.deepEqual(others, []);
});

test('answers initialize with the reason when the server cannot be started', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.refusal = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such command');
  const answer = await postInitialize(harness);
  t.is(answer.status, 200);
  t.is(answer.headers['mcp-session-id'], undefined);
  t.deepEqual(await answer.json(), {
    jsonrpc: '2.0',
    id: 0,
    error: { code: -32603, message: 'no such command', data: { bridge: { reason: 'ERR_UPSTREAM_SPAWN' } } },
  });
  t.is(harness.sessions.size, 0);
});

test('answers initialize with the reason when the server dies meanwhile', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.scripts.set('initialize', (_request, connection) => {
    connection.die(new BridgeError('ERR_UPSTREAM_EXITED', 'exited with code 1'));
  });
  const answer = await postInitialize(harness);
  t.is(answer.headers['mcp-session-id'], undefined);
  t.like(await answer.json(), { id: 0, error: { code: -32603, message: 'exited with code 1' } });
  t.is(harness.sessions.size, 0);
});

test('answers 202 without a body to a notification and to an answer', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  session.connection.ask('q1', 'ping');
  const answers = [
    await session.post(notification('notifications/initialized')),
    await session.post({ jsonrpc: '2.0', id: 'q1', result: {} }),
    await session.post({ jsonrpc: '2.0', id: 'unknown', error: { code: 1, message: 'no' } }),
  ];
  for (const answer of answers) {
    t.is(answer.status, 202);
    t.is(await answer.text(), '');
  }
  await session.connection.next('notifications/initialized');
  t.deepEqual(
    session.connection.answers.map((frame) => frame.id),
    ['q1'],
  );
});

test('answers DELETE with 204 and whatever comes after with 404, at once', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const deleted = await session.delete({ 'MCP-Protocol-Version': '2025-11-25' });
  t.is(deleted.status, 204);
  t.is(await deleted.text(), '');
  t.is(session.connection.closedFor?.code, 'ERR_SESSION_CLOSED');
  t.is((await session.post(call(1))).status, 404);
  t.is((await session.get()).status, 404);
  t.is((await session.delete()).status, 404);
  t.is(harness.sessions.size, 0);
});

test('ends a deleted session’s streams and answers its open calls', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  const stream = (await session.get()).events();
  const pending = session.post(call(1));
  await session.connection.next('tools/call');
  await session.delete();
  t.like(await (await pending).json(), { id: 1, error: { data: { bridge: { reason: 'ERR_SESSION_CLOSED' } } } });
  t.is(await stream.closed, 'ended');
});

test('deletes one session and leaves the others alone', async (t) => {
  const harness = await startHttpHarness(t);
  const one = await openStreamable(harness);
  const other = await openStreamable(harness);
  await one.delete();
  const pending = other.post(call(1));
  other.connection.answer(await other.connection.next('tools/call'), { ok: true });
  t.deepEqual(await (await pending).json(), { jsonrpc: '2.0', id: 1, result: { ok: true } });
});

test('an initialize whose answer nobody reads wedges nothing', async (t) => {
  const harness = await startHttpHarness(t);
  const unread = await postInitialize(harness, { 'MCP-Protocol-Version': '2025-11-25' });
  t.is(unread.status, 200);
  const headers = { 'Mcp-Session-Id': String(unread.headers['mcp-session-id']) };
  t.is((await callHttp({ port: harness.port, method: 'DELETE', headers })).status, 204);
  t.is(harness.sessions.size, 0);
});

test('does not take the id of an HTTP+SSE session', async (t) => {
  const harness = await startHttpHarness(t);
  const sse = await openInitializedSse(harness);
  const id = new URLSearchParams(sse.endpoint.split('?')[1]).get('sessionId') ?? '';
  const answer = await callHttp({
    port: harness.port,
    method: 'POST',
    headers: { ...POST_HEADERS, 'Mcp-Session-Id': id },
    body: JSON.stringify(call(1)),
  });
  t.is(answer.status, 404);
  t.is((await callHttp({ port: harness.port, method: 'DELETE', headers: { 'Mcp-Session-Id': id } })).status, 404);
  t.is(harness.sessions.size, 1);
});

test('ends a session nobody is connected to after the session timeout', async (t) => {
  const harness = await startHttpHarness(t, { sessionTimeoutMs: 60_000 });
  const session = await openStreamable(harness);
  harness.clock.advance(59_000);
  t.is((await session.post(notification('notifications/x'))).status, 202);
  harness.clock.advance(59_000);
  t.is(harness.sessions.size, 1, 'a message is a sign of life');
  harness.clock.advance(2000);
  t.is((await session.post(notification('notifications/x'))).status, 404);
  t.truthy(session.connection.closedFor);
});

test('keeps a session alive as long as its GET stream is connected', async (t) => {
  const harness = await startHttpHarness(t, { sessionTimeoutMs: 60_000 });
  const session = await openStreamable(harness);
  const stream = (await session.get()).events();
  harness.clock.advance(300_000);
  t.is(harness.sessions.size, 1);
  stream.leave();
  await waitFor(() => harness.logLines.some((line) => line.includes('"method":"GET"')));
  harness.clock.advance(61_000);
  t.is(harness.sessions.size, 0);
});

const IDLE = { sessionTimeoutMs: 1_800_000, idleTimeouts: { leftMs: 60_000, quietMs: 600_000 } };

async function leaveStream(harness: HttpHarness, session: StreamableSession): Promise<void> {
  const count = () => harness.logLines.filter((line) => line.includes('"method":"GET"')).length;
  const before = count();
  (await session.get()).events().leave();
  await waitFor(() => count() > before);
}

test('ends a session soon whose client has closed its stream and not come back', async (t) => {
  const harness = await startHttpHarness(t, IDLE);
  const session = await openStreamable(harness);
  await leaveStream(harness, session);
  harness.clock.advance(59_000);
  t.is(harness.sessions.size, 1);
  harness.clock.advance(2000);
  t.is(harness.sessions.size, 0);
});

test('a client that calls on after its stream has closed lives without one, and keeps its session longer', async (t) => {
  const harness = await startHttpHarness(t, IDLE);
  const session = await openStreamable(harness);
  await leaveStream(harness, session);
  const pending = session.post(call(1));
  session.connection.answer(await session.connection.next('tools/call'));
  t.is((await pending).status, 200);
  harness.clock.advance(590_000);
  t.is(harness.sessions.size, 1);
  await leaveStream(harness, session);
  harness.clock.advance(62_000);
  t.is(harness.sessions.size, 0, 'it had a stream again');
});

test('a client that never had a stream keeps its session longer, but not one that never came back', async (t) => {
  const harness = await startHttpHarness(t, IDLE);
  const session = await openStreamable(harness);
  await openStreamable(harness);
  t.is((await session.post(notification('notifications/initialized'))).status, 202);
  harness.clock.advance(61_000);
  t.is(harness.sessions.size, 1);
  t.is((await session.post(notification('notifications/x'))).status, 202);
});

test('ends a session whose client leaves before initialize is answered: nobody knows its id', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.scripts.delete('initialize');
  const client = new AbortController();
  const body = JSON.stringify(initialize());
  const pending = callHttp({ port: harness.port, method: 'POST', headers: POST_HEADERS, body, signal: client.signal });
  await waitFor(() => harness.server.connections[0]?.received.length);
  client.abort();
  await t.throwsAsync(pending);
  await waitFor(() => harness.server.latest.closedFor);
  t.is(harness.sessions.size, 0);
});

test('ends it too when the client leaves the stream that the silence of initialize has become', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.scripts.delete('initialize');
  const pending = postInitialize(harness);
  await waitFor(() => harness.server.connections[0]?.received.length);
  harness.clock.advance(COMMIT_AFTER_MS);
  const answer = await pending;
  t.true(answer.isEventStream);
  answer.leave();
  await waitFor(() => harness.server.latest.closedFor);
  t.is(harness.sessions.size, 0);
});

test('gives no session id with the error of an initialize whose client prefers a stream', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.scripts.set('initialize', (request, connection) => connection.refuse(request, -32602, 'no'));
  const answer = await postInitialize(harness, STREAM_FIRST);
  t.is(answer.headers['mcp-session-id'], undefined);
  t.like(JSON.parse((await answer.events().next()).data), { id: 0, error: { code: -32602 } });
});
