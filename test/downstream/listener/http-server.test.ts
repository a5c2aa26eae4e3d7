import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { get } from 'node:https';
import { text } from 'node:stream/consumers';
import test from 'ava';
import type { HttpRoute } from '../../../src/downstream/listener/http-server.ts';
import { BridgeError } from '../../../src/errors.ts';
import { callHttp } from '../../support/http-call.ts';
import { fixtureCertificate, seriousLines, startHttpHarness } from '../../support/http-harness.ts';
import { call, notification, openInitializedSse, openStreamable, POST_HEADERS } from '../../support/legacy-clients.ts';
import { ownPort } from '../../support/own-port.ts';
import { RawSocket } from '../../support/raw-socket.ts';
import { waitFor } from '../../support/wait-for.ts';

test('answers what is no HTTP with 400 and closes the connection', async (t) => {
  const { port } = await startHttpHarness(t);
  const socket = await RawSocket.connect(port);
  socket.write('NONSENSE\r\n\r\n');
  t.regex(await socket.all(), /^HTTP\/1\.1 400 Bad Request\r\n/);
});

test('answers a head that is too large with 431 and closes the connection', async (t) => {
  const { port } = await startHttpHarness(t);
  const socket = await RawSocket.connect(port);
  socket.request('GET', '/mcp', { 'X-Long': 'x'.repeat(20_000) });
  t.regex(await socket.all(), /^HTTP\/1\.1 431 /);
});

test('writes nothing into a stream when its connection goes on with nonsense', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  const socket = (await RawSocket.connect(harness.port)).read();
  socket.request('GET', '/mcp', { Accept: 'text/event-stream', 'Mcp-Session-Id': session.id });
  await socket.until(/X-Accel-Buffering/);
  socket.write('NONSENSE\r\n\r\n');
  t.notRegex(await socket.all(), /400 Bad Request/);
});

test('survives connections that are reset at any moment', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const body = JSON.stringify(call(1));
  const cut = [
    { method: 'POST', headers: { ...POST_HEADERS, 'Mcp-Session-Id': session.id, 'Content-Length': '1000' } },
    { method: 'POST', headers: { ...POST_HEADERS, 'Mcp-Session-Id': session.id, 'Content-Length': `${body.length}` } },
    { method: 'GET', headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': session.id } },
  ];
  for (const { method, headers } of cut) {
    const socket = await RawSocket.connect(harness.port);
    socket.request(method, '/mcp', headers, method === 'POST' ? body : '');
    if (method === 'GET') await socket.read().until(/200 OK/);
    socket.socket.resetAndDestroy();
  }
  await waitFor(() => harness.logLines.filter((line) => line.includes('"method":"GET"')).length === 1);
  t.is((await session.post(notification('notifications/x'))).status, 202);
});

test('serves a connection again after refusing its request unread', async (t) => {
  const { port } = await startHttpHarness(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const ports = new Set<number | undefined>();
  const post = (path: string, body: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const sent = request({ port, host: '127.0.0.1', method: 'POST', path, agent }, (response) => {
        ports.add(response.socket.localPort);
        response.resume().on('end', () => resolve(response.statusCode));
      });
      sent.on('error', reject).end(body);
    });
  t.is(await post('/nowhere', 'x'.repeat(300_000)), 404);
  t.is(await post('/mcp', 'x'.repeat(300_000)), 415);
  t.is(ports.size, 1);
});

test('a fault in serving one request ends that one with 500, and nobody else’s', async (t) => {
  const fails: HttpRoute = () => {
    throw new Error('a fault of ours');
  };
  const failsLate: HttpRoute = (_request, response) => {
    response.writeHead(200).write('begun');
    throw new Error('a fault of ours');
  };
  const publicRoutes = new Map([
    ['/fails', fails],
    ['/fails-late', failsLate],
  ]);
  const harness = await startHttpHarness(t, { publicRoutes });
  const session = await openStreamable(harness);
  t.is((await callHttp({ port: harness.port, path: '/fails' })).status, 500);
  await t.throwsAsync(callHttp({ port: harness.port, path: '/fails-late' }));
  t.is((await session.post(notification('notifications/x'))).status, 202);
  t.is(seriousLines(harness).filter((line) => line.includes('failed to serve a request')).length, 2);
});

test('a refusal is kept by no cache for others, and its words are taken for no page', async (t) => {
  const { port } = await startHttpHarness(t);
  for (const call of [
    { path: '/<script>alert(1)</script>' },
    { headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': 'unknown' } },
  ]) {
    const answer = await callHttp({ port, ...call });
    t.is(answer.status, 404);
    t.is(answer.headers['cache-control'], 'no-store');
    t.is(answer.headers['content-type'], 'application/json');
    t.is(answer.headers['x-content-type-options'], 'nosniff');
  }
});

test('speaks TLS with the certificate it is given', async (t) => {
  const ca = readFileSync(new URL('../../fixtures/tls/ca.pem', import.meta.url));
  const { port } = await startHttpHarness(t, { certificate: fixtureCertificate() });
  const body = await new Promise<string>((resolve, reject) => {
    const options = { host: 'localhost', port, path: '/healthz', ca, family: 4, agent: false };
    get(options, (response) => resolve(text(response))).on('error', reject);
  });
  t.is(body, '{"status":"ok"}');
  await t.throwsAsync(callHttp({ port, path: '/healthz' }), undefined, 'and nothing else');
});

test('says which port is taken and what to do', async (t) => {
  const harness = await startHttpHarness(t);
  const second = startHttpHarness(t, { port: harness.port });
  const error = await t.throwsAsync(second, { instanceOf: BridgeError });
  t.is(error.code, 'ERR_CONFIG_LISTEN');
  t.regex(error.message, new RegExp(`Port ${harness.port} on 127.0.0.1 is in use.*--port 0`));
});

test('says that an address is none of this machine’s', async (t) => {
  const error = await t.throwsAsync(startHttpHarness(t, { host: '192.0.2.7' }), { instanceOf: BridgeError });
  t.is(error.code, 'ERR_CONFIG_LISTEN');
  t.regex(error.message, /192\.0\.2\.7 is no address of this machine; use --host/);
});

test('logs each request with its path but neither query, headers nor body', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openInitializedSse(harness);
  await session.post(call('secret-id', 'secret-tool'));
  await waitFor(() => harness.logLines.filter((line) => line.includes('"path":"/messages"')).length === 2);
  const log = harness.logLines.join('');
  t.notRegex(log, /secret|sessionId=/);
  const id = session.endpoint.split('=')[1] ?? '';
  t.false(log.includes(id), 'a whole session id lets anybody in');
});

test('takes no new connections once it has stopped accepting, while open calls finish', async (t) => {
  const harness = await startHttpHarness(t, { port: await ownPort() });
  const session = await openStreamable(harness);
  const pending = session.post(call(1));
  const open = await session.connection.next('tools/call');
  harness.http.stopAccepting();
  await t.throwsAsync(callHttp({ port: harness.port, path: '/healthz' }), { code: 'ECONNREFUSED' });
  session.connection.answer(open);
  t.is((await pending).status, 200);
});

test('closes connections that carry nothing when it stops accepting, the others when they are done', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const idle = await RawSocket.connect(harness.port);
  idle.request('GET', '/healthz', {});
  await idle.read().until(/\{"status":"ok"\}/);
  const busy = await RawSocket.connect(harness.port);
  busy.request('POST', '/mcp', { ...POST_HEADERS, 'Mcp-Session-Id': session.id }, JSON.stringify(call(1)));
  const open = await session.connection.next('tools/call');
  harness.http.stopAccepting();
  await idle.all();
  t.false(busy.isClosed);
  session.connection.answer(open);
  t.regex(await busy.all(), /"result"/, 'its keep-alive must not outlive the last answer');
});

test('sends the whole of what was answered before it stopped, however late it is read', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.scripts.set('tools/call', (asked, connection) =>
    connection.answer(asked, { text: 'x'.repeat(900_000) }),
  );
  const session = await openStreamable(harness);
  const socket = await RawSocket.connect(harness.port);
  // More than the system's buffers take, each answer by itself less.
  const count = 12;
  for (let id = 1; id <= count; id += 1) {
    socket.request('POST', '/mcp', { ...POST_HEADERS, 'Mcp-Session-Id': session.id }, JSON.stringify(call(id)));
  }
  const isAnswered = (line: string): boolean => line.includes('"method":"POST"');
  await waitFor(() => session.connection.received.length === count + 1 && harness.logLines.some(isAnswered));
  for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
  harness.http.stopAccepting();
  t.is((await socket.all()).match(/"id":\d+,"result"/g)?.length, count);
});

test('cuts what is still connected when it is closed; closing twice is closing', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openInitializedSse(harness);
  harness.http.close();
  harness.http.close();
  t.is(await session.stream.closed, 'cut');
  await waitFor(() => session.connection.closedFor);
});

test('drains: refuses new sessions and calls with 503 and in-band errors, answers the open ones', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const pending = session.post(call(1));
  const open = await session.connection.next('tools/call');
  const drained = harness.sessions.drain(60_000);
  t.like(await (await session.post(call(2))).json(), {
    id: 2,
    error: { data: { bridge: { reason: 'ERR_SESSION_CLOSED' } } },
  });
  const refused = await callHttp({ port: harness.port, path: '/sse' });
  t.is(refused.status, 503);
  t.is(refused.headers['retry-after'], '1');
  session.connection.answer(open, { ok: true });
  t.like(await (await pending).json(), { id: 1, result: { ok: true } });
  harness.clock.advance(1000);
  await drained;
});
