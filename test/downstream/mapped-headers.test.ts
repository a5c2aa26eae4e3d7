import test, { type ExecutionContext } from 'ava';
import { FakeObserver } from '../support/calls.ts';
import { callHttp, type HttpAnswer } from '../support/http-call.ts';
import { type HttpHarness, startHttpHarness } from '../support/http-harness.ts';
import { call, initialize, POST_HEADERS } from '../support/legacy-clients.ts';
import { RawSocket } from '../support/raw-socket.ts';

type HeaderValues = Readonly<Record<string, string>>;

const startHarness = (t: ExecutionContext) =>
  startHttpHarness(t, {
    mapHeaders: [
      { header: 'x-user', variable: 'USER_ENV' },
      { header: 'x-team', variable: 'TEAM' },
    ],
  });

function post(harness: HttpHarness, headers: HeaderValues, body: object = initialize()): Promise<HttpAnswer> {
  const options = { port: harness.port, method: 'POST', headers: { ...POST_HEADERS, ...headers } };
  return callHttp({ ...options, body: JSON.stringify(body) });
}

const environments = (harness: HttpHarness) => harness.server.connections.map(({ environment }) => environment);

test('the process of a session is told what the headers of its caller say, and no other', async (t) => {
  const harness = await startHarness(t);
  await post(harness, { 'X-User': 'alice', 'X-Team': 'tools', 'X-Other': 'x' });
  await post(harness, { 'X-User': 'bob & "co" $HOME; rm' });
  await post(harness, {});
  await post(harness, { 'X-User': '' });
  t.deepEqual(environments(harness), [
    { USER_ENV: 'alice', TEAM: 'tools' },
    { USER_ENV: 'bob & "co" $HOME; rm' },
    {},
    {},
  ]);
});

test('the process of an HTTP+SSE session is told, too', async (t) => {
  const harness = await startHarness(t);
  const stream = await callHttp({ port: harness.port, path: '/sse', headers: { 'X-User': 'alice' } });
  t.deepEqual(environments(harness), [{ USER_ENV: 'alice' }]);
  stream.leave();
});

test('values that are long, not printable, or there twice are refused, and not repeated', async (t) => {
  const harness = await startHarness(t);
  const wrong: readonly Record<string, string | string[]>[] = [
    { 'X-User': 'x'.repeat(1025) },
    { 'X-User': 'tab\tzzz' },
    { 'X-User': 'caf\u00e9' },
    { 'X-User': ['admin', 'alice'] },
  ];
  for (const headers of wrong) {
    const answer = await post(harness, headers as HeaderValues);
    t.is(answer.status, 400);
    const text = await answer.text();
    t.regex(text, /ERR_HTTP_HEADER/);
    t.false(/xxx|zzz|caf|admin|alice/.test(text));
  }
  t.is(harness.server.connections.length, 0);
  t.is((await post(harness, { 'X-User': 'x'.repeat(1024) })).status, 200);
});

test('a header that is there twice is refused behind a thousand others, too', async (t) => {
  const harness = await startHarness(t);
  // What a client sends, and what its proxy adds.
  const body = JSON.stringify(initialize());
  const head = Object.entries({ Host: '127.0.0.1', ...POST_HEADERS, 'Content-Length': String(body.length) });
  const filler = Array.from({ length: 1000 }, () => ['a', 'b'] as const);
  const lines = [...head, ['X-User', 'admin'], ...filler, ['X-User', 'alice']].map((line) => `${line.join(': ')}\r\n`);
  const socket = await RawSocket.connect(harness.port);
  t.teardown(() => socket.destroy());
  socket.read().write(`POST /mcp HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
  t.regex(await socket.until(/\r\n\r\n/), /^HTTP\/1\.1 400 /);
  t.is(harness.server.connections.length, 0);
});

test('a session belongs to the values it was opened with: with others it does not exist', async (t) => {
  const harness = await startHarness(t);
  harness.server.scripts.set('tools/call', (request, connection) => connection.answer(request));
  const opened = await post(harness, { 'X-User': 'alice' });
  const session = { 'Mcp-Session-Id': String(opened.headers['mcp-session-id']) };
  t.is((await post(harness, { ...session, 'X-User': 'alice' }, call(1))).status, 200);
  for (const other of [{ 'X-User': 'bob' }, {}, { 'X-User': 'alice', 'X-Team': 'x' }, { 'X-Team': 'alice' }]) {
    t.is((await post(harness, { ...session, ...(other as HeaderValues) }, call(2))).status, 404);
  }
});

test('without --map-header processes are told nothing', async (t) => {
  const harness = await startHttpHarness(t);
  await post(harness, { 'X-User': 'alice' });
  t.deepEqual(environments(harness), [undefined]);
});

test('what headers say of a caller is in nothing that an observer is told', async (t) => {
  const observer = new FakeObserver();
  const mapHeaders = [{ header: 'x-user', variable: 'USER_ENV' }];
  const harness = await startHttpHarness(t, { mapHeaders, observer });
  harness.server.scripts.set('tools/call', (request, connection) => connection.answer(request));
  const secret = 'hunter2-hunter2';
  const answer = await post(harness, { 'X-User': secret });
  const session = String(answer.headers['mcp-session-id']);
  await post(harness, { 'X-User': secret, 'Mcp-Session-Id': session }, call(1));
  const stream = await callHttp({ port: harness.port, path: '/sse', headers: { 'X-User': secret } });
  t.true(observer.calls.length > 0);
  t.false(JSON.stringify([observer.calls, observer.clients, observer.refusals]).includes('hunter2'));
  t.false(harness.logLines.join('').includes('hunter2'));
  stream.leave();
});
