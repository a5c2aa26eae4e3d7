import test from 'ava';
import { callHttp } from '../support/http-call.ts';
import { startHttpHarness } from '../support/http-harness.ts';
import { call, initialize, notification, openStreamable, POST_HEADERS } from '../support/legacy-clients.ts';
import {
  ENVELOPE,
  headersOf,
  META,
  modern,
  modernCall,
  nextCall,
  postBody,
  postModern,
  REVISION,
  type RpcBody,
} from './streamable-stateless/modern-posts.ts';

const MODERN = { 'MCP-Protocol-Version': REVISION };
const LEGACY = { 'MCP-Protocol-Version': '2025-11-25' };

test('clients of both eras are served at one URL at the same time, under the same id', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const legacy = session.post(call(1));
  const stateless = postModern(harness, modernCall(1));
  const link = await nextCall(harness, 2);
  t.is(session.connection.context, undefined);
  t.is(link.context?.metadata?.revision, REVISION);
  link.answer(await link.next('tools/call'), { era: 'modern' });
  session.connection.answer(await session.connection.next('tools/call'), { era: 'legacy' });
  t.like(await (await legacy).json<RpcBody>(), { id: 1, result: { era: 'legacy' } });
  t.like(await (await stateless).json<RpcBody>(), { id: 1, result: { era: 'modern' } });
  t.is(harness.sessions.size, 1);
});

test('a slash behind the path makes no difference, as some servers are called with one', async (t) => {
  const { port } = await startHttpHarness(t);
  for (const path of ['/mcp/', '/mcp/?x=1']) {
    const body = JSON.stringify(initialize());
    t.is((await callHttp({ port, method: 'POST', path, headers: POST_HEADERS, body })).status, 200);
  }
  for (const path of ['/', '/mcp//', '/mcp/x']) t.is((await callHttp({ port, path })).status, 404, path);
});

test('a POST with an envelope is modern whatever its headers say', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const given = { ...headersOf(modernCall(1)), 'Mcp-Session-Id': session.id };
  const pending = postBody(harness, modernCall(1), given);
  const link = await nextCall(harness, 2);
  link.answer(await link.next('tools/call'));
  t.is((await pending).status, 200);
  const odd = modern(2, 'tools/list', {}, { [`${META}protocolVersion`]: 7 });
  const refused = await postBody(harness, odd, { ...LEGACY, 'Mcp-Session-Id': session.id });
  t.is(refused.status, 400);
  t.like(await refused.json<RpcBody>(), { id: 2, error: { code: -32602 } });
});

test('initialize opens a session, also under a modern header', async (t) => {
  const harness = await startHttpHarness(t);
  const answer = await postBody(harness, initialize(), MODERN);
  t.is(answer.status, 200);
  t.truthy(answer.headers['mcp-session-id']);
  t.is(harness.server.latest.context, undefined);
});

test('initialize with an unknown session id opens another session', async (t) => {
  const harness = await startHttpHarness(t);
  const answer = await postBody(harness, initialize(), { 'Mcp-Session-Id': 'gone' });
  t.is(answer.status, 200);
  t.not(answer.headers['mcp-session-id'], 'gone');
});

test('a POST with a session id and no envelope is of that session, or of none', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  t.is((await session.post(notification('notifications/x'))).status, 202);
  const answer = await postBody(harness, call(4), { 'Mcp-Session-Id': 'unknown' });
  t.is(answer.status, 404);
});

test('a request of a modern client that forgot its envelope is told so, and never served as legacy', async (t) => {
  const harness = await startHttpHarness(t);
  for (const version of [REVISION, '2027-01-01']) {
    const answer = await postBody(harness, call(4), { 'MCP-Protocol-Version': version });
    t.is(answer.status, 400);
    t.like(await answer.json<RpcBody>(), { id: 4, error: { code: -32602 } });
  }
  t.is((await postBody(harness, notification('notifications/progress'), MODERN)).status, 202);
  t.is(harness.server.connections.length, 0);
});

test('an array is for a session of 2025-03-26, without any modern message in it', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-03-26');
  const legacy = session.post([call(1), notification('notifications/x')]);
  session.connection.answer(await session.connection.next('tools/call'));
  t.is((await legacy).status, 200);
  for (const body of [
    [call(1), modernCall(2)],
    [notification('notifications/x'), { ...notification('notifications/y'), params: { _meta: ENVELOPE } }],
  ]) {
    const answer = await session.post(body);
    t.is(answer.status, 400);
    const refused = await answer.json<RpcBody>();
    t.is(refused.error?.code, -32600);
    t.false('id' in refused);
  }
  t.is(session.connection.received.filter(({ method }) => method === 'tools/call').length, 1);
});

test('a POST without session, envelope or modern header that needs a session is told to open one', async (t) => {
  const harness = await startHttpHarness(t);
  const subscribe = { jsonrpc: '2.0' as const, id: 1, method: 'resources/subscribe', params: { uri: 'a:b' } };
  for (const headers of [{}, LEGACY]) {
    for (const body of [subscribe, { jsonrpc: '2.0', id: 1, result: {} }, [call(1)]]) {
      const answer = await postBody(harness, body, headers);
      t.is(answer.status, 400);
      t.like(await answer.json<RpcBody>(), { error: { data: { bridge: { reason: 'ERR_SESSION_MISSING' } } } });
    }
  }
});

test('another reserved key is no envelope', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const pending = session.post(call(1, 'work', { [`${META}related-task`]: { taskId: 'x' } }));
  session.connection.answer(await session.connection.next('tools/call'));
  t.is((await pending).status, 200);
});

test('GET with a session opens its stream; without one it opens HTTP+SSE', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const stream = await session.get();
  session.connection.notify('notifications/x');
  const events = stream.events();
  // The priming event comes first.
  t.is((await events.next()).data, '');
  t.is((await events.message()).method, 'notifications/x');
  const old = await callHttp({ port: harness.port, headers: { Accept: 'text/event-stream' } });
  t.is((await old.events().next()).event, 'endpoint');
});

test('GET without session and event stream, and every other method, is 405 with Allow', async (t) => {
  const { port } = await startHttpHarness(t);
  for (const [method, headers] of [
    ['GET', { Accept: 'application/json' }],
    ['GET', { ...MODERN, Accept: 'text/event-stream' }],
    ['PUT', {}],
    ['PATCH', {}],
    ['DELETE', MODERN],
  ] as const) {
    const answer = await callHttp({ port, method, headers });
    t.is(answer.status, 405);
    t.is(answer.headers.allow, 'GET, POST, DELETE');
  }
});

test('DELETE ends a session; without one there is nothing to end', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  t.is((await session.delete()).status, 204);
  t.is(harness.sessions.size, 0);
  t.is((await callHttp({ port: harness.port, method: 'DELETE' })).status, 400);
});

test('OPTIONS lets a page of a named origin send whatever headers it asks for', async (t) => {
  const origin = 'https://app.example.com';
  const { port } = await startHttpHarness(t, { allowOrigins: [origin] });
  const asked = 'mcp-protocol-version,mcp-method,mcp-name,mcp-param-region,content-type';
  const answer = await callHttp({
    port,
    method: 'OPTIONS',
    headers: { Origin: origin, 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': asked },
  });
  t.is(answer.status, 204);
  t.is(answer.headers['access-control-allow-headers'], asked);
  t.is(answer.headers['access-control-expose-headers'], 'Mcp-Session-Id, WWW-Authenticate, Deprecation, Sunset, Link');
});
