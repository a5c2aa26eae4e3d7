import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { messagesOf } from '../support/fake-peers.ts';
import { modernPair, type RelayPair } from './relay-pair.ts';

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
const TIMEOUT_MS = 1000;

/** A notification of a subscription. */
function change(subscription: string | number, method = 'notifications/tools/list_changed'): object {
  return { method, params: { _meta: { [SUBSCRIPTION_ID]: subscription } } };
}

function progress(progressToken: string | number): object {
  return { method: 'notifications/progress', params: { progressToken, progress: 1 } };
}

function canceled(requestId: string | number): object {
  return { method: 'notifications/cancelled', params: { requestId } };
}

function listen(pair: RelayPair, id: string | number): ReturnType<RelayPair['call']> {
  return pair.call(id, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
}

test('calls, answers and notifications of a call pass as the frames they are', (t) => {
  const pair = modernPair();
  const request = pair.client(
    '{"id":1 ,"method":"tools/call","params":{"_meta":{"progressToken":"p"}},"jsonrpc":"2.0"}',
  );
  const call = pair.link.sent[0]?.call;
  t.is(pair.link.sent[0]?.frame, request);
  const said = [progress('p'), { method: 'notifications/message', params: {} }, { id: 1, result: {} }].map((message) =>
    pair.server(message),
  );
  t.deepEqual(
    pair.peer.sent,
    said.map((frame) => ({ frame, call })),
  );
  t.deepEqual(pair.ready, [], 'there is no handshake');
});

test('a request of the server goes nowhere and is never answered', (t) => {
  const pair = modernPair();
  pair.call(1);
  pair.link.take();
  pair.server({ id: 'q', method: 'sampling/createMessage', params: {} });
  pair.relay.serverFault({ error: new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large'), kind: 'request', id: 'r' });
  pair.relay.close(new BridgeError('ERR_SESSION_CLOSED', 'over'));
  t.deepEqual(pair.link.sent, []);
  t.deepEqual(
    pair.peer.sent.map(({ frame }) => frame.id),
    [1],
    'only the call fails, at the end',
  );
});

test('an answer that could not be taken fails its call', (t) => {
  const pair = modernPair();
  pair.call(1);
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
  pair.relay.serverFault({ error, kind: 'result', id: 1 });
  t.like(messagesOf(pair.peer.sent), [{ id: 1, error: { message: 'too large' } }]);
});

test('there is no handshake that could fail: a server that refuses initialize is used on', (t) => {
  const pair = modernPair();
  pair.call(1, 'initialize');
  pair.server({ id: 1, error: { code: -32601, message: 'no such method' } });
  t.false(pair.relay.isClosed);
  pair.call(2);
  pair.server({ id: 2, result: {} });
  t.is(pair.peer.sent.at(-1)?.frame.kind, 'result');
});

test('what the transport knows to be of one call goes to that call, whoever else has one open', (t) => {
  const pair = modernPair();
  const [first] = [pair.call(1), pair.call(2)];
  const log = pair.server({ method: 'notifications/message', params: { level: 'info' } }, first);
  t.deepEqual(pair.peer.take(), [{ frame: log, call: first }]);
  pair.client(canceled(1));
  pair.server({ method: 'notifications/message', params: { level: 'info' } }, first);
  t.deepEqual(pair.peer.sent, []);
});

test('after a cancellation nothing more is said of the call: neither progress, nor logs, nor the answer', (t) => {
  const pair = modernPair();
  const call = pair.call(1, 'tools/call', { _meta: { progressToken: 'p' } });
  pair.link.take();
  const cancellation = pair.client(canceled(1));
  t.deepEqual(pair.link.sent, [{ frame: cancellation, call }]);
  pair.server(progress('p'));
  pair.server(progress('p'), call);
  pair.server({ method: 'notifications/message', params: {} });
  pair.server({ id: 1, result: {} });
  pair.server({ id: 1, result: {} }, call);
  t.deepEqual(pair.peer.sent, []);
  t.deepEqual(pair.peer.released, [call]);
});

test('after a listen was canceled, what the server still says of it goes nowhere, and other subscriptions go on', (t) => {
  const pair = modernPair();
  listen(pair, 1);
  const other = listen(pair, '1');
  pair.client(canceled(1));
  pair.server(change(1, 'notifications/subscriptions/acknowledged'));
  pair.server(change(1));
  pair.server(canceled(1));
  pair.server({ id: 1, result: {} });
  t.deepEqual(pair.peer.sent, []);
  const kept = pair.server(change('1'));
  t.deepEqual(pair.peer.sent, [{ frame: kept, call: other }]);
});

test('a notification that names neither call nor subscription passes', (t) => {
  const pair = modernPair();
  const event = pair.server({ method: 'x-vendor/event' });
  t.deepEqual(pair.peer.sent, [{ frame: event, call: undefined }]);
});

test('log messages pass while several calls may have caused them', (t) => {
  const pair = modernPair();
  pair.call(1);
  pair.call(2);
  const logged = pair.server({ method: 'notifications/message', params: {} });
  t.deepEqual(pair.peer.sent, [{ frame: logged, call: undefined }]);
});

test('a server ends a subscription with notifications/cancelled, which passes and is the last of it', (t) => {
  const pair = modernPair();
  const call = listen(pair, 'sub');
  const end = pair.server(canceled('sub'));
  t.deepEqual(pair.peer.take(), [{ frame: end, call }]);
  t.is(call.state.kind, 'settled');
  t.is(pair.relay.openCalls, 0);
  pair.server({ id: 'sub', result: {} });
  pair.server(change('sub'));
  t.deepEqual(pair.peer.sent, []);
});

test('a server can cancel nothing but subscriptions', (t) => {
  const pair = modernPair();
  const call = pair.call(1);
  pair.server(canceled(1));
  pair.server(canceled(1), call);
  pair.server(canceled(2));
  t.deepEqual(pair.peer.sent, []);
  const answer = pair.server({ id: 1, result: {} });
  t.is(pair.peer.sent[0]?.frame, answer);
});

test('a subscription may be silent for as long as it likes, a call may not; progress is a sign of life', (t) => {
  const pair = modernPair({ requestTimeoutMs: TIMEOUT_MS });
  listen(pair, 'sub');
  pair.call(1, 'tools/call', { _meta: { progressToken: 'p' } });
  pair.clock.advance(TIMEOUT_MS - 1);
  pair.server(progress('p'));
  pair.peer.take();
  pair.clock.advance(TIMEOUT_MS - 1);
  pair.relay.sweep(pair.clock.now());
  t.deepEqual(pair.peer.sent, []);
  pair.link.take();
  pair.clock.advance(10 * TIMEOUT_MS);
  pair.relay.sweep(pair.clock.now());
  t.deepEqual(
    pair.peer.sent.map(({ frame }) => [frame.kind, frame.id]),
    [['error', 1]],
  );
  t.is(pair.link.sent[0]?.frame.method, 'notifications/cancelled');
  t.true(pair.relay.isOpen('sub'));
});

test('draining ends subscriptions gracefully and waits for calls', (t) => {
  const pair = modernPair();
  const subscription = listen(pair, 'sub');
  pair.call(2);
  pair.link.take();
  pair.relay.drain();
  t.deepEqual(messagesOf(pair.peer.sent), [
    { jsonrpc: '2.0', id: 'sub', result: { resultType: 'complete', _meta: { [SUBSCRIPTION_ID]: 'sub' } } },
  ]);
  t.is(pair.peer.take()[0]?.call, subscription);
  t.is(pair.link.sent[0]?.call, subscription);
  const [told] = messagesOf(pair.link.sent) as { method: string; params: { requestId: unknown } }[];
  t.is(told?.method, 'notifications/cancelled');
  t.is(told?.params.requestId, 'sub');
  t.is(pair.relay.openCalls, 1);
  const answer = pair.server({ id: 2, result: {} });
  t.is(pair.peer.sent[0]?.frame, answer);
});

test('a server that leaves over the end of the first subscription does not disturb the end of the others', (t) => {
  const pair = modernPair();
  listen(pair, 1);
  listen(pair, 2);
  pair.link.onSend = () => pair.relay.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', 'gone'));
  t.notThrows(() => pair.relay.drain());
  t.deepEqual(pair.peer.sent.map(({ frame }) => frame.id).sort(), [1, 2]);
});

test('when the server is gone, calls and subscriptions get the reason', (t) => {
  const pair = modernPair();
  listen(pair, 'sub');
  pair.call(1);
  pair.relay.serverClosed(new BridgeError('ERR_UPSTREAM_EXITED', 'gone'));
  t.deepEqual(
    pair.peer.sent.map(({ frame }) => [frame.kind, frame.id]),
    [
      ['error', 'sub'],
      ['error', 1],
    ],
  );
});
