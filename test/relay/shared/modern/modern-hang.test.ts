import test from 'ava';
import { only, reasonOf, WATCHED } from '../legacy/shared-bridge.ts';
import { ModernBridge } from './modern-bridge.ts';

const { requestTimeoutMs, hangTimeoutMs } = WATCHED;
const RESTART_MS = 250;

/** A client whose call has timed out, and another one who only listens. */
function timedOut() {
  const bridge = new ModernBridge({ isWatched: true });
  const [caller, listener] = [bridge.connect({ requestTimeoutMs }), bridge.connect({ requestTimeoutMs })];
  listener.listen('L');
  const { id } = only(bridge.heard());
  const acknowledged = { notifications: {}, _meta: { 'io.modelcontextprotocol/subscriptionId': id } };
  bridge.says({ method: 'notifications/subscriptions/acknowledged', params: acknowledged });
  listener.heard();
  caller.call(1);
  bridge.clock.advance(requestTimeoutMs);
  for (const { relay } of [caller, listener]) relay.sweep(bridge.clock.now());
  const question = only(bridge.heard().filter(({ method }) => method === 'server/discover'));
  return { bridge, caller, listener, question, timeout: only(caller.heard()) };
}

test('a shared modern server that hangs is replaced: calls are served again, subscriptions go on', (t) => {
  const { bridge, caller, listener, timeout } = timedOut();
  t.is(reasonOf(timeout), 'ERR_UPSTREAM_TIMEOUT');
  caller.call(2);
  bridge.clock.advance(hangTimeoutMs);
  t.is(bridge.link.closedWith[0]?.code, 'ERR_UPSTREAM_HUNG');
  const failed = only(caller.heard());
  t.deepEqual([failed.id, reasonOf(failed)], [2, 'ERR_UPSTREAM_HUNG']);
  bridge.clock.advance(RESTART_MS);
  t.deepEqual(
    bridge.heard().map(({ method }) => method),
    ['subscriptions/listen'],
  );
  caller.call(3);
  bridge.says({ id: only(bridge.heard()).id, result: { resultType: 'complete' } });
  t.is(only(caller.heard()).id, 3);
  t.deepEqual(listener.heard(), []);
  t.is(bridge.clock.pendingTimers, 0);
});

test('a shared modern server that answers the question stays, and nobody hears of it', (t) => {
  const { bridge, caller, listener, question } = timedOut();
  bridge.says({ id: question.id, result: { resultType: 'complete', supportedVersions: ['2026-07-28'] } });
  bridge.clock.advance(10 * hangTimeoutMs);
  t.deepEqual([caller.heard(), listener.heard(), bridge.link.closedWith], [[], [], []]);
  t.is(bridge.clock.pendingTimers, 0);
});
