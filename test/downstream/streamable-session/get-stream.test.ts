import test from 'ava';
import { MAX_WAITING, NO_STREAM_GRACE_MS } from '../../../src/downstream/streamable-session/undelivered-queue.ts';
import { callHttp } from '../../support/http-call.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { call, openStreamable } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';

const CHANGED = 'notifications/tools/list_changed';
const STREAM_FIRST = { Accept: 'text/event-stream, application/json' };

test('sends what belongs to no call on the GET stream, also while a call runs', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  const stream = (await session.get()).events();
  const pending = session.post(call(1));
  const request = await session.connection.next('tools/call');
  session.connection.notify(CHANGED);
  session.connection.notify('notifications/custom', { x: 1 });
  session.connection.answer(request);
  t.is((await pending).headers['content-type'], 'application/json');
  t.like(await stream.message(), { method: CHANGED });
  t.like(await stream.message(), { method: 'notifications/custom' });
});

test('what the server asks during a call goes on that call’s response, and on the GET stream when there is none', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  const stream = (await session.get()).events();
  const pending = session.post(call(1));
  const request = await session.connection.next('tools/call');
  session.connection.ask('during', 'roots/list');
  const response = (await pending).events();
  t.like(await response.message(), { id: 'during', method: 'roots/list' });
  session.connection.answer(request);
  t.is(await response.closed, 'ended');
  session.connection.ask('unasked', 'roots/list');
  t.like(await stream.message(), { id: 'unasked', method: 'roots/list' });
  t.deepEqual(stream.unread, []);
});

test('replaces an open GET stream by a new one and sends each message on the new one only', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  const old = (await session.get()).events();
  session.connection.notify(CHANGED);
  await old.next();
  const fresh = (await session.get()).events();
  t.is(await old.closed, 'ended');
  session.connection.notify(CHANGED);
  t.like(await fresh.message(), { method: CHANGED });
  t.deepEqual(old.unread, []);
  t.deepEqual(fresh.unread, []);
});

test('keeps “look again” for the next GET stream, each once, in order', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  for (let round = 0; round < 3; round += 1) {
    session.connection.notify(CHANGED);
    session.connection.notify('notifications/resources/updated', { uri: 'a:1' });
    session.connection.notify('notifications/resources/updated', { uri: 'a:2' });
  }
  const stream = (await session.get()).events();
  const told = [await stream.message(), await stream.message(), await stream.message()];
  t.deepEqual(told, [
    { jsonrpc: '2.0', method: CHANGED },
    { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a:1' } },
    { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a:2' } },
  ]);
  session.connection.notify('notifications/last');
  t.like(await stream.message(), { method: 'notifications/last' });
});

test('“look again” does not make a call’s JSON answer a stream', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  const pending = session.post(call(1));
  const request = await session.connection.next('tools/call');
  session.connection.notify(CHANGED);
  session.connection.answer(request);
  t.is((await pending).headers['content-type'], 'application/json');
});

test('keeps messages for a client whose GET stream was cut until it opens the next', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  const stream = (await session.get()).events();
  stream.leave();
  await waitFor(() => harness.logLines.some((line) => line.includes('"method":"GET"')));
  session.connection.notify(CHANGED);
  t.like(await (await session.get()).events().message(), { method: CHANGED });
});

test('tells the server after 10 s that a request found no stream to go on', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  session.connection.ask('q', 'roots/list');
  harness.clock.advance(NO_STREAM_GRACE_MS - 1000);
  t.deepEqual(session.connection.answers, []);
  harness.clock.advance(1000);
  t.like(session.connection.answers[0]?.json(), {
    id: 'q',
    error: { code: -32603, data: { bridge: { reason: 'ERR_CLIENT_NO_STREAM' } } },
  });
  t.is(NO_STREAM_GRACE_MS, 10_000);
  const stream = (await session.get()).events();
  session.connection.notify('notifications/after');
  t.deepEqual((await stream.next()).data, '', 'the priming event');
  t.like(await stream.message(), { method: 'notifications/after' });
});

test('sends a waiting request on the GET stream that opens in time', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  session.connection.ask('q', 'roots/list');
  harness.clock.advance(NO_STREAM_GRACE_MS - 1000);
  const stream = (await session.get()).events();
  t.like(await stream.message(), { id: 'q', method: 'roots/list' });
  await session.post({ jsonrpc: '2.0', id: 'q', result: { roots: [] } });
  harness.clock.advance(NO_STREAM_GRACE_MS);
  t.deepEqual(
    session.connection.answers.map((frame) => frame.kind),
    ['result'],
  );
});

test('sends a waiting request on the next call’s response when no GET stream opens', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  session.connection.ask('q', 'roots/list');
  session.connection.notify(CHANGED);
  const events = (await session.post(call(1))).events();
  t.like(await events.message(), { id: 'q' });
  session.connection.answer(await session.connection.next('tools/call'));
  t.like(await events.message(), { id: 1 });
  t.like(await (await session.get()).events().message(), { method: CHANGED });
});

test('asks on a connected call rather than on one that has lost its connection', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  const connected = (await session.post(call(1), STREAM_FIRST)).events();
  await session.connection.next('tools/call');
  const lost = (await session.post(call(2), STREAM_FIRST)).events();
  await session.connection.next('tools/call');
  lost.leave();
  await waitFor(() => harness.logLines.filter((line) => line.includes('"method":"POST"')).length === 2);
  session.connection.ask('q', 'elicitation/create');
  session.connection.notify('notifications/custom');
  t.like(await connected.message(), { id: 'q' });
  t.like(await connected.message(), { method: 'notifications/custom' });
});

test('tells the server when every call on which it could ask has lost its connection', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  const lost = (await session.post(call(1), STREAM_FIRST)).events();
  await session.connection.next('tools/call');
  lost.leave();
  await waitFor(() => harness.logLines.filter((line) => line.includes('"method":"POST"')).length === 2);
  session.connection.ask('q', 'elicitation/create');
  harness.clock.advance(NO_STREAM_GRACE_MS);
  t.like(session.connection.answers[0]?.json(), { id: 'q', error: { code: -32603 } });
});

test('a GET without a session opens HTTP+SSE, for old clients given this URL', async (t) => {
  const harness = await startHttpHarness(t);
  const answer = await callHttp({ port: harness.port, headers: { Accept: 'text/event-stream' } });
  const { event, data } = await answer.events().next();
  t.is(event, 'endpoint');
  t.regex(data, /^\/messages\?sessionId=/);
});

test('tells the server at once when a request is too big to wait for a stream', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  const prompt = 'x'.repeat(700_000);
  session.connection.ask(1, 'sampling/createMessage', { prompt });
  session.connection.ask(2, 'sampling/createMessage', { prompt });
  t.deepEqual(
    session.connection.answers.map((frame) => frame.id),
    [2],
  );
  t.like(session.connection.answers[0]?.json(), { error: { data: { bridge: { reason: 'ERR_CLIENT_NO_STREAM' } } } });
});

test('logs how many notifications were lost when a stream opens at last', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  for (let count = 0; count < MAX_WAITING + 3; count += 1) session.connection.notify('notifications/x', { count });
  const lost = (): readonly string[] => harness.logLines.filter((line) => line.includes('"dropped":3'));
  t.is(lost().length, 0);
  const stream = (await session.get()).events();
  await stream.next();
  t.like(await stream.message(), { params: { count: 3 } });
  t.is(lost().length, 1);
});
