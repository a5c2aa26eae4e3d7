/** The life of a shared server's process, whatever its era. */

import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import type { UpstreamLink } from '../../../src/relay/ports.ts';
import { FakeServerListener, messagesOf, remainsOf } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { failing, stopped } from '../../support/readiness.ts';
import { only, RESTART_MS, reasonOf, SharedBridge } from './legacy/shared-bridge.ts';
import { ModernBridge } from './modern/modern-bridge.ts';

const UNWILLING = new BridgeError('ERR_SESSION_LIMIT', 'all processes run');
const TOO_LARGE = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
const CALL = clientFrame({ id: 1, method: 'tools/call', params: {} });

function dial({ server }: SharedBridge | ModernBridge): { link: UpstreamLink; listener: FakeServerListener } {
  const listener = new FakeServerListener();
  return { link: server.dial(listener), listener };
}

test('a server that runs is kept as it is when it is to stay warm', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.join();
  bridge.server.keepWarm();
  t.is(bridge.dialer.dialed.length, 1);
  client.leaves();
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  t.is(bridge.dialer.dialed.length, 2, 'it is replaced though nobody is there');
});

test('a server is started for nobody yet where it does not run, and where nothing is left of the one before', async (t) => {
  const bridge = new ModernBridge();
  t.true(bridge.server.startIdle());
  t.false(bridge.server.startIdle(), 'it runs');
  t.is(bridge.dialer.dialed.length, 1);
  const remains = remainsOf(bridge.link);
  bridge.exits();
  t.false(bridge.server.startIdle(), 'something is left of it');
  t.is(bridge.dialer.dialed.length, 1);
  await remains.end();
  t.true(bridge.server.startIdle());
  bridge.exits();
  bridge.dialer.failure = UNWILLING;
  t.false(bridge.server.startIdle());
});

test('a server that is starting says so, and one that has said nothing yet is as ready as its dialer', (t) => {
  const legacy = new SharedBridge();
  legacy.connect();
  t.like(legacy.server.readiness(), {
    state: 'starting',
    error: { code: 'ERR_UPSTREAM_STARTING', message: 'fake-server is starting.' },
  });
  const modern = new ModernBridge();
  modern.connect().call(1);
  const notReady = failing(UNWILLING);
  modern.dialer.readinessNow = notReady;
  t.is(modern.server.readiness(), notReady);
  modern.says({ method: 'notifications/vendor' });
  t.deepEqual(modern.server.readiness(), { state: 'ready' });
});

test('a server that runs takes clients, whether or not another could be started', (t) => {
  const bridge = new SharedBridge();
  bridge.join();
  bridge.dialer.readinessNow = stopped(UNWILLING);
  t.notThrows(() => bridge.join());
});

test('what a client says waits for a server that is starting, whether or not another could be started', (t) => {
  const bridge = new SharedBridge();
  const { link, listener } = dial(bridge);
  bridge.dialer.readinessNow = stopped(UNWILLING);
  t.false(link.send(CALL));
  t.deepEqual(listener.received, []);
});

test('a notification starts no server', (t) => {
  const bridge = new ModernBridge();
  t.true(dial(bridge).link.send(clientFrame({ method: 'x-vendor/event' })));
  t.is(bridge.dialer.dialed.length, 0);
});

test('a client that leaves while the next server is starting has it told nothing', (t) => {
  const bridge = new SharedBridge();
  const [client] = [bridge.join(), bridge.join()];
  client.call(1, 'resources/subscribe', { uri: 'a:/1' });
  bridge.answerAll();
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  client.leaves();
  t.is(only(bridge.heard()).method, 'initialize');
});

test('what a server says after its end reaches nobody', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.join();
  bridge.exits();
  client.heard();
  bridge.says({ method: 'notifications/tools/list_changed' });
  bridge.dialer.latest.listener.serverFault({ error: TOO_LARGE, kind: 'result', id: 1 });
  t.deepEqual(client.heard(), []);
});

for (const [what, kind, isGivenUp] of [
  ['an answer', 'result', true],
  ['something nobody can tell', undefined, true],
  ['a request', 'request', false],
  ['a notification', 'notification', false],
] as const) {
  test(`a server that is starting and says ${what} that cannot be taken is ${isGivenUp ? 'given up' : 'waited for'}`, (t) => {
    const bridge = new SharedBridge();
    const client = bridge.connect();
    client.initialize();
    bridge.dialer.latest.listener.serverFault({ error: TOO_LARGE, kind, id: kind === 'request' ? 'q' : undefined });
    t.is(bridge.link.closedWith.length, isGivenUp ? 1 : 0);
    if (isGivenUp) t.is(reasonOf(only(client.heard())), 'ERR_UPSTREAM_TOO_LARGE');
    else t.deepEqual(client.heard(), []);
  });
}

test('a server that was closed refuses what is said to it, and is not started again', async (t) => {
  const bridge = new SharedBridge();
  const { link, listener } = dial(bridge);
  bridge.answerHandshake();
  bridge.exits();
  await bridge.server.close();
  t.is(bridge.clock.pendingTimers, 0);
  t.is(bridge.dialer.dialed.length, 1);
  t.is(listener.closedWith.length, 1);
  t.true(link.send(CALL), 'nothing waits');
  t.like(messagesOf(listener.received), [{ id: 1, error: { data: { bridge: { reason: 'ERR_SESSION_CLOSED' } } } }]);
});
