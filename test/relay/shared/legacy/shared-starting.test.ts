import test from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import { stopped } from '../../../support/readiness.ts';
import { EXITED, only, RESTART_MS, reasonOf, SharedBridge } from './shared-bridge.ts';

const CRASH_LOOP = new BridgeError('ERR_UPSTREAM_CRASH_LOOP', 'not again', { retryAfterMs: 5000 });

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
  t.is(bridge.dialer.dialed.length, 3);
});

test('the pause is what the dialer says, or the end itself', (t) => {
  const bridge = new SharedBridge();
  bridge.join();
  bridge.exits(new BridgeError('ERR_UPSTREAM_EXITED', 'm', { retryAfterMs: 700 }));
  bridge.clock.advance(699);
  t.is(bridge.dialer.dialed.length, 1);
  bridge.clock.advance(1);
  t.is(bridge.dialer.dialed.length, 2);
});

test('a server that never gets through its handshake is started less and less often', (t) => {
  const bridge = new SharedBridge({ prewarm: true });
  for (let seconds = 0; seconds < 300; seconds += 1) {
    bridge.clock.advance(1000);
    if (bridge.link.closedWith.length > 0) continue;
    const hello = bridge.heard().find(({ method }) => method === 'initialize');
    bridge.says({ id: hello?.id, error: { code: 1, message: 'no' } });
  }
  t.true(bridge.dialer.dialed.length > 5);
  t.true(bridge.dialer.dialed.length < 25, `${bridge.dialer.dialed.length} starts`);
});

test('while the dialer lets nobody start the server, new clients are refused and calls fail at once', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.dialer.readinessNow = stopped(CRASH_LOOP);
  bridge.exits();
  t.is(
    t.throws(() => bridge.connect()),
    CRASH_LOOP,
  );
  a.call(1);
  t.is(reasonOf(only(a.heard())), 'ERR_UPSTREAM_CRASH_LOOP');
  t.false(a.peer.isPaused);
  const readiness = bridge.server.readiness();
  t.is(readiness.state === 'ready' ? undefined : readiness.error, CRASH_LOOP);
  bridge.dialer.readinessNow = { state: 'ready' };
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
  t.is(bridge.server.readiness().state, 'ready');
});

test('a prewarmed server that cannot be started is tried again', (t) => {
  const bridge = new SharedBridge({
    prewarm: true,
    dialer: (dialer) => {
      dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'not yet');
    },
  });
  t.is(bridge.server.readiness().state, 'failing');
  bridge.dialer.failure = undefined;
  bridge.clock.advance(RESTART_MS);
  t.is(bridge.dialer.dialed.length, 1);
});

test('a server nobody uses is not restarted before somebody comes, unless it is kept warm', (t) => {
  for (const prewarm of [false, true]) {
    const bridge = new SharedBridge({ prewarm });
    bridge.join().leaves();
    bridge.exits();
    bridge.clock.advance(60_000);
    t.is(bridge.dialer.dialed.length, prewarm ? 2 : 1);
    bridge.join();
    t.is(bridge.dialer.dialed.length, 2);
  }
});

test('a restart is given up when the last client leaves during the pause', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.exits();
  a.leaves();
  bridge.clock.advance(60_000);
  t.is(bridge.dialer.dialed.length, 1);
  t.is(bridge.server.readiness(), bridge.dialer.readinessNow);
  t.notThrows(() => bridge.join());
});

test('the time for a handshake ends with the server that was to make it', (t) => {
  const bridge = new SharedBridge({ handshakeTimeoutMs: 1000 });
  const a = bridge.join();
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  bridge.clock.advance(500);
  bridge.exits();
  bridge.clock.advance(2 * RESTART_MS);
  bridge.answerHandshake();
  bridge.clock.advance(60_000);
  t.is(bridge.dialer.dialed.length, 3);
  t.deepEqual(a.ends, []);
  t.is(bridge.server.readiness().state, 'ready');
  t.is(bridge.clock.pendingTimers, 0);
});

test('an error without id is taken for the answer to the handshake, also by a second server', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  bridge.exits();
  bridge.clock.advance(60_000);
  a.call(1);
  bridge.says({ error: { code: -32700, message: 'what?' } });
  t.is(bridge.link.closedWith.length, 1);
  t.is(reasonOf(only(a.heard())), 'ERR_UPSTREAM_PROTOCOL');
});
