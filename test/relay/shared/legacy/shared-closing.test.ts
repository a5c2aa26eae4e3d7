import test from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import { FakeServerListener } from '../../../support/fake-peers.ts';
import { only, reasonOf, SharedBridge } from './shared-bridge.ts';

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
  t.is(bridge.dialer.dialed.length, 1);
  t.is(bridge.clock.pendingTimers, 0);
  t.is(bridge.server.readiness().state, 'stopped');
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
  t.is(bridge.dialer.dialed.length, 1);
  t.is(bridge.clock.pendingTimers, 0);
});

test('the last resort is that of the dialer', (t) => {
  const bridge = new SharedBridge();
  t.is(bridge.server.name, bridge.dialer.name);
  bridge.server.killNow();
  t.true(bridge.dialer.isKilled);
});
