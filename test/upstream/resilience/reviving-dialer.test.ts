import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { MAX_SUBSCRIBED } from '../../../src/mcp/vocabulary/subscribed-uris.ts';
import { Exchange } from '../../../src/relay/exchange.ts';
import type { UpstreamLink } from '../../../src/relay/ports.ts';
import { MAX_WAITING_BYTES } from '../../../src/upstream/resilience/restoring-link.ts';
import { createRevivingDialer } from '../../../src/upstream/resilience/reviving-dialer.ts';
import type { JsonRpcId } from '../../../src/wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { collectLog } from '../../process/collected-log.ts';
import { createFakeDeps, FakeDialer, FakeLane, FakeServerListener, messagesOf } from '../../support/fake-peers.ts';
import { serverFrame } from '../../support/frames.ts';

const LOST = new BridgeError('ERR_UPSTREAM_CLOSED', 'the connection broke');
const UNREACHABLE = new BridgeError('ERR_UPSTREAM_CONNECT', 'nothing listens there');
const REFUSED = new BridgeError('ERR_UPSTREAM_AUTH', 'the server wants a login');
const SERVER = { protocolVersion: '2025-06-18', capabilities: { tools: { listChanged: true }, resources: {} } };

function setUp() {
  const { log, entries } = collectLog();
  const deps = { ...createFakeDeps(), log };
  const dialer = new FakeDialer();
  const listener = new FakeServerListener();
  const link = createRevivingDialer(dialer, { deps, handshakeTimeoutMs: 300_000 }).dial(listener);
  return { deps, dialer, listener, link, entries };
}

/** Sends a request as the relay does. */
function call(link: UpstreamLink, id: number | string, method: string, params: object = {}): Exchange {
  const exchange = new Exchange(id, method, new FakeLane(), undefined, 0);
  link.send(requestFrame(id, method, params), exchange);
  return exchange;
}

function ready() {
  const parts = setUp();
  call(parts.link, 0, 'initialize', { protocolVersion: '2025-06-18' });
  parts.dialer.latest.listener.fromServer(resultFrame(0, SERVER));
  parts.link.send(notificationFrame('notifications/initialized'));
  parts.dialer.latest.link.take();
  parts.listener.received.length = 0;
  return parts;
}

/** What the server of the newest connection is asked in its handshake; everything else it was told is dropped. */
function handshakeOf({ latest }: FakeDialer): JsonRpcId {
  const id = latest.link.take().find(({ frame }) => frame.method === 'initialize')?.frame.id;
  if (id === undefined) throw new Error('no handshake was begun');
  return id;
}

function acceptHandshake(dialer: FakeDialer): void {
  const id = handshakeOf(dialer);
  dialer.latest.listener.fromServer(resultFrame(id, SERVER));
}

test('passes messages untouched while the connection lives', (t) => {
  const { dialer, listener, link } = ready();
  const request = requestFrame(1, 'tools/list');
  link.send(request, new Exchange(1, 'tools/list', new FakeLane(), undefined, 0));
  t.is(dialer.latest.link.sent[0]?.frame, request);
  const answer = resultFrame(1, {});
  dialer.latest.listener.fromServer(answer);
  t.is(listener.received[0]?.frame, answer);
});

test('a connection lost before the handshake is done is the end', (t) => {
  const { dialer, listener, link } = setUp();
  call(link, 0, 'initialize');
  dialer.latest.listener.serverClosed(LOST);
  t.deepEqual(listener.closedWith, [LOST]);
});

test('a lost connection fails the calls in flight and withdraws the questions of the server', (t) => {
  const { dialer, listener, link } = ready();
  const exchange = call(link, 1, 'tools/call');
  dialer.latest.listener.fromServer(requestFrame(7, 'elicitation/create'));
  listener.received.length = 0;
  dialer.latest.listener.serverClosed(LOST);
  t.is(listener.received[0]?.exchange, exchange);
  t.like(messagesOf(listener.received), [
    { id: 1, error: { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_CLOSED' } } } },
    { method: 'notifications/cancelled', params: { requestId: 7 } },
  ]);
  t.deepEqual(listener.closedWith, []);
});

test('after a pause a new connection gets the handshake, the log level and the subscriptions again', (t) => {
  const { deps, dialer, listener, link } = ready();
  const { listener: old } = dialer.latest;
  call(link, 1, 'logging/setLevel', { level: 'debug' });
  call(link, 2, 'resources/subscribe', { uri: 'a:/1' });
  call(link, 3, 'resources/subscribe', { uri: 'a:/2' });
  call(link, 4, 'resources/unsubscribe', { uri: 'a:/2' });
  for (const id of [1, 2, 3, 4]) old.fromServer(resultFrame(id, {}));
  listener.received.length = 0;
  old.serverClosed(LOST);
  deps.clock.advance(1000);
  t.is(dialer.dialled.length, 2);
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
  // Translators know requests by their exchanges.
  t.deepEqual(
    restored.map(({ exchange }) => exchange?.id),
    [undefined, 'id-2', 'id-3'],
  );
  for (const id of ['id-2', 'id-3']) dialer.latest.listener.fromServer(resultFrame(id, {}));
  // The client is told to look again, and hears nothing of the repetition.
  t.like(messagesOf(listener.received), [
    { method: 'notifications/tools/list_changed' },
    { method: 'notifications/resources/updated', params: { uri: 'a:/1' } },
  ]);
  t.is(listener.received.length, 2);
});

test('what the new connection refuses of it is told in the log, and asked of no further one', (t) => {
  const { dialer, deps, link, entries } = ready();
  call(link, 1, 'logging/setLevel', { level: 'debug' });
  call(link, 2, 'resources/subscribe', { uri: 'a:/1' });
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
  const { dialer, link } = setUp();
  call(link, 0, 'initialize', { protocolVersion: '2025-06-18' });
  dialer.latest.listener.fromServer(resultFrame(0, SERVER));
  dialer.latest.listener.serverClosed(LOST);
  link.send(notificationFrame('notifications/initialized'));
  acceptHandshake(dialer);
  t.deepEqual(messagesOf(dialer.latest.link.take()), [{ jsonrpc: '2.0', method: 'notifications/initialized' }]);
});

test('subscriptions that were refused or lost are not repeated', (t) => {
  const { deps, dialer, link } = ready();
  call(link, 1, 'resources/subscribe', { uri: 'a:/refused' });
  dialer.latest.listener.fromServer(errorFrame(1, { code: -32002, message: 'no' }));
  call(link, 2, 'resources/subscribe', { uri: 'a:/lost' });
  dialer.latest.listener.serverClosed(LOST);
  deps.clock.advance(1000);
  acceptHandshake(dialer);
  t.like(messagesOf(dialer.latest.link.take()), [{ method: 'notifications/initialized' }]);
});

test('a client subscribes to so many resources, and is told when it is too many', (t) => {
  const { dialer, listener, link } = ready();
  for (let id = 1; id <= MAX_SUBSCRIBED; id += 1) {
    call(link, id, 'resources/subscribe', { uri: `a:/${id}` });
    dialer.latest.listener.fromServer(resultFrame(id, {}));
  }
  dialer.latest.link.take();
  listener.received.length = 0;
  call(link, 'more', 'resources/subscribe', { uri: 'a:/more' });
  t.like(messagesOf(listener.received), [{ id: 'more', error: { data: { bridge: { reason: 'ERR_SESSION_BUSY' } } } }]);
  t.deepEqual(dialer.latest.link.take(), []);
  call(link, 'old', 'resources/unsubscribe', { uri: 'a:/1' });
  dialer.latest.listener.fromServer(resultFrame('old', {}));
  call(link, 'again', 'resources/subscribe', { uri: 'a:/more' });
  t.like(messagesOf(dialer.latest.link.take()), [{ id: 'old' }, { id: 'again' }]);
});

test('calls that wait for the connection hold so many bytes; further ones are told to try again', (t) => {
  const { dialer, listener, link } = ready();
  dialer.latest.listener.serverClosed(LOST);
  const text = 'x'.repeat(MAX_WAITING_BYTES / 2);
  for (const id of [1, 2, 3]) call(link, id, 'tools/call', { text });
  t.like(messagesOf(listener.received), [{ id: 3, error: { data: { bridge: { reason: 'ERR_UPSTREAM_STARTING' } } } }]);
  acceptHandshake(dialer);
  t.like(messagesOf(dialer.latest.link.take()), [{ method: 'notifications/initialized' }, { id: 1 }, { id: 2 }]);
});

test('a call during the loss starts the attempt at once, waits for it and goes out once', (t) => {
  const { dialer, listener, link } = ready();
  dialer.latest.listener.serverClosed(LOST);
  const exchange = call(link, 5, 'tools/list');
  t.is(dialer.dialled.length, 2);
  acceptHandshake(dialer);
  t.like(messagesOf(dialer.latest.link.take()), [
    { method: 'notifications/initialized' },
    { id: 5, method: 'tools/list' },
  ]);
  dialer.latest.listener.fromServer(resultFrame(5, { tools: [] }));
  t.is(listener.received.at(-1)?.exchange, exchange);
});

test('a call withdrawn while it waits does not go out', (t) => {
  const { dialer, link } = ready();
  dialer.latest.listener.serverClosed(LOST);
  const exchange = call(link, 5, 'tools/call');
  exchange.cancel('client');
  acceptHandshake(dialer);
  t.like(messagesOf(dialer.latest.link.take()), [{ method: 'notifications/initialized' }]);
});

test('an attempt that fails answers those who waited and is repeated after a longer pause', (t) => {
  const { deps, dialer, listener, link } = ready();
  dialer.latest.listener.serverClosed(LOST);
  call(link, 5, 'tools/list');
  dialer.latest.listener.serverClosed(LOST);
  t.like(messagesOf(listener.received), [{ id: 5, error: { code: -32603 } }]);
  deps.clock.advance(1999);
  t.is(dialer.dialled.length, 2);
  deps.clock.advance(1);
  t.is(dialer.dialled.length, 3);
});

test('the log says what is done about a loss, which the connection has told of, and each attempt that fails, once', (t) => {
  const { deps, dialer, entries } = ready();
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
  const { dialer, link } = ready();
  dialer.latest.listener.fromServer(requestFrame(7, 'roots/list'));
  dialer.latest.listener.serverClosed(LOST);
  link.send(resultFrame(7, { roots: [] }));
  call(link, 8, 'tools/list');
  acceptHandshake(dialer);
  t.like(messagesOf(dialer.latest.link.take()), [{ method: 'notifications/initialized' }, { id: 8 }]);
});

test('a server that refuses the repeated handshake is tried again later', (t) => {
  const { deps, dialer, listener, link } = ready();
  dialer.latest.listener.serverClosed(LOST);
  call(link, 5, 'tools/list');
  const refusing = dialer.latest;
  refusing.listener.fromServer(errorFrame(handshakeOf(dialer), { code: -32603, message: 'not now' }));
  t.is(refusing.link.closedWith.length, 1);
  t.like(messagesOf(listener.received), [{ id: 5, error: { data: { bridge: { reason: 'ERR_UPSTREAM_PROTOCOL' } } } }]);
  deps.clock.advance(2000);
  t.is(dialer.dialled.length, 3);
  t.deepEqual(listener.closedWith, []);
});

test('so is one that never answers the repeated handshake: what waited is told, and the next connection serves', (t) => {
  const { deps, dialer, listener, link } = ready();
  dialer.latest.listener.serverClosed(LOST);
  call(link, 5, 'tools/list');
  const hanging = dialer.latest;
  deps.clock.advance(300_000);
  t.is(hanging.link.closedWith.length, 1);
  t.like(messagesOf(listener.received), [{ id: 5, error: { data: { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT' } } } }]);
  call(link, 6, 'tools/list');
  acceptHandshake(dialer);
  dialer.latest.link.take();
  deps.clock.advance(600_000);
  t.deepEqual(dialer.latest.link.closedWith, []);
  link.close(LOST);
  t.is(deps.clock.pendingTimers, 0);
});

test('close ends the attempts', (t) => {
  const { deps, dialer, link } = ready();
  dialer.latest.listener.serverClosed(LOST);
  link.close(LOST);
  deps.clock.advance(60_000);
  t.is(dialer.dialled.length, 1);
});

for (const [title, result] of [
  ['null', 'null'],
  ['no JSON', '{"n":NaN}'],
] as const) {
  test(`a new connection whose answer to the handshake is ${title} is given up and tried again`, (t) => {
    const { deps, dialer } = ready();
    dialer.latest.listener.serverClosed(LOST);
    deps.clock.advance(1000);
    const id = JSON.stringify(handshakeOf(dialer));
    dialer.latest.listener.fromServer(serverFrame(`{"jsonrpc":"2.0","id":${id},"result":${result}}`));
    t.is(dialer.latest.link.closedWith.length, 1);
    deps.clock.advance(60_000);
    t.is(dialer.dialled.length, 3);
  });
}

test('so is one whose answer to the handshake was too large to take', (t) => {
  const { deps, dialer, listener } = ready();
  dialer.latest.listener.serverClosed(LOST);
  deps.clock.advance(1000);
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
  dialer.latest.listener.serverFault({ error, kind: 'result', id: handshakeOf(dialer) });
  t.deepEqual(listener.faults, []);
  t.is(dialer.latest.link.closedWith.length, 1);
});

test('a client that waited for the lost connection to drain may go on with the new one', (t) => {
  const { deps, dialer, listener } = ready();
  dialer.latest.listener.serverClosed(LOST);
  deps.clock.advance(1000);
  t.is(listener.drains, 0);
  acceptHandshake(dialer);
  t.is(listener.drains, 1);
});

test('it may also go on when there is no new connection: what it says then is answered', (t) => {
  const { deps, dialer, listener } = ready();
  dialer.latest.listener.serverClosed(LOST);
  dialer.failure = LOST;
  deps.clock.advance(1000);
  t.is(listener.drains, 1);
});

test('a new connection that is full at once lets the client wait', (t) => {
  const { deps, dialer, listener, link } = ready();
  dialer.latest.listener.serverClosed(LOST);
  deps.clock.advance(1000);
  link.send(notificationFrame('x-vendor/event'));
  dialer.latest.link.hasCapacity = false;
  acceptHandshake(dialer);
  t.is(listener.drains, 0);
});
