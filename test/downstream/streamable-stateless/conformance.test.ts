import test, { type ExecutionContext } from 'ava';
import { callHttp, type HttpAnswer } from '../../support/http-call.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { type Headers, POST_HEADERS } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';
import {
  ENVELOPE,
  headersOf,
  META,
  type ModernMessage,
  modern,
  modernCall,
  nextCall,
  postBody,
  postModern,
  REVISION,
  type RpcBody,
} from './modern-posts.ts';

interface Expected {
  readonly status: number;
  readonly code: number;
  readonly id?: string | number;
  readonly way?: RegExp;
}

async function isRefused(t: ExecutionContext, answer: HttpAnswer, expected: Expected): Promise<RpcBody> {
  t.is(answer.status, expected.status);
  t.is(answer.headers['content-type'], 'application/json');
  t.is(answer.headers['mcp-session-id'], undefined);
  const body = await answer.json<RpcBody>();
  t.is(body.error?.code, expected.code);
  t.is(body.id, expected.id);
  if (expected.way !== undefined) t.regex(body.error?.message ?? '', expected.way);
  return body;
}

test('answers 405 with Allow to GET and DELETE without a session', async (t) => {
  const { port } = await startHttpHarness(t);
  const version = { 'MCP-Protocol-Version': REVISION };
  for (const [method, headers] of [
    ['GET', {}],
    ['GET', version],
    ['GET', { ...version, Accept: 'text/event-stream' }],
    ['DELETE', version],
    ['PUT', {}],
    ['PATCH', version],
  ] as const) {
    const answer = await callHttp({ port, method, headers });
    t.is(answer.status, 405, method);
    t.is(answer.headers.allow, 'GET, POST, DELETE');
  }
});

const faultyEnvelope = test.macro({
  title: (what = '') => `answers 400 and -32602 under the request’s id to ${what}`,
  async exec(t, params: object, way: RegExp) {
    const harness = await startHttpHarness(t);
    const message = {
      jsonrpc: '2.0' as const,
      id: 'f',
      method: 'tools/list',
      params: params as ModernMessage['params'],
    };
    await isRefused(t, await postModern(harness, message), { status: 400, code: -32602, id: 'f', way });
    t.is(harness.server.connections.length, 0, 'the server is not asked');
  },
});

test('a missing _meta', faultyEnvelope, {}, /protocolVersion.* is missing/);
test('a missing protocol version', faultyEnvelope, { _meta: { [`${META}clientCapabilities`]: {} } }, /protocolVersion/);
test(
  'missing client capabilities',
  faultyEnvelope,
  { _meta: { [`${META}protocolVersion`]: REVISION } },
  /clientCapabilities.* is missing/,
);
test(
  'client capabilities that are no object',
  faultyEnvelope,
  { _meta: { ...ENVELOPE, [`${META}clientCapabilities`]: 1 } },
  /clientCapabilities.* must be an object/,
);

test('takes a request without clientInfo', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.scripts.set('tools/list', (request, link) => link.answer(request, { tools: [] }));
  const answer = await postModern(harness, modern(1, 'tools/list', {}, { [`${META}clientInfo`]: undefined }));
  t.is(answer.status, 200);
  t.deepEqual(await answer.json(), { jsonrpc: '2.0', id: 1, result: { tools: [] } });
});

const headers = test.macro({
  title: (what = '') => what,
  async exec(t, message: ModernMessage, given: Headers, code: number | undefined) {
    const harness = await startHttpHarness(t);
    harness.server.scripts.set(message.method, (request, link) => link.answer(request, {}));
    const answer = await postModern(harness, message, given);
    if (code === undefined) return t.is(answer.status, 200);
    await isRefused(t, answer, { status: 400, code, id: message.id });
    t.is(harness.server.connections.length, 0, 'the server is not asked');
    return undefined;
  },
});

const listTools = modern(1, 'tools/list');
const named = (name: string) => ({ 'Mcp-Name': name });
const base64 = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`;

for (const [title, message, given, code] of [
  ['refuses a version header that differs from the body', listTools, { 'MCP-Protocol-Version': '2026-07-29' }, -32020],
  ['refuses a legacy version header above a modern body', listTools, { 'MCP-Protocol-Version': '2025-11-25' }, -32020],
  ['refuses a modern body without a version header', listTools, { 'MCP-Protocol-Version': undefined }, -32020],
  ['refuses a request without Mcp-Method', listTools, { 'Mcp-Method': undefined }, -32020],
  ['refuses a wrong Mcp-Method', listTools, { 'Mcp-Method': 'tools/call' }, -32020],
  ['takes header names in any case', listTools, { 'Mcp-Method': undefined, 'mcp-method': 'tools/list' }, undefined],
  ['refuses an Mcp-Method in the wrong case', listTools, { 'Mcp-Method': 'Tools/list' }, -32020],
  ['refuses a call without Mcp-Name', modernCall(2), { 'Mcp-Name': undefined }, -32020],
  ['refuses a wrong Mcp-Name', modernCall(2), named('play'), -32020],
  ['takes an Mcp-Name with blanks around it', modernCall(2), named('  work \t'), undefined],
  ['takes an Mcp-Name in Base64', modernCall(2, 'wörk'), named(base64('wörk')), undefined],
  ['refuses an Mcp-Name in broken Base64', modernCall(2, 'wörk'), named('=?base64?d8O2c?='), -32020],
  ['refuses an Mcp-Name that differs from the URI', modern(3, 'resources/read', { uri: 'a:1' }), named('a:2'), -32020],
] as const) {
  test(title, headers, message, given, code);
}

test('answers 400 and -32022 to a version nobody knows, with those that are served', async (t) => {
  const harness = await startHttpHarness(t);
  const message = modern(8, 'tools/list', {}, { [`${META}protocolVersion`]: 'v999' });
  const answer = await postModern(harness, message, { 'MCP-Protocol-Version': 'v999' });
  const { error } = await isRefused(t, answer, { status: 400, code: -32022, id: 8 });
  t.deepEqual(error?.data, { supported: [REVISION], requested: 'v999' });
});

for (const method of [
  'notifications/progress',
  'ping',
  'initialize',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'tasks/list',
  'tasks/result',
  'sampling/createMessage',
  'roots/list',
]) {
  test(`answers 404 and -32601 to ${method}, which modern clients do not ask`, async (t) => {
    const harness = await startHttpHarness(t);
    await isRefused(t, await postModern(harness, modern(1, method)), { status: 404, code: -32601, id: 1 });
    t.is(harness.server.connections.length, 0);
  });
}

for (const method of ['vendor/x', 'tools/unknown', 'resources/directory/read']) {
  test(`${method}, which no specification names, reaches the server, whose -32601 gets 404`, async (t) => {
    const harness = await startHttpHarness(t);
    harness.server.scripts.set(method, (request, link) => link.refuse(request, -32601, 'not known here'));
    const answer = await postModern(harness, modern(1, method));
    await isRefused(t, answer, { status: 404, code: -32601, id: 1, way: /^not known here$/ });
  });
}

test('answers 400 and -32600 to an array and to a response', async (t) => {
  const harness = await startHttpHarness(t);
  const version = { 'MCP-Protocol-Version': REVISION };
  const legacyCall = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  for (const [body, given] of [
    [[listTools], headersOf(listTools)],
    [[listTools], {}],
    [[legacyCall], version],
    [{ jsonrpc: '2.0', id: 1, result: {} }, version],
    [{ jsonrpc: '2.0', id: 1, error: { code: 1, message: 'no' } }, version],
  ] as const) {
    await isRefused(t, await postBody(harness, body, given), { status: 400, code: -32600 });
  }
});

test('ignores Mcp-Session-Id and Last-Event-ID, and gives neither session nor event ids', async (t) => {
  const harness = await startHttpHarness(t);
  const pending = postModern(harness, modernCall(1), { 'Mcp-Session-Id': 'none', 'Last-Event-ID': '1-1' });
  const link = await nextCall(harness, 1);
  link.notify('notifications/progress', { progressToken: 1, progress: 1 });
  const answer = await pending;
  t.is(answer.headers['mcp-session-id'], undefined);
  const events = answer.events();
  link.answer(await link.next('tools/call'));
  t.deepEqual(
    (await events.rest()).map(({ id }) => id),
    [undefined, undefined],
  );
  t.is(harness.sessions.size, 0);
});

test('answers 403 to a strange Origin and a strange Host before anything is read', async (t) => {
  const harness = await startHttpHarness(t);
  for (const strange of [{ Origin: 'https://evil.example.com' }, { Origin: 'null' }, { Host: 'evil.example.com' }]) {
    t.is((await postModern(harness, listTools, strange)).status, 403);
  }
  t.is(harness.server.connections.length, 0);
});

test('answers 202 without a body to notifications, and does nothing about them', async (t) => {
  const harness = await startHttpHarness(t);
  const pending = postModern(harness, modernCall(1));
  const link = await nextCall(harness, 1);
  const canceled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
  const enveloped = { ...canceled, params: { ...canceled.params, _meta: ENVELOPE } };
  for (const [body, given] of [
    [canceled, { 'MCP-Protocol-Version': REVISION }],
    [enveloped, {}],
    [{ ...enveloped, method: 'notifications/roots/list_changed' }, headersOf(listTools)],
  ] as const) {
    const answer = await postBody(harness, body, given);
    t.is(answer.status, 202);
    t.is(await answer.text(), '');
  }
  t.is(harness.server.connections.length, 1);
  link.answer(await link.next('tools/call'), { ok: true });
  t.deepEqual(await (await pending).json(), { jsonrpc: '2.0', id: 1, result: { ok: true } });
});

test('passes notifications that the specification does not know, whatever they are called', async (t) => {
  const harness = await startHttpHarness(t);
  for (const method of ['acme/told', 'notifications/acme', 'notifications/resources/moved']) {
    const answer = await postBody(harness, { jsonrpc: '2.0', method, params: { n: 1, _meta: ENVELOPE } }, {});
    t.is(answer.status, 202);
  }
  // [spec 2026-07-28 basic#meta] only requests must carry an envelope.
  const bare = { jsonrpc: '2.0', method: 'acme/bare' };
  t.is((await postBody(harness, bare, { 'MCP-Protocol-Version': REVISION })).status, 202);
  const [link] = harness.server.connections;
  await waitFor(() => link?.received.length === 4, { message: 'all notifications' });
  t.deepEqual(
    link?.received.map(({ method }) => method),
    ['acme/told', 'notifications/acme', 'notifications/resources/moved', 'acme/bare'],
  );
  t.is(harness.server.connections.length, 1);
});

test('the error of a tool comes with 200', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.scripts.set('tools/call', (request, link) => link.refuse(request, -32602, 'no such tool'));
  await isRefused(t, await postModern(harness, modernCall(1)), {
    status: 200,
    code: -32602,
    id: 1,
    way: /no such tool/,
  });
});

for (const [accept, status] of [
  [undefined, 200],
  ['application/json', 200],
  ['text/event-stream', 200],
  ['*/*', 200],
  ['text/html', 406],
] as const) {
  test(`answers ${status} to Accept: ${accept ?? '(none)'}`, async (t) => {
    const harness = await startHttpHarness(t);
    harness.server.scripts.set('tools/list', (request, link) => link.answer(request));
    t.is((await postModern(harness, listTools, { Accept: accept })).status, status);
  });
}

test('refuses what is no JSON, what is too large and what is of another type like any POST', async (t) => {
  const harness = await startHttpHarness(t, { maxMessageBytes: 2000 });
  const given = headersOf(listTools);
  await isRefused(t, await postBody(harness, '{', given), { status: 400, code: -32700 });
  await isRefused(t, await postBody(harness, 'x'.repeat(3000), given), { status: 413, code: -32600 });
  const typed = { ...given, ...POST_HEADERS, 'Content-Type': 'text/plain' };
  await isRefused(t, await postBody(harness, listTools, typed), { status: 415, code: -32000 });
});
