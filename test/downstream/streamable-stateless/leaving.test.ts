import test, { type ExecutionContext } from 'ava';
import { COMMIT_AFTER_MS } from '../../../src/downstream/streamable-session/post-lane.ts';
import { MAX_BACKLOG_BYTES } from '../../../src/downstream/streamable-stateless/call-lane.ts';
import { STALL_MS } from '../../../src/http/reading-watch.ts';
import type { FakeConnection } from '../../support/fake-server.ts';
import { type HttpHarness, startHttpHarness } from '../../support/http-harness.ts';
import { openStreamable } from '../../support/legacy-clients.ts';
import { RawSocket } from '../../support/raw-socket.ts';
import { waitFor } from '../../support/wait-for.ts';
import { arriveModern, headersOf, listen, modern, modernCall, nextCall, postModern } from './modern-posts.ts';

const STREAM_FIRST = { Accept: 'text/event-stream, application/json' };

/** The server hears of it exactly once, and whatever it says afterward goes nowhere. */
async function isWithdrawn(t: ExecutionContext, harness: HttpHarness, link: FakeConnection, id: string | number) {
  await waitFor(() => link.closedFor, { message: 'the link to be closed' });
  t.deepEqual(
    link.received.slice(1).map((frame) => frame.json()),
    [{ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id, reason: 'the client left' } }],
  );
  t.is(link.calls[1], link.calls[0]);
  t.is(harness.modernCalls.size, 0);
  link.notify('notifications/progress', {});
  link.answer(link.received[0] as never);
  harness.clock.advance(COMMIT_AFTER_MS + STALL_MS);
  t.is(link.received.length, 2);
}

test('a client that leaves before it has heard anything has withdrawn its call', async (t) => {
  const harness = await startHttpHarness(t);
  const controller = new AbortController();
  const pending = postModern(harness, modernCall('a'), {}, controller.signal);
  const link = await nextCall(harness, 1);
  controller.abort();
  await t.throwsAsync(pending);
  await isWithdrawn(t, harness, link, 'a');
});

for (const [how, headers, start] of [
  ['at once', STREAM_FIRST, () => undefined],
  ['after silence', {}, (_: FakeConnection, harness: HttpHarness) => harness.clock.advance(COMMIT_AFTER_MS)],
  ['after progress', {}, (link: FakeConnection) => link.notify('notifications/progress', { progress: 1 })],
] as const) {
  test(`a client that leaves a stream that was opened ${how} has withdrawn its call`, async (t) => {
    const harness = await startHttpHarness(t);
    const pending = postModern(harness, modernCall(5), headers);
    const link = await nextCall(harness, 1);
    start(link, harness);
    (await pending).leave();
    await isWithdrawn(t, harness, link, 5);
  });
}

test('a client that leaves a subscription has ended it', async (t) => {
  const harness = await startHttpHarness(t);
  const pending = postModern(harness, listen('sub'));
  const link = await nextCall(harness, 1);
  link.notify('notifications/subscriptions/acknowledged', { notifications: {} });
  const answer = await pending;
  await answer.events().message();
  answer.leave();
  await isWithdrawn(t, harness, link, 'sub');
});

test('a client that leaves after it was answered has withdrawn nothing', async (t) => {
  const harness = await startHttpHarness(t);
  const answers = [postModern(harness, modernCall(1)), postModern(harness, modernCall(2), STREAM_FIRST)];
  await nextCall(harness, 2);
  for (const link of harness.server.connections) link.answer(await link.next('tools/call'));
  for (const answer of await Promise.all(answers)) {
    await answer.text();
    answer.leave();
  }
  for (const link of harness.server.connections) t.is(link.received.length, 1);
});

test('a client that leaves before its request is complete has asked nothing', async (t) => {
  const harness = await startHttpHarness(t);
  const socket = await RawSocket.connect(harness.port);
  const { Accept, ...headers } = headersOf(modernCall(1));
  const sent = { ...headers, Accept: String(Accept), 'Content-Length': '1000' } as Record<string, string>;
  socket.request('POST', '/mcp', sent, '{"jsonrpc":');
  socket.destroy();
  const answer = arriveModern(harness, modernCall(2));
  const link = await nextCall(harness, 1);
  link.answer(await link.next('tools/call'));
  t.is((await answer.answer).status, 200);
  t.is(harness.server.connections.length, 1);
});

test('withdrawing one of two calls with the same id leaves the other alone', async (t) => {
  const harness = await startHttpHarness(t);
  const controller = new AbortController();
  const leaving = postModern(harness, modernCall(1), {}, controller.signal);
  const one = await nextCall(harness, 1);
  const staying = postModern(harness, modernCall(1));
  const two = await nextCall(harness, 2);
  controller.abort();
  await t.throwsAsync(leaving);
  await waitFor(() => one.closedFor);
  t.is(two.received.length, 1);
  two.answer(await two.next('tools/call'), { mine: true });
  t.like(await (await staying).json(), { id: 1, result: { mine: true } });
});

// ---- clients and servers that do not keep up

const padding = 'x'.repeat(1000);

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Talks to a client that does not read, until it is told to stop. */
async function fill(link: FakeConnection): Promise<number> {
  let count = 0;
  while (!link.isPaused) {
    link.notify('notifications/progress', { progressToken: 1, progress: count, padding });
    count += 1;
    if (count % 50 === 0) await turn();
  }
  return count;
}

test('a stream that is not read stops its own link, nobody else’s, until it is', async (t) => {
  const harness = await startHttpHarness(t);
  const events = (await postModern(harness, modernCall(1), STREAM_FIRST)).events();
  const other = (await postModern(harness, modernCall(2), STREAM_FIRST)).events();
  const [link, otherLink] = harness.server.connections as [FakeConnection, FakeConnection];
  events.pause();
  const count = await fill(link);
  t.false(otherLink.isPaused);
  otherLink.answer(await otherLink.next('tools/call'));
  t.is((await other.message()).id, 2);
  events.resume();
  await link.mayTalk();
  link.answer(await link.next('tools/call'));
  const received = await events.rest();
  t.is(received.length, count + 1);
  received.slice(0, -1).forEach(({ data }, at) => {
    if (JSON.parse(data).params.progress !== at) t.fail(`message ${at} is out of order`);
  });
});

test('a stream that is not read for 30 s is cut, which withdraws its call', async (t) => {
  const harness = await startHttpHarness(t);
  const events = (await postModern(harness, modernCall(1), STREAM_FIRST)).events();
  const link = harness.server.latest;
  events.pause();
  await fill(link);
  harness.clock.advance(STALL_MS - 2000);
  await turn();
  t.is(link.closedFor, undefined);
  // What the system moves between the sockets for a while yet counts as reading.
  await waitFor(() => {
    harness.clock.advance(1000);
    return link.closedFor;
  });
  t.true(harness.clock.now() < 4 * STALL_MS);
  await isWithdrawn(t, harness, link, 1);
});

test('an answer in JSON that is not read for 30 s is cut', async (t) => {
  const harness = await startHttpHarness(t);
  const socket = await RawSocket.connect(harness.port);
  const message = modernCall(1);
  socket.request('POST', '/mcp', headersOf(message) as Record<string, string>, JSON.stringify(message));
  const link = await nextCall(harness, 1);
  link.answer(await link.next('tools/call'), { huge: 'x'.repeat(20_000_000) });
  t.is(harness.modernCalls.size, 0, 'the call is over all the same');
  await turn();
  harness.clock.advance(1000);
  await turn();
  harness.clock.advance(STALL_MS + 1000);
  t.false((await socket.all()).endsWith('}}'));
});

test('while servers do not take what was read, further modern requests stay unread; other clients are served', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const huge = modern(1, 'tools/call', { name: 'work', arguments: { text: 'x'.repeat(MAX_BACKLOG_BYTES) } });
  const dial = harness.server.dialCall.bind(harness.server);
  harness.server.dialCall = (listener, context) => {
    const link = dial(listener, context);
    harness.server.latest.isFull = true;
    return link;
  };
  const first = postModern(harness, huge);
  const link = await nextCall(harness, 2);
  harness.server.dialCall = dial;
  const second = arriveModern(harness, modernCall(2));
  await second.arrived;
  await turn();
  t.is(harness.server.connections.length, 2, 'it waits');
  const legacy = session.post({ jsonrpc: '2.0', id: 3, method: 'tools/list' });
  session.connection.answer(await session.connection.next('tools/list'));
  t.is((await legacy).status, 200);
  link.drain();
  const next = await nextCall(harness, 3);
  next.answer(await next.next('tools/call'));
  t.is((await second.answer).status, 200);
  link.answer(await link.next('tools/call'));
  t.is((await first).status, 200);
});
