import test from 'ava';
import { only, reasonOf, SharedBridge, WATCHED } from './shared-bridge.ts';

const { requestTimeoutMs, hangTimeoutMs } = WATCHED;

/** Two clients, of which one's call has timed out; another call has just been sent. */
function timedOut() {
  const bridge = new SharedBridge({ isWatched: true });
  const [a, b] = [bridge.join({ requestTimeoutMs }), bridge.join({ requestTimeoutMs })];
  a.call(1);
  bridge.clock.advance(requestTimeoutMs);
  b.call('B');
  for (const { relay } of [a, b]) relay.sweep(bridge.clock.now());
  const timeout = only(a.heard());
  const question = only(bridge.heard().filter(({ method }) => method === 'ping'));
  return { bridge, a, b, timeout, question };
}

test('a shared server that hangs is replaced: each open call gets one error, and the same clients are served', (t) => {
  const { bridge, a, b, timeout } = timedOut();
  t.is(reasonOf(timeout), 'ERR_UPSTREAM_TIMEOUT');
  bridge.clock.advance(hangTimeoutMs);
  t.is(bridge.link.closedWith[0]?.code, 'ERR_UPSTREAM_HUNG');
  const failed = only(b.heard());
  t.deepEqual([failed.id, reasonOf(failed)], ['B', 'ERR_UPSTREAM_HUNG']);
  t.deepEqual(a.heard(), []);
  t.like(bridge.server.readiness(), { state: 'failing', error: { code: 'ERR_UPSTREAM_HUNG' } });
  bridge.restart();
  t.is(bridge.server.readiness().state, 'ready');
  a.heard();
  a.call(2);
  bridge.answerAll();
  t.is(only(a.heard()).id, 2);
  t.deepEqual([...a.ends, ...b.ends], [], 'the sessions go on');
  t.is(bridge.clock.pendingTimers, 0);
});

test('a shared server that answers the question stays, and nobody hears of it', (t) => {
  const { bridge, a, b, question } = timedOut();
  t.is(bridge.server.readiness().state, 'ready', 'while it is asked, too');
  bridge.says({ id: question.id, result: {} });
  bridge.clock.advance(10 * hangTimeoutMs);
  t.deepEqual([a.heard(), b.heard(), bridge.link.closedWith], [[], [], []]);
  t.is(bridge.dialer.dialed.length, 1);
  t.is(bridge.clock.pendingTimers, 0);
});
