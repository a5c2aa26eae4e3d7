import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { FakeServerListener } from '../../support/fake-peers.ts';
import { EXITED, only, reasonOf, SERVER_RESULT, SharedBridge } from './shared-bridge.ts';

/** The pause before the first restart, where the dialer names none. */
const RESTART_MS = 250;
const CRASH_LOOP = new BridgeError('ERR_UPSTREAM_CRASH_LOOP', 'not again', { retryAfterMs: 5000 });

/** Lets the pause pass and the next child be initialized; returns what else it was told. */
function restart(bridge: SharedBridge, result: unknown = SERVER_RESULT) {
  const before = bridge.dialer.dialled.length;
  bridge.clock.advance(RESTART_MS);
  if (bridge.dialer.dialled.length !== before + 1) throw new Error('no restart');
  bridge.answerHandshake(result);
  return bridge.heard().map(({ method, params }) => [method, params]);
}

test('when the server ends, the open calls of all clients fail with the reason, each under its own id', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(1);
  a.says('{"jsonrpc":"2.0","id":"\\u0041","method":"x-vendor/do"}');
  b.call(1);
  bridge.exits();
  const answers = a.peer.take().map(({ frame }) => frame.bytes.toString());
  t.is(answers.length, 2);
  t.true(answers[1]?.includes('"id":"\\u0041"'));
  const failed = only(b.heard());
  t.is(failed.id, 1);
  t.is(failed.error?.message, EXITED.message);
  t.is(reasonOf(failed), 'ERR_UPSTREAM_EXITED');
  t.is(a.relay.openExchanges + b.relay.openExchanges, 0);
  t.deepEqual([...a.ends, ...b.ends], [], 'the sessions go on');
});

test('when the server ends, its open questions are withdrawn, and late answers go to no other server', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join({ capabilities: { roots: {} } });
  bridge.says({ id: 'q', method: 'roots/list' });
  const { id } = only(a.heard());
  bridge.exits();
  t.deepEqual(a.heard(), [
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id, reason: 'the server ended' } },
  ]);
  restart(bridge);
  a.heard();
  a.says({ id, result: { roots: [] } });
  t.deepEqual(bridge.heard(), []);
});

test('a new server is started after a pause and the clients do not notice but for "look again"', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  const newcomer = bridge.connect();
  newcomer.initialize();
  newcomer.heard();
  bridge.exits();
  t.is(bridge.server.readiness().ready, false);
  bridge.clock.advance(RESTART_MS - 1);
  t.is(bridge.dialer.dialled.length, 1);
  bridge.clock.advance(1);
  t.is(bridge.dialer.dialled.length, 2);
  bridge.answerHandshake();
  t.is(bridge.server.readiness().ready, true);
  for (const client of [a, b]) {
    t.deepEqual(
      client.heard().map(({ method }) => method),
      ['notifications/tools/list_changed', 'notifications/resources/list_changed'],
    );
  }
  t.deepEqual(newcomer.heard(), [], 'who has not finished its handshake is told nothing');
  a.call(1);
  bridge.answerAll();
  t.is(only(a.heard()).id, 1);
});

test('the log level and the subscriptions are restored, and updates of the latter announced', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(1, 'logging/setLevel', { level: 'debug' });
  b.call(1, 'logging/setLevel', { level: 'error' });
  a.call(2, 'resources/subscribe', { uri: 'a:1' });
  b.call(2, 'resources/subscribe', { uri: 'a:2' });
  bridge.answerAll();
  b.call(3, 'resources/subscribe', { uri: 'a:1' });
  for (const client of [a, b]) client.heard();
  bridge.exits();
  t.deepEqual(restart(bridge), [
    ['notifications/initialized', undefined],
    ['logging/setLevel', { level: 'debug' }],
    ['resources/subscribe', { uri: 'a:1' }],
    ['resources/subscribe', { uri: 'a:2' }],
  ]);
  const updates = (client: typeof a) =>
    client
      .heard()
      .filter(({ method }) => method === 'notifications/resources/updated')
      .map(({ params }) => params?.uri);
  t.deepEqual(updates(a), ['a:1']);
  t.deepEqual(updates(b), ['a:1', 'a:2']);
});

test('a subscription the new server refuses is asked for again by the next client', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(1, 'resources/subscribe', { uri: 'a:1' });
  bridge.answerAll();
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  bridge.answerHandshake();
  const again = bridge.heard().find(({ method }) => method === 'resources/subscribe');
  bridge.says({ id: again?.id, error: { code: -32002, message: 'gone' } });
  b.call(1, 'resources/subscribe', { uri: 'a:1' });
  t.is(only(bridge.heard()).method, 'resources/subscribe');
});

test('a subscription that was not granted yet when the server ended is not restored', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  a.call(1, 'resources/subscribe', { uri: 'a:1' });
  bridge.exits();
  t.truthy(only(a.heard()).error);
  t.deepEqual(restart(bridge), [['notifications/initialized', undefined]]);
});

test('calls that come during the pause wait and go out after it, in order', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  bridge.exits();
  a.call(1, 'tools/call', { n: 1 });
  b.call(1, 'tools/call', { n: 2 });
  a.says({ method: 'x-vendor/event', params: { n: 3 } });
  const told = restart(bridge);
  t.deepEqual(
    told.filter(([method]) => method !== 'notifications/initialized').map(([, params]) => params),
    [{ n: 1 }, { n: 2 }, { n: 3 }],
  );
});

test('clients are held back while the server is not there, and let go when it is', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  bridge.exits();
  a.call(1);
  t.true(a.peer.isPaused);
  t.false(b.peer.isPaused);
  restart(bridge);
  t.false(a.peer.isPaused);
});

test('clients that waited for the old server to drain are let go when there is a new one', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.link.hasRoom = false;
  a.call(1);
  t.true(a.peer.isPaused);
  bridge.exits();
  restart(bridge);
  t.false(a.peer.isPaused);
});

test('a new server that is full at once lets nobody go until it drains', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.exits();
  a.call(1);
  bridge.clock.advance(RESTART_MS);
  bridge.link.hasRoom = false;
  bridge.answerHandshake();
  t.true(a.peer.isPaused);
  bridge.dialer.latest.listener.serverDrained();
  t.false(a.peer.isPaused);
});

test('no more than so many messages wait; calls beyond are refused, cancellations and notifications dropped', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  bridge.exits();
  for (let id = 0; id < 1024; id += 1) a.call(id);
  t.deepEqual(a.heard(), []);
  b.call('one more');
  t.is(reasonOf(only(b.heard())), 'ERR_UPSTREAM_STARTING');
  b.says({ method: 'x-vendor/event' });
  t.notThrows(() => a.says({ method: 'notifications/cancelled', params: { requestId: 0 } }));
  t.deepEqual(a.heard(), []);
  t.is(restart(bridge).filter(([method]) => method === 'tools/call').length, 1023);
});

test('a server that offers other capabilities ends the sessions of those who knew the old ones', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  const waiting = bridge.connect();
  bridge.exits();
  a.call(1);
  waiting.initialize();
  restart(bridge, { ...SERVER_RESULT, capabilities: { tools: {} } });
  for (const client of [a, b]) {
    t.is(only(client.ends).code, 'ERR_UPSTREAM_EXITED');
    t.is(client.peer.closedWith.length, 1);
  }
  t.truthy(only(a.heard()).error);
  t.deepEqual(waiting.ends, []);
  t.deepEqual(only(waiting.heard()).result?.capabilities, { tools: {} });
});

test('another order of the same capabilities is no other offer', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.exits();
  const capabilities = Object.fromEntries(Object.entries(SERVER_RESULT.capabilities).reverse());
  restart(bridge, { ...SERVER_RESULT, capabilities });
  t.deepEqual(a.ends, []);
});

test('clients that come to a server after all others have left are not measured by what those knew', (t) => {
  const bridge = new SharedBridge();
  bridge.join().leaves();
  bridge.exits();
  const client = bridge.connect();
  client.initialize();
  bridge.answerHandshake({ ...SERVER_RESULT, capabilities: { tools: {} } });
  t.deepEqual(client.ends, []);
  t.deepEqual(only(client.heard()).result?.capabilities, { tools: {} });
});

test('a server that ends before it served fails those who wait for it, with its reason', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.connect();
  client.initialize();
  client.call(1);
  bridge.exits();
  const [answer, ...others] = client.heard();
  t.is(answer?.id, 'init');
  t.is(answer?.error?.message, EXITED.message);
  t.truthy(only(others).error);
  t.is(client.ends.length, 1);
});

test('so does one that ends before it served again; the sessions go on', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  a.call(1);
  bridge.exits();
  t.is(only(a.heard()).error?.message, EXITED.message);
  t.false(a.peer.isPaused);
  t.deepEqual(a.ends, []);
  bridge.clock.advance(60_000);
  t.is(bridge.dialer.dialled.length, 3);
});

test('the pause is what the dialer says, or the end itself', (t) => {
  const bridge = new SharedBridge();
  bridge.join();
  bridge.exits(new BridgeError('ERR_UPSTREAM_EXITED', 'm', { retryAfterMs: 700 }));
  bridge.clock.advance(699);
  t.is(bridge.dialer.dialled.length, 1);
  bridge.clock.advance(1);
  t.is(bridge.dialer.dialled.length, 2);
});

test('a server that never gets through its handshake is started less and less often', (t) => {
  const bridge = new SharedBridge({ prewarm: true });
  for (let seconds = 0; seconds < 300; seconds += 1) {
    bridge.clock.advance(1000);
    if (bridge.link.closedWith.length > 0) continue;
    const hello = bridge.heard().find(({ method }) => method === 'initialize');
    bridge.says({ id: hello?.id, error: { code: 1, message: 'no' } });
  }
  t.true(bridge.dialer.dialled.length > 5);
  t.true(bridge.dialer.dialled.length < 25, `${bridge.dialer.dialled.length} starts`);
});

test('while the dialer lets nobody start the server, new clients are refused and calls fail at once', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.dialer.readinessNow = { ready: false, error: CRASH_LOOP };
  bridge.exits();
  t.is(
    t.throws(() => bridge.connect()),
    CRASH_LOOP,
  );
  a.call(1);
  t.is(reasonOf(only(a.heard())), 'ERR_UPSTREAM_CRASH_LOOP');
  t.false(a.peer.isPaused);
  const readiness = bridge.server.readiness();
  t.is(readiness.ready ? undefined : readiness.error, CRASH_LOOP);
  bridge.dialer.readinessNow = { ready: true };
  bridge.clock.advance(5000);
  bridge.answerHandshake();
  a.call(2);
  bridge.answerAll();
  t.deepEqual(
    a.heard().flatMap(({ id }) => id ?? []),
    [2],
  );
});

test('a first client learns at once that the server cannot be started', (t) => {
  const failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such program');
  const bridge = new SharedBridge();
  bridge.dialer.failure = failure;
  t.is(
    t.throws(() => bridge.connect()),
    failure,
  );
  t.is(bridge.clock.pendingTimers, 0, 'nothing goes on behind its back');
  bridge.dialer.failure = undefined;
  t.notThrows(() => bridge.join());
});

test('a restart that fails fails those who wait, and is tried again', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.exits();
  a.call(1);
  bridge.dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'too many processes');
  bridge.clock.advance(RESTART_MS);
  t.is(reasonOf(only(a.heard())), 'ERR_UPSTREAM_SPAWN');
  t.false(a.peer.isPaused);
  bridge.dialer.failure = undefined;
  bridge.clock.advance(60_000);
  bridge.answerHandshake();
  t.is(bridge.server.readiness().ready, true);
});

test('a prewarmed server that cannot be started is tried again', (t) => {
  const bridge = new SharedBridge({
    prewarm: true,
    dialer: (dialer) => {
      dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'not yet');
    },
  });
  t.is(bridge.server.readiness().ready, false);
  bridge.dialer.failure = undefined;
  bridge.clock.advance(RESTART_MS);
  t.is(bridge.dialer.dialled.length, 1);
});

test('a server nobody uses is not restarted before somebody comes, unless it is kept warm', (t) => {
  for (const prewarm of [false, true]) {
    const bridge = new SharedBridge({ prewarm });
    bridge.join().leaves();
    bridge.exits();
    bridge.clock.advance(60_000);
    t.is(bridge.dialer.dialled.length, prewarm ? 2 : 1);
    bridge.join();
    t.is(bridge.dialer.dialled.length, 2);
  }
});

test('a restart is given up when the last client leaves during the pause', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.exits();
  a.leaves();
  bridge.clock.advance(60_000);
  t.is(bridge.dialer.dialled.length, 1);
  t.is(bridge.server.readiness(), bridge.dialer.readinessNow);
  t.notThrows(() => bridge.join());
});

test('requests of the bridge itself that the old server did not answer are forgotten with it', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(1, 'logging/setLevel', { level: 'debug' });
  b.call(1, 'logging/setLevel', { level: 'error' });
  bridge.answerAll();
  a.leaves();
  const { id } = only(bridge.heard().filter(({ method }) => method === 'logging/setLevel'));
  bridge.exits();
  b.heard();
  restart(bridge);
  b.heard();
  t.notThrows(() => bridge.says({ id, result: {} }));
  t.deepEqual(b.heard(), []);
});

test('a client that leaves over the end of the server does not keep others from being told', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(1);
  b.call(1);
  bridge.link.take();
  a.peer.onSend = () => a.leaves();
  bridge.exits();
  t.is(b.heard().length, 1);
  t.deepEqual(bridge.heard(), [], 'nothing is said to a server that is gone');
});

test('a client that asks again as soon as it hears of the end is served by the next server', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  a.call(1);
  a.peer.onSend = () => {
    a.peer.onSend = () => {};
    a.call(2);
  };
  bridge.exits();
  t.is(a.heard().length, 1);
  restart(bridge);
  t.is(a.relay.openExchanges, 1);
  t.true(bridge.dialer.dialled.length === 2);
});

test('closing ends the server, its clients and the dialer, and starts nothing more', async (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  a.call(1);
  await bridge.server.close();
  t.is(reasonOf(only(a.heard())), 'ERR_SESSION_CLOSED');
  t.is(a.ends.length, 1);
  t.is(bridge.link.closedWith.length, 1);
  t.true(bridge.dialer.isClosed);
  bridge.exits();
  bridge.says({ method: 'notifications/tools/list_changed' });
  bridge.clock.advance(60_000);
  t.is(bridge.dialer.dialled.length, 1);
  t.is(bridge.clock.pendingTimers, 0);
  t.is(bridge.server.readiness().ready, false);
  t.throws(() => bridge.server.dial(new FakeServerListener()), { instanceOf: BridgeError });
  await t.notThrowsAsync(bridge.server.close());
});

test('closing during the handshake fails those who wait', async (t) => {
  const bridge = new SharedBridge({ handshakeTimeoutMs: 1000 });
  const a = bridge.connect();
  a.initialize();
  await bridge.server.close();
  t.is(only(a.heard()).id, 'init');
  t.is(bridge.link.closedWith.length, 1);
  t.is(bridge.clock.pendingTimers, 0);
});

test('closing during the pause starts nothing more', async (t) => {
  const bridge = new SharedBridge();
  bridge.join();
  bridge.exits();
  await bridge.server.close();
  bridge.clock.advance(60_000);
  t.is(bridge.dialer.dialled.length, 1);
  t.is(bridge.clock.pendingTimers, 0);
});

test('the last resort is that of the dialer', (t) => {
  const bridge = new SharedBridge();
  t.is(bridge.server.name, bridge.dialer.name);
  bridge.server.killNow();
  t.true(bridge.dialer.isKilled);
});
