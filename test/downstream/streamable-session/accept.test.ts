/** Clients that read answers of one type only. */
import test from 'ava';
import { MAX_COLLECTED_BYTES } from '../../../src/downstream/batch.ts';
import { COMMIT_AFTER_MS } from '../../../src/downstream/streamable-session/post-lane.ts';
import { NO_STREAM_GRACE_MS } from '../../../src/downstream/streamable-session/undelivered-queue.ts';
import { callHttp, callHttpAndArrive } from '../../support/http-call.ts';
import { type HttpHarness, startHttpHarness } from '../../support/http-harness.ts';
import {
  call,
  type Headers,
  initialize,
  JSON_HEADERS,
  openStreamable,
  type StreamableSession,
  textOf,
} from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';

const ONLY_JSON = { Accept: 'application/json' };
const ONLY_STREAM = { Accept: 'text/event-stream' };

for (const [what, headers, type] of [
  ['without Accept gets JSON', { Accept: undefined }, 'application/json'],
  ['that reads only JSON gets JSON', ONLY_JSON, 'application/json'],
  ['that reads only event streams gets a stream', ONLY_STREAM, 'text/event-stream'],
] as const) {
  test(`a client ${what}, for initialize and for a call`, async (t) => {
    const harness = await startHttpHarness(t);
    const opened = await post(harness, initialize(), headers);
    t.is(opened.status, 200);
    t.is(opened.headers['content-type'], type);
    const session = { ...headers, 'Mcp-Session-Id': String(opened.headers['mcp-session-id']) };
    const pending = post(harness, call(1), session);
    const { latest } = harness.server;
    latest.answer(await latest.next('tools/call'), { done: true });
    const answer = await pending;
    t.is(answer.headers['content-type'], type);
    t.true((await answer.text()).includes('{"done":true}'));
  });
}

function post(harness: HttpHarness, body: object, headers: Headers): ReturnType<typeof callHttp> {
  return callHttp({
    port: harness.port,
    method: 'POST',
    headers: { ...JSON_HEADERS, ...headers },
    body: textOf(body),
  });
}

/** A call of a client that reads only JSON, once the server has it. */
async function beginCall(harness: HttpHarness, session: StreamableSession, headers: Headers = ONLY_JSON) {
  const { answer } = callHttpAndArrive({
    port: harness.port,
    method: 'POST',
    headers: { ...JSON_HEADERS, 'Mcp-Session-Id': session.id, ...headers },
    body: textOf(call(1, 'work', { progressToken: 7 })),
  });
  return { answer, request: await session.connection.next('tools/call') };
}

test('a long call with progress and logs stays JSON for a client that reads only JSON', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const { answer, request } = await beginCall(harness, session);
  session.connection.notify('notifications/progress', { progressToken: 7, progress: 1 });
  harness.clock.advance(COMMIT_AFTER_MS * 3);
  session.connection.notify('notifications/custom', { x: 1 });
  session.connection.answer(request, { done: true });
  const { headers } = await answer;
  t.is(headers['content-type'], 'application/json');
  t.deepEqual(await (await answer).json(), { jsonrpc: '2.0', id: 1, result: { done: true } });
});

test('what the server asks in a call of a client that reads only JSON goes to its GET stream', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  const stream = (await session.get()).events();
  const { answer, request } = await beginCall(harness, session);
  session.connection.ask('q', 'roots/list');
  t.like(await stream.message(), { id: 'q', method: 'roots/list' });
  session.connection.answer(request);
  t.is((await answer).headers['content-type'], 'application/json');
});

test('without a GET stream the server learns that such a client cannot be asked, whatever it calls meanwhile', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  const { answer, request } = await beginCall(harness, session);
  session.connection.ask('q', 'roots/list');
  harness.clock.advance(NO_STREAM_GRACE_MS / 2);
  const ping = session.post({ jsonrpc: '2.0', id: 2, method: 'ping' }, ONLY_JSON);
  session.connection.answer(await session.connection.next('ping'));
  await ping;
  harness.clock.advance(NO_STREAM_GRACE_MS / 2);
  await waitFor(() => session.connection.answers.length > 0);
  t.is(session.connection.answers[0]?.id, 'q');
  t.is(session.connection.answers[0]?.kind, 'error');
  session.connection.answer(request);
  t.is((await answer).status, 200);
});

test('answers to an array that are too large together are errors for a client that reads only JSON', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-03-26');
  const pending = session.post([call(1), call(2)], ONLY_JSON);
  const first = await session.connection.next('tools/call');
  const second = await session.connection.next('tools/call');
  session.connection.answer(first, { text: 'x'.repeat(MAX_COLLECTED_BYTES) });
  session.connection.answer(second, { done: true });
  const answers = await (await pending).json<object[]>();
  t.like(answers[0], { id: 1, error: { data: { bridge: { reason: 'ERR_WIRE_BATCH' } } } });
  t.deepEqual(answers[1], { jsonrpc: '2.0', id: 2, result: { done: true } });
});

test('the first byte of a stream comes at once, also of one that is resumed with nothing missed', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), '2025-06-18');
  const first = (await session.get()).events();
  await waitFor(() => first.comments.length > 0);
  session.connection.notify('notifications/custom');
  const { id } = await first.next();
  const again = (await session.get({ 'Last-Event-ID': id })).events();
  await waitFor(() => again.comments.length > 0);
  t.deepEqual(again.unread, []);
});
