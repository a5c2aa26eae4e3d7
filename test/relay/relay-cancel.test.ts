import test from 'ava';
import { RelayPair, readyPair } from './relay-pair.ts';

test('forwards a cancellation byte for byte, frees the call and lets its lane go', (t) => {
  const pair = readyPair();
  const call = pair.call('a');
  pair.link.take();
  const canceled = pair.client(
    '{"jsonrpc":"2.0","method":"notifications/cancelled" ,"params":{"reason":"é","requestId":"\\u0061"}}',
  );
  t.deepEqual(pair.link.sent, [{ frame: canceled, call }]);
  t.deepEqual(call.state, { kind: 'cancelled', by: 'client' });
  t.deepEqual(pair.peer.released, [call]);
  t.is(pair.relay.openCalls, 0);
});

test('drops the late answer to a canceled call', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.client({ method: 'notifications/cancelled', params: { requestId: 1 } });
  pair.server({ id: 1, result: {} });
  t.deepEqual(pair.peer.sent, []);
});

test('an id is free again after its call was canceled', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.client({ method: 'notifications/cancelled', params: { requestId: 1 } });
  const second = pair.call(1);
  const answer = pair.server({ id: 1, result: {} });
  t.deepEqual(pair.peer.sent, [{ frame: answer, call: second }]);
});

for (const [title, params] of [
  ['of another id', '{"requestId":2}'],
  ['of an id that only looks alike', '{"requestId":"1"}'],
  ['without an id', '{"reason":"x"}'],
  ['with two ids', '{"requestId":1,"requestId":1}'],
  ['with null', '{"requestId":null}'],
  ['with params in an array', '[1]'],
]) {
  test(`ignores a cancellation ${title}`, (t) => {
    const pair = readyPair();
    pair.call(1);
    pair.link.take();
    pair.client(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":${params}}`);
    t.deepEqual(pair.link.sent, []);
    t.deepEqual(pair.peer.released, []);
    t.is(pair.relay.openCalls, 1);
  });
}

test('ignores a cancellation without params', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.client({ method: 'notifications/cancelled' });
  t.is(pair.relay.openCalls, 1);
});

test('never cancels initialize', (t) => {
  const pair = new RelayPair();
  pair.client({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } });
  pair.link.take();
  pair.client({ method: 'notifications/cancelled', params: { requestId: 1 } });
  t.deepEqual(pair.link.sent, []);
  const answer = pair.server({ id: 1, result: { protocolVersion: '2025-11-25' } });
  t.is(pair.peer.sent[0]?.frame, answer);
});

test('a question asked during a call stays open when the call is canceled: its answer is still awaited', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.server({ id: 'q', method: 'roots/list' });
  pair.client({ method: 'notifications/cancelled', params: { requestId: 1 } });
  const answer = pair.client({ id: 'q', result: { roots: [] } });
  t.is(pair.link.sent.at(-1)?.frame, answer);
});
