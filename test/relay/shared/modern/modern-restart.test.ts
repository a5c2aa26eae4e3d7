import test from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import { collectLog } from '../../../process/collected-log.ts';
import { remainsOf } from '../../../support/fake-peers.ts';
import { stopped } from '../../../support/readiness.ts';
import { EXITED, type Message, only, reasonOf } from '../legacy/shared-bridge.ts';
import {
  acknowledgment,
  change,
  ModernBridge,
  type ModernClient,
  SUBSCRIPTION_ID,
  subscriptionOf,
} from './modern-bridge.ts';

const RESTART_MS = 250;
const CRASH_LOOP = new BridgeError('ERR_UPSTREAM_CRASH_LOOP', 'it ends again and again', { retryAfterMs: 5000 });

const EVERYTHING = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
  resourceSubscriptions: ['file:///a', 'file:///b'],
};

/** A client whose subscription was acknowledged. */
function listening(notifications: object = EVERYTHING, granted: object = notifications) {
  const bridge = new ModernBridge();
  const client = bridge.connect();
  client.listen('sub', notifications);
  bridge.says(acknowledgment(only(bridge.heard()).id, granted));
  client.heard();
  return { bridge, client };
}

/** What a client was told, in short. */
function shown(client: ModernClient): readonly (readonly unknown[])[] {
  return client.heard().map((message) => [message.method, subscriptionOf(message), message.params?.uri]);
}

test('calls in flight fail with the reason when the child ends, once', (t) => {
  const bridge = new ModernBridge();
  const [a, b] = [bridge.connect(), bridge.connect()];
  a.call(1);
  b.call('1');
  bridge.exits();
  t.like(only(a.heard()), { id: 1, error: { code: -32603, message: 'the server exited with code 1' } });
  t.is(reasonOf(only(b.heard())), 'ERR_UPSTREAM_EXITED');
  t.deepEqual([a.ends, b.ends], [[], []], 'the sessions go on');
});

test('the log says what is done about a loss, and why no child was started unless its link has said it', (t) => {
  const { log, entries } = collectLog();
  const bridge = new ModernBridge({ log });
  bridge.connect().call(1);
  bridge.says({ id: only(bridge.heard()).id, result: {} });
  bridge.exits();
  bridge.connect().call(2);
  bridge.clock.advance(RESTART_MS);
  bridge.exits();
  bridge.dialer.failure = new BridgeError('ERR_SESSION_LIMIT', 'too many processes');
  bridge.clock.advance(2 * RESTART_MS);
  t.deepEqual(
    entries.map(({ level, code, msg }) => [level, code, msg]),
    [
      [30, EXITED.code, 'the shared server has ended; it starts again when it is needed'],
      [30, EXITED.code, 'the shared server did not start'],
      [40, 'ERR_SESSION_LIMIT', 'the shared server did not start: too many processes'],
    ],
  );
});

test('a child that ended is replaced, and what was said meanwhile is said to the new one', (t) => {
  const bridge = new ModernBridge();
  const client = bridge.connect();
  client.call(1);
  bridge.says({ id: only(bridge.heard()).id, result: {} });
  bridge.exits();
  client.heard();
  client.call(2);
  client.call(3);
  client.says({ method: 'notifications/cancelled', params: { requestId: 3 } });
  t.true(client.peer.isPaused);
  t.like(bridge.server.readiness(), { state: 'failing' });
  bridge.clock.advance(RESTART_MS);
  t.is(bridge.dialer.dialed.length, 2);
  t.false(client.peer.isPaused);
  const call = only(bridge.heard());
  t.is(call.method, 'tools/call');
  t.not(call.id, 1, 'numbers are not used again');
  bridge.says({ id: call.id, result: {} });
  t.is(only(client.heard()).id, 2);
  t.deepEqual(bridge.server.readiness(), { state: 'ready' });
});

test('with nobody there a child that ended is not replaced before somebody asks', (t) => {
  const bridge = new ModernBridge();
  const client = bridge.connect();
  client.call(1);
  client.leaves();
  bridge.exits();
  t.is(bridge.clock.pendingTimers, 0);
  bridge.connect().call(1);
  t.is(bridge.dialer.dialed.length, 2);
});

test('nobody being left while it waits, the next child is not started', (t) => {
  const { bridge, client } = listening();
  bridge.exits();
  client.leaves();
  bridge.clock.advance(RESTART_MS);
  t.is(bridge.dialer.dialed.length, 1);
});

test('prewarmed it is replaced whoever is there', (t) => {
  const bridge = new ModernBridge({ prewarm: true });
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  t.is(bridge.dialer.dialed.length, 2);
});

// ---- subscriptions

test('a new child is asked again for what the client listens to, and the client is told to look again', (t) => {
  const { bridge, client } = listening();
  bridge.exits();
  t.deepEqual(client.heard(), [], 'a subscription outlives the child');
  bridge.clock.advance(RESTART_MS);
  const again = only(bridge.heard());
  t.is(again.method, 'subscriptions/listen');
  t.deepEqual(again.params?.notifications, EVERYTHING);
  t.deepEqual(client.heard(), [], 'nobody listens yet');
  bridge.says(acknowledgment(again.id, EVERYTHING));
  t.deepEqual(shown(client), [
    ['notifications/tools/list_changed', 'sub', undefined],
    ['notifications/prompts/list_changed', 'sub', undefined],
    ['notifications/resources/list_changed', 'sub', undefined],
    ['notifications/resources/updated', 'sub', 'file:///a'],
    ['notifications/resources/updated', 'sub', 'file:///b'],
  ]);
  bridge.says(change(again.id));
  t.is(shown(client).length, 1);
});

test('it is told to look again only at what it asked for and the server grants', (t) => {
  const { bridge, client } = listening({ toolsListChanged: true, resourceSubscriptions: ['file:///a', 'file:///b'] });
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  const granted = {
    promptsListChanged: true,
    toolsListChanged: true,
    resourceSubscriptions: ['file:///b', 'file:///c'],
  };
  bridge.says(acknowledgment(only(bridge.heard()).id, granted));
  t.deepEqual(shown(client), [
    ['notifications/tools/list_changed', 'sub', undefined],
    ['notifications/resources/updated', 'sub', 'file:///b'],
  ]);
});

test('an acknowledgment that names nothing grants everything', (t) => {
  const { bridge, client } = listening({ toolsListChanged: true });
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  const { id } = only(bridge.heard());
  bridge.says({
    method: 'notifications/subscriptions/acknowledged',
    params: { _meta: { [SUBSCRIPTION_ID]: id } },
  });
  t.is(shown(client).length, 1);
});

test('a subscription that was not acknowledged yet is acknowledged by the next child', (t) => {
  const bridge = new ModernBridge();
  const client = bridge.connect();
  client.call(1);
  bridge.says({ id: only(bridge.heard()).id, result: {} });
  client.listen('sub');
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  const again = only(bridge.heard());
  client.heard();
  bridge.says(acknowledgment(again.id));
  t.deepEqual(shown(client), [['notifications/subscriptions/acknowledged', 'sub', undefined]]);
});

test('a child that dies without a word fails the subscription it was asked for', (t) => {
  const bridge = new ModernBridge();
  const client = bridge.connect();
  client.listen('sub');
  bridge.exits();
  t.is(reasonOf(only(client.heard())), 'ERR_UPSTREAM_EXITED');
  bridge.clock.advance(RESTART_MS);
  t.deepEqual(
    bridge.heard().map(({ method }) => method),
    [],
  );
});

test('a new child that refuses the subscription ends it', (t) => {
  const { bridge, client } = listening();
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  bridge.says({ id: only(bridge.heard()).id, error: { code: -32601, message: 'no' } });
  t.like(only(client.heard()), { id: 'sub', error: { code: -32601 } });
});

test('a subscription closed while no child runs is not opened again', (t) => {
  const { bridge, client } = listening();
  bridge.exits();
  client.says({ method: 'notifications/cancelled', params: { requestId: 'sub' } });
  t.false(client.peer.isPaused, 'nothing waits for the next child');
  client.call(1);
  bridge.clock.advance(RESTART_MS);
  t.deepEqual(
    bridge.heard().map(({ method }) => method),
    ['tools/call'],
  );
});

test('subscriptions survive one child after another', (t) => {
  const { bridge, client } = listening({ toolsListChanged: true });
  const ids = new Set<unknown>();
  for (let round = 0; round < 3; round += 1) {
    bridge.exits();
    bridge.clock.advance(60_000);
    ids.add(only(bridge.heard()).id);
  }
  t.is(ids.size, 3);
  bridge.says(acknowledgment([...ids].at(-1)));
  t.is(shown(client).length, 1);
});

// ---- a server that will not run

test('a server that cannot be started fails the call that needs it', (t) => {
  const bridge = new ModernBridge();
  const client = bridge.connect();
  bridge.dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such program');
  client.call(1);
  t.is(reasonOf(only(client.heard())), 'ERR_UPSTREAM_SPAWN');
  bridge.dialer.failure = undefined;
  client.call(2);
  t.is(bridge.heard().length, 1, 'the next one tries again');
});

test('while the dialer gives up on the server, clients and calls are refused at once', (t) => {
  const { bridge, client } = listening();
  bridge.dialer.readinessNow = stopped(CRASH_LOOP);
  client.call(1);
  bridge.exits();
  client.heard();
  client.call(2);
  t.is(reasonOf(only(client.heard())), 'ERR_UPSTREAM_CRASH_LOOP');
  t.false(client.peer.isPaused);
  t.throws(() => bridge.connect(), { code: 'ERR_UPSTREAM_CRASH_LOOP' });
  bridge.clock.advance(4999);
  t.is(bridge.dialer.dialed.length, 1);
  bridge.dialer.readinessNow = { state: 'ready' };
  bridge.clock.advance(1);
  t.is(bridge.dialer.dialed.length, 2);
  t.is(only(bridge.heard()).method, 'subscriptions/listen');
});

test('those who wait for a child that dies without a word learn why', (t) => {
  const { bridge, client } = listening();
  bridge.exits();
  client.call(1);
  bridge.dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such program');
  bridge.clock.advance(RESTART_MS);
  t.is(reasonOf(only(client.heard())), 'ERR_UPSTREAM_SPAWN');
  t.false(client.peer.isPaused);
});

test('the pause grows while no child says a word', (t) => {
  const { bridge } = listening();
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  t.is(bridge.dialer.dialed.length, 2);
  bridge.clock.advance(RESTART_MS);
  t.is(bridge.dialer.dialed.length, 3);
});

test('messages that wait are bounded', (t) => {
  const { bridge } = listening();
  bridge.exits();
  const impatient = bridge.connect();
  for (let id = 0; id < 1024; id += 1) impatient.call(id);
  t.deepEqual(impatient.heard(), []);
  const late = bridge.connect();
  late.call(1);
  const refusal = only(late.heard());
  t.is(reasonOf(refusal), 'ERR_UPSTREAM_STARTING');
  t.is(refusal.error?.message, 'fake-server is starting and too many messages wait.');
  impatient.leaves();
  impatient.heard();
  bridge.clock.advance(RESTART_MS);
  t.deepEqual(
    (bridge.heard() as Message[]).map(({ method }) => method),
    ['subscriptions/listen'],
  );
});

test('the next child is not started while anything is left of the old one; calls wait for it', async (t) => {
  const { bridge, client } = listening();
  const { end } = remainsOf(bridge.link);
  bridge.exits();
  client.call(1);
  bridge.clock.advance(60_000);
  t.is(bridge.dialer.dialed.length, 1);
  t.like(bridge.server.readiness(), { state: 'failing', error: { code: 'ERR_UPSTREAM_EXITED' } });
  await end();
  t.deepEqual(
    bridge.heard().map(({ method }) => method),
    ['subscriptions/listen', 'tools/call'],
  );
});

for (const prewarm of [false, true]) {
  const who = prewarm ? 'a server that is to be kept ready' : 'a call that comes';
  test(`${who} waits until nothing is left of the child before`, async (t) => {
    const bridge = new ModernBridge();
    const client = bridge.connect();
    client.call(1);
    const { end } = remainsOf(bridge.link);
    client.leaves();
    bridge.exits();
    if (prewarm) bridge.server.keepWarm();
    else bridge.connect().call(2);
    bridge.clock.advance(60_000);
    t.is(bridge.dialer.dialed.length, 1);
    t.like(bridge.server.readiness(), { state: 'starting', error: { code: 'ERR_UPSTREAM_STARTING' } });
    await end();
    t.is(bridge.dialer.dialed.length, 2);
    t.is(bridge.heard().length, prewarm ? 0 : 1);
  });
}
