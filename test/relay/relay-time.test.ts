import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { messagesOf } from '../support/fake-peers.ts';
import { RelayPair, readyPair } from './relay-pair.ts';

const TIMEOUT_MS = 1000;

/** Lets time pass and looks for silent calls, as the registry does. */
function wait(pair: RelayPair, ms: number): void {
  pair.clock.advance(ms);
  pair.relay.sweep(pair.clock.now());
}

function reasons(pair: RelayPair): unknown[] {
  return (messagesOf(pair.peer.sent) as { id: unknown; error: { data: { bridge: object } } }[]).map(
    ({ id, error }) => ({ id, ...error.data.bridge }),
  );
}

const TIMED_OUT = { reason: 'ERR_UPSTREAM_TIMEOUT', phase: 'response', timeoutMs: TIMEOUT_MS };

for (const id of [7, '7']) {
  test(`a call that is silent for too long fails, and the server is told with the same id: ${typeof id}`, (t) => {
    const pair = readyPair({ requestTimeoutMs: TIMEOUT_MS });
    const call = pair.call(id, 'x-vendor/slow');
    pair.link.take();
    wait(pair, TIMEOUT_MS - 1);
    t.deepEqual(pair.peer.sent, []);
    wait(pair, 1);
    t.deepEqual(reasons(pair), [{ id, ...TIMED_OUT }]);
    t.is(pair.peer.sent[0]?.call, call);
    t.deepEqual(call.state, { kind: 'cancelled', by: 'timeout' });
    t.deepEqual(messagesOf(pair.link.sent), [
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id, reason: 'timed out' } },
    ]);
    t.is(pair.link.sent[0]?.call, call);
    pair.server({ id, result: {} });
    t.is(pair.peer.sent.length, 1, 'the late answer is dropped');
    t.deepEqual(pair.ends, [], 'the session goes on');
  });
}

test('only the silent ones of several calls fail', (t) => {
  const pair = readyPair({ requestTimeoutMs: TIMEOUT_MS });
  pair.call('old');
  pair.clock.advance(TIMEOUT_MS / 2);
  pair.call('new');
  wait(pair, TIMEOUT_MS / 2);
  t.deepEqual(reasons(pair), [{ id: 'old', ...TIMED_OUT }]);
});

test('progress starts the time anew', (t) => {
  const pair = readyPair({ requestTimeoutMs: TIMEOUT_MS });
  pair.call(1, 'tools/call', { _meta: { progressToken: 'p' } });
  wait(pair, TIMEOUT_MS - 1);
  pair.server({ method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } });
  pair.peer.take();
  wait(pair, TIMEOUT_MS - 1);
  t.deepEqual(pair.peer.sent, []);
  wait(pair, 1);
  t.is(pair.peer.sent.length, 1);
});

test('progress of another call does not', (t) => {
  const pair = readyPair({ requestTimeoutMs: TIMEOUT_MS });
  pair.call(1, 'tools/call', { _meta: { progressToken: 'p' } });
  pair.call(2, 'tools/call', { _meta: { progressToken: 'q' } });
  wait(pair, TIMEOUT_MS - 1);
  pair.server({ method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } });
  pair.peer.take();
  wait(pair, 1);
  t.deepEqual(reasons(pair), [{ id: 2, ...TIMED_OUT }]);
});

for (const [title, finish] of [
  ['answered', (pair: RelayPair) => void pair.client({ id: 'q', result: {} })],
  [
    'withdrawn',
    (pair: RelayPair) => void pair.server({ method: 'notifications/cancelled', params: { requestId: 'q' } }),
  ],
] as const) {
  test(`time stands still while the client is being asked, and starts anew when the question is ${title}`, (t) => {
    const pair = readyPair({ requestTimeoutMs: TIMEOUT_MS });
    pair.call(1);
    pair.server({ id: 'q', method: 'elicitation/create', params: {} });
    wait(pair, 100 * TIMEOUT_MS);
    t.is(pair.relay.openCalls, 1);
    finish(pair);
    pair.peer.take();
    wait(pair, TIMEOUT_MS - 1);
    t.is(pair.relay.openCalls, 1);
    wait(pair, 1);
    t.deepEqual(reasons(pair), [{ id: 1, ...TIMED_OUT }]);
  });
}

test('a call has an end, whatever progress it reports and whoever is being asked', (t) => {
  const pair = readyPair({ maxCallTimeMs: TIMEOUT_MS });
  pair.call(1, 'tools/call', { _meta: { progressToken: 'p' } });
  pair.server({ id: 'q', method: 'elicitation/create', params: {} });
  wait(pair, TIMEOUT_MS - 1);
  pair.server({ method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } });
  pair.peer.take();
  pair.link.take();
  wait(pair, 1);
  t.deepEqual(reasons(pair), [{ id: 1, ...TIMED_OUT, phase: 'call' }]);
  t.like(messagesOf(pair.link.sent), [{ method: 'notifications/cancelled', params: { requestId: 1 } }]);
  t.deepEqual(pair.ends, [], 'the session goes on');
});

test('0 means no limit', (t) => {
  const pair = readyPair({ requestTimeoutMs: 0 });
  pair.call(1);
  wait(pair, 1e12);
  t.deepEqual(pair.peer.sent, []);
});

test('initialize that times out ends the session, and what else was silent fails with it', (t) => {
  const pair = new RelayPair({ requestTimeoutMs: TIMEOUT_MS });
  pair.client({ id: 'init', method: 'initialize', params: { protocolVersion: '2025-11-25' } });
  pair.client({ id: 'early', method: 'tools/list' });
  pair.link.take();
  wait(pair, TIMEOUT_MS);
  t.deepEqual(reasons(pair), [
    { id: 'init', ...TIMED_OUT },
    { id: 'early', ...TIMED_OUT },
  ]);
  t.deepEqual(pair.link.sent, [], 'initialize is never canceled');
  t.deepEqual(
    pair.ends.map(({ code }) => code),
    ['ERR_UPSTREAM_TIMEOUT'],
  );
  t.is(pair.link.closedWith.length, 1);
});

test('a client that leaves over the first of several timeouts does not disturb the sweep', (t) => {
  const pair = readyPair({ requestTimeoutMs: TIMEOUT_MS });
  pair.call(1);
  pair.call(2);
  pair.peer.onSend = () => pair.relay.clientClosed(new BridgeError('ERR_SESSION_CLOSED', 'gone'));
  t.notThrows(() => wait(pair, TIMEOUT_MS));
  t.is(pair.peer.sent.length, 2);
  t.is(pair.ends.length, 1);
});
