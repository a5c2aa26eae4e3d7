/** Both eras on one pipe: each message says itself which one it is of. */
import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import type { FakeConnection } from '../support/fake-server.ts';
import { waitFor } from '../support/wait-for.ts';
import { type ContextServer, type Message, modern, openEndpoint } from './stdio-endpoint.ts';

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const REASON = new BridgeError('ERR_UPSTREAM_EXITED', 'it exited');

/** The connections of the two eras. */
function connectionsOf({ connections, contexts }: ContextServer): { legacy: FakeConnection; modern: FakeConnection } {
  const legacy = connections.find((_, n) => contexts[n] === undefined);
  const modernOne = connections.findLast((_, n) => contexts[n] !== undefined);
  if (legacy === undefined || modernOne === undefined) throw new Error('not both eras are connected');
  return { legacy, modern: modernOne };
}

/** A client that has made the handshake and has asked something in the modern era. */
async function openBoth(t: Parameters<typeof openEndpoint>[0]) {
  const endpoint = openEndpoint(t);
  await endpoint.handshake();
  endpoint.say(modern('modern', 'tools/call'));
  const connections = connectionsOf(endpoint.server);
  const call = await connections.modern.next('tools/call');
  return { ...endpoint, ...connections, call };
}

test('discover and initialize in one breath are both answered', async (t) => {
  const { server, say, next } = openEndpoint(t);
  server.scripts.set('server/discover', (request, connection) =>
    connection.answer(request, { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: {} }),
  );
  const discover = { jsonrpc: '2.0', ...modern('probe', 'server/discover') };
  const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25' } };
  say(`${JSON.stringify(discover)}\n${JSON.stringify(initialize)}`);
  const answers = new Map([await next(), await next()].map((answer) => [answer.id, answer]));
  t.like(answers.get('probe'), { result: { supportedVersions: ['2026-07-28'] } });
  t.like(answers.get(0), { result: { protocolVersion: '2025-11-25' } });
  t.deepEqual(server.contexts, [{ principal: 'stdio', headers: undefined }, undefined]);
  say({ method: 'notifications/initialized' });
  say({ id: 1, method: 'tools/list' });
  await connectionsOf(server).legacy.next('tools/list');
});

test('each message goes to the server of its era', async (t) => {
  const { say, legacy, modern: other } = await openBoth(t);
  say({ id: 1, method: 'tools/list' });
  say(modern(2, 'tools/list'));
  say({ method: 'notifications/roots/list_changed' });
  await legacy.next('notifications/roots/list_changed');
  t.deepEqual(
    legacy.received.map(({ method }) => method),
    ['initialize', 'notifications/initialized', 'tools/list', 'notifications/roots/list_changed'],
  );
  t.deepEqual(
    other.received.map(({ method }) => method),
    ['tools/call', 'tools/list'],
  );
});

test('a key of _meta that is reserved but not the revision makes no message modern', async (t) => {
  const { say, legacy } = await openBoth(t);
  say({ id: 1, method: 'tools/call', params: { _meta: { 'io.modelcontextprotocol/related-task': { taskId: 'x' } } } });
  await legacy.next('tools/call');
  t.pass();
});

test('a cancellation without an envelope goes where its call is', async (t) => {
  const { say, legacy, modern: other } = await openBoth(t);
  say({ id: 'legacy', method: 'tools/call' });
  await legacy.next('tools/call');
  say({ method: 'notifications/cancelled', params: { requestId: 'modern' } });
  say({ method: 'notifications/cancelled', params: { requestId: 'legacy' } });
  const [there, here] = [await other.next('notifications/cancelled'), await legacy.next('notifications/cancelled')];
  t.like(there.json(), { params: { requestId: 'modern' } });
  t.like(here.json(), { params: { requestId: 'legacy' } });
  t.is(legacy.received.filter(({ method }) => method === 'notifications/cancelled').length, 1);
});

test('a modern client that leaves its envelope out is told which key is missing, as long as there is no session', async (t) => {
  const { server, say, next, handshake } = openEndpoint(t);
  say(modern(1, 'tools/list'));
  await server.latest.next('tools/list');
  for (const method of ['tools/list', 'ping', 'server/discover']) {
    say({ id: 2, method });
    const { id, error } = await next();
    t.is(id, 2);
    t.is(error?.code, -32602);
    t.true(error?.message.includes(VERSION_KEY));
  }
  t.is(server.connections.length, 1);
  await handshake();
  say({ id: 3, method: 'ping' });
  await server.latest.next('ping');
});

test('it is told so even after its server has ended', async (t) => {
  const { server, say, next } = openEndpoint(t);
  say(modern(1, 'tools/list'));
  await server.latest.next('tools/list');
  server.latest.die(REASON);
  await next();
  say({ id: 2, method: 'tools/list' });
  t.like(await next(), { id: 2, error: { code: -32602 } });
});

test('a client whose modern requests were all refused is served as legacy without more ado', async (t) => {
  const { server, say, next } = openEndpoint(t);
  say(modern(1, 'server/discover', { _meta: { [VERSION_KEY]: '2099-01-01' } }));
  t.like(await next(), { error: { code: -32022 } });
  say({ id: 2, method: 'ping' });
  await server.latest.next('ping');
  t.deepEqual(server.contexts, [undefined]);
});

test('answers of the client go to the legacy server that has asked, and to nobody else', async (t) => {
  const { say, next, legacy, modern: other } = await openBoth(t);
  legacy.ask(7, 'roots/list');
  t.like(await next(), { id: 7, method: 'roots/list' });
  say({ id: 7, result: { roots: [] } });
  say({ id: 7, result: { roots: [] } });
  say({ id: 8, method: 'tools/list' });
  await legacy.next('tools/list');
  t.is(legacy.answers.length, 1);
  t.is(other.answers.length, 0);
});

test('an id cannot be open in both eras at once', async (t) => {
  const { say, next, legacy, modern: other, call } = await openBoth(t);
  say({ id: 'modern', method: 'tools/list' });
  const refusal = await next();
  t.like(refusal, { id: 'modern', error: { code: -32600 } });
  t.regex(refusal.error?.message ?? '', /another era/);
  say({ id: 1, method: 'tools/call' });
  await legacy.next('tools/call');
  say(modern(1, 'tools/list'));
  t.like(await next(), { id: 1, error: { code: -32600 } });
  other.answer(call);
  t.like(await next(), { id: 'modern', result: {} });
  say({ id: 'modern', method: 'tools/list' });
  await legacy.next('tools/list');
  say(modern('1', 'tools/list'));
  await other.next('tools/list');
});

test('the end of the modern server leaves the session alone', async (t) => {
  const { endpoint, say, next, legacy, modern: other } = await openBoth(t);
  other.die(REASON);
  t.like(await next(), { id: 'modern', error: { message: 'it exited' } });
  say({ id: 1, method: 'tools/list' });
  legacy.answer(await legacy.next('tools/list'));
  t.like(await next(), { id: 1, result: {} });
  t.is(await Promise.race([endpoint.ended, 'goes on']), 'goes on');
});

test('the end of the session ends the pipe, as its client cannot be told otherwise, but modern calls are answered', async (t) => {
  const { deps, endpoint, sessions, next, legacy, modern: other, call } = await openBoth(t);
  legacy.die(REASON);
  t.deepEqual(await endpoint.ended, { kind: 'server', reason: REASON });
  const drained = sessions.drain(1000);
  other.answer(call, { resultType: 'complete' });
  t.like(await next(), { id: 'modern', result: { resultType: 'complete' } });
  deps.clock.advance(20);
  await drained;
});

test('the end of input lets the calls of both eras finish', async (t) => {
  const { deps, endpoint, input, say, sessions, next, legacy, modern: other, call } = await openBoth(t);
  say({ id: 1, method: 'tools/call' });
  const request = await legacy.next('tools/call');
  input.end();
  await endpoint.ended;
  const drained = sessions.drain(1000);
  other.answer(call);
  t.is((await next()).id, 'modern');
  legacy.answer(request);
  t.is((await next()).id, 1);
  deps.clock.advance(20);
  await drained;
});

test('input is taken again only when neither server is full', async (t) => {
  const { input, say, legacy, modern: other } = await openBoth(t);
  for (const connection of [legacy, other]) connection.isFull = true;
  // In one chunk: what has been read when the first server is full is still passed on.
  say(['{"jsonrpc":"2.0","id":1,"method":"a"}', JSON.stringify({ jsonrpc: '2.0', ...modern(2, 'b') })].join('\n'));
  await other.next('b');
  say({ id: 3, method: 'c' });
  await waitFor(() => input.readableLength === 0);
  const { length } = legacy.received;
  legacy.drain();
  await new Promise(setImmediate);
  t.is(legacy.received.length, length);
  other.die(REASON);
  // A server that is gone holds nothing back.
  await legacy.next('c');
});

test('an array with a modern message is refused, each request of it by its id', async (t) => {
  const { server, say, next, handshake } = openEndpoint(t);
  await handshake('2025-03-26');
  const legacy = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const event = { jsonrpc: '2.0', method: 'notifications/x' };
  say(JSON.stringify([legacy, event, { jsonrpc: '2.0', ...modern('m', 'tools/list') }]));
  t.like(await next(), { id: 1, error: { code: -32600 } });
  t.like(await next(), { id: 'm', error: { code: -32600 } });
  t.is(server.latest.received.length, 2, 'the handshake and no more');
});

test('in an array, too, an id that is open in the modern era is refused', async (t) => {
  const { server, say, nextLine, handshake } = openEndpoint(t);
  await handshake('2025-03-26');
  say(modern(1, 'tools/call'));
  const { legacy } = connectionsOf(server);
  say('[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]');
  legacy.answer(await legacy.next('b'));
  const answers = JSON.parse(await nextLine()) as Message[];
  t.like(answers, [
    { id: 1, error: { code: -32600 } },
    { id: 2, result: {} },
  ]);
});
