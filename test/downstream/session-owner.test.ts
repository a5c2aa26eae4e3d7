/** Sessions belong to who opened them: with somebody else's id a caller gets what an unknown id gets, to the letter. */
import test, { type ExecutionContext } from 'ava';
import { callHttp, type HttpAnswer } from '../support/http-call.ts';
import { type HttpHarness, startHttpHarness } from '../support/http-harness.ts';
import { call, initialize, JSON_HEADERS, notification, POST_HEADERS } from '../support/legacy-clients.ts';

/** Callers say who they are in a header; authentication has tests of its own. */
const startHarness = (t: ExecutionContext) =>
  startHttpHarness(t, { principalOf: (request) => String(request.headers['x-who'] ?? 'anonymous') });

const ALICE = { 'X-Who': 'alice' };
const BOB = { 'X-Who': 'bob' };
type Who = typeof ALICE | Record<string, never>;

async function openSession(harness: HttpHarness, who: Who): Promise<string> {
  const body = JSON.stringify(initialize());
  const answer = await callHttp({ port: harness.port, method: 'POST', headers: { ...POST_HEADERS, ...who }, body });
  await answer.text();
  return String(answer.headers['mcp-session-id']);
}

interface Attempt {
  readonly title: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

const EVENT_STREAM = { Accept: 'text/event-stream' };
const ATTEMPTS: readonly Attempt[] = [
  { title: 'a call', method: 'POST', body: call(1) },
  { title: 'a notification', method: 'POST', body: notification('notifications/initialized') },
  { title: 'an answer', method: 'POST', body: { jsonrpc: '2.0', id: 1, result: {} } },
  { title: 'opening its stream', method: 'GET', headers: EVENT_STREAM },
  { title: 'resuming a stream', method: 'GET', headers: { ...EVENT_STREAM, 'Last-Event-ID': '0-1' } },
  { title: 'ending it', method: 'DELETE' },
];

function attempt({ method, headers, body }: Attempt, harness: HttpHarness, id: string, who: Who): Promise<HttpAnswer> {
  return callHttp({
    port: harness.port,
    method,
    headers: { ...(method === 'POST' ? POST_HEADERS : {}), ...headers, ...who, 'Mcp-Session-Id': id },
    ...(body && { body: JSON.stringify(body) }),
  });
}

async function seen(answer: HttpAnswer): Promise<object> {
  const { date: _date, ...headers } = answer.headers;
  return { status: answer.status, headers, body: await answer.text() };
}

for (const trial of ATTEMPTS) {
  test(`with the session id of somebody else, ${trial.title} is the 404 of an unknown session`, async (t) => {
    const harness = await startHarness(t);
    const id = await openSession(harness, ALICE);
    harness.server.scripts.set('tools/call', (request, connection) => connection.answer(request));
    const received = harness.server.latest.received.length;
    const unknown = await seen(await attempt(trial, harness, 'A'.repeat(id.length), BOB));
    t.like(unknown, { status: 404 });
    for (const who of [BOB, {}]) t.deepEqual(await seen(await attempt(trial, harness, id, who)), unknown);
    t.is(harness.server.latest.received.length, received, 'the server hears nothing of it');
    t.is(harness.sessions.size, 1, 'and the session goes on');
    t.not((await attempt(trial, harness, id, ALICE)).status, 404, 'for its owner it is there');
  });
}

test('initialize with the session id of somebody else opens a session of its own', async (t) => {
  const harness = await startHarness(t);
  const id = await openSession(harness, ALICE);
  const headers = { ...POST_HEADERS, ...BOB, 'Mcp-Session-Id': id };
  const answer = await callHttp({ port: harness.port, method: 'POST', headers, body: JSON.stringify(initialize()) });
  t.is(answer.status, 200);
  t.not(answer.headers['mcp-session-id'], id);
  t.is(harness.sessions.size, 2);
});

test('posting to the stream of somebody else is the 404 of an unknown stream', async (t) => {
  const harness = await startHarness(t);
  const stream = await callHttp({ port: harness.port, path: '/sse', headers: ALICE });
  const announced = (await stream.events().next()).data;
  const post = (path: string, who: Who) =>
    callHttp({
      port: harness.port,
      method: 'POST',
      path,
      headers: { ...JSON_HEADERS, ...who },
      body: JSON.stringify(initialize()),
    });
  const unknown = await seen(await post('/messages?sessionId=unknown', BOB));
  t.like(unknown, { status: 404 });
  for (const who of [BOB, {}]) t.deepEqual(await seen(await post(announced, who)), unknown);
  t.is(harness.server.latest.received.length, 0);
  t.is((await post(announced, ALICE)).status, 202);
  stream.leave();
});

test('a session does not change hands when it comes in by the other transport', async (t) => {
  const harness = await startHarness(t);
  const id = await openSession(harness, ALICE);
  const path = `/messages?sessionId=${id}`;
  const headers = { ...JSON_HEADERS, ...ALICE };
  t.is(
    (await callHttp({ port: harness.port, method: 'POST', path, headers, body: JSON.stringify(call(1)) })).status,
    404,
  );
});
