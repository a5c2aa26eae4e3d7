import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { Exchange } from '../../../src/relay/exchange.ts';
import type { UpstreamLink } from '../../../src/relay/ports.ts';
import { SessionState } from '../../../src/relay/sessions/session-state.ts';
import { keepStoredSessions } from '../../../src/upstream/resilience/reviving-dialer.ts';
import type { JsonRpcId } from '../../../src/wire/frame.ts';
import { notificationFrame, requestFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { createFakeDeps, FakeDialer, FakeLane, FakeServerListener, messagesOf } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';

const LOST = new BridgeError('ERR_UPSTREAM_CLOSED', 'the connection broke');
const REVISION = '2025-06-18';
const CLIENT = { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: 'c', version: '1' } };
const SERVER = { protocolVersion: REVISION, capabilities: { tools: { listChanged: true }, resources: {} } };

/** A session with a level and a subscription, as another bridge has stored it. */
function storedSession(): SessionState {
  const state = new SessionState();
  state.continuation = 'new-session';
  state.succeeded(clientFrame({ id: 1, method: 'initialize', params: CLIENT }), resultFrame(1, SERVER));
  state.isInitialized = true;
  state.succeeded(clientFrame({ id: 2, method: 'logging/setLevel', params: { level: 'error' } }), resultFrame(2, {}));
  state.succeeded(clientFrame({ id: 3, method: 'resources/subscribe', params: { uri: 'a:/1' } }), resultFrame(3, {}));
  return SessionState.from(JSON.stringify(state));
}

function setUp(session: SessionState, begins: 'at-once' | 'with-a-request' = 'at-once') {
  const deps = createFakeDeps();
  const dialer = new FakeDialer();
  const listener = new FakeServerListener();
  const link = keepStoredSessions({ deps, handshakeTimeoutMs: 300_000, begins })(dialer, listener, session);
  return { deps, dialer, listener, link };
}

/** Sends a request as the relay does. */
function call(
  link: UpstreamLink,
  id: JsonRpcId,
  method: string,
  params: object = {},
  headers?: Readonly<Record<string, string>>,
): Exchange {
  const lane = Object.assign(new FakeLane(), headers && { headers });
  const exchange = new Exchange(id, method, lane, undefined, 0);
  link.send(requestFrame(id, method, params), exchange);
  return exchange;
}

/** Answers what the newest connection is asked on behalf of the bridge, handshake first. */
function accept({ latest }: FakeDialer, offer: object = SERVER): void {
  for (const { frame } of latest.link.take()) {
    if (frame.method === 'initialize') latest.listener.fromServer(resultFrame(frame.id as JsonRpcId, offer));
  }
}

function answerAll({ latest }: FakeDialer): readonly unknown[] {
  const sent = latest.link.take();
  for (const { frame, exchange } of sent) {
    if (frame.kind === 'request') latest.listener.fromServer(resultFrame(frame.id as JsonRpcId, {}), exchange);
  }
  return messagesOf(sent);
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('without a session to keep, nothing stands between', (t) => {
  const deps = createFakeDeps();
  const dialer = new FakeDialer();
  const keep = keepStoredSessions({ deps, handshakeTimeoutMs: 0, begins: 'at-once' });
  t.is(keep(dialer, new FakeServerListener(), undefined), dialer.latest.link);
});

test('what a client sets up is kept as a session that is opened anew elsewhere', (t) => {
  const session = new SessionState();
  const { dialer, link } = setUp(session);
  call(link, 0, 'initialize', CLIENT);
  dialer.latest.listener.fromServer(resultFrame(0, SERVER));
  link.send(notificationFrame('notifications/initialized'));
  call(link, 1, 'resources/subscribe', { uri: 'a:/1' });
  dialer.latest.listener.fromServer(resultFrame(1, {}));
  const stored = SessionState.from(JSON.stringify(session));
  t.is(stored.continuation, 'new-session');
  t.true(stored.isInitialized);
  t.deepEqual(stored.initialize, CLIENT);
  t.like(stored.wishes(), [{ params: { uri: 'a:/1' } }]);
});

test('a session from elsewhere begins with its handshake, level and subscriptions, and its calls wait for that', async (t) => {
  const { dialer, listener, link } = setUp(storedSession());
  t.is(dialer.dialled.length, 0);
  const exchange = call(link, 7, 'tools/call');
  t.is(dialer.dialled.length, 1);
  await turn();
  t.is(dialer.dialled.length, 1);
  t.like(messagesOf(dialer.latest.link.sent), [{ method: 'initialize', params: CLIENT }]);
  accept(dialer);
  const sent = answerAll(dialer);
  t.like(sent, [
    { method: 'notifications/initialized' },
    { method: 'logging/setLevel', params: { level: 'error' } },
    { method: 'resources/subscribe', params: { uri: 'a:/1' } },
    { id: 7, method: 'tools/call' },
  ]);
  // What may have changed is told when the server tells of changes, and the answer is the client's own.
  t.like(messagesOf(listener.received), [
    { method: 'notifications/tools/list_changed' },
    { method: 'notifications/resources/updated', params: { uri: 'a:/1' } },
    { id: 7, result: {} },
  ]);
  t.is(listener.received.at(-1)?.exchange, exchange);
});

test('it begins by itself where no request comes', async (t) => {
  const { dialer } = setUp(storedSession());
  await turn();
  t.like(messagesOf(dialer.latest.link.sent), [{ method: 'initialize' }]);
});

test('where the server wants to see headers of its client, it begins with a request that has them', async (t) => {
  const { dialer, link } = setUp(storedSession(), 'with-a-request');
  await turn();
  link.send(notificationFrame('notifications/roots/list_changed'));
  t.is(dialer.dialled.length, 0);
  const headers = { 'x-api-key': 'of-alice' };
  call(link, 7, 'tools/call', {}, headers);
  t.deepEqual(dialer.latest.link.sent[0]?.exchange?.lane.headers, headers);
});

test('a server that cannot be reached fails the calls that wait, not the session', async (t) => {
  const { deps, dialer, listener, link } = setUp(storedSession());
  call(link, 7, 'tools/call');
  dialer.latest.listener.serverClosed(LOST);
  t.like(messagesOf(listener.received), [{ id: 7, error: { data: { bridge: { reason: LOST.code } } } }]);
  deps.clock.advance(1000);
  accept(dialer);
  call(link, 8, 'tools/call');
  answerAll(dialer);
  t.like(messagesOf(listener.received).at(-1), { id: 8, result: {} });
  t.deepEqual(listener.closedWith, []);
});

test('a server that speaks another revision by now ends it: its client opens a new one', (t) => {
  const { dialer, listener, link } = setUp(storedSession());
  call(link, 7, 'tools/call');
  accept(dialer, { ...SERVER, protocolVersion: '2025-03-26' });
  t.deepEqual(
    listener.closedWith.map(({ code }) => code),
    ['ERR_UPSTREAM_PROTOCOL'],
  );
  t.is(dialer.latest.link.closedWith.length, 1);
});

test('a connection that is lost once the session goes on ends it, as it ends one that began here', (t) => {
  const { deps, dialer, listener, link } = setUp(storedSession());
  call(link, 7, 'tools/call');
  accept(dialer);
  answerAll(dialer);
  dialer.latest.listener.serverClosed(LOST);
  t.deepEqual(listener.closedWith, [LOST]);
  t.is(deps.clock.pendingTimers, 0);
});

test('a client that does not keep up holds back the server of the new connection, once that has let it in', (t) => {
  const { dialer, link } = setUp(storedSession());
  link.pause();
  call(link, 7, 'tools/call');
  t.false(dialer.latest.link.isPaused);
  accept(dialer);
  t.true(dialer.latest.link.isPaused);
  link.resume();
  t.false(dialer.latest.link.isPaused);
});

test('its end leaves nothing behind, wherever it has come to', async (t) => {
  for (const begins of ['at-once', 'with-a-request'] as const) {
    const { deps, dialer, link } = setUp(storedSession(), begins);
    link.close(LOST);
    await turn();
    t.is(dialer.dialled.length, 0);
    t.is(deps.clock.pendingTimers, 0);
  }
});
