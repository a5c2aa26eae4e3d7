import test from 'ava';
import { startHttpHarness } from '../../support/http-harness.ts';
import { call, openStreamable } from '../../support/legacy-clients.ts';

const STREAM_FIRST = { Accept: 'text/event-stream, application/json' };

test('with --poll-after the connection of a long call is closed and its answer waits for the client to come back', async (t) => {
  const harness = await startHttpHarness(t, { pollAfterMs: 2000 });
  const session = await openStreamable(harness);
  const events = (await session.post(call(1), STREAM_FIRST)).events();
  const request = await session.connection.next('tools/call');
  const priming = await events.next();
  t.is(priming.data, '');
  t.is(events.retries.length, 1);
  harness.clock.advance(3000);
  t.is(await events.closed, 'ended');
  t.is(events.unread.length, 0);
  session.connection.answer(request, { done: true });
  const resumed = (await session.get({ 'Last-Event-ID': priming.id })).events();
  t.like(await resumed.message(), { id: 1, result: { done: true } });
  t.is(await resumed.closed, 'ended');
});

test('a client that came back in time gets the answer on its new connection', async (t) => {
  const harness = await startHttpHarness(t, { pollAfterMs: 2000 });
  const session = await openStreamable(harness);
  const events = (await session.post(call(1), STREAM_FIRST)).events();
  const request = await session.connection.next('tools/call');
  const priming = await events.next();
  harness.clock.advance(3000);
  await events.closed;
  const resumed = (await session.get({ 'Last-Event-ID': priming.id })).events();
  session.connection.answer(request);
  t.like(await resumed.message(), { id: 1 });
});

test('a client of an earlier revision keeps its connection: it would not come back', async (t) => {
  const harness = await startHttpHarness(t, { pollAfterMs: 2000 });
  const session = await openStreamable(harness, '2025-06-18');
  const events = (await session.post(call(1), STREAM_FIRST)).events();
  const request = await session.connection.next('tools/call');
  harness.clock.advance(10_000);
  session.connection.answer(request);
  t.like(await events.message(), { id: 1 });
});
