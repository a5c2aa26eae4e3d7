import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { MAX_OPEN_QUESTIONS, MAX_QUESTION_ID_LENGTH } from '../../src/relay/questions.ts';
import { messagesOf } from '../support/fake-peers.ts';
import { clientFrame } from '../support/frames.ts';
import { readyPair } from './relay-pair.ts';

const ASK = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } };

test('passes a request of the server on as the frame it is, and the answer back', (t) => {
  const pair = readyPair();
  const call = pair.call(1);
  pair.link.take();
  const question = pair.server('{"method":"x-vendor/ask" ,"id":"q\\u0031","jsonrpc":"2.0"}');
  t.deepEqual(pair.peer.sent, [{ frame: question, call }]);
  const answer = pair.client('{"id":"q1", "jsonrpc":"2.0" ,"result":{"n":1.0}}');
  t.deepEqual(
    pair.link.sent.map(({ frame }) => frame),
    [answer],
  );
});

test('a question without an open call is unsolicited', (t) => {
  const pair = readyPair();
  pair.server({ id: 1, ...ASK });
  t.is(pair.peer.sent[0]?.call, undefined);
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
  t.deepEqual(pair.peer.sent.at(-1), { frame: withdrawal, call });
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
  t.like(refusal?.json(), { id: 'more', error: { data: { bridge: { reason: 'ERR_SESSION_BUSY' } } } });
  t.true(String(refusal?.bytes).includes(`has ${MAX_OPEN_QUESTIONS} unanswered requests of this server`));
  pair.client({ id: 0, result: {} });
  pair.server({ id: 'more', ...ASK });
  t.is(pair.peer.sent.length, 1);
});

test('a question under an id that is too long to be kept is refused to the server, which learns why', (t) => {
  const pair = readyPair();
  const longest = 'x'.repeat(MAX_QUESTION_ID_LENGTH);
  pair.server({ id: longest, ...ASK });
  t.is(pair.peer.take().length, 1);
  pair.server({ id: `${longest}x`, ...ASK });
  t.deepEqual(pair.peer.sent, []);
  const [refusal] = messagesOf(pair.link.take()) as { id: string; error: { message: string } }[];
  t.is(refusal?.id, `${longest}x`);
  t.is(
    refusal?.error.message,
    'The id of this request has 257 characters; a client is asked under ids of 256 at most.',
  );
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

test('a client that says nothing more is not asked: the server gets an error for each question, and calls go on', (t) => {
  const pair = readyPair({ requestTimeoutMs: 1000 });
  pair.call(1);
  pair.server({ id: 'before', ...ASK });
  pair.link.take();
  pair.peer.take();
  pair.relay.refuseQuestions(new BridgeError('ERR_CLIENT_NO_STREAM', 'nobody answers'));
  pair.server({ id: 'after', ...ASK });
  t.deepEqual(messagesOf(pair.link.take()), [refused('before'), refused('after')]);
  t.deepEqual(pair.peer.sent, []);
  pair.clock.advance(999);
  pair.relay.sweep(pair.clock.now());
  t.deepEqual(pair.peer.sent, [], 'the time of the call starts anew');
  pair.clock.advance(1);
  pair.relay.sweep(pair.clock.now());
  t.is(pair.peer.sent[0]?.frame.id, 1, 'and goes on: nobody is being asked');
});

test('a ping of the server is for its client as long as that answers', (t) => {
  const pair = readyPair();
  pair.server({ id: 'ping', method: 'ping' });
  t.deepEqual(pair.link.sent, []);
  t.is(pair.peer.sent[0]?.frame.method, 'ping');
});

test('what another bridge has asked can be answered here, for a call that goes on here', (t) => {
  const pair = readyPair({ requestTimeoutMs: 1000 });
  const { id } = pair.call(1);
  const [call, other] = [1, 2].map((own) => clientFrame({ id: own, method: 'tools/call' }));
  if (call === undefined || other === undefined) return t.fail();
  pair.relay.wasAsked('q', call);
  pair.relay.wasAsked('r', other);
  pair.link.take();
  pair.clock.advance(1000);
  pair.relay.sweep(pair.clock.now());
  t.true(pair.relay.isOpen(id), 'its client is being asked');
  const answer = pair.client({ id: 'q', result: {} });
  pair.client({ id: 'r', result: {} });
  t.deepEqual(
    pair.link.sent.map(({ frame }) => frame),
    [answer],
  );
});

test('a server that wants to know whether somebody is there is told so when its client says nothing more', (t) => {
  const pair = readyPair();
  pair.relay.refuseQuestions(new BridgeError('ERR_CLIENT_NO_STREAM', 'nobody answers'));
  pair.server({ id: 'ping', method: 'ping' });
  t.deepEqual(messagesOf(pair.link.sent), [{ jsonrpc: '2.0', id: 'ping', result: {} }]);
  t.deepEqual(pair.peer.sent, []);
});

function refused(id: string): object {
  const error = { code: -32603, message: 'nobody answers', data: { bridge: { reason: 'ERR_CLIENT_NO_STREAM' } } };
  return { jsonrpc: '2.0', id, error };
}
