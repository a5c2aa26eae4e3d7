import { PassThrough, type Readable, Writable } from 'node:stream';
import test from 'ava';
import { MAX_COLLECTED_BYTES } from '../../../src/downstream/batch.ts';
import { BridgeError } from '../../../src/errors.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import { waitFor } from '../../support/wait-for.ts';
import { type Message, openEndpoint } from '../stdio-endpoint.ts';

test('carries messages in both directions with their bytes untouched', async (t) => {
  const { server, say, nextLine, handshake } = openEndpoint(t);
  await handshake();
  const line = '{"params":{"n":1.0,"u":"\\u00e9"},"id":"a\\/b","method":"x/custom","jsonrpc":"2.0"}';
  say(line);
  const request = await server.latest.next('x/custom');
  t.is(request.bytes.toString(), line);
  const answer = '{"result":{"big":12345678901234567890},"jsonrpc":"2.0","id":"a/b"}';
  server.latest.say(answer);
  t.is(await nextLine(), answer);
});

test('a request of the server reaches the client and its answer the server', async (t) => {
  const { server, say, next, handshake } = openEndpoint(t);
  await handshake();
  server.latest.ask(7, 'roots/list');
  t.like(await next(), { id: 7, method: 'roots/list' });
  say({ id: 7, result: { roots: [] } });
  while (server.latest.answers.length === 0) await new Promise(setImmediate);
  t.is(server.latest.answers[0]?.id, 7);
});

test('a server that cannot be reached is an answer to initialize, and the client may try again', async (t) => {
  const { server, say, next, handshake } = openEndpoint(t);
  server.refusal = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such program');
  say({ id: 1, method: 'initialize', params: {} });
  t.like(await next(), { id: 1, error: { code: -32603, message: 'no such program' } });
  server.refusal = undefined;
  await handshake();
  t.pass();
});

test('a server that refuses initialize leaves the pipes usable', async (t) => {
  const { server, say, next, handshake } = openEndpoint(t);
  const { scripts } = server;
  const accept = scripts.get('initialize');
  scripts.set('initialize', (request, connection) => connection.refuse(request, -32602, 'not this version'));
  say({ id: 1, method: 'initialize', params: {} });
  t.like(await next(), { id: 1, error: { code: -32602, message: 'not this version' } });
  if (accept !== undefined) scripts.set('initialize', accept);
  await handshake();
  t.is(server.connections.length, 2);
});

test('a server that ends answers the open calls and ends the endpoint with its reason', async (t) => {
  const { server, endpoint, say, next, handshake } = openEndpoint(t);
  await handshake();
  say({ id: 2, method: 'tools/call', params: {} });
  await server.latest.next('tools/call');
  const reason = new BridgeError('ERR_UPSTREAM_EXITED', 'it exited');
  server.latest.die(reason);
  t.like(await next(), { id: 2, error: { code: -32603, message: 'it exited' } });
  t.deepEqual(await endpoint.ended, { kind: 'server', reason });
});

test('the end of input ends the endpoint; what was asked before is still answered', async (t) => {
  const { server, sessions, endpoint, input, say, next, handshake, deps } = openEndpoint(t);
  await handshake();
  say({ id: 2, method: 'tools/call', params: {} });
  const request = await server.latest.next('tools/call');
  input.end();
  t.deepEqual(await endpoint.ended, { kind: 'input' });
  const drained = sessions.drain(1000);
  server.latest.answer(request, { content: [] });
  t.like(await next(), { id: 2, result: { content: [] } });
  deps.clock.advance(20);
  await drained;
});

test('a last line without newline counts', async (t) => {
  const { input, next } = openEndpoint(t);
  input.end('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}');
  t.like(await next(), { id: 1, result: { protocolVersion: '2025-06-18' } });
});

test('output that nobody reads anymore ends the endpoint instead of the process', async (t) => {
  const output = new PassThrough();
  const { endpoint } = openEndpoint(t, { output });
  output.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
  t.deepEqual(await endpoint.ended, { kind: 'output' });
});

test('a client that does not read stops its server, which goes on when it reads again', async (t) => {
  const output = new Writable({ highWaterMark: 1024, write: (_chunk, _encoding, done) => void held.push(done) });
  const held: (() => void)[] = [];
  const { server, input } = openEndpoint(t, { output });
  input.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}\n');
  while (held.length === 0) await new Promise(setImmediate);
  for (let sent = 0; sent < 100; sent += 1) server.latest.notify('notifications/message', { data: 'x'.repeat(2000) });
  t.true(server.latest.isPaused);
  while (held.length > 0 || server.latest.isPaused) {
    for (const done of held.splice(0)) done();
    await new Promise(setImmediate);
  }
  t.false(server.latest.isPaused);
});

test('a server that does not read is told no more until it does', async (t) => {
  const { server, input, say, handshake } = openEndpoint(t);
  await handshake();
  server.latest.isFull = true;
  say({ id: 2, method: 'tools/call', params: {} });
  await server.latest.next('tools/call');
  const { length } = server.latest.received;
  say({ id: 3, method: 'tools/list' });
  await drained(input);
  t.is(server.latest.received.length, length);
  server.latest.isFull = false;
  server.latest.drain();
  await server.latest.next('tools/list');
});

test('the end of input is seen behind what waits for a server, and all of it is taken before', async (t) => {
  const { server, input, say, endpoint, handshake } = openEndpoint(t);
  await handshake();
  server.latest.isFull = true;
  say({ id: 2, method: 'tools/call', params: {} });
  await server.latest.next('tools/call');
  say({ id: 3, method: 'tools/list' });
  input.end('{"jsonrpc":"2.0","id":4,"method":"prompts/list"}');
  await endpoint.clientGone;
  t.is(await Promise.race([endpoint.ended, 'goes on']), 'goes on');
  server.latest.isFull = false;
  server.latest.drain();
  await server.latest.next('tools/list');
  await server.latest.next('prompts/list');
  t.deepEqual(await endpoint.ended, { kind: 'input' });
});

test('after the end of input questions to the client are refused, so that its call can be answered', async (t) => {
  const { server, input, say, next, endpoint, handshake } = openEndpoint(t);
  await handshake();
  say({ id: 2, method: 'tools/call', params: {} });
  const request = await server.latest.next('tools/call');
  server.latest.ask('before', 'sampling/createMessage');
  t.like(await next(), { id: 'before' });
  input.end();
  await endpoint.ended;
  server.latest.ask('after', 'elicitation/create');
  const answers = server.latest.answers.map((answer) => answer.json());
  t.like(answers, [{ id: 'before' }, { id: 'after' }]);
  for (const answer of answers) t.like(answer, { error: { data: { bridge: { reason: 'ERR_CLIENT_NO_STREAM' } } } });
  server.latest.answer(request, { content: [] });
  t.like(await next(), { id: 2, result: { content: [] } }, 'it was not asked once more');
});

test('an answer that waits behind what a server has yet to take is no end of answers', async (t) => {
  const { server, input, say, next, endpoint, handshake } = openEndpoint(t);
  await handshake();
  server.latest.isFull = true;
  say({ id: 2, method: 'tools/call', params: {} });
  await server.latest.next('tools/call');
  server.latest.ask('question', 'sampling/createMessage');
  t.like(await next(), { id: 'question' });
  say({ id: 'question', result: { role: 'assistant' } });
  input.end();
  await endpoint.clientGone;
  t.deepEqual(server.latest.answers, []);
  server.latest.isFull = false;
  server.latest.drain();
  await endpoint.ended;
  t.like(
    server.latest.answers.map((answer) => answer.json()),
    [{ id: 'question', result: { role: 'assistant' } }],
  );
});

test('bad lines are refused where somebody can be answered, and disturb nothing', async (t) => {
  const { say, next, handshake } = openEndpoint(t);
  await handshake();
  say('this is no message');
  say('{"jsonrpc":"1.0","id":5,"method":"x"}');
  t.like(await next(), { id: 5, error: { code: -32600 } });
  say({ id: 6, method: 'initialize', params: { protocolVersion: '2025-06-18' } });
  t.like(await next(), { id: 6 });
});

test('a message over the limit fails alone and says so', async (t) => {
  const { say, next, handshake } = openEndpoint(t, { maxMessageBytes: 4096 });
  await handshake();
  say({ id: 9, method: 'tools/call', params: { text: 'x'.repeat(10_000) } });
  const refusal = await next();
  t.like(refusal, { id: 9, error: { code: -32600 } });
  t.regex(refusal.error?.message ?? '', /--max-message-bytes/);
});

test('arrays are answered with an array in 2025-03-26', async (t) => {
  const { server, say, next, nextLine, handshake } = openEndpoint(t);
  await handshake('2025-03-26');
  say('[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":2,"method":"b"}]');
  const [a, b] = [await server.latest.next('a'), await server.latest.next('b')];
  server.latest.answer(b, { which: 'b' });
  server.latest.notify('notifications/message', { progressToken: 1, progress: 1 });
  t.like(await next(), { method: 'notifications/message' });
  server.latest.answer(a, { which: 'a' });
  const answers = JSON.parse(await nextLine()) as Message[];
  t.deepEqual(
    answers.map(({ id }) => id),
    [2, 1],
  );
});

test('answers that may not wait for the others of their array are sent before them as one, and none is lost', async (t) => {
  const { server, say, nextLine, lines, handshake } = openEndpoint(t);
  await handshake('2025-03-26');
  const call = (id: string) => `{"jsonrpc":"2.0","id":"${id}","method":"${id}"}`;
  say(`[${['a', 'b', 'c', 'd'].map(call)}]`);
  say(`[${['e', 'f'].map(call)}]`);
  const requests = [];
  for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) requests.push(await server.latest.next(id));
  const [a, b, c, d, e, f] = requests as [Frame, Frame, Frame, Frame, Frame, Frame];
  const half = { text: 'x'.repeat(MAX_COLLECTED_BYTES / 2) };
  const nextIds = async () => (JSON.parse(await nextLine()) as Message[]).map(({ id }) => id);

  server.latest.answer(a, {});
  server.latest.answer(e, half);
  // The arrays of a pipe share the budget: this one leaves with what its own array has there.
  server.latest.answer(b, half);
  t.deepEqual(await nextIds(), ['a', 'b']);
  t.deepEqual(lines, []);
  server.latest.answer(c, {});
  server.latest.answer(f, half);
  t.deepEqual(await nextIds(), ['e', 'f']);
  // What has been sent frees capacity.
  server.latest.answer(d, half);
  t.deepEqual(await nextIds(), ['c', 'd']);
});

test('answers that wait for the others of their array leave when those are withdrawn, and their capacity is free again', async (t) => {
  const { server, say, nextLine, handshake } = openEndpoint(t);
  await handshake('2025-03-26');
  const most = { text: 'x'.repeat(MAX_COLLECTED_BYTES - 100) };
  for (const [waits, withdrawn] of [
    ['a', 'b'],
    ['c', 'd'],
  ]) {
    say(`[{"jsonrpc":"2.0","id":"${waits}","method":"x"},{"jsonrpc":"2.0","id":"${withdrawn}","method":"y"}]`);
    const request = await server.latest.next('x');
    await server.latest.next('y');
    server.latest.answer(request, most);
    say({ id: 'behind', method: 'z' });
    server.latest.answer(await server.latest.next('z'), {});
    t.like(JSON.parse(await nextLine()), { id: 'behind' }, 'it could wait');
    say({ method: 'notifications/cancelled', params: { requestId: withdrawn } });
    t.like(JSON.parse(await nextLine()), [{ id: waits }]);
  }
});

const refusedArrays = [
  { title: 'in another revision', revision: '2025-06-18', second: 'tools/list' },
  { title: 'with initialize in it', revision: '2025-03-26', second: 'initialize' },
];

for (const { title, revision, second } of refusedArrays) {
  test(`an array ${title} is refused, each request of it by its id`, async (t) => {
    const { server, say, next, handshake } = openEndpoint(t);
    await handshake(revision);
    const request = '{"jsonrpc":"2.0","id":"a","method":"tools/list"}';
    const event = '{"jsonrpc":"2.0","method":"notifications/x"}';
    say(`[${request},${event},{"jsonrpc":"2.0","id":2,"method":"${second}"}]`);
    t.like(await next(), { id: 'a', error: { code: -32600 } });
    t.like(await next(), { id: 2, error: { code: -32600 } });
    t.is(server.latest.received.length, 2, 'the handshake and no more');
  });
}

/** All that was written to it has been read. */
async function drained(input: Readable): Promise<void> {
  await waitFor(() => input.readableLength === 0);
}
