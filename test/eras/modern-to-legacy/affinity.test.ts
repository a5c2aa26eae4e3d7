import test from 'ava';
import { ModernBridge } from './modern-bridge.ts';

const QUESTION = { id: 'q', method: 'roots/list' };
const ROOTS = { 'roots-1': { roots: [] } };

/** How often the connection of a session was closed. */
function closings(bridge: ModernBridge, session: number): number {
  return bridge.dialer.dialed[session]?.link.closedWith.length ?? 0;
}

/** A call of a caller that shares with nobody, which waits for what the client says. */
function parkedCall() {
  const bridge = new ModernBridge({ sharing: 'nobody' });
  const call = bridge.call();
  const { id } = bridge.heardOnly('tools/call');
  bridge.says(QUESTION);
  bridge.collect();
  return { bridge, id, requestState: call.answer().result.requestState };
}

test('callers that share with nobody get a session for each call, which ends with it', (t) => {
  const bridge = new ModernBridge({ sharing: 'nobody' });
  const first = bridge.call({}, { logLevel: 'debug' });
  const second = bridge.call();
  t.is(bridge.dialer.dialed.length, 2);
  bridge.says({ id: bridge.heardOnly('tools/call').id, result: { content: [] } });
  t.is(second.answer().result.resultType, 'complete');
  t.deepEqual([closings(bridge, 0), closings(bridge, 1)], [0, 1]);
  first.leaves();
  t.is(closings(bridge, 0), 1);
  t.is(bridge.clock.pendingTimers, 0);
});

test('what a session for one call serves goes on while the client is asked, and ends with the call', (t) => {
  const { bridge, id, requestState } = parkedCall();
  bridge.clock.advance(4 * 60_000);
  t.is(closings(bridge, 0), 0);
  const other = bridge.call();
  t.is(bridge.dialer.dialed.length, 2, 'nobody else gets in');
  other.leaves();
  const again = bridge.call({ requestState, inputResponses: ROOTS });
  t.is(bridge.dialer.dialed.length, 2, 'the retry has its session');
  t.like(bridge.heard(0), [{ id: 'q', result: { roots: [] } }]);
  bridge.says({ id, result: { content: [] } }, 0);
  t.is(again.answer().result.resultType, 'complete');
  t.is(closings(bridge, 0), 1);
});

test('a session for one call ends when its client does not come back', (t) => {
  const { bridge } = parkedCall();
  bridge.clock.advance(5 * 60_000);
  t.is(closings(bridge, 0), 1);
  t.is(bridge.clock.pendingTimers, 0);
});

test('a subscription of a caller that shares with nobody has a session until it ends', (t) => {
  const bridge = new ModernBridge({ sharing: 'nobody' });
  const stream = bridge.ask('subscriptions/listen', { notifications: { toolsListChanged: true } });
  bridge.clock.advance(60 * 60_000);
  t.is(closings(bridge, 0), 0);
  stream.leaves();
  t.is(closings(bridge, 0), 1);
});

test('callers of one name share a session, others do not', (t) => {
  const bridge = new ModernBridge({ sharing: 'by-name' });
  for (const principal of ['everybody', 'everybody', 'ada']) bridge.call({}, { principal, capabilities: {} });
  t.is(bridge.dialer.dialed.length, 2);
});
