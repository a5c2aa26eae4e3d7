import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { MAX_SUBSCRIBED } from '../../../src/mcp/vocabulary/subscribed-uris.ts';
import { MAX_WAITING_BYTES } from '../../../src/relay/sessions/session-restorer.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { type FakeDialer, messagesOf } from '../../support/fake-peers.ts';
import { serverFrame } from '../../support/frames.ts';
import { handshakeOf, RestorableSession, SERVER } from './restorable-session.ts';

const LOST = new BridgeError('ERR_UPSTREAM_CLOSED', 'the connection broke');
const UNREACHABLE = new BridgeError('ERR_UPSTREAM_CONNECT', 'nothing listens there');
const REFUSED = new BridgeError('ERR_UPSTREAM_AUTH', 'the server wants a login');

const POLICY = { afterLoss: 'goes-on', handshakeTimeoutMs: 300_000 } as const;

const setUp = (): RestorableSession => new RestorableSession({ policy: POLICY });
const ready = (): RestorableSession => setUp().open();

function acceptHandshake(dialer: FakeDialer): void {
  const id = handshakeOf(dialer);
  dialer.latest.listener.fromServer(resultFrame(id, SERVER));
}

test('passes messages untouched while the connection lives', (t) => {
  const session = ready();
  const { dialer } = session;
  const request = requestFrame(1, 'tools/list');
  session.say(request);
  t.is(dialer.latest.link.sent[0]?.frame, request);
  const answer = resultFrame(1, {});
  dialer.latest.listener.fromServer(answer);
  t.is(session.received[0]?.frame, answer);
});

test('a connection lost before the handshake is done is the end', (t) => {
  const session = setUp();
  const { dialer } = session;
  session.call(0, 'initialize');
  dialer.latest.listener.serverClosed(LOST);
  t.deepEqual(session.ends, [LOST]);
});

test('a lost connection fails the calls in flight and withdraws the questions of the server', (t) => {
  const session = ready();
  const { dialer } = session;
  const lane = session.call(1, 'tools/call');
  dialer.latest.listener.fromServer(requestFrame(7, 'elicitation/create'));
  session.peer.take();
  dialer.latest.listener.serverClosed(LOST);
  t.is(session.received[0]?.call?.lane, lane);
  t.like(messagesOf(session.received), [
    { id: 1, error: { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_CLOSED' } } } },
    { method: 'notifications/cancelled', params: { requestId: 7 } },
  ]);
  t.deepEqual(session.ends, []);
});

test('after a pause a new connection gets the handshake, the log level and the subscriptions again', (t) => {
  const session = ready();
  const { deps, dialer } = session;
  const { listener: old } = dialer.latest;
  session.call(1, 'logging/setLevel', { level: 'debug' });
  session.call(2, 'resources/subscribe', { uri: 'a:/1' });
  session.call(3, 'resources/subscribe', { uri: 'a:/2' });
  session.call(4, 'resources/unsubscribe', { uri: 'a:/2' });
  for (const id of [1, 2, 3, 4]) old.fromServer(resultFrame(id, {}));
  session.peer.take();
  old.serverClosed(LOST);
  deps.clock.advance(1000);
  t.is(dialer.dialed.length, 2);
  t.like(messagesOf(dialer.latest.link.take()), [
    { id: 'id-1', method: 'initialize', params: { protocolVersion: '2025-06-18' } },
  ]);
  dialer.latest.listener.fromServer(resultFrame('id-1', SERVER));
  const restored = dialer.latest.link.take();
  t.like(messagesOf(restored), [
    { method: 'notifications/initialized' },
    { id: 'id-2', method: 'logging/setLevel', params: { level: 'debug' } },
    { id: 'id-3', method: 'resources/subscribe', params: { uri: 'a:/1' } },
  ]);
  // Translators know requests by their calls.
  t.deepEqual(
    restored.map(({ call }) => call?.id),
    [undefined, 'id-2', 'id-3'],
  );
  for (const id of ['id-2', 'id-3']) dialer.latest.listener.fromServer(resultFrame(id, {}));
  // The client is told to look again, and hears nothing of the repetition.
  t.like(messagesOf(session.received), [
    { method: 'notifications/tools/list_changed' },
    { method: 'notifications/resources/updated', params: { uri: 'a:/1' } },
  ]);
  t.is(session.received.length, 2);
});

test('what the new connection refuses of it is told in the log, and asked of no further one', (t) => {
  const session = ready();
  const { dialer, deps, entries } = session;
  session.call(1, 'logging/setLevel', { level: 'debug' });
  session.call(2, 'resources/subscribe', { uri: 'a:/1' });
  for (const id of [1, 2]) dialer.latest.listener.fromServer(resultFrame(id, {}));
  dialer.latest.listener.serverClosed(LOST);
  deps.clock.advance(1000);
  acceptHandshake(dialer);
  for (const { frame } of dialer.latest.link.take().slice(1)) {
    dialer.latest.listener.fromServer(errorFrame(frame.id, { code: -32601, message: 'no' }));
  }
  t.deepEqual(
    entries.filter(({ level }) => level === 40).map(({ method }) => method),
    ['logging/setLevel', 'resources/subscribe'],
  );
  dialer.latest.listener.serverClosed(LOST);
  deps.clock.advance(1000);
  acceptHandshake(dialer);
  t.like(messagesOf(dialer.latest.link.take()), [{ method: 'notifications/initialized' }]);
});

test('a client that had not finished its handshake finishes it with the new connection', (t) => {
  const session = setUp();
  const { dialer } = session;
  session.call(0, 'initialize', { protocolVersion: '2025-06-18' });
  dialer.latest.listener.fromServer(resultFrame(0, SERVER));
  dialer.latest.listener.serverClosed(LOST);
  session.say(notificationFrame('notifications/initialized'));
  acceptHandshake(dialer);
  t.deepEqual(messagesOf(dialer.latest.link.take()), [{ jsonrpc: '2.0', method: 'notifications/initialized' }]);
});

test('subscriptions that were refused or lost are not repeated', (t) => {
  const session = ready();
  const { deps, dialer } = session;
  session.call(1, 'resources/subscribe', { uri: 'a:/refused' });
  dialer.latest.listener.fromServer(errorFrame(1, { code: -32002, message: 'no' }));
  session.call(2, 'resources/subscribe', { uri: 'a:/lost' });
  dialer.latest.listener.serverClosed(LOST);
  deps.clock.advance(1000);
  acceptHandshake(dialer);
  t.like(messagesOf(dialer.latest.link.take()), [{ method: 'notifications/initialized' }]);
});

test('a client subscribes to so many resources, and is told when it is too many', (t) => {
  const session = ready();
  const { dialer } = session;
  for (let id = 1; id <= MAX_SUBSCRIBED; id += 1) {
    session.call(id, 'resources/subscribe', { uri: `a:/${id}` });
    dialer.latest.listener.fromServer(resultFrame(id, {}));
  }
  dialer.latest.link.take();
  session.peer.take();
  session.call('more', 'resources/subscribe', { uri: 'a:/more' });
  t.like(messagesOf(session.received), [{ id: 'more', error: { data: { bridge: { reason: 'ERR_SESSION_BUSY' } } } }]);
  t.deepEqual(dialer.latest.link.take(), []);
  session.call('old', 'resources/unsubscribe', { uri: 'a:/1' });
  dialer.latest.listener.fromServer(resultFrame('old', {}));
  session.call('again', 'resources/subscribe', { uri: 'a:/more' });
  t.like(messagesOf(dialer.latest.link.take()), [{ id: 'old' }, { id: 'again' }]);
});

test('calls that wait for the connection hold so many bytes; further ones are told to try again', (t) => {
  const session = ready();
  const { dialer } = session;
  dialer.latest.listener.serverClosed(LOST);
  const text = 'x'.repeat(MAX_WAITING_BYTES / 2);
  for (const id of [1, 2, 3]) session.call(id, 'tools/call', { text });
  t.like(messagesOf(session.received), [{ id: 3, error: { data: { bridge: { reason: 'ERR_UPSTREAM_STARTING' } } } }]);
  acceptHandshake(dialer);
  t.like(messagesOf(dialer.latest.link.take()), [{ method: 'notifications/initialized' }, { id: 1 }, { id: 2 }]);
});

test('a call during the loss starts the attempt at once, waits for it and goes out once', (t) => {
  const session = ready();
  const { dialer } = session;
  dialer.latest.listener.serverClosed(LOST);
  const lane = session.call(5, 'tools/list');
  t.is(dialer.dialed.length, 2);
  acceptHandshake(dialer);
  t.like(messagesOf(dialer.latest.link.take()), [
    { method: 'notifications/initialized' },
    { id: 5, method: 'tools/list' },
  ]);
  dialer.latest.listener.fromServer(resultFrame(5, { tools: [] }));
  t.is(session.received.at(-1)?.call?.lane, lane);
});

test('a call withdrawn while it waits does not go out', (t) => {
  const session = ready();
  const { dialer } = session;
  dialer.latest.listener.serverClosed(LOST);
  session.call(5, 'tools/call');
  session.say(notificationFrame('notifications/cancelled', { requestId: 5 }));
  acceptHandshake(dialer);
  t.like(messagesOf(dialer.latest.link.take()), [{ method: 'notifications/initialized' }]);
});

test('an attempt that fails answers those who waited and is repeated after a longer pause', (t) => {
  const session = ready();
  const { deps, dialer } = session;
  dialer.latest.listener.serverClosed(LOST);
  session.call(5, 'tools/list');
  dialer.latest.listener.serverClosed(LOST);
  t.like(messagesOf(session.received), [{ id: 5, error: { code: -32603 } }]);
  deps.clock.advance(1999);
  t.is(dialer.dialed.length, 2);
  deps.clock.advance(1);
  t.is(dialer.dialed.length, 3);
});

test('the log says what is done about a loss, which the connection has told of, and each attempt that fails, once', (t) => {
  const session = ready();
  const { deps, dialer, entries } = session;
  dialer.latest.listener.serverClosed(LOST);
  deps.clock.advance(1000);
  dialer.latest.listener.serverClosed(UNREACHABLE);
  deps.clock.advance(2000);
  dialer.failure = REFUSED;
  dialer.latest.listener.serverClosed(UNREACHABLE);
  deps.clock.advance(4000);
  dialer.failure = undefined;
  deps.clock.advance(8000);
  acceptHandshake(dialer);
  t.deepEqual(
    entries.map(({ level, code, msg }) => [level, code, msg]),
    [
      [30, undefined, 'reconnecting to fake-server'],
      [40, UNREACHABLE.code, `not reconnected: ${UNREACHABLE.message}`],
      [40, UNREACHABLE.code, `not reconnected: ${UNREACHABLE.message}`],
      [40, REFUSED.code, `not reconnected: ${REFUSED.message}`],
      [30, undefined, 'reconnected to fake-server'],
    ],
  );
});

test('answers to questions of the old connection do not reach the new one', (t) => {
  const session = ready();
  const { dialer } = session;
  dialer.latest.listener.fromServer(requestFrame(7, 'roots/list'));
  dialer.latest.listener.serverClosed(LOST);
  session.say(resultFrame(7, { roots: [] }));
  session.call(8, 'tools/list');
  acceptHandshake(dialer);
  t.like(messagesOf(dialer.latest.link.take()), [{ method: 'notifications/initialized' }, { id: 8 }]);
});

test('a server that refuses the repeated handshake is tried again later', (t) => {
  const session = ready();
  const { deps, dialer } = session;
  dialer.latest.listener.serverClosed(LOST);
  session.call(5, 'tools/list');
  const refusing = dialer.latest;
  refusing.listener.fromServer(errorFrame(handshakeOf(dialer), { code: -32603, message: 'not now' }));
  t.is(refusing.link.closedWith.length, 1);
  t.like(messagesOf(session.received), [{ id: 5, error: { data: { bridge: { reason: 'ERR_UPSTREAM_PROTOCOL' } } } }]);
  deps.clock.advance(2000);
  t.is(dialer.dialed.length, 3);
  t.deepEqual(session.ends, []);
});

test('so is one that never answers the repeated handshake: what waited is told, and the next connection serves', (t) => {
  const session = ready();
  const { deps, dialer } = session;
  dialer.latest.listener.serverClosed(LOST);
  session.call(5, 'tools/list');
  const hanging = dialer.latest;
  deps.clock.advance(300_000);
  t.is(hanging.link.closedWith.length, 1);
  t.like(messagesOf(session.received), [{ id: 5, error: { data: { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT' } } } }]);
  session.call(6, 'tools/list');
  acceptHandshake(dialer);
  dialer.latest.link.take();
  deps.clock.advance(600_000);
  t.deepEqual(dialer.latest.link.closedWith, []);
  session.relay.close(LOST);
  t.is(deps.clock.pendingTimers, 0);
});

test('close ends the attempts', (t) => {
  const session = ready();
  const { deps, dialer } = session;
  dialer.latest.listener.serverClosed(LOST);
  session.relay.close(LOST);
  deps.clock.advance(60_000);
  t.is(dialer.dialed.length, 1);
});

for (const [title, result] of [
  ['null', 'null'],
  ['no JSON', '{"n":NaN}'],
] as const) {
  test(`a new connection whose answer to the handshake is ${title} is given up and tried again`, (t) => {
    const session = ready();
    const { deps, dialer } = session;
    dialer.latest.listener.serverClosed(LOST);
    deps.clock.advance(1000);
    const id = JSON.stringify(handshakeOf(dialer));
    dialer.latest.listener.fromServer(serverFrame(`{"jsonrpc":"2.0","id":${id},"result":${result}}`));
    t.is(dialer.latest.link.closedWith.length, 1);
    deps.clock.advance(60_000);
    t.is(dialer.dialed.length, 3);
  });
}

test('so is one whose answer to the handshake was too large to take', (t) => {
  const session = ready();
  const { deps, dialer } = session;
  dialer.latest.listener.serverClosed(LOST);
  deps.clock.advance(1000);
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
  dialer.latest.listener.serverFault({ error, kind: 'result', id: handshakeOf(dialer) });
  t.deepEqual(session.received, []);
  t.is(dialer.latest.link.closedWith.length, 1);
});

/** A session whose client waits because its server does not read. */
function waiting(): RestorableSession {
  const session = ready();
  session.dialer.latest.link.hasCapacity = false;
  session.say(notificationFrame('x-vendor/event'));
  session.dialer.latest.listener.serverClosed(LOST);
  return session;
}

test('a client that waited for the lost connection to drain may go on with the new one', (t) => {
  const { deps, dialer, peer } = waiting();
  deps.clock.advance(1000);
  t.true(peer.isPaused);
  acceptHandshake(dialer);
  t.false(peer.isPaused);
});

test('it may also go on when there is no new connection: what it says then is answered', (t) => {
  const { deps, dialer, peer } = waiting();
  t.true(peer.isPaused);
  dialer.failure = LOST;
  deps.clock.advance(1000);
  t.false(peer.isPaused);
});

test('a new connection that is full at once lets the client wait', (t) => {
  const session = waiting();
  const { deps, dialer, peer } = session;
  deps.clock.advance(1000);
  session.say(notificationFrame('x-vendor/event'));
  dialer.latest.link.hasCapacity = false;
  acceptHandshake(dialer);
  t.true(peer.isPaused);
});

test('the answer to a question of the new connection reaches it, even while the session is being restored', (t) => {
  const session = ready();
  const { deps, dialer } = session;
  dialer.latest.listener.serverClosed(LOST);
  deps.clock.advance(1000);
  dialer.latest.listener.fromServer(requestFrame('new', 'roots/list'));
  session.say(resultFrame('new', { roots: [] }));
  t.like(messagesOf(dialer.latest.link.take()), [{ method: 'initialize' }, { id: 'new', result: { roots: [] } }]);
});

test('a restored session has nothing between its client and the new connection', (t) => {
  const session = ready();
  const { deps, dialer, relay } = session;
  session.call(1, 'resources/subscribe', { uri: 'a:/1' });
  dialer.latest.listener.fromServer(resultFrame(1, {}));
  dialer.latest.listener.serverClosed(LOST);
  deps.clock.advance(1000);
  acceptHandshake(dialer);
  t.not(dialer.latest.listener, relay, 'a subscription is still being restored');
  for (const { frame } of dialer.latest.link.take()) {
    if (frame.method === 'resources/subscribe') dialer.latest.listener.fromServer(resultFrame(frame.id ?? '', {}));
  }
  t.is(dialer.latest.listener, relay);
});

test('a connection that is lost while subscriptions are restored is replaced in turn', (t) => {
  const session = ready();
  const { deps, dialer } = session;
  session.call(1, 'resources/subscribe', { uri: 'a:/1' });
  dialer.latest.listener.fromServer(resultFrame(1, {}));
  dialer.latest.listener.serverClosed(LOST);
  deps.clock.advance(1000);
  acceptHandshake(dialer);
  session.call(2, 'tools/call');
  session.peer.take();
  dialer.latest.listener.serverClosed(LOST);
  t.like(messagesOf(session.received), [{ id: 2, error: { data: { bridge: { reason: LOST.code } } } }]);
  deps.clock.advance(1000);
  acceptHandshake(dialer);
  t.like(messagesOf(dialer.latest.link.take()), [
    { method: 'notifications/initialized' },
    { method: 'resources/subscribe', params: { uri: 'a:/1' } },
  ]);
});
