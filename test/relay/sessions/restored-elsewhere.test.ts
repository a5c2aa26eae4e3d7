import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { SessionState } from '../../../src/relay/sessions/session-state.ts';
import type { JsonRpcId } from '../../../src/wire/frame.ts';
import { notificationFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { type FakeDialer, messagesOf } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { RestorableSession, SERVER } from './restorable-session.ts';

const LOST = new BridgeError('ERR_UPSTREAM_CLOSED', 'the connection broke');
const REVISION = '2025-06-18';
const CLIENT = { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: 'c', version: '1' } };

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

function setUp(state: SessionState, begins: 'at-once' | 'with-a-request' = 'at-once'): RestorableSession {
  return new RestorableSession({ policy: { afterLoss: 'ends', begins, handshakeTimeoutMs: 300_000 }, state });
}

/** Answers what the newest connection is asked on behalf of the bridge, handshake first. */
function accept({ latest }: FakeDialer, offer: object = SERVER): void {
  for (const { frame } of latest.link.take()) {
    if (frame.method === 'initialize') latest.listener.fromServer(resultFrame(frame.id as JsonRpcId, offer));
  }
}

function answerAll({ latest }: FakeDialer): readonly unknown[] {
  const sent = latest.link.take();
  for (const { frame, call } of sent) {
    if (frame.kind === 'request') latest.listener.fromServer(resultFrame(frame.id as JsonRpcId, {}), call);
  }
  return messagesOf(sent);
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('what a client sets up is kept as a session that is opened anew elsewhere', (t) => {
  const state = new SessionState();
  const session = setUp(state);
  const { dialer } = session;
  session.call(0, 'initialize', CLIENT);
  dialer.latest.listener.fromServer(resultFrame(0, SERVER));
  session.say(notificationFrame('notifications/initialized'));
  session.call(1, 'resources/subscribe', { uri: 'a:/1' });
  dialer.latest.listener.fromServer(resultFrame(1, {}));
  const stored = SessionState.from(JSON.stringify(state));
  t.is(stored.continuation, 'new-session');
  t.true(stored.isInitialized);
  t.deepEqual(stored.initialize, CLIENT);
  t.like(stored.wishes(), [{ params: { uri: 'a:/1' } }]);
});

test('a session from elsewhere begins with its handshake, level and subscriptions, and its calls wait for that', async (t) => {
  const session = setUp(storedSession());
  const { dialer } = session;
  t.is(dialer.dialed.length, 0);
  const lane = session.call(7, 'tools/call');
  t.is(dialer.dialed.length, 1);
  await turn();
  t.is(dialer.dialed.length, 1);
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
  t.like(messagesOf(session.received), [
    { method: 'notifications/tools/list_changed' },
    { method: 'notifications/resources/updated', params: { uri: 'a:/1' } },
    { id: 7, result: {} },
  ]);
  t.is(session.received.at(-1)?.call?.lane, lane);
});

test('it begins by itself where no request comes', async (t) => {
  const session = setUp(storedSession());
  const { dialer } = session;
  await turn();
  t.like(messagesOf(dialer.latest.link.sent), [{ method: 'initialize' }]);
});

test('where the server wants to see headers of its client, it begins with a request that has them', async (t) => {
  const session = setUp(storedSession(), 'with-a-request');
  const { dialer } = session;
  await turn();
  session.say(notificationFrame('notifications/roots/list_changed'));
  t.is(dialer.dialed.length, 0);
  const headers = { 'x-api-key': 'of-alice' };
  session.call(7, 'tools/call', {}, headers);
  t.deepEqual(dialer.latest.link.sent[0]?.call?.lane.headers, headers);
});

test('a server that cannot be reached fails the calls that wait, not the session', async (t) => {
  const session = setUp(storedSession());
  const { deps, dialer } = session;
  session.call(7, 'tools/call');
  dialer.latest.listener.serverClosed(LOST);
  t.like(messagesOf(session.received), [{ id: 7, error: { data: { bridge: { reason: LOST.code } } } }]);
  deps.clock.advance(1000);
  accept(dialer);
  session.call(8, 'tools/call');
  answerAll(dialer);
  t.like(messagesOf(session.received).at(-1), { id: 8, result: {} });
  t.deepEqual(session.ends, []);
});

test('a server that speaks another revision by now ends it: its client opens a new one', (t) => {
  const session = setUp(storedSession());
  const { dialer } = session;
  session.call(7, 'tools/call');
  accept(dialer, { ...SERVER, protocolVersion: '2025-03-26' });
  t.deepEqual(
    session.ends.map(({ code }) => code),
    ['ERR_UPSTREAM_PROTOCOL'],
  );
  t.is(dialer.latest.link.closedWith.length, 1);
});

test('a connection that is lost once the session goes on ends it, as it ends one that began here', (t) => {
  const session = setUp(storedSession());
  const { deps, dialer } = session;
  session.call(7, 'tools/call');
  accept(dialer);
  answerAll(dialer);
  dialer.latest.listener.serverClosed(LOST);
  t.deepEqual(session.ends, [LOST]);
  t.is(deps.clock.pendingTimers, 0);
});

test('a client that does not keep up holds back the server of the new connection, once that has let it in', (t) => {
  const session = setUp(storedSession());
  const { dialer } = session;
  session.peer.hasCapacity = false;
  session.relay.fromServer(notificationFrame('x-vendor/event'));
  session.call(7, 'tools/call');
  t.false(dialer.latest.link.isPaused);
  accept(dialer);
  t.true(dialer.latest.link.isPaused);
  session.relay.clientDrained();
  t.false(dialer.latest.link.isPaused);
});

test('its end leaves nothing behind, wherever it has come to', async (t) => {
  for (const begins of ['at-once', 'with-a-request'] as const) {
    const session = setUp(storedSession(), begins);
    const { deps, dialer } = session;
    session.relay.close(LOST);
    await turn();
    t.is(dialer.dialed.length, 0);
    t.is(deps.clock.pendingTimers, 0);
  }
});
