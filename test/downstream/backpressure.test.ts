import test, { type ExecutionContext } from 'ava';
import { MAX_WAITING_TURNS } from '../../src/downstream/http/read-post.ts';
import { MAX_QUEUED_BYTES } from '../../src/downstream/http/response-writer.ts';
import { STALL_MS } from '../../src/http/reading-watch.ts';
import type { EventReader } from '../support/event-reader.ts';
import type { FakeConnection } from '../support/fake-server.ts';
import { callHttp, callHttpAndArrive } from '../support/http-call.ts';
import { type HttpHarness, seriousLines, startHttpHarness } from '../support/http-harness.ts';
import {
  call,
  JSON_HEADERS,
  notification,
  openInitializedSse,
  openStreamable,
  POST_HEADERS,
  type StreamableSession,
} from '../support/legacy-clients.ts';
import { waitFor } from '../support/wait-for.ts';

const STREAM_FIRST = { Accept: 'text/event-stream, application/json' };
/** More than the system's own buffers between two sockets take. */
const HUGE = 'x'.repeat(20_000_000);

/** A client with one stream, and how its server sends a numbered message on it. */
interface Streaming {
  readonly events: EventReader;
  readonly connection: FakeConnection;
  say(count: number): void;
}

const padding = 'x'.repeat(1000);
const streams: Readonly<Record<string, (harness: HttpHarness) => Promise<Streaming>>> = {
  async 'a GET stream'(harness) {
    const session = await openStreamable(harness, '2025-06-18');
    const events = (await session.get()).events();
    const { connection } = session;
    return { events, connection, say: (count) => connection.notify('notifications/x', { count, padding }) };
  },
  async 'a POST’s stream'(harness) {
    const session = await openStreamable(harness, '2025-06-18');
    const events = (await session.post(call(1, 'work', { progressToken: 1 }), STREAM_FIRST)).events();
    const { connection } = session;
    const say = (count: number): void =>
      connection.notify('notifications/progress', { progressToken: 1, count, padding });
    return { events, connection, say };
  },
  async 'HTTP+SSE'(harness) {
    const { stream: events, connection } = await openInitializedSse(harness);
    return { events, connection, say: (count) => connection.notify('notifications/x', { count, padding }) };
  },
};

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Talks until it is told to stop; returns how many messages that took. */
async function fill({ events, connection, say }: Streaming): Promise<number> {
  events.pause();
  let count = 0;
  while (!connection.isPaused) {
    say(count);
    count += 1;
    if (count % 50 === 0) await turn();
  }
  return count;
}

/**
 * Lets time go by until it is so. What the system moves between two sockets for a while yet counts as reading, so it may
 * take longer than it says.
 */
async function passTimeUntil({ clock }: HttpHarness, isSo: () => boolean): Promise<void> {
  await waitFor(() => {
    if (!isSo()) clock.advance(1000);
    return isSo();
  });
}

async function receive(t: ExecutionContext, events: EventReader, count: number): Promise<void> {
  for (let expected = 0; expected < count; expected += 1) {
    const { params } = await events.message<{ params: { count: number } }>();
    if (params.count !== expected) return t.fail(`message ${params.count} came instead of ${expected}`);
  }
}

for (const [name, open] of Object.entries(streams)) {
  test(`${name} that is not read stops its own server, nobody else’s, until it is`, async (t) => {
    const harness = await startHttpHarness(t);
    const slow = await open(harness);
    const other = await open(harness);
    const count = await fill(slow);
    t.false(other.connection.isPaused);
    other.say(0);
    await receive(t, other.events, 1);
    t.true(slow.connection.isPaused);
    slow.events.resume();
    await slow.connection.mayTalk();
    await receive(t, slow.events, count);
    slow.say(0);
    await receive(t, slow.events, 1);
  });

  test(`${name} carries thousands of messages in order and complete`, async (t) => {
    const { events, connection, say } = await open(await startHttpHarness(t));
    const count = 5000;
    const received = receive(t, events, count);
    for (let said = 0; said < count; said += 1) {
      await connection.mayTalk();
      say(said);
    }
    await received;
    t.deepEqual(events.unread, []);
  });

  test(`${name} that is not read for 30 s is let go, and its server goes on`, async (t) => {
    const harness = await startHttpHarness(t);
    const slow = await open(harness);
    await fill(slow);
    harness.clock.advance(STALL_MS - 2000);
    await turn();
    t.true(slow.connection.isPaused);
    await passTimeUntil(harness, () => !slow.connection.isPaused || slow.connection.closedFor !== undefined);
    t.true(harness.clock.now() < 4 * STALL_MS);
    t.is(slow.connection.closedFor !== undefined, name === 'HTTP+SSE', 'there the stream is the session');
    t.deepEqual(seriousLines(harness), [], 'it is no fault of the bridge or of its server');
  });

  test(`${name} holds a bounded number of bytes of a server that cannot be stopped`, async (t) => {
    const slow = await open(await startHttpHarness(t));
    slow.events.pause();
    const said = (5 * MAX_QUEUED_BYTES) / padding.length;
    for (let count = 0; count < said; count += 1) {
      slow.say(count);
      if (count % 50 === 0) await turn();
    }
    slow.events.resume();
    t.is(await slow.events.closed, 'cut');
    // What the system's own buffers held comes through.
    const received = slow.events.unread.length * padding.length;
    t.true(received < 2 * MAX_QUEUED_BYTES, `${received} bytes were kept`);
  });
}

async function startHugeAnswer(session: StreamableSession, id: number): Promise<() => Promise<string>> {
  const pending = session.post(call(id));
  session.connection.answer(await session.connection.next('tools/call'), { text: HUGE });
  const answer = await pending;
  return () => answer.text();
}

test('a big JSON answer that is not read stops its own server, nobody else’s, until it is', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const other = await openStreamable(harness);
  const read = await startHugeAnswer(session, 1);
  t.true(session.connection.isPaused);
  t.false(other.connection.isPaused);
  const body = await read();
  t.is(body.length, HUGE.length + '{"jsonrpc":"2.0","id":1,"result":{"text":""}}'.length);
  await session.connection.mayTalk();
  t.pass();
});

test('two answers that are not read stop the server until both are', async (t) => {
  const session = await openStreamable(await startHttpHarness(t));
  const calls = [session.post(call(1)), session.post(call(2))];
  const requests = [await session.connection.next('tools/call'), await session.connection.next('tools/call')];
  for (const request of requests) session.connection.answer(request, { text: HUGE });
  const [first, second] = await Promise.all(calls);
  await first?.text();
  await turn();
  t.true(session.connection.isPaused);
  await second?.text();
  await session.connection.mayTalk();
  t.pass();
});

test('a big JSON answer that is not read for 30 s is cut, and its server goes on', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const read = await startHugeAnswer(session, 1);
  harness.clock.advance(STALL_MS - 2000);
  await turn();
  t.true(session.connection.isPaused);
  await passTimeUntil(harness, () => !session.connection.isPaused);
  t.true(harness.clock.now() < 4 * STALL_MS);
  await t.throwsAsync(read());
});

test('a big answer on a stream that is not read is cut after 30 s too', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  const answer = await session.post(call(1), STREAM_FIRST);
  session.connection.answer(await session.connection.next('tools/call'), { text: HUGE });
  t.true(session.connection.isPaused);
  harness.clock.advance(STALL_MS + 2000);
  await session.connection.mayTalk();
  await t.throwsAsync(answer.text());
});

test('a client that does not read can answer but makes no more calls', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  const { connection } = session;
  const events = (await session.get()).events();
  connection.ask('q', 'roots/list');
  await events.next();
  await fill({ events, connection, say: (count) => connection.notify('notifications/x', { count, padding }) });
  const headers = { ...POST_HEADERS, 'Mcp-Session-Id': session.id };
  const held = callHttpAndArrive({ port: harness.port, method: 'POST', headers, body: JSON.stringify(call(1)) });
  await held.arrived;
  const answered = await session.post({ jsonrpc: '2.0', id: 'q', result: { roots: [] } });
  t.is(answered.status, 202);
  t.is(connection.answers.length, 1);
  t.false(connection.received.some((frame) => frame.method === 'tools/call'));
  events.resume();
  connection.answer(await connection.next('tools/call'));
  t.is((await held.answer).status, 200);
});

/** Fills the server's pipe and posts numbered notifications that have to wait. */
async function postWhileFull(harness: HttpHarness, session: StreamableSession, count: number) {
  session.connection.isFull = true;
  await session.post(notification('notifications/fills'));
  const headers = { ...POST_HEADERS, 'Mcp-Session-Id': session.id };
  const held = [];
  for (let number = 0; number < count; number += 1) {
    const body = JSON.stringify(notification(`notifications/${number}`));
    const post = callHttpAndArrive({ port: harness.port, method: 'POST', headers, body });
    await post.arrived;
    held.push(post.answer);
  }
  return held;
}

function methodsAfter(connection: FakeConnection, method: string): readonly unknown[] {
  const methods = connection.received.map((frame) => frame.method);
  return methods.slice(methods.indexOf(method) + 1);
}

test('holds a client’s messages back while the server’s pipe is full, then sends them in order', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const other = await openStreamable(harness);
  const held = await postWhileFull(harness, session, 4);
  t.deepEqual(methodsAfter(session.connection, 'notifications/fills'), []);
  t.is((await other.post(notification('notifications/x'))).status, 202, 'only this server is full');
  session.connection.drain();
  for (const answer of await Promise.all(held)) t.is(answer.status, 202);
  t.deepEqual(methodsAfter(session.connection, 'notifications/fills'), [
    'notifications/0',
    'notifications/1',
    'notifications/2',
    'notifications/3',
  ]);
});

test('goes on holding messages back when the first of them fills the pipe again', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const held = await postWhileFull(harness, session, 3);
  session.connection.drainBriefly();
  t.is((await held[0])?.status, 202);
  for (let count = 0; count < 20; count += 1) await turn();
  t.deepEqual(methodsAfter(session.connection, 'notifications/fills'), ['notifications/0']);
  session.connection.drain();
  await Promise.all(held);
  t.is(session.connection.received.length, 5);
});

test('a call whose client leaves while it is held back is not made', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness, '2025-06-18');
  const { connection } = session;
  const events = (await session.get()).events();
  await fill({ events, connection, say: (count) => connection.notify('notifications/x', { count, padding }) });
  const client = new AbortController();
  const headers = { ...POST_HEADERS, 'Mcp-Session-Id': session.id };
  const post = { port: harness.port, method: 'POST', headers, body: JSON.stringify(call(1)), signal: client.signal };
  const held = callHttpAndArrive(post);
  await held.arrived;
  // An answer takes the same way and does not wait: the call has been read by now.
  await session.post({ jsonrpc: '2.0', id: 'nobody asked', result: {} });
  client.abort();
  await t.throwsAsync(held.answer);
  await waitFor(() => harness.logLines.filter((line) => line.includes('"method":"POST"')).length === 3);
  events.resume();
  await connection.mayTalk();
  t.is((await session.post(notification('notifications/x'))).status, 202);
  t.false(connection.received.some((frame) => frame.method === 'tools/call'));
});

test('an HTTP+SSE client that does not read can answer but makes no more calls', async (t) => {
  const harness = await startHttpHarness(t);
  const { connection, stream: events, endpoint: path, post } = await openInitializedSse(harness);
  connection.ask('q', 'roots/list');
  await events.next();
  await fill({ events, connection, say: (count) => connection.notify('notifications/x', { count, padding }) });
  const body = JSON.stringify(call(1));
  const held = callHttpAndArrive({ port: harness.port, method: 'POST', path, headers: JSON_HEADERS, body });
  await held.arrived;
  t.is((await post({ jsonrpc: '2.0', id: 'q', result: { roots: [] } })).status, 202);
  t.is(connection.answers.length, 1);
  t.false(connection.received.some((frame) => frame.method === 'tools/call'));
  events.resume();
  t.is((await held.answer).status, 202);
  await connection.next('tools/call');
});

test('holds an HTTP+SSE client’s messages back while its server is full', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openInitializedSse(harness);
  session.connection.isFull = true;
  await session.post(notification('notifications/fills'));
  const post = { port: harness.port, method: 'POST', path: session.endpoint, headers: JSON_HEADERS };
  const held = callHttpAndArrive({ ...post, body: JSON.stringify(notification('notifications/held')) });
  await held.arrived;
  t.deepEqual(methodsAfter(session.connection, 'notifications/fills'), []);
  session.connection.drain();
  t.is((await held.answer).status, 202);
  t.deepEqual(methodsAfter(session.connection, 'notifications/fills'), ['notifications/held']);
});

test('a message that waits for a server that takes nothing is refused after the time limit, and not sent later', async (t) => {
  const harness = await startHttpHarness(t, { requestTimeoutMs: 60_000 });
  const session = await openStreamable(harness, '2025-06-18');
  session.connection.isFull = true;
  await session.post(notification('notifications/fills'));
  const headers = { ...POST_HEADERS, 'Mcp-Session-Id': session.id };
  const held = callHttpAndArrive({ port: harness.port, method: 'POST', headers, body: JSON.stringify(call(7)) });
  await held.arrived;
  harness.clock.advance(60_000);
  const answer = await held.answer;
  t.is(answer.status, 504);
  t.like(await answer.json(), {
    error: { data: { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT', phase: 'turn', timeoutMs: 60_000 } } },
  });
  session.connection.drain();
  t.is((await session.post(notification('notifications/after'))).status, 202);
  t.deepEqual(methodsAfter(session.connection, 'notifications/fills'), ['notifications/after']);
});

test('a message that waited in time leaves no timer behind, which would keep it', async (t) => {
  const harness = await startHttpHarness(t, { requestTimeoutMs: 60_000 });
  const session = await openStreamable(harness, '2025-06-18');
  const before = harness.clock.pendingTimers;
  session.connection.isFull = true;
  await session.post(notification('notifications/fills'));
  const headers = { ...POST_HEADERS, 'Mcp-Session-Id': session.id };
  const body = JSON.stringify(notification('notifications/held'));
  const held = callHttpAndArrive({ port: harness.port, method: 'POST', headers, body });
  await held.arrived;
  await waitFor(() => harness.clock.pendingTimers > before);
  session.connection.drain();
  t.is((await held.answer).status, 202);
  t.is(harness.clock.pendingTimers, before);
});

test('answers 503 with Retry-After when too many messages wait already', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const held = await postWhileFull(harness, session, MAX_WAITING_TURNS);
  const headers = { ...POST_HEADERS, 'Mcp-Session-Id': session.id };
  const refused = await callHttp({ port: harness.port, method: 'POST', headers, body: JSON.stringify(call(1)) });
  t.is(refused.status, 503);
  t.is(refused.headers['retry-after'], '1');
  t.like(await refused.json(), { error: { data: { bridge: { reason: 'ERR_SESSION_BUSY' } } } });
  session.connection.drain();
  const answers = await Promise.all(held);
  t.true(answers.every((answer) => answer.status === 202));
});

test('ends a session while messages wait for its server: they get 404', async (t) => {
  const harness = await startHttpHarness(t);
  const session = await openStreamable(harness);
  const [held] = await postWhileFull(harness, session, 1);
  await session.delete();
  t.is((await held)?.status, 404);
});
