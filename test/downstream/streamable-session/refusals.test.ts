import { gzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { REVISION_IDS } from '../../../src/mcp/vocabulary/revisions.ts';
import { callHttp, type HttpAnswer } from '../../support/http-call.ts';
import { type HttpHarness, startHttpHarness } from '../../support/http-harness.ts';
import {
  call,
  type Headers,
  initialize,
  notification,
  openStreamable,
  POST_HEADERS,
} from '../../support/legacy-clients.ts';
import { RawSocket } from '../../support/raw-socket.ts';

interface RpcErrorBody {
  readonly jsonrpc: string;
  readonly id?: unknown;
  readonly error: { readonly code: number; readonly message: string; readonly data: { bridge: { reason: string } } };
}

interface Refusal {
  readonly status: number;
  readonly rpc: number;
  readonly reason: string;
  /** What the message must say, so that the reader knows what to do. */
  readonly way: RegExp;
  /** Left out: the body has no `id` member. */
  readonly id?: unknown;
}

async function isRefused(t: ExecutionContext, answer: HttpAnswer, expected: Refusal): Promise<void> {
  t.is(answer.status, expected.status);
  t.is(answer.headers['content-type'], 'application/json');
  t.is(answer.headers['mcp-session-id'], undefined);
  const body = await answer.json<RpcErrorBody>();
  t.is(body.jsonrpc, '2.0');
  t.deepEqual('id' in body ? body.id : undefined, expected.id);
  t.is('id' in body, expected.id !== undefined);
  t.is(body.error.code, expected.rpc);
  t.is(body.error.data.bridge.reason, expected.reason);
  t.regex(body.error.message, expected.way);
}

function post(harness: HttpHarness, body: string | Buffer, headers: Headers = {}): Promise<HttpAnswer> {
  return callHttp({ port: harness.port, method: 'POST', headers: { ...POST_HEADERS, ...headers }, body });
}

const unreadable = test.macro({
  title: (about = '') => `answers 400 to a body that is ${about}`,
  async exec(t, body: string | Buffer, expected: Omit<Refusal, 'status'>) {
    const harness = await startHttpHarness(t);
    const session = await openStreamable(harness);
    const isKnown = session.connection.received.length;
    await isRefused(t, await session.post(body), { status: 400, ...expected });
    t.is(session.connection.received.length, isKnown, 'nothing of it reached the server');
  },
});

const parse = { rpc: -32700, reason: 'ERR_WIRE_PARSE' };
const message = { rpc: -32600, reason: 'ERR_WIRE_MESSAGE' };
const batch = { rpc: -32600, reason: 'ERR_WIRE_BATCH' };

test('not JSON', unreadable, '{"jsonrpc":"2.0","id":1,', { ...parse, way: /not valid JSON.*post JSON in UTF-8/ });
test('empty', unreadable, '', { ...parse, way: /empty.*post JSON/ });
test('not UTF-8', unreadable, Buffer.from([0x7b, 0xff, 0x7d]), { ...parse, way: /not valid UTF-8.*post JSON/ });
test('no JSON-RPC message', unreadable, '{"id":7}', {
  ...message,
  way: /post a request, a notification or a response of JSON-RPC 2.0/,
  id: 7,
});
test('a plain value', unreadable, '"hello"', { ...message, way: /object/ });
test('a request with a null id', unreadable, '{"jsonrpc":"2.0","id":null,"method":"ping"}', { ...message, way: /id/ });
test('nested too deeply', unreadable, `${'['.repeat(2000)}${']'.repeat(2000)}`, { ...message, way: /deeper/ });
test('an array, outside 2025-03-26', unreadable, JSON.stringify([call(1)]), {
  ...batch,
  way: /send each message by itself/,
});

test('answers 400 to a second initialize in a session', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  await isRefused(t, await session.post(initialize('2025-11-25', 9)), {
    status: 400,
    ...message,
    way: /without Mcp-Session-Id/,
    id: 9,
  });
  t.is(harness.sessions.size, 1);
});

const notAcceptable = test.macro({
  title: (_, accept?: string) => `answers 406 to a POST whose Accept header is ${accept ?? 'missing'}`,
  async exec(t, accept: string | undefined) {
    const harness = await startHttpHarness(t);
    const answer = await post(harness, JSON.stringify(initialize()), { Accept: accept });
    await isRefused(t, answer, {
      status: 406,
      rpc: -32000,
      reason: 'ERR_HTTP_ACCEPT',
      way: /neither application\/json nor text\/event-stream; list both/,
    });
    t.is(harness.server.connections.length, 0);
  },
});

test(notAcceptable, 'text/html');
test(notAcceptable, 'application/json;q=0, text/event-stream;q=0');

test('answers 406 to a GET with a session that does not accept an event stream', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  await isRefused(t, await session.get({ Accept: 'application/json' }), {
    status: 406,
    rpc: -32000,
    reason: 'ERR_HTTP_ACCEPT',
    way: /text\/event-stream/,
  });
});

const wrongType = test.macro({
  title: (_, type?: string) => `answers 415 to a POST of ${type ?? 'no content type'}`,
  async exec(t, type: string | undefined) {
    const harness = await startHttpHarness(t);
    const answer = await post(harness, JSON.stringify(initialize()), { 'Content-Type': type });
    await isRefused(t, answer, {
      status: 415,
      rpc: -32000,
      reason: 'ERR_HTTP_CONTENT_TYPE',
      way: /Expected Content-Type: application\/json/,
    });
  },
});

test(wrongType, undefined);
test(wrongType, 'text/plain');
test(wrongType, 'application/x-www-form-urlencoded');

test('answers 415 to a POST of a compressed body, whether it is one or not', async (t) => {
  const harness = await startHttpHarness(t);
  const text = JSON.stringify(initialize());
  for (const body of [gzipSync(text), text]) {
    const expected = { status: 415, rpc: -32000, reason: 'ERR_HTTP_CONTENT_TYPE', way: /"gzip"; send it uncompressed/ };
    await isRefused(t, await post(harness, body, { 'Content-Encoding': 'gzip' }), expected);
  }
  t.is(harness.server.connections.length, 0);
});

test('takes a body that is as it is, whatever it is called', async (t) => {
  const harness = await startHttpHarness(t);
  for (const encoding of ['identity', 'Identity', '', 'utf-8', 'UTF8']) {
    const answer = await post(harness, JSON.stringify(initialize()), { 'Content-Encoding': encoding });
    t.is(answer.status, 200, encoding);
  }
});

test('takes a request whose headers clients and proxies have repeated', async (t) => {
  const harness = await startHttpHarness(t);
  const body = JSON.stringify(initialize());
  const socket = await RawSocket.connect(harness.port);
  t.teardown(() => socket.destroy());
  // The configuration of many clients names the type once more, in other letters than the client itself.
  const lines = [
    'Host: localhost',
    'Content-Type: application/json',
    'content-type: application/json; charset=utf-8',
    'Accept: application/json',
    'Accept: text/event-stream',
    'X-Forwarded-For: 10.0.0.1',
    'X-Forwarded-For: 10.0.0.2',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Proto: http',
    'Via: 1.1 a',
    'Via: 1.1 b',
    'Cookie: a=1',
    'Cookie: b=2',
    'User-Agent: a',
    'User-Agent: b',
    `Content-Length: ${body.length}`,
  ];
  socket.read().write(`POST /mcp HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
  t.regex(await socket.until(/\r\n\r\n/), /^HTTP\/1\.1 200 /);
});

test('takes a content type with parameters', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  const answer = await session.post(notification('notifications/x'), {
    'Content-Type': 'Application/JSON; charset=utf-8',
  });
  t.is(answer.status, 202);
});

const tooLarge = test.macro({
  title: (how = '') => `answers 413 to a body over the limit ${how}, which the client can read`,
  async exec(t, transfer: Headers) {
    const harness = await startHttpHarness(t, { maxMessageBytes: 1000 });
    const body = JSON.stringify({ ...initialize(), padding: 'x'.repeat(500_000) });
    const length = transfer['Transfer-Encoding'] === undefined ? { 'Content-Length': String(body.length) } : {};
    await isRefused(t, await post(harness, body, { ...transfer, ...length }), {
      status: 413,
      rpc: -32600,
      reason: 'ERR_WIRE_FRAME_TOO_LARGE',
      way: /larger than 1000 bytes.*--max-message-bytes/,
    });
    t.is(harness.server.connections.length, 0);
  },
});

test('with its length declared', tooLarge, {});
test('with chunks', tooLarge, { 'Transfer-Encoding': 'chunked' });

test('takes a body of exactly the limit', async (t) => {
  const body = JSON.stringify(initialize());
  const harness = await startHttpHarness(t, { maxMessageBytes: body.length });
  t.is((await post(harness, body)).status, 200);
});

test('answers 404 to an unknown path and names those that are served', async (t) => {
  const { port } = await startHttpHarness(t);
  await isRefused(t, await callHttp({ port, path: '/mpc?x=1' }), {
    status: 404,
    rpc: -32000,
    reason: 'ERR_HTTP_PATH',
    way: /"\/mpc"; try \/mcp, \/sse, \/messages/,
  });
});

const wrongMethod = test.macro({
  title: (_, method: string) => `answers 405 to ${method} and says in Allow what is served`,
  async exec(t, method: string) {
    const { port } = await startHttpHarness(t);
    const answer = await callHttp({ port, method });
    t.is(answer.headers.allow, 'GET, POST, DELETE');
    await isRefused(t, answer, { status: 405, rpc: -32000, reason: 'ERR_HTTP_METHOD', way: /GET.*POST.*DELETE/ });
  },
});

test(wrongMethod, 'PUT');
test(wrongMethod, 'PATCH');

test('answers 405 to a GET that has no session and wants no event stream', async (t) => {
  const { port } = await startHttpHarness(t);
  const answer = await callHttp({ port, headers: { Accept: 'application/json' } });
  t.is(answer.status, 405);
  t.is(answer.headers.allow, 'GET, POST, DELETE');
});

test('answers 400 to a message that needs a session and names none, and says how to get one', async (t) => {
  const harness = await startHttpHarness(t);
  const expected = { status: 400, rpc: -32000, reason: 'ERR_SESSION_MISSING', way: /send initialize first/ };
  const setLevel = { jsonrpc: '2.0', id: 4, method: 'logging/setLevel', params: { level: 'info' } };
  await isRefused(t, await post(harness, JSON.stringify(setLevel)), { ...expected, id: 4 });
  const removed = /Mcp-Session-Id header is missing; if the client sends it, a proxy on the way removes it\./;
  await isRefused(t, await post(harness, JSON.stringify(setLevel)), { ...expected, way: removed, id: 4 });
  await isRefused(t, await post(harness, '{"jsonrpc":"2.0","id":1,"result":{}}'), expected);
  await isRefused(t, await callHttp({ port: harness.port, method: 'DELETE' }), expected);
});

test('answers 404 to an unknown session id so that the client opens a new session', async (t) => {
  const harness = await startHttpHarness(t);
  const gone = { 'Mcp-Session-Id': 'no-such-session' };
  const expected = { status: 404, rpc: -32001, reason: 'ERR_SESSION_UNKNOWN', way: /new one with initialize/ };
  const { port } = harness;
  await isRefused(t, await post(harness, JSON.stringify(call(5)), gone), { ...expected, id: 5 });
  await isRefused(t, await callHttp({ port, headers: { Accept: 'text/event-stream', ...gone } }), expected);
  await isRefused(t, await callHttp({ port, method: 'DELETE', headers: gone }), expected);
});

test('opens a session for initialize although it names one that is gone', async (t) => {
  const harness = await startHttpHarness(t);
  const answer = await post(harness, JSON.stringify(initialize()), { 'Mcp-Session-Id': 'no-such-session' });
  t.is(answer.status, 200);
  t.truthy(answer.headers['mcp-session-id']);
});

test('answers 400 to a protocol version nobody knows, with those that are served', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  const expected = {
    status: 400,
    rpc: -32000,
    reason: 'ERR_UNSUPPORTED_REVISION',
    way: new RegExp(REVISION_IDS.join(', ')),
  };
  const unknown = { 'MCP-Protocol-Version': '2031-01-01' };
  await isRefused(t, await session.post(call(6), unknown), { ...expected, id: 6 });
  await isRefused(t, await session.get(unknown), expected);
  await isRefused(t, await session.delete(unknown), expected);
});

test('takes a message with any supported protocol version and with none', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  for (const revision of [...REVISION_IDS, undefined]) {
    const answer = await session.post(notification('notifications/x'), { 'MCP-Protocol-Version': revision });
    t.is(answer.status, 202, String(revision));
  }
});

test('answers 503 with Retry-After when all sessions are in use, and disturbs nobody', async (t) => {
  const harness = await startHttpHarness(t, { maxSessions: 1 });
  const session = await openStreamable(harness);
  await session.get();
  const answer = await post(harness, JSON.stringify(initialize()));
  t.is(answer.headers['retry-after'], '30');
  await isRefused(t, answer, {
    status: 503,
    rpc: -32000,
    reason: 'ERR_SESSION_LIMIT',
    way: /DELETE.*--max-sessions/,
    id: 0,
  });
  t.is((await session.post(notification('notifications/x'))).status, 202);
  await session.delete();
  t.is((await post(harness, JSON.stringify(initialize()))).status, 200);
});
