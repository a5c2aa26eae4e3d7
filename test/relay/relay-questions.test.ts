import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { MAX_OPEN_QUESTIONS } from '../../src/relay/questions.ts';
import { messagesOf } from '../support/fake-peers.ts';
import { readyPair } from './relay-pair.ts';

const ASK = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } };

test('passes a request of the server on as the frame it is, and the answer back', (t) => {
  const pair = readyPair();
  const call = pair.call(1);
  pair.link.take();
  const question = pair.server('{"method":"x-vendor/ask" ,"id":"q\\u0031","jsonrpc":"2.0"}');
  t.deepEqual(pair.peer.sent, [{ frame: question, exchange: call }]);
  const answer = pair.client('{"id":"q1", "jsonrpc":"2.0" ,"result":{"n":1.0}}');
  t.deepEqual(
    pair.link.sent.map(({ frame }) => frame),
    [answer],
  );
});

test('a question without an open call is unsolicited', (t) => {
  const pair = readyPair();
  pair.server({ id: 1, ...ASK });
  t.is(pair.peer.sent[0]?.exchange, undefined);
});

test('only open questions can be answered, each once, and ids that look alike are not mixed up', (t) => {
  const pair = readyPair();
  pair.server({ id: 1, ...ASK });
  pair.client({ id: '1', result: {} });
  pair.client({ id: 2, error: { code: 1, message: 'no' } });
  pair.client({ error: { code: -32700, message: 'no id' } });
  t.deepEqual(pair.link.sent, []);
  const answer = pair.client({ id: 1, error: { code: -1, message: 'declined' } });
  pair.client({ id: 1, result: {} });
  t.deepEqual(
    pair.link.sent.map(({ frame }) => frame),
    [answer],
  );
});

test('questions and calls may have the same id', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.server({ id: 1, ...ASK });
  pair.client({ id: 1, result: { of: 'client' } });
  pair.server({ id: 1, result: { of: 'server' } });
  t.deepEqual((messagesOf(pair.link.sent) as object[]).at(-1), { jsonrpc: '2.0', id: 1, result: { of: 'client' } });
  t.deepEqual((messagesOf(pair.peer.sent) as object[]).at(-1), { jsonrpc: '2.0', id: 1, result: { of: 'server' } });
});

test('a withdrawn question is told on the lane it was asked on, and its late answer is dropped', (t) => {
  const pair = readyPair();
  const call = pair.call(1);
  pair.server({ id: 'q', ...ASK });
  pair.call(2);
  pair.link.take();
  const withdrawal = pair.server({ method: 'notifications/cancelled', params: { requestId: 'q' } });
  t.deepEqual(pair.peer.sent.at(-1), { frame: withdrawal, exchange: call });
  pair.client({ id: 'q', result: {} });
  t.deepEqual(pair.link.sent, []);
});

test('a withdrawal of something that is not open is passed on and changes nothing', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.server({ id: 'q', ...ASK });
  pair.server({ method: 'notifications/cancelled', params: { requestId: 'other' } });
  pair.server({ method: 'notifications/cancelled', params: {} });
  pair.server({ method: 'notifications/cancelled' });
  t.is(pair.peer.sent.length, 4);
  pair.link.take();
  pair.client({ id: 'q', result: {} });
  t.is(pair.link.sent.length, 1);
});

test('tells the server when the client could not be reached, once', (t) => {
  const pair = readyPair();
  const question = pair.server({ id: 'q', ...ASK });
  const reason = new BridgeError('ERR_CLIENT_NO_STREAM', 'no stream');
  pair.relay.undeliverable(question, reason);
  pair.relay.undeliverable(question, reason);
  pair.client({ id: 'q', result: {} });
  t.deepEqual(messagesOf(pair.link.sent), [
    {
      jsonrpc: '2.0',
      id: 'q',
      error: { code: -32603, message: 'no stream', data: { bridge: { reason: 'ERR_CLIENT_NO_STREAM' } } },
    },
  ]);
});

test('refuses questions beyond the most one client may have open, and asks again once some are answered', (t) => {
  const pair = readyPair();
  for (let id = 0; id < MAX_OPEN_QUESTIONS; id += 1) pair.server({ id, ...ASK });
  t.is(pair.peer.take().length, MAX_OPEN_QUESTIONS);
  pair.server({ id: 'more', ...ASK });
  t.deepEqual(pair.peer.sent, []);
  const refusal = pair.link.take()[0]?.frame;
  t.is(refusal?.kind, 'error');
  t.is(refusal?.id, 'more');
  pair.client({ id: 0, result: {} });
  pair.server({ id: 'more', ...ASK });
  t.is(pair.peer.sent.length, 1);
});

test('a server that asks twice under one id does not stop the clock of the first call for ever', (t) => {
  const pair = readyPair({ requestTimeoutMs: 1000 });
  pair.call(1);
  pair.server({ id: 'q', ...ASK });
  pair.server({ id: 'q', ...ASK });
  t.is(pair.peer.take().length, 2);
  pair.client({ id: 'q', result: {} });
  pair.clock.advance(1000);
  pair.relay.sweep(pair.clock.now());
  t.is(pair.peer.sent[0]?.frame.id, 1, 'the silent call fails');
});
