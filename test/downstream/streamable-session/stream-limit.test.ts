import test from 'ava';
import type { HttpAnswer } from '../../support/http-call.ts';
import { type HttpHarness, startHttpHarness } from '../../support/http-harness.ts';
import { call, openStreamable, type StreamableSession } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';

const STREAM_FIRST = { Accept: 'text/event-stream, application/json' };

/** A session that may have two streams; the response to its `initialize` is over. */
async function openWithTwo(
  t: Parameters<typeof startHttpHarness>[0],
): Promise<HttpHarness & { session: StreamableSession }> {
  const harness = await startHttpHarness(t, { maxStreams: 2 });
  const session = await openStreamable(harness);
  await closedResponses(harness, 1);
  return { ...harness, session };
}

/** The bridge has noticed that so many responses are over. */
async function closedResponses({ logLines }: HttpHarness, count: number): Promise<void> {
  const isClosed = (line: string): boolean => /"method":"(GET|POST)"/.test(line);
  await waitFor(() => logLines.filter(isClosed).length >= count, { message: `${count} closed responses` });
}

async function reasonOf(answer: HttpAnswer): Promise<unknown> {
  const { id, error } = await answer.json<{ id?: unknown; error: { message: string; data: { bridge: object } } }>();
  return { status: answer.status, retryAfter: answer.headers['retry-after'], id, ...error.data.bridge };
}

const BUSY = { status: 503, retryAfter: '1', id: undefined, reason: 'ERR_SESSION_BUSY' };

test('a session has so many event streams, calls that wait among them; what is one too many reaches no server', async (t) => {
  const harness = await openWithTwo(t);
  const { session } = harness;
  const waiting = session.post(call(1));
  const first = await session.connection.next('tools/call');
  const stream = (await session.get()).events();
  const refused = await session.post(call(2));
  t.deepEqual(await reasonOf(refused), { ...BUSY, id: 2 });
  t.is((await session.post({ jsonrpc: '2.0', method: 'notifications/x' })).status, 202, 'what needs no stream passes');
  const other = await openStreamable(harness);
  t.is((await other.get()).status, 200, 'another session has its own');

  session.connection.answer(first);
  await (await waiting).text();
  await closedResponses(harness, 5);
  const again = session.post(call(3));
  const second = await session.connection.next('tools/call');
  t.is(second.id, 3);
  session.connection.answer(second);
  t.is((await again).status, 200);
  stream.leave();
});

test('a GET is refused like a call, and the refusal names the option', async (t) => {
  const { session } = await openWithTwo(t);
  void session.post(call(1));
  await session.connection.next('tools/call');
  void session.post(call(2));
  await session.connection.next('tools/call');
  const refused = await session.get();
  t.is(refused.status, 503);
  t.regex(await refused.text(), /has 2 event streams.*--max-session-streams/);
});

test('an array of calls has one stream', async (t) => {
  const harness = await startHttpHarness(t, { maxStreams: 2 });
  const session = await openStreamable(harness, '2025-03-26');
  await closedResponses(harness, 1);
  void session.post([call(1), call(2), call(3)]);
  await session.connection.next('tools/call');
  const stream = await session.get();
  t.is(stream.status, 200);
  const refused = await session.post([call(4)]);
  t.deepEqual(await reasonOf(refused), BUSY);
});

test('what is left of a stream that has ended takes a slot of its own', async (t) => {
  const harness = await openWithTwo(t);
  const { session } = harness;
  const ended = (await session.post(call(1), STREAM_FIRST)).events();
  session.connection.answer(await session.connection.next('tools/call'));
  const { id } = await ended.next();
  await ended.closed;
  await closedResponses(harness, 2);
  await session.get();
  void session.post(call(2));
  await session.connection.next('tools/call');
  t.deepEqual(await reasonOf(await session.get({ 'Last-Event-ID': id })), BUSY);
});

test('where there is no slot left, a stream that is continued takes that of its own connection, read or not', async (t) => {
  const { session } = await openWithTwo(t);
  const calling = (await session.post(call(1), STREAM_FIRST)).events();
  const request = await session.connection.next('tools/call');
  const { id } = await calling.next();
  const old = (await session.get()).events();
  await old.next();

  const fresh = (await session.get()).events();
  t.is(await old.closed, 'cut');
  const resumed = (await session.get({ 'Last-Event-ID': id })).events();
  t.is(await calling.closed, 'cut');
  session.connection.notify('notifications/x');
  session.connection.answer(request);
  await fresh.next();
  t.like(await fresh.message(), { method: 'notifications/x' });
  t.like(await resumed.message(), { id: 1 });
});
