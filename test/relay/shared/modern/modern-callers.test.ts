/** Requests that come alone, as over HTTP, on one process of a modern server. */

import test from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import { stopped } from '../../../support/readiness.ts';
import { type Message, only, RESTART_MS, reasonOf } from '../legacy/shared-bridge.ts';
import { acknowledgment, ENVELOPE, ModernBridge, type ModernCaller } from './modern-bridge.ts';

const call = (id: number | string) => ({ id, method: 'tools/call', params: { name: 'x', _meta: ENVELOPE } });
const listen = (id: number | string) => ({
  id,
  method: 'subscriptions/listen',
  params: { notifications: { toolsListChanged: true }, _meta: ENVELOPE },
});

function start() {
  const bridge = new ModernBridge();
  return { bridge, caller: bridge.connectAlone() };
}

function heard(caller: ModernCaller): readonly Message[] {
  return caller.heardTexts().map((text) => JSON.parse(text) as Message);
}

test('the server is started with the first request, and one process serves all', (t) => {
  const { bridge, caller } = start();
  t.is(bridge.dialer.dialed.length, 0);
  caller.says(call(1));
  bridge.connectAlone().says(call(1));
  t.is(bridge.dialer.dialed.length, 1);
  t.is(bridge.heard().length, 2);
});

test('an answered request leaves nothing behind, and a client that leaves after it withdraws nothing', (t) => {
  const { bridge, caller } = start();
  const client = caller.says(call('a'));
  bridge.says({ id: only(bridge.heard()).id, result: {} });
  t.deepEqual(heard(caller), [{ jsonrpc: '2.0', id: 'a', result: {} }]);
  client.listener.clientLeft();
  t.deepEqual(bridge.heard(), []);
  t.is(caller.size, 0);
});

test('a process that ended with its last requests is not replaced before somebody asks', (t) => {
  const { bridge, caller } = start();
  caller.says(call(1));
  bridge.exits();
  t.is(reasonOf(only(heard(caller))), 'ERR_UPSTREAM_EXITED');
  bridge.clock.advance(2 * RESTART_MS);
  t.is(bridge.dialer.dialed.length, 1);
  caller.says(call(2));
  t.is(bridge.dialer.dialed.length, 2);
});

test('a subscription has its process replaced, and is asked for anew', (t) => {
  const { bridge, caller } = start();
  caller.says(listen('s'));
  bridge.says(acknowledgment(only(bridge.heard()).id));
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  t.is(bridge.dialer.dialed.length, 2);
  t.is(only(bridge.heard()).method, 'subscriptions/listen');
});

test('a subscription whose client leaves while no process runs is not asked for anew, and no process is started', (t) => {
  const { bridge, caller } = start();
  caller.says(listen('s'));
  bridge.says(acknowledgment(only(bridge.heard()).id));
  bridge.exits();
  caller.leaves();
  bridge.clock.advance(RESTART_MS);
  t.is(bridge.dialer.dialed.length, 1);
});

test('a request waits for the next process, which is started for it alone', (t) => {
  const { bridge, caller } = start();
  caller.says(call(1));
  bridge.exits();
  const waiting = caller.says(call(2));
  const given = caller.says(call(3));
  t.true(waiting.isPaused);
  given.listener.clientLeft();
  t.false(given.isPaused);
  bridge.clock.advance(RESTART_MS);
  t.is(only(bridge.heard()).method, 'tools/call');
  t.false(waiting.isPaused);
});

test('nobody is left that waits, so the next process is not started', (t) => {
  const { bridge, caller } = start();
  caller.says(call(1));
  bridge.exits();
  caller.says(call(2)).listener.clientLeft();
  bridge.clock.advance(RESTART_MS);
  t.is(bridge.dialer.dialed.length, 1);
});

test('while the dialer gives up on the server, requests are refused before they are opened', (t) => {
  const { bridge, caller } = start();
  bridge.dialer.readinessNow = stopped(new BridgeError('ERR_UPSTREAM_CRASH_LOOP', 'it crashes'));
  t.throws(() => caller.says(call(1)), { code: 'ERR_UPSTREAM_CRASH_LOOP' });
  t.is(caller.size, 0);
});

test('a server that cannot be started fails the request that needs it', (t) => {
  const { bridge, caller } = start();
  bridge.dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such program');
  caller.says(call(1));
  t.is(reasonOf(only(heard(caller))), 'ERR_UPSTREAM_SPAWN');
});

test('a request that a full server has not read is said to wait, until the server has capacity or the call is over', (t) => {
  const { bridge, caller } = start();
  caller.says(call(1));
  bridge.link.hasCapacity = false;
  const [taken, answered, left] = [caller.says(call(2)), caller.says(call(3)), caller.says(call(4))];
  t.true(taken.isPaused && answered.isPaused && left.isPaused);
  bridge.says({ id: bridge.heard()[2]?.id, result: {} });
  left.listener.clientLeft();
  t.false(answered.isPaused || left.isPaused);
  t.true(taken.isPaused);
  bridge.dialer.latest.listener.serverDrained();
  t.false(taken.isPaused);
});

test('a slow client does not stop the server', (t) => {
  const { bridge, caller } = start();
  const client = caller.says({ ...call(1), params: { _meta: { ...ENVELOPE, progressToken: 1 } } });
  client.hasCapacity = false;
  const { id } = only(bridge.heard());
  bridge.says({ method: 'notifications/progress', params: { progressToken: id, progress: 1 } });
  t.is(client.sent.length, 1);
  t.false(bridge.link.isPaused);
});

test('when the server is closed, all requests end with the reason, and none is taken anymore', async (t) => {
  const { bridge, caller } = start();
  caller.says(call(1));
  await bridge.server.close();
  t.is(reasonOf(only(heard(caller))), 'ERR_SESSION_CLOSED');
  t.throws(() => caller.says(call(2)), { code: 'ERR_SESSION_CLOSED' });
});

test('requests that wait for the next process end with the server, too', async (t) => {
  const { bridge, caller } = start();
  caller.says(call(1));
  bridge.exits();
  heard(caller);
  caller.says(call(2));
  await bridge.server.close();
  t.is(reasonOf(only(heard(caller))), 'ERR_SESSION_CLOSED');
  t.is(caller.size, 0);
});
