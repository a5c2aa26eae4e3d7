/** Legacy clients over Streamable HTTP that never repeat the id of their session. */
import test from 'ava';
import type { ObservedCall, Observer } from '../../src/relay/observer.ts';
import { callHttp, type HttpAnswer } from '../support/http-call.ts';
import { type HttpHarness, startHttpHarness } from '../support/http-harness.ts';
import { call, cancellation, type Headers, notification, POST_HEADERS, textOf } from '../support/legacy-clients.ts';
import { META, nextCall, REVISION, type RpcBody } from './streamable-stateless/modern-posts.ts';

function post(harness: HttpHarness, body: object, headers: Headers = {}): Promise<HttpAnswer> {
  return callHttp({
    port: harness.port,
    method: 'POST',
    headers: { ...POST_HEADERS, ...headers },
    body: textOf(body),
  });
}

test('a call without a session is served as a modern one of a client that declares nothing', async (t) => {
  const harness = await startHttpHarness(t);
  const pending = post(harness, call(4, 'work', { progressToken: 7 }));
  const link = await nextCall(harness, 1);
  const request = await link.next('tools/call');
  t.like(JSON.parse(request.bytes.toString()).params, {
    name: 'work',
    _meta: { progressToken: 7, [`${META}protocolVersion`]: REVISION, [`${META}clientCapabilities`]: {} },
  });
  link.notify('notifications/progress', { progressToken: 7, progress: 1 });
  link.answer(request, { resultType: 'complete', content: [], _meta: { [`${META}serverInfo`]: {}, kept: 1 } });
  const events = (await pending).events();
  t.like(await events.message(), { method: 'notifications/progress' });
  t.deepEqual(await events.message(), { jsonrpc: '2.0', id: 4, result: { content: [], _meta: { kept: 1 } } });
  t.is(harness.sessions.size, 0);
});

test('its result is that of the revision in MCP-Protocol-Version, or of 2025-03-26', async (t) => {
  for (const [version, expected] of [
    ['2025-06-18', { content: [], structuredContent: { a: 1 } }],
    [undefined, { content: [{ type: 'text', text: '{"a":1}' }] }],
  ] as const) {
    const harness = await startHttpHarness(t);
    const pending = post(harness, call(4), { 'MCP-Protocol-Version': version });
    const link = await nextCall(harness, 1);
    link.answer(await link.next('tools/call'), { resultType: 'complete', content: [], structuredContent: { a: 1 } });
    t.deepEqual((await (await pending).json<RpcBody>()).result, expected);
  }
});

test('an error of the server comes with status 200 and as that era says it', async (t) => {
  const harness = await startHttpHarness(t);
  const pending = post(harness, { jsonrpc: '2.0', id: 'r', method: 'resources/read', params: { uri: 'a:b' } });
  const link = await nextCall(harness, 1);
  const { id } = await link.next('resources/read');
  link.say(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: 'no', data: { uri: 'a:b' } } }));
  const answer = await pending;
  t.is(answer.status, 200);
  t.like(await answer.json<RpcBody>(), { id: 'r', error: { code: -32002, message: 'no' } });
});

test('a server that wants to ask its client says that it takes a session', async (t) => {
  const harness = await startHttpHarness(t);
  const pending = post(harness, call(4));
  const link = await nextCall(harness, 1);
  link.answer(await link.next('tools/call'), { resultType: 'input_required', requestState: 'x' });
  const { id, error } = await (await pending).json<RpcBody>();
  t.is(id, 4);
  t.regex(error?.message ?? '', /only a client with a session can be asked: send initialize/);
});

test('ping is answered, notifications are taken, and what needs a session says so', async (t) => {
  const harness = await startHttpHarness(t);
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  t.deepEqual(await (await post(harness, ping)).json(), { jsonrpc: '2.0', id: 1, result: {} });
  t.like(await (await post(harness, ping, { Accept: 'text/event-stream' })).events().message(), { id: 1, result: {} });
  for (const message of [notification('notifications/initialized'), cancellation(1)]) {
    t.is((await post(harness, message)).status, 202);
  }
  for (const method of ['resources/subscribe', 'logging/setLevel', 'tasks/list', 'vendor/anything']) {
    const answer = await post(harness, { jsonrpc: '2.0', id: 5, method, params: {} });
    t.is(answer.status, 400);
    t.like(await answer.json<RpcBody>(), { id: 5, error: { data: { bridge: { reason: 'ERR_SESSION_MISSING' } } } });
  }
  t.is((await post(harness, call(1), { 'MCP-Protocol-Version': '1999-01-01' })).status, 400);
  t.like(await (await post(harness, { ...call(6), params: [1] })).json<RpcBody>(), { id: 6, error: { code: -32602 } });
  t.is(harness.server.connections.length, 0);
});

test('two clients with the same id get an answer each, and one that leaves has withdrawn its call', async (t) => {
  const harness = await startHttpHarness(t);
  const first = post(harness, call(1, 'first'));
  const firstLink = await nextCall(harness, 1);
  const second = post(harness, call(1, 'second'));
  const secondLink = await nextCall(harness, 2);
  secondLink.answer(await secondLink.next('tools/call'), { content: ['second'] });
  firstLink.answer(await firstLink.next('tools/call'), { content: ['first'] });
  t.deepEqual((await (await first).json<RpcBody>()).result, { content: ['first'] });
  t.deepEqual((await (await second).json<RpcBody>()).result, { content: ['second'] });
  const leaving = new AbortController();
  const left = callHttp({
    port: harness.port,
    method: 'POST',
    headers: POST_HEADERS,
    body: textOf(call(1)),
    signal: leaving.signal,
  });
  const link = await nextCall(harness, 3);
  await link.next('tools/call');
  leaving.abort();
  await t.throwsAsync(left);
  await link.next('notifications/cancelled');
});

test('observers see a client of the legacy era and its revision', async (t) => {
  const calls: ObservedCall[] = [];
  const observer: Observer = {
    seesCalls: true,
    opened: (opened) => void calls.push(opened),
    connected: () => undefined,
    refused: () => {},
    used: () => {},
  };
  const harness = await startHttpHarness(t, { observer });
  const pending = post(harness, call(1), { 'MCP-Protocol-Version': '2025-06-18' });
  const link = await nextCall(harness, 1);
  link.answer(await link.next('tools/call'));
  await pending;
  t.like(calls[0]?.client, { era: 'legacy', revision: '2025-06-18', transport: 'streamable-http', name: undefined });
});

test('equal copies of MCP-Protocol-Version and of a session id are one, and different ones are refused', async (t) => {
  const harness = await startHttpHarness(t);
  const pending = post(harness, call(1), { 'MCP-Protocol-Version': '2025-06-18, 2025-06-18' });
  const link = await nextCall(harness, 1);
  link.answer(await link.next('tools/call'));
  t.is((await pending).status, 200);
  t.is((await post(harness, call(1), { 'MCP-Protocol-Version': '2025-06-18, 2025-11-25' })).status, 400);
  t.is((await post(harness, call(1), { 'Mcp-Session-Id': 'a, a' })).status, 404);
});
