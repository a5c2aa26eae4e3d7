import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { callHttp } from '../../support/http-call.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import {
  call,
  cancellation,
  initialize,
  notification,
  openStreamable,
  POST_HEADERS,
  type StreamableSession,
} from '../../support/legacy-clients.ts';

const REVISION = '2025-03-26';
const STREAM_FIRST = { Accept: 'text/event-stream, application/json' };

async function postBatch(session: StreamableSession, items: readonly unknown[], headers = {}) {
  return session.post(JSON.stringify(items), headers);
}

function answerTo(id: unknown): object {
  return { jsonrpc: '2.0', id, result: {} };
}

test('answers a batch with one array of all responses, in the order they came', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  const pending = postBatch(session, [call(1), notification('notifications/x'), call('b')]);
  const first = await session.connection.next('tools/call');
  const second = await session.connection.next('tools/call');
  await session.connection.next('notifications/x');
  session.connection.answer(second);
  session.connection.answer(first);
  const answer = await pending;
  t.is(answer.status, 200);
  t.is(answer.headers['content-type'], 'application/json');
  const text = await answer.text();
  t.is(answer.headers['content-length'], String(text.length));
  t.deepEqual(JSON.parse(text), [answerTo('b'), answerTo(1)]);
});

test('answers a batch of one request with an array of one response', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  const pending = postBatch(session, [call(1)]);
  session.connection.answer(await session.connection.next('tools/call'));
  t.deepEqual(await (await pending).json(), [answerTo(1)]);
});

test('sends the messages of a batch on in order, byte for byte', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  const items = [
    '{"jsonrpc":"2.0","method":"notifications/a","params":{"n":1.0}}',
    '{ "method":"notifications/b" ,"jsonrpc":"2.0"}',
  ];
  t.is((await session.post(` [ ${items.join(' ,\n ')} ] `)).status, 202);
  t.deepEqual(
    session.connection.received.slice(-2).map((frame) => frame.bytes.toString()),
    items,
  );
});

test('answers 202 to a batch without requests', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  await session.get();
  session.connection.ask('q', 'ping');
  const answer = await postBatch(session, [notification('notifications/x'), answerTo('q')]);
  t.is(answer.status, 202);
  t.is(await answer.text(), '');
  t.is(session.connection.answers.length, 1);
});

test('takes answers and requests in one batch', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  await session.get();
  session.connection.ask('q', 'ping');
  const pending = postBatch(session, [answerTo('q'), call(1)]);
  session.connection.answer(await session.connection.next('tools/call'));
  t.deepEqual(await (await pending).json(), [answerTo(1)]);
  t.is(session.connection.answers.length, 1);
});

test('becomes a stream of separate events when something else comes, with what was collected first', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  const pending = postBatch(session, [call(1), call(2, 'work', { progressToken: 'p' }), call(3)]);
  const requests = [];
  for (let count = 0; count < 3; count += 1) requests.push(await session.connection.next('tools/call'));
  const [first, second, third] = requests;
  if (!first || !second || !third) return t.fail();
  session.connection.answer(third);
  session.connection.notify('notifications/progress', { progressToken: 'p', progress: 1 });
  session.connection.answer(first);
  session.connection.answer(second);
  const events = await (await pending).events().rest();
  t.deepEqual(
    events.map(({ data }) => JSON.parse(data).id ?? JSON.parse(data).method),
    [3, 'notifications/progress', 1, 2],
  );
});

test('streams the answers of a batch whose client prefers that', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  const answer = await postBatch(session, [call(1), call(2)], STREAM_FIRST);
  t.true(answer.isEventStream);
  session.connection.answer(await session.connection.next('tools/call'));
  session.connection.answer(await session.connection.next('tools/call'));
  t.is((await answer.events().rest()).length, 2);
});

test('streams the answers of a batch that grow too big to be collected', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  const pending = postBatch(session, [call(1), call(2), call(3)]);
  const text = 'x'.repeat(700_000);
  session.connection.answer(await session.connection.next('tools/call'), { text });
  session.connection.answer(await session.connection.next('tools/call'), { text });
  const answer = await pending;
  t.true(answer.isEventStream);
  session.connection.answer(await session.connection.next('tools/call'), { text });
  const events = await answer.events().rest();
  t.deepEqual(
    events.map(({ data }) => JSON.parse(data).result.text.length),
    [700_000, 700_000, 700_000],
  );
});

test('answers a faulty element by its id and takes the others', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  const pending = postBatch(session, [call(1), { jsonrpc: '1.0', id: 'bad', method: 'x' }, 17]);
  session.connection.answer(await session.connection.next('tools/call'));
  const answers = await (await pending).json<{ id?: unknown; error?: { code: number } }[]>();
  t.deepEqual(
    answers.map(({ id, error }) => [id, error?.code]),
    [
      ['bad', -32600],
      [undefined, -32600],
      [1, undefined],
    ],
  );
  t.false('id' in (answers[1] ?? {}), 'no id, not a null one');
});

test('refuses an id that is used twice, and answers the call that had it first', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  const pending = postBatch(session, [call(1), call(1)]);
  session.connection.answer(await session.connection.next('tools/call'));
  const answers = await (await pending).json<{ id: number; error?: { code: number; message: string } }[]>();
  t.deepEqual(
    answers.map(({ id, error }) => [id, error?.code]),
    [
      [1, -32600],
      [1, undefined],
    ],
  );
  t.regex(answers[0]?.error?.message ?? '', /already in use/);
});

test('answers what is left of a batch when one of its calls is canceled', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  const pending = postBatch(session, [call(1), call(2)]);
  session.connection.answer(await session.connection.next('tools/call'));
  await session.post(cancellation(2));
  t.deepEqual(await (await pending).json(), [answerTo(1)]);
});

test('answers 202 to a batch whose calls were all canceled', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  const pending = postBatch(session, [call(1), call(2)]);
  await session.connection.next('tools/call');
  await session.connection.next('tools/call');
  await postBatch(session, [cancellation(1), cancellation(2)]);
  t.is((await pending).status, 202);
});

const refused = test.macro({
  title: (what = '') => `answers 400 to ${what}, and nothing of it reaches the server`,
  async exec(t, items: readonly unknown[], message: RegExp) {
    const session = await openStreamable(await startHttpHarness(t), REVISION);
    const answer = await postBatch(session, items);
    t.is(answer.status, 400);
    const body = await answer.json<{ error: { code: number; message: string } }>();
    t.false('id' in body);
    t.is(body.error.code, -32600);
    t.regex(body.error.message, message);
    t.is(session.connection.received.length, 1, 'only initialize');
  },
});

test('an empty batch', refused, [], /empty/);
test(
  'a batch of more than 100 messages',
  refused,
  Array.from({ length: 101 }, (_, id) => call(id)),
  /more than 100/,
);
test('a batch with initialize in it', refused, [call(1), initialize(REVISION, 2)], /must not be part of a batch/);

test('takes a batch of 100', async (t) => {
  const harness = await startHttpHarness(t);
  harness.server.scripts.set('tools/call', (request, connection) => connection.answer(request));
  const session = await openStreamable(harness, REVISION);
  const answer = await postBatch(
    session,
    Array.from({ length: 100 }, (_, id) => call(id)),
  );
  t.is((await answer.json<unknown[]>()).length, 100);
});

test('answers 400 to a batch with initialize and without a session, and says to send it alone', async (t) => {
  const { port } = await startHttpHarness(t);
  const body = JSON.stringify([initialize(REVISION), call(1)]);
  const answer = await callHttp({ port, method: 'POST', headers: POST_HEADERS, body });
  t.is(answer.status, 400);
  t.regex((await answer.json<{ error: { message: string } }>()).error.message, /must not be part of a batch/);
});

test('answers every call of a batch whose first one kills the server', async (t) => {
  const session = await openStreamable(await startHttpHarness(t), REVISION);
  const { connection } = session;
  connection.send = () => {
    connection.die(new BridgeError('ERR_UPSTREAM_EXITED', 'exited with code 3'));
    return true;
  };
  const answers = await (await postBatch(session, [call(1), call(2)])).json<
    { id: number; error: { data: object } }[]
  >();
  t.deepEqual(
    answers.map(({ id, error }) => [id, error.data]),
    [
      [1, { bridge: { reason: 'ERR_UPSTREAM_EXITED' } }],
      [2, { bridge: { reason: 'ERR_SESSION_CLOSED' } }],
    ],
  );
});
