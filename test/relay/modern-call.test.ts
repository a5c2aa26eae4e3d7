import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { serverFrame } from '../support/frames.ts';
import { CallBench } from './call-pair.ts';

const EXITED = new BridgeError('ERR_UPSTREAM_EXITED', 'the server exited');
const TOO_LARGE = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
const exited = { code: -32603, message: 'the server exited', data: { bridge: { reason: 'ERR_UPSTREAM_EXITED' } } };

test('the request goes to a link of its own byte for byte, with its call', (t) => {
  const { request, client, link } = new CallBench().open({ id: 'a' });
  t.is(link.sent.length, 1);
  t.is(link.sent[0]?.frame, request);
  t.is(link.sent[0]?.call?.id, 'a');
  t.is(link.sent[0]?.call?.lane, client);
});

test('what the server says before its answer, and the answer, reach the client untouched; then the link is let go', (t) => {
  const bench = new CallBench();
  const { client, link, server } = bench.open();
  const frames = [
    serverFrame({ method: 'notifications/message', params: { level: 'info', data: NaN } }),
    serverFrame('{ "jsonrpc":"2.0", "id":1, "result":{"a":1.0} }'),
  ];
  for (const frame of frames) server.fromServer(frame);
  t.deepEqual(client.sent, frames);
  t.is(link.closedWith.length, 1);
  t.is(bench.modernCalls.size, 0);
});

test('an error without id is about the only request there was, and gets its id', (t) => {
  const { client, says } = new CallBench().open({ id: 'q' });
  says({ error: { code: -32600, message: 'what?' } });
  t.deepEqual(client.heard, [{ jsonrpc: '2.0', error: { code: -32600, message: 'what?' }, id: 'q' }]);
});

test('an answer to another request is dropped, and so is everything after the answer', (t) => {
  const { client, link, says, server } = new CallBench().open({ id: 1 });
  says({ id: '1', result: {} });
  t.deepEqual(client.heard, []);
  says({ id: 1, result: {} });
  says({ id: 1, result: { second: true } });
  says({ method: 'notifications/progress', params: {} });
  server.serverClosed(EXITED);
  t.is(client.sent.length, 1);
  t.is(link.closedWith.length, 1);
});

test('an answer is that of the call where the transport knows it to be, whatever id it has', (t) => {
  const { client, link, server } = new CallBench().open({ id: 1 });
  server.fromServer(serverFrame({ id: 'other', result: {} }), link.sent[0]?.call);
  t.is(client.sent.length, 1);
  t.is(link.closedWith.length, 1);
});

test('what comes for a call that is over changes nothing', (t) => {
  const { client, link, server, says } = new CallBench().open();
  says({ id: 1, result: {} });
  link.pause();
  client.pause();
  t.notThrows(() => {
    client.listener.clientDrained();
    server.serverDrained();
    server.serverFault({ error: TOO_LARGE, kind: 'result', id: 1 });
    server.serverClosed(EXITED);
  });
  t.true(link.isPaused && client.isPaused, 'it is none of its own anymore');
  t.is(client.sent.length, 1);
});

test('a request of the server is ignored: no client sees it, nobody answers it', (t) => {
  const { client, linkHeard, says } = new CallBench().open();
  linkHeard();
  says({ id: 9, method: 'sampling/createMessage', params: {} });
  t.deepEqual(client.heard, []);
  t.deepEqual(linkHeard(), []);
  says({ id: 1, result: {} });
  t.is(client.sent.length, 1, 'the call goes on');
});

test('a server that is gone fails the call with the reason', (t) => {
  const bench = new CallBench();
  const { client, server } = bench.open();
  server.serverClosed(EXITED);
  t.deepEqual(client.heard, [{ jsonrpc: '2.0', id: 1, error: exited }]);
  t.is(bench.modernCalls.size, 0);
});

for (const [title, fault, fails] of [
  ['an answer that could not be taken fails the call', { kind: 'result', id: 1 }, true],
  ['a message nothing is known of fails the call', { kind: undefined, id: undefined }, true],
  ['an answer to another request that could not be taken fails nothing', { kind: 'result', id: 2 }, false],
  ['a notification that could not be taken fails nothing', { kind: 'notification', id: undefined }, false],
  ['a request of the server that could not be taken fails nothing', { kind: 'request', id: 1 }, false],
] as const) {
  test(title, (t) => {
    const { client, linkHeard, server } = new CallBench().open();
    linkHeard();
    server.serverFault({ error: TOO_LARGE, ...fault });
    t.is(client.sent.length, fails ? 1 : 0);
    t.deepEqual(linkHeard(), []);
  });
}

test('a client that leaves has withdrawn its call: the server is told once, nobody hears anything more', (t) => {
  const bench = new CallBench();
  const { client, link, says, server, linkHeard } = bench.open({ id: 'gone' });
  const call = link.sent[0]?.call;
  linkHeard();
  client.listener.clientLeft();
  t.is(link.sent[0]?.call, call);
  t.deepEqual(linkHeard(), [
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'gone', reason: 'the client left' } },
  ]);
  t.deepEqual(call?.state, { kind: 'cancelled', by: 'client' });
  t.is(link.closedWith.length, 1);
  client.listener.clientLeft();
  says({ id: 'gone', result: {} });
  server.serverClosed(EXITED);
  t.deepEqual(linkHeard(), []);
  t.deepEqual(client.heard, []);
  t.is(bench.modernCalls.size, 0);
});

test('a client that leaves after its answer withdraws nothing', (t) => {
  const { client, linkHeard, says } = new CallBench().open();
  linkHeard();
  says({ id: 1, result: {} });
  client.listener.clientLeft();
  t.deepEqual(linkHeard(), []);
});

test('a client that does not keep up stops its link until it has capacity again', (t) => {
  const { client, link, says } = new CallBench().open();
  client.hasCapacity = false;
  says({ method: 'notifications/message', params: {} });
  t.true(link.isPaused);
  client.listener.clientDrained();
  t.false(link.isPaused);
});

test('a request that its server has not taken is said to wait, until it is taken', (t) => {
  const bench = new CallBench();
  bench.dialer.onDial = ({ link }) => {
    link.hasCapacity = false;
  };
  const { client, server } = bench.open();
  t.true(client.isPaused);
  server.serverDrained();
  t.false(client.isPaused);
});

test('nothing waits anymore once the call is over', (t) => {
  const bench = new CallBench();
  bench.dialer.onDial = ({ link }) => {
    link.hasCapacity = false;
  };
  const [left, answered] = [bench.open(), bench.open()];
  left.client.listener.clientLeft();
  answered.says({ id: 1, result: {} });
  t.false(left.client.isPaused);
  t.false(answered.client.isPaused);
});

test('a link that answers while it is given the request has nothing to wait for', (t) => {
  const bench = new CallBench();
  bench.dialer.onDial = ({ link, listener }) => {
    link.hasCapacity = false;
    link.onSend = () => listener.fromServer(serverFrame({ id: 1, result: {} }));
  };
  const { client } = bench.open();
  t.is(client.sent.length, 1);
  t.false(client.isPaused);
  t.is(bench.modernCalls.size, 0);
});
