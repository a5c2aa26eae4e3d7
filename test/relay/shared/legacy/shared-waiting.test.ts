import test from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import { stopped } from '../../../support/readiness.ts';
import { only, RESTART_MS, reasonOf, SharedBridge } from './shared-bridge.ts';

const CRASH_LOOP = new BridgeError('ERR_UPSTREAM_CRASH_LOOP', 'not again', { retryAfterMs: 5000 });

test('calls that come during the pause wait and go out after it, in order', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  bridge.exits();
  a.call(1, 'tools/call', { n: 1 });
  b.call(1, 'tools/call', { n: 2 });
  a.says({ method: 'x-vendor/event', params: { n: 3 } });
  const told = bridge.restart();
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
  bridge.restart();
  t.false(a.peer.isPaused);
});

test('clients that waited for the old server to drain are let go when there is a new one', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.link.hasCapacity = false;
  a.call(1);
  t.true(a.peer.isPaused);
  bridge.exits();
  bridge.restart();
  t.false(a.peer.isPaused);
});

test('a new server that is full at once lets nobody go until it drains', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.exits();
  a.call(1);
  bridge.clock.advance(RESTART_MS);
  bridge.link.hasCapacity = false;
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
  t.is(bridge.restart().filter(([method]) => method === 'tools/call').length, 1023);
});

test('clients held back by a full server are let go when no other server can be started', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.link.hasCapacity = false;
  a.call(1);
  bridge.dialer.readinessNow = stopped(CRASH_LOOP);
  bridge.exits();
  t.false(a.peer.isPaused);
});

test('what a client that left had waiting frees capacity for others', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  bridge.exits();
  for (let id = 0; id < 1024; id += 1) a.call(id);
  a.leaves();
  b.call(1);
  t.deepEqual(b.heard(), []);
});
