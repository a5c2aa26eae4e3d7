import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { messagesOf } from '../support/fake-peers.ts';
import { RelayPair, readyPair } from './relay-pair.ts';

const REASON = new BridgeError('ERR_UPSTREAM_EXITED', 'server exited with code 1');

const WAYS_TO_END: readonly (readonly [string, (pair: RelayPair) => void])[] = [
  ['the server is gone', ({ relay }) => relay.serverClosed(REASON)],
  ['the client is gone', ({ relay }) => relay.clientClosed(REASON)],
  ['the session is closed', ({ relay }) => relay.close(REASON)],
];

for (const [title, end] of WAYS_TO_END) {
  test(`when ${title}, open calls and questions get the reason before both ends close`, (t) => {
    const pair = readyPair();
    const calls = [pair.call(1), pair.call('1')];
    pair.server({ id: 'q', method: 'roots/list' });
    pair.peer.take();
    pair.link.take();
    const order: string[] = [];
    pair.peer.onSend = () => order.push(`to client, ${pair.peer.closedWith.length} closed`);
    pair.link.onSend = () => order.push(`to server, ${pair.link.closedWith.length} closed`);
    end(pair);
    t.deepEqual(order, ['to client, 0 closed', 'to client, 0 closed', 'to server, 0 closed']);
    const error = { code: -32603, message: REASON.message, data: { bridge: { reason: 'ERR_UPSTREAM_EXITED' } } };
    t.deepEqual(messagesOf(pair.peer.sent), [
      { jsonrpc: '2.0', id: 1, error },
      { jsonrpc: '2.0', id: '1', error },
    ]);
    t.deepEqual(
      pair.peer.sent.map(({ call }) => call),
      calls,
    );
    t.deepEqual(messagesOf(pair.link.sent), [{ jsonrpc: '2.0', id: 'q', error }]);
    t.is(pair.relay.openCalls, 0);
  });

  test(`when ${title}, both ends are closed once and the end is told once, whatever follows`, (t) => {
    const pair = readyPair();
    end(pair);
    for (const [, again] of WAYS_TO_END) again(pair);
    t.deepEqual(pair.peer.closedWith, [REASON]);
    t.deepEqual(pair.link.closedWith, [REASON]);
    t.deepEqual(pair.ends, [REASON]);
  });
}

test('a client that leaves while it is told of the end does not end it twice', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.call(2);
  pair.peer.take();
  pair.peer.onSend = () => pair.relay.clientClosed(REASON);
  pair.relay.serverClosed(REASON);
  t.is(pair.peer.sent.length, 2);
  t.is(pair.ends.length, 1);
  t.is(pair.link.closedWith.length, 1);
});

test('a call after the end is refused', (t) => {
  const pair = readyPair();
  pair.relay.close(REASON);
  pair.client({ id: 1, method: 'ping' });
  t.deepEqual(pair.link.sent, []);
  const { error } = messagesOf(pair.peer.sent)[0] as { error: { data: { bridge: { reason: string } } } };
  t.is(error.data.bridge.reason, 'ERR_SESSION_CLOSED');
});

test('draining refuses new calls and finishes open ones, with all that belongs to them', (t) => {
  const pair = readyPair();
  const call = pair.call(1, 'tools/call', { _meta: { progressToken: 'p' } });
  pair.relay.drain();
  pair.link.take();
  pair.client({ id: 2, method: 'tools/call', params: {} });
  t.deepEqual(pair.link.sent, []);
  const [refusal] = messagesOf(pair.peer.take()) as { id: unknown; error: { data: { bridge: object } } }[];
  t.is(refusal?.id, 2);
  t.deepEqual(refusal?.error.data.bridge, { reason: 'ERR_SESSION_CLOSED' });
  pair.server({ method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } });
  pair.server({ id: 'q', method: 'roots/list' });
  pair.client({ id: 'q', result: { roots: [] } });
  t.is(pair.link.take().length, 1);
  pair.server({ id: 1, result: {} });
  t.deepEqual(
    pair.peer.sent.map((sent) => sent.call),
    [call, call, call],
  );
  t.deepEqual(pair.ends, []);
});

test('a handshake that is answered while the session is ending does not make it take calls again', (t) => {
  const pair = new RelayPair();
  pair.client({ id: 0, method: 'initialize', params: {} });
  t.false(pair.relay.isDraining);
  pair.relay.drain();
  pair.server({ id: 0, result: { protocolVersion: '2025-11-25' } });
  t.true(pair.relay.isDraining);
  pair.link.take();
  pair.client({ id: 1, method: 'tools/list' });
  t.deepEqual(pair.link.sent, []);
  t.regex(String(pair.peer.sent.at(-1)?.frame.bytes), /is ending and takes no new calls; open a new one/);
});

test('what only looks like a subscription is for a legacy server to end', (t) => {
  const pair = readyPair();
  pair.call(1, 'subscriptions/listen');
  pair.link.take();
  pair.relay.drain();
  t.deepEqual(pair.peer.sent, []);
  t.deepEqual(pair.link.sent, []);
});

test('draining twice or after the end changes nothing', (t) => {
  const pair = readyPair();
  pair.relay.drain();
  pair.relay.drain();
  pair.relay.close(REASON);
  pair.relay.drain();
  pair.relay.close(REASON);
  t.is(pair.ends.length, 1);
});

test('whatever either side still says after the end goes nowhere', (t) => {
  const pair = readyPair();
  pair.server({ id: 'q', method: 'roots/list' });
  pair.relay.close(REASON);
  pair.peer.take();
  pair.link.take();
  pair.server({ id: 'r', method: 'roots/list' });
  pair.server({ method: 'notifications/tools/list_changed' });
  pair.server({ id: 1, result: {} });
  pair.relay.serverFault({ error: REASON, kind: 'request', id: 's' });
  pair.client({ method: 'x-vendor/event' });
  pair.client({ id: 'q', result: {} });
  pair.client({ id: 'r', result: {} });
  t.deepEqual(pair.peer.sent, []);
  t.deepEqual(pair.link.sent, []);
});

test('ends that turn out to be gone before they are joined are closed when they are', (t) => {
  const pair = new RelayPair({ joined: false });
  pair.relay.clientClosed(REASON);
  pair.relay.join(pair.peer, pair.link);
  t.deepEqual(pair.peer.closedWith, [REASON]);
  t.deepEqual(pair.link.closedWith, [REASON]);
  t.deepEqual(pair.ends, [REASON]);
});
