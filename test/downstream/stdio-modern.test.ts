import { Writable } from 'node:stream';
import test from 'ava';
import { levels } from 'pino';
import { BridgeError } from '../../src/errors.ts';
import { ENVELOPE, type Message, modern, openEndpoint } from './stdio-endpoint.ts';

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
const DEBUG = levels.values.debug as number;
const EXITED = new BridgeError('ERR_UPSTREAM_EXITED', 'it exited');

function line(message: object): string {
  return JSON.stringify({ jsonrpc: '2.0', ...message });
}

const LISTEN = modern('sub', 'subscriptions/listen', { notifications: { toolsListChanged: true } });

test('messages of the modern era pass in both directions with their bytes untouched', async (t) => {
  const { server, say, nextLine } = openEndpoint(t);
  const meta = `{"${VERSION_KEY}":"2026-07-28" ,"${CAPABILITIES_KEY}":{"x":1.0},"progressToken":"p\\u00e9"}`;
  const call = `{"params":{"_meta":${meta},"n":1e2},"id":"a\\/b","method":"tools/call","jsonrpc":"2.0"}`;
  say(call);
  const request = await server.latest.next('tools/call');
  t.is(request.bytes.toString(), call);
  const canceled = `{"method":"notifications/cancelled","params":{"reason":"é","requestId":"c" },"jsonrpc":"2.0"}`;
  say(modern('c', 'tools/call'));
  say(canceled);
  t.is((await server.latest.next('notifications/cancelled')).bytes.toString(), canceled);
  for (const said of [
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.50,"progressToken":"p\\u00e9"}}',
    '{"result":{"resultType":"complete","big":12345678901234567890},"jsonrpc":"2.0","id":"a/b"}',
  ]) {
    server.latest.say(said);
    t.is(await nextLine(), said);
  }
});

test('all modern requests of a pipe share one connection, which is made with the first of them', async (t) => {
  const { server, sessions, say } = openEndpoint(t);
  t.is(server.connections.length, 0);
  say(modern(1, 'server/discover'));
  say(modern(2, 'tools/list'));
  say(modern(3, 'x-vendor/other'));
  await server.latest.next('x-vendor/other');
  t.deepEqual(server.contexts, [{ principal: 'stdio', headers: undefined }]);
  t.is(sessions.size, 1);
});

for (const [title, params, code, message] of [
  ['without the capabilities', { _meta: { [CAPABILITIES_KEY]: undefined } }, -32602, CAPABILITIES_KEY],
  ['with an ill-typed revision', { _meta: { [VERSION_KEY]: 1 } }, -32602, VERSION_KEY],
  ['of an unknown revision', { _meta: { [VERSION_KEY]: '2099-01-01' } }, -32022, 'revision'],
] as const) {
  test(`a modern request ${title} is refused on the pipe, and the next one is served`, async (t) => {
    const { server, say, next } = openEndpoint(t);
    say(modern('x', 'tools/list', params));
    const { id, error } = await next();
    t.is(id, 'x');
    t.is(error?.code, code);
    t.true(error?.message.includes(message), error?.message);
    t.is(server.connections.length, 0, 'no server is started for it');
    say(modern('y', 'tools/list'));
    await server.latest.next('tools/list');
  });
}

test('an unknown revision is answered with those that are spoken here', async (t) => {
  const { say, next } = openEndpoint(t);
  say(modern(1, 'server/discover', { _meta: { [VERSION_KEY]: '2099-01-01' } }));
  t.deepEqual((await next()).error?.data, { supported: ['2026-07-28'], requested: '2099-01-01' });
});

for (const method of ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'tasks/list']) {
  test(`${method} with an envelope is no method of the modern era`, async (t) => {
    const { server, say, next } = openEndpoint(t);
    say(modern(1, method));
    t.like(await next(), { id: 1, error: { code: -32601 } });
    t.is(server.connections.length, 0);
  });
}

test('after a cancellation no line says anything of that call', async (t) => {
  const { server, say, next, lines } = openEndpoint(t);
  say(modern(1, 'tools/call', { _meta: { progressToken: 'p' } }));
  const request = await server.latest.next('tools/call');
  say({ method: 'notifications/cancelled', params: { requestId: 1 } });
  await server.latest.next('notifications/cancelled');
  server.latest.notify('notifications/progress', { progressToken: 'p', progress: 1 });
  server.latest.answer(request);
  say(modern(2, 'tools/list'));
  server.latest.answer(await server.latest.next('tools/list'));
  t.is((await next()).id, 2);
  t.deepEqual(lines, []);
});

test('a cancellation that says itself it is modern is one, too', async (t) => {
  const { server, say } = openEndpoint(t);
  say(modern(1, 'tools/call'));
  await server.latest.next('tools/call');
  say({ method: 'notifications/cancelled', params: { requestId: 1, _meta: ENVELOPE } });
  await server.latest.next('notifications/cancelled');
  t.pass();
});

test('a notification without an envelope is of the era its client speaks', async (t) => {
  const { server, say } = openEndpoint(t);
  say(modern(1, 'tools/list'));
  await server.latest.next('tools/list');
  say({ method: 'notifications/acme' });
  await server.latest.next('notifications/acme');
  t.is(server.connections.length, 1);
});

test('a modern notification before any request goes nowhere', async (t) => {
  const { server, say, next } = openEndpoint(t);
  say({ method: 'notifications/cancelled', params: { requestId: 1, _meta: ENVELOPE } });
  say(modern(1, 'ping'));
  await next();
  t.is(server.connections.length, 0);
});

test('requests of a modern server never reach the client, and responses of the client never the server', async (t) => {
  const { entries, server, say, next } = openEndpoint(t);
  say(modern(1, 'tools/call'));
  const request = await server.latest.next('tools/call');
  server.latest.ask('q', 'sampling/createMessage', {});
  say({ id: 'q', result: {} });
  say(modern(2, 'tools/list'));
  await server.latest.next('tools/list');
  server.latest.answer(request);
  t.is((await next()).id, 1);
  t.deepEqual(server.latest.answers, []);
  t.true(entries.some(({ msg, method }) => /ignored/.test(msg) && method === 'sampling/createMessage'));
  t.true(entries.some(({ msg, kind }) => /dropped/.test(msg) && kind === 'result'));
});

test('a subscription brings its acknowledgment and changes, and both signs of its end when the server answers it', async (t) => {
  const { server, say, nextLine, next, lines } = openEndpoint(t);
  say(LISTEN);
  const request = await server.latest.next('subscriptions/listen');
  const _meta = { [SUBSCRIPTION_ID]: 'sub' };
  for (const said of [
    line({ method: 'notifications/subscriptions/acknowledged', params: { _meta, notifications: {} } }),
    line({ method: 'notifications/tools/list_changed', params: { _meta } }),
  ]) {
    server.latest.say(said);
    t.is(await nextLine(), said);
  }
  server.latest.answer(request, { resultType: 'complete', _meta });
  t.deepEqual(await next(), { jsonrpc: '2.0', id: 'sub', result: { resultType: 'complete', _meta } } as Message);
  t.like(await next(), { method: 'notifications/cancelled', params: { requestId: 'sub' } });
  server.latest.notify('notifications/cancelled', { requestId: 'sub' });
  say(modern(1, 'ping'));
  t.is((await next()).id, 1);
  t.deepEqual(lines, [], 'the client is told once');
});

test('a subscription that its server refuses has never been one', async (t) => {
  const { server, say, next, lines } = openEndpoint(t);
  say(LISTEN);
  server.latest.refuse(await server.latest.next('subscriptions/listen'), -32603, 'too many');
  t.like(await next(), { id: 'sub', error: { message: 'too many' } });
  say(modern(1, 'ping'));
  t.is((await next()).id, 1);
  t.deepEqual(lines, []);
});

test('a subscription that its server cancels ends with that', async (t) => {
  const { server, sessions, say, nextLine } = openEndpoint(t);
  say(LISTEN);
  await server.latest.next('subscriptions/listen');
  const end = line({ method: 'notifications/cancelled', params: { reason: 'bye', requestId: 'sub' } });
  server.latest.say(end);
  t.is(await nextLine(), end);
  await sessions.drain(1000);
});

test('the end of input lets calls finish and ends subscriptions, with the result first', async (t) => {
  const { deps, entries, server, sessions, endpoint, input, say, next } = openEndpoint(t);
  say(LISTEN);
  say(modern(2, 'tools/call'));
  const request = await server.latest.next('tools/call');
  input.end();
  t.deepEqual(await endpoint.ended, { kind: 'input' });
  const drained = sessions.drain(1000);
  t.like(await next(), { id: 'sub', result: { resultType: 'complete', _meta: { [SUBSCRIPTION_ID]: 'sub' } } });
  t.like(await next(), { method: 'notifications/cancelled', params: { requestId: 'sub' } });
  t.like((await server.latest.next('notifications/cancelled')).json(), { params: { requestId: 'sub' } });
  server.latest.answer(request, { resultType: 'complete' });
  t.like(await next(), { id: 2, result: { resultType: 'complete' } });
  deps.clock.advance(20);
  await drained;
  sessions.close(new BridgeError('ERR_SESSION_CLOSED', 'over'));
  t.is(server.latest.closedFor?.code, 'ERR_SESSION_CLOSED');
  const told = entries.filter(({ level, msg }) => level > DEBUG && msg.includes('connects anew'));
  t.deepEqual(told, [], 'there is no next request');
});

test('a server that ends fails what is open; the pipe goes on, and the next request connects anew', async (t) => {
  const { server, sessions, endpoint, say, next } = openEndpoint(t);
  say(modern(1, 'tools/call'));
  say(LISTEN);
  await server.latest.next('subscriptions/listen');
  server.latest.die(EXITED);
  t.like(await next(), { id: 1, error: { code: -32603, message: 'it exited' } });
  t.like(await next(), { id: 'sub', error: { code: -32603 } });
  t.is(sessions.size, 0);
  say(modern(1, 'tools/call'));
  t.is(server.connections.length, 2);
  server.latest.answer(await server.latest.next('tools/call'), { resultType: 'complete' });
  t.like(await next(), { id: 1, result: { resultType: 'complete' } });
  t.is(await Promise.race([endpoint.ended, 'goes on']), 'goes on');
});

test('a server that cannot be reached is an answer to the request, and the client may try again', async (t) => {
  const { server, say, next } = openEndpoint(t);
  server.refusal = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such program');
  say(modern(1, 'server/discover'));
  t.like(await next(), { id: 1, error: { code: -32603, message: 'no such program' } });
  server.refusal = undefined;
  say(modern(2, 'server/discover'));
  await server.latest.next('server/discover');
  t.pass();
});

test('an id that is in use is refused while its call is open, and free again afterward', async (t) => {
  const { server, say, next } = openEndpoint(t);
  say(modern(1, 'tools/call'));
  const request = await server.latest.next('tools/call');
  say(modern(1, 'tools/list'));
  t.like(await next(), { id: 1, error: { code: -32600 } });
  server.latest.answer(request);
  t.like(await next(), { id: 1, result: {} });
  say(modern(1, 'tools/list'));
  await server.latest.next('tools/list');
});

test('a client that does not read stops its modern server, which goes on when it reads again', async (t) => {
  const held: (() => void)[] = [];
  const output = new Writable({ highWaterMark: 1024, write: (_chunk, _encoding, done) => void held.push(done) });
  const { server, say } = openEndpoint(t, { output });
  say(modern(1, 'tools/call', { _meta: { progressToken: 1 } }));
  await server.latest.next('tools/call');
  const params = { progressToken: 1, progress: 1, message: 'x'.repeat(2000) };
  for (let sent = 0; sent < 100; sent += 1) server.latest.notify('notifications/progress', params);
  t.true(server.latest.isPaused);
  while (held.length > 0 || server.latest.isPaused) {
    for (const done of held.splice(0)) done();
    await new Promise(setImmediate);
  }
  t.false(server.latest.isPaused);
});
