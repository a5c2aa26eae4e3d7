import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { REPLAY_LIMITS } from '../../../src/downstream/streamable-session/replay-buffer.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import type { EventReader, ReceivedEvent } from '../../support/event-reader.ts';
import { type HttpHarness, type HttpHarnessOptions, startHttpHarness } from '../../support/http-harness.ts';
import { call, cancellation, openStreamable, type StreamableSession } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';

const STREAM_FIRST = { Accept: 'text/event-stream, application/json' };

/** The bridge has noticed that this many responses are over. */
async function closedResponses(harness: HttpHarness, method: 'GET' | 'POST', count: number): Promise<void> {
  const isClosed = (line: string): boolean => line.includes(`"method":"${method}"`);
  await waitFor(() => harness.logLines.filter(isClosed).length >= count, { message: `${count} closed ${method}s` });
}

function numbers(events: readonly ReceivedEvent[]): readonly unknown[] {
  return events.map(({ data }) => {
    const { params, id } = JSON.parse(data) as { params?: { progress: number }; id?: number };
    return params?.progress ?? `answer ${id}`;
  });
}

interface BrokenCall {
  readonly harness: HttpHarness;
  readonly session: StreamableSession;
  readonly request: Frame;
  /** The last event the client saw: progress 1. */
  readonly lastEventId: string;
  progress(progress: number): void;
}

/** A call whose response broke after its first event, with another call beside it. */
async function breakCall(
  t: ExecutionContext,
  { revision = '2025-06-18', ...options }: HttpHarnessOptions & { readonly revision?: string } = {},
): Promise<BrokenCall> {
  const harness = await startHttpHarness(t, options);
  const session = await openStreamable(harness, revision);
  const { connection } = session;
  const events = (await session.post(call(1, 'work', { progressToken: 'one' }), STREAM_FIRST)).events();
  const request = await connection.next('tools/call');
  const other = (await session.post(call(2, 'work', { progressToken: 'two' }), STREAM_FIRST)).events();
  const progress = (value: number, progressToken = 'one'): void =>
    connection.notify('notifications/progress', { progressToken, progress: value });
  progress(1);
  progress(901, 'two');
  const seen = await lastOf(events);
  events.leave();
  await closedResponses(harness, 'POST', 2);
  progress(902, 'two');
  await waitFor(() => other.unread.length >= 2);
  return { harness, session, request, lastEventId: seen.id ?? '', progress };
}

/** Skips a priming event. */
async function lastOf(events: EventReader): Promise<ReceivedEvent> {
  const event = await events.next();
  return event.data === '' ? events.next() : event;
}

test('replays what a running call’s broken stream missed, only that, and goes on with it', async (t) => {
  const { session, request, lastEventId, progress } = await breakCall(t);
  progress(2);
  progress(3);
  const answer = await session.get({ 'Last-Event-ID': lastEventId });
  t.is(answer.status, 200);
  const events = answer.events();
  progress(4);
  session.connection.answer(request);
  t.deepEqual(numbers(await events.rest()), [2, 3, 4, 'answer 1']);
});

test('replays the rest of a call that was answered meanwhile, and ends', async (t) => {
  const { session, request, lastEventId, progress } = await breakCall(t);
  progress(2);
  session.connection.answer(request);
  const first = (await session.get({ 'Last-Event-ID': lastEventId })).events();
  t.deepEqual(numbers(await first.rest()), [2, 'answer 1']);
  const again = (await session.get({ 'Last-Event-ID': lastEventId })).events();
  t.deepEqual(numbers(await again.rest()), [2, 'answer 1'], 'until it is too old');
});

test('replays nothing to a client that missed nothing, and ends if the call has ended', async (t) => {
  const { session, request, lastEventId } = await breakCall(t);
  session.connection.answer(request);
  const events = await (await session.get({ 'Last-Event-ID': lastEventId })).events().rest();
  const done = (await session.get({ 'Last-Event-ID': events.at(-1)?.id ?? '' })).events();
  t.deepEqual(await done.rest(), []);
});

test('resumes a GET stream where it broke and then sends what came while nobody was connected', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  const { connection } = session;
  const stream = (await session.get()).events();
  for (const progress of [1, 2, 3]) connection.notify('notifications/x', { progress });
  const { id } = await stream.next();
  await waitFor(() => stream.unread.length === 2);
  stream.leave();
  await closedResponses(harness, 'GET', 1);
  connection.notify('notifications/x', { progress: 4 });
  const resumed = (await session.get({ 'Last-Event-ID': id ?? '' })).events();
  connection.notify('notifications/x', { progress: 5 });
  await waitFor(() => resumed.unread.length === 4);
  t.deepEqual(numbers(resumed.unread), [2, 3, 4, 5]);
});

test('a client may resume several times; the newest connection carries the stream', async (t) => {
  const { session, request, lastEventId, progress } = await breakCall(t);
  const first = (await session.get({ 'Last-Event-ID': lastEventId })).events();
  progress(2);
  await first.next();
  const second = (await session.get({ 'Last-Event-ID': lastEventId })).events();
  t.is(await first.closed, 'ended');
  session.connection.answer(request);
  t.deepEqual(numbers(await second.rest()), [2, 'answer 1']);
  t.deepEqual(first.unread, []);
});

test('resumes from the priming event before any message came', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const events = (await session.post(call(1), STREAM_FIRST)).events();
  const request = await session.connection.next('tools/call');
  const { id, data } = await events.next();
  t.is(data, '');
  events.leave();
  await closedResponses(harness, 'POST', 2);
  session.connection.answer(request);
  t.deepEqual(numbers(await (await session.get({ 'Last-Event-ID': id ?? '' })).events().rest()), ['answer 1']);
});

test('a question asked while its call has no connection comes after what the client missed', async (t) => {
  const { session, lastEventId, progress } = await breakCall(t);
  // Without the other call's response to ask on.
  await session.post(cancellation(2));
  progress(2);
  session.connection.ask('q', 'elicitation/create');
  progress(3);
  const events = (await session.get({ 'Last-Event-ID': lastEventId })).events();
  t.deepEqual(numbers([await events.next(), await events.next()]), [2, 3]);
  t.like(await events.message(), { id: 'q' });
});

const unresumable = test.macro({
  title: (_, id: string) => `answers 400, not 404, to a Last-Event-ID of ${id.slice(0, 10)} that was never given out`,
  async exec(t, id: string) {
    const { session } = await breakCall(t);
    const answer = await session.get({ 'Last-Event-ID': id });
    t.is(answer.status, 400);
    const body = await answer.json();
    t.false('id' in body);
    t.like(body, { error: { code: -32000, data: { bridge: { reason: 'ERR_HTTP_RESUME' } } } });
    t.regex((body.error as { message: string }).message, /without Last-Event-ID/);
  },
});

test(unresumable, 'garbage');
test(unresumable, '1');
test(unresumable, '1-');
test(unresumable, '-1-2');
test(unresumable, '99-1');
test(unresumable, '99-0');
test(unresumable, '0-0');
test(unresumable, '0-7');
test(unresumable, '2-0');
test(unresumable, '2-999');
test(unresumable, `1-${'9'.repeat(400)}`);

test('answers 400 to an event id that has become too old', async (t) => {
  const { harness, session, lastEventId, progress } = await breakCall(t);
  progress(2);
  await setImmediate();
  harness.clock.advance(REPLAY_LIMITS.maxAgeMs + 1000);
  progress(3);
  t.is((await session.get({ 'Last-Event-ID': lastEventId })).status, 400);
});

test('answers 400 to an event id when more has followed than is kept', async (t) => {
  const { session, lastEventId, progress } = await breakCall(t);
  for (let value = 2; value < REPLAY_LIMITS.maxEvents + 3; value += 1) progress(value);
  t.is((await session.get({ 'Last-Event-ID': lastEventId })).status, 400);
  t.is((await session.post({ jsonrpc: '2.0', method: 'notifications/x' })).status, 202, 'the session goes on');
});

test('answers 400 to an event id when more bytes have followed than are kept', async (t) => {
  const few = await breakCall(t, { maxReplayBytes: 4096 });
  const many = await breakCall(t, { maxReplayBytes: 16 * 1024 });
  for (const { progress } of [few, many]) for (let value = 2; value < 60; value += 1) progress(value);
  t.is((await few.session.get({ 'Last-Event-ID': few.lastEventId })).status, 400);
  t.is((await many.session.get({ 'Last-Event-ID': many.lastEventId })).status, 200);
});

test('does not take an event id of another session', async (t) => {
  const { harness, lastEventId } = await breakCall(t);
  const other = await openStreamable(harness);
  t.is((await other.get({ 'Last-Event-ID': lastEventId })).status, 400);
});

test('answers 404 to a resumption when the session is gone: there the client must open a new one', async (t) => {
  const { session, lastEventId } = await breakCall(t);
  await session.delete();
  t.is((await session.get({ 'Last-Event-ID': lastEventId })).status, 404);
});

test('starts a stream with a priming event and retry for a client of 2025-11-25', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-11-25');
  for (const answer of [await session.post(call(1), STREAM_FIRST), await session.get()]) {
    const events = answer.events();
    const { id, data } = await events.next();
    t.regex(id ?? '', /^[\x21-\x7e]+$/);
    t.is(data, '');
    t.deepEqual(events.retries, [1000]);
  }
});

for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18']) {
  test(`sends no event with empty data to a client of ${revision}, which would fail to parse it`, async (t) => {
    const session = await openStreamable(await startHttpHarness(t), revision);
    const streaming = (await session.post(call(1), STREAM_FIRST)).events();
    const stream = (await session.get()).events();
    session.connection.notify('notifications/x');
    await stream.next();
    session.connection.answer(await session.connection.next('tools/call'));
    const events = await streaming.rest();
    t.is(events.length, 1);
    t.not(events[0]?.data, '');
    t.deepEqual(streaming.retries, []);
  });
}

test('gives every event of a session an id of its own, in visible ASCII', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  const streams = [(await session.get()).events()];
  for (const id of [1, 2, 3]) streams.push((await session.post(call(id), STREAM_FIRST)).events());
  for (let count = 0; count < 3; count += 1) {
    session.connection.notify('notifications/x');
    session.connection.answer(await session.connection.next('tools/call'));
  }
  await Promise.all(streams.slice(1).map((events) => events.closed));
  await waitFor(() => streams[0]?.unread.length === 4);
  const ids = streams.flatMap((events) => events.unread.map((event) => event.id));
  t.is(ids.length, 10);
  t.is(new Set(ids).size, 10);
  for (const id of ids) t.regex(id ?? '', /^[\x21-\x7e]+$/);
});
