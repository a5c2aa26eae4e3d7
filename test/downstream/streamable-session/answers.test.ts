import test from 'ava';
import { KEEP_ALIVE_MS } from '../../../src/downstream/http/event-stream-writer.ts';
import type { Ticking } from '../../../src/downstream/http/response-writer.ts';
import { COMMIT_AFTER_MS } from '../../../src/downstream/streamable-session/post-lane.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { call, cancellation, openStreamable } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';

const STREAM_FIRST = { Accept: 'text/event-stream, application/json' };

test('answers with JSON of a known length when the response comes first, byte for byte as the server wrote it', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  const pending = session.post(call('a-1'));
  await session.connection.next('tools/call');
  const text = '{"result": {"n": 1.0e2, "s":"\\u00e9é"},  "id":"a-1","jsonrpc":"2.0"}';
  session.connection.say(text);
  const answer = await pending;
  t.is(answer.status, 200);
  t.is(answer.headers['content-type'], 'application/json');
  t.is(answer.headers['content-length'], String(Buffer.byteLength(text)));
  t.is(await answer.text(), text);
});

test('answers with JSON to an error of the server: it belongs to the call, not to HTTP', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  const pending = session.post(call(1));
  session.connection.refuse(await session.connection.next('tools/call'), -32602, 'no such tool');
  const answer = await pending;
  t.is(answer.status, 200);
  t.deepEqual(await answer.json(), { jsonrpc: '2.0', id: 1, error: { code: -32602, message: 'no such tool' } });
});

test('answers with a stream when progress comes first, and ends it after the response', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  const pending = session.post(call(1, 'work', { progressToken: 'p' }));
  const request = await session.connection.next('tools/call');
  session.connection.notify('notifications/progress', { progressToken: 'p', progress: 1 });
  const answer = await pending;
  t.is(answer.status, 200);
  t.true(answer.isEventStream);
  t.is(answer.headers['cache-control'], 'no-cache, no-transform');
  session.connection.answer(request);
  const events = await answer.events().rest();
  t.deepEqual(
    events.map(({ event, data }) => [event, JSON.parse(data).method ?? JSON.parse(data).id]),
    [
      ['message', 'notifications/progress'],
      ['message', 1],
    ],
  );
});

test('answers with a stream when the server asks something first; the client’s answer reaches it', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  const pending = session.post(call(1));
  const request = await session.connection.next('tools/call');
  session.connection.ask('q', 'elicitation/create', { message: 'name?' });
  const events = (await pending).events();
  t.like(await events.message(), { id: 'q', method: 'elicitation/create' });
  await session.post({ jsonrpc: '2.0', id: 'q', result: { action: 'decline' } });
  await waitFor(() => session.connection.answers.length === 1);
  session.connection.answer(request);
  t.like(await events.message(), { id: 1 });
  t.is(await events.closed, 'ended');
});

test('answers with a stream when the client names it before JSON in Accept', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  const answer = await session.post(call(1), STREAM_FIRST);
  t.true(answer.isEventStream, 'the headers come before the response does');
  session.connection.answer(await session.connection.next('tools/call'));
  t.is((await answer.events().rest()).length, 1);
});

test('sends messages of one call to its own response when several run', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  const pending = [1, 2, 3].map((id) => session.post(call(id, 'work', { progressToken: id })));
  await waitFor(() => session.connection.received.filter((frame) => frame.kind === 'request').length === 4);
  for (const progressToken of [3, 1, 2]) {
    session.connection.notify('notifications/progress', { progressToken, progress: 1 });
  }
  for (const id of [2, 3, 1]) session.connection.say(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
  const streams = await Promise.all(pending.map(async (answer) => (await answer).events().rest()));
  t.deepEqual(
    streams.map((events) => events.map(({ data }) => JSON.parse(data).params?.progressToken ?? JSON.parse(data).id)),
    [
      [1, 1],
      [2, 2],
      [3, 3],
    ],
  );
});

test('sends log messages to the only open call, and to the GET stream when several are open', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  const stream = (await session.get()).events();
  const first = session.post(call(1));
  await session.connection.next('tools/call');
  session.connection.notify('notifications/message', { level: 'info', data: 'about 1' });
  const events = (await first).events();
  t.like(await events.message(), { params: { data: 'about 1' } });
  void session.post(call(2)).catch(() => undefined);
  await session.connection.next('tools/call');
  session.connection.notify('notifications/message', { level: 'info', data: 'about either' });
  t.like(await stream.message(), { params: { data: 'about either' } });
  t.deepEqual(events.unread, []);
});

test('makes a call that stays silent a stream, so that proxies see a living connection', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  const pending = session.post(call(1));
  const request = await session.connection.next('tools/call');
  let hasHeaders = false;
  void pending.then(() => {
    hasHeaders = true;
  });
  harness.clock.advance(COMMIT_AFTER_MS - 1000);
  await session.post({ jsonrpc: '2.0', method: 'notifications/x' });
  t.false(hasHeaders);
  harness.clock.advance(1000);
  const answer = await pending;
  t.true(answer.isEventStream);
  session.connection.answer(request);
  t.is((await answer.events().rest()).length, 1);
});

test('sends a comment on a stream after 15 s without an event, not before', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  const events = (await session.get()).events();
  harness.clock.advance(KEEP_ALIVE_MS - 1000);
  session.connection.notify('notifications/tools/list_changed');
  await events.next();
  harness.clock.advance(KEEP_ALIVE_MS - 1000);
  t.deepEqual(events.comments, ['open']);
  harness.clock.advance(1000);
  await waitFor(() => events.comments.length > 1);
  t.deepEqual(events.comments, ['open', 'keep-alive']);
  t.is(KEEP_ALIVE_MS, 15_000);
});

test('a canceled call’s response ends: 202 if nothing was sent, the end of the stream otherwise', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  const held = session.post(call(1));
  await session.connection.next('tools/call');
  await session.post(cancellation(1));
  const answer = await held;
  t.is(answer.status, 202);
  t.is(await answer.text(), '');
  const streaming = (await session.post(call(2), STREAM_FIRST)).events();
  const request = await session.connection.next('tools/call');
  await session.post(cancellation(2));
  t.is(await streaming.closed, 'ended');
  session.connection.answer(request);
  t.deepEqual(streaming.unread, [], 'a late answer goes nowhere');
  t.is(session.connection.received.filter((frame) => frame.method === 'notifications/cancelled').length, 2);
});

test('bears clients that leave streams before their end', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  const requests = [];
  for (const id of [1, 2, 3]) {
    const events = (await session.post(call(id), STREAM_FIRST)).events();
    await events.next();
    events.leave();
    requests.push(await session.connection.next('tools/call'));
  }
  for (const request of requests) session.connection.answer(request);
  const pending = session.post(call(4));
  session.connection.answer(await session.connection.next('tools/call'));
  t.is((await pending).status, 200);
});

test('watches no response longer than it is open', async (t) => {
  const harness = await startHttpHarness(t);
  const watched: Ticking[] = [];
  const countWatched = (): number => watched.filter(({ isListed }) => isListed).length;
  const { live } = harness;
  const add = live.add.bind(live);
  live.add = (member) => {
    add(member);
    watched.push(member);
  };
  const session = await openStreamable(harness);
  const { connection } = session;
  // One of each kind: JSON, streamed, canceled, left, without a stream, listening.
  const answered = session.post(call(1));
  connection.answer(await connection.next('tools/call'));
  await (await answered).text();
  const streamed = (await session.post(call(2), STREAM_FIRST)).events();
  connection.answer(await connection.next('tools/call'));
  await streamed.closed;
  const canceled = session.post(call(3));
  await connection.next('tools/call');
  await session.post(cancellation(3));
  await canceled;
  const client = new AbortController();
  const left = session.post(call(4), {}, client.signal);
  await connection.next('tools/call');
  client.abort();
  await t.throwsAsync(left);
  connection.notify('notifications/tools/list_changed');
  const listening = (await session.get()).events();
  await listening.next();
  t.true(countWatched() > 0);
  await session.delete();
  await listening.closed;
  await waitFor(() => countWatched() === 0, { message: () => `${countWatched()} responses to be let go` });
  t.pass();
});

test('a disconnect does not cancel the call', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  const client = new AbortController();
  const pending = session.post(call(1), {}, client.signal);
  await session.connection.next('tools/call');
  client.abort();
  await t.throwsAsync(pending);
  await session.post({ jsonrpc: '2.0', method: 'notifications/x' });
  await session.connection.next('notifications/x');
  t.false(session.connection.received.some((frame) => frame.method === 'notifications/cancelled'));
});

test('drops what belongs to a call whose client left before anything was sent; other calls do not notice', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const client = new AbortController();
  const left = session.post(call(1, 'work', { progressToken: 'gone' }), {}, client.signal);
  const request = await session.connection.next('tools/call');
  const other = session.post(call(2));
  const otherRequest = await session.connection.next('tools/call');
  client.abort();
  await t.throwsAsync(left);
  await waitFor(() => harness.logLines.filter((line) => line.includes('"method":"POST"')).length === 2);
  session.connection.notify('notifications/progress', { progressToken: 'gone', progress: 1 });
  session.connection.answer(request, { late: true });
  session.connection.answer(otherRequest, { ok: true });
  const answer = await other;
  t.is(answer.headers['content-type'], 'application/json', 'nothing of the first call went here');
  t.deepEqual(await answer.json(), { jsonrpc: '2.0', id: 2, result: { ok: true } });
});
