import test from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import { FakeServerListener } from '../../../support/fake-peers.ts';
import { clientFrame } from '../../../support/frames.ts';
import { type Message, only, reasonOf, SharedBridge } from './shared-bridge.ts';

function twoClients() {
  const bridge = new SharedBridge();
  return { bridge, a: bridge.join(), b: bridge.join() };
}

test('equal ids of two clients are different numbers to the server, and each gets its own answer', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1, 'tools/call', { name: 'of a' });
  b.call(1, 'tools/call', { name: 'of b' });
  const [first, second] = bridge.heard() as [Message, Message];
  t.is(typeof first.id, 'number');
  t.not(first.id, second.id);
  bridge.says({ id: second.id, result: { for: 'b' } });
  bridge.says({ id: first.id, result: { for: 'a' } });
  t.deepEqual(a.heard(), [{ jsonrpc: '2.0', id: 1, result: { for: 'a' } }]);
  t.deepEqual(b.heard(), [{ jsonrpc: '2.0', id: 1, result: { for: 'b' } }]);
});

test('two answers that a server wrote on one line are two answers, each for its own client', (t) => {
  const { bridge, a, b } = twoClients();
  for (const seam of ['', ' ']) {
    a.call(1);
    b.call(1);
    const answers = bridge.heard().map(({ id }) => JSON.stringify({ jsonrpc: '2.0', id, result: { of: '}{' } }));
    bridge.says(answers.join(seam));
    t.deepEqual(a.heard(), [{ jsonrpc: '2.0', id: 1, result: { of: '}{' } }]);
    t.deepEqual(b.heard(), [{ jsonrpc: '2.0', id: 1, result: { of: '}{' } }]);
  }
});

test('only the id and the token of a call change; everything else stays as it was written, both ways', (t) => {
  const { bridge, a } = twoClients();
  a.says(
    '{ "params" : {"n":1.0e+2, "_meta":{"x":1, "progressToken" : "\\u00e9\\"é"}, "big":12345678901234567890} ,"method":"tools/call","extra":[ ], "id" : "a\\/" ,"jsonrpc":"2.0"}',
  );
  const sent = only(bridge.link.take()).frame;
  const upstreamId = sent.id;
  t.is(
    sent.bytes.toString(),
    `{ "params" : {"n":1.0e+2, "_meta":{"x":1, "progressToken" : ${upstreamId}}, "big":12345678901234567890} ,"method":"tools/call","extra":[ ], "id" : ${upstreamId} ,"jsonrpc":"2.0"}`,
  );
  bridge.says(
    `{"jsonrpc":"2.0","method":"notifications/progress","params":{ "progress":1.0, "progressToken":${upstreamId} ,"m":"\\u0041"}}`,
  );
  bridge.says(`{"result":{"y":1.50} ,"id": ${upstreamId}, "jsonrpc":"2.0"}`);
  t.deepEqual(a.heardTexts(), [
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{ "progress":1.0, "progressToken":"\\u00e9\\"é" ,"m":"\\u0041"}}',
    '{"result":{"y":1.50} ,"id": "a\\/", "jsonrpc":"2.0"}',
  ]);
});

test('an id whose string looks like a number comes back as a string', (t) => {
  const { bridge, a } = twoClients();
  a.call('1');
  a.call(1);
  const [first, second] = bridge.heard() as [Message, Message];
  bridge.says({ id: first.id, result: {} });
  bridge.says({ id: second.id, error: { code: 1, message: 'm' } });
  t.deepEqual(
    a.heard().map(({ id }) => id),
    ['1', 1],
  );
});

test('an answer the server gives to nobody goes to nobody', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  b.call(1);
  const [first] = bridge.heard() as [Message, Message];
  bridge.says({ id: 1, result: {} });
  bridge.says({ id: 1e6, result: {} });
  bridge.says({ id: String(first.id), result: {} });
  bridge.says({ id: first.id, result: {} });
  bridge.says({ id: first.id, result: {} });
  t.is(a.heard().length, 1);
  t.is(b.heard().length, 0);
});

test('progress goes to the call whose token it names, and to nobody once that was answered', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1, 'tools/call', { _meta: { progressToken: 1 } });
  b.call(1, 'tools/call', { _meta: { progressToken: 1 } });
  const [first, second] = bridge.heard() as [Message, Message];
  t.deepEqual(first.params?._meta, { progressToken: first.id });
  const progress = (progressToken: unknown) =>
    bridge.says({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
  progress(second.id);
  t.deepEqual(
    b.heard().map(({ params }) => params),
    [{ progressToken: 1, progress: 1 }],
  );
  bridge.says({ id: second.id, result: {} });
  b.heard();
  progress(second.id);
  progress(String(second.id));
  progress(1);
  progress(null);
  bridge.says({ method: 'notifications/progress' });
  bridge.says(
    `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${first.id},"progressToken":2}}`,
  );
  t.deepEqual(a.heard(), []);
  t.deepEqual(b.heard(), []);
  progress(String(first.id));
  t.deepEqual(
    a.heard().map(({ params }) => params),
    [{ progressToken: 1, progress: 1 }],
  );
});

test('progress nobody asked for goes to nobody', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  const call = only(bridge.heard());
  bridge.says({ method: 'notifications/progress', params: { progressToken: call.id, progress: 1 } });
  t.deepEqual(a.heard(), []);
});

test('a cancellation names the id the server knows, keeps its reason and touches no other client', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  b.call(1);
  const [, second] = bridge.heard() as [Message, Message];
  b.says('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"\\u0041","requestId":1}}');
  t.is(
    only(bridge.link.take()).frame.bytes.toString(),
    `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"\\u0041","requestId":${second.id}}}`,
  );
  bridge.says({ id: second.id, result: {} });
  t.deepEqual(b.heard(), [], 'the late answer is dropped');
  t.is(a.relay.openCalls, 1);
});

test('a client cannot cancel what is not its own', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  const call = only(bridge.heard());
  b.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
  b.says({ method: 'notifications/cancelled', params: { requestId: call.id } });
  t.deepEqual(bridge.heard(), []);
  bridge.says({ id: call.id, result: {} });
  t.is(a.heard().length, 1);
});

test('a cancellation that belongs to no call of its client never reaches the server, whoever passed it on', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  const call = only(bridge.heard());
  const link = bridge.server.dial(new FakeServerListener());
  t.true(link.send(clientFrame({ method: 'notifications/cancelled', params: { requestId: call.id } })));
  t.deepEqual(bridge.heard(), []);
});

test('a call that times out is withdrawn under the id the server knows', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.join({ requestTimeoutMs: 100 });
  client.call('x');
  const call = only(bridge.heard());
  bridge.clock.advance(100);
  client.relay.sweep(bridge.clock.now());
  t.is(reasonOf(only(client.heard())), 'ERR_UPSTREAM_TIMEOUT');
  t.deepEqual(bridge.heard(), [
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: call.id, reason: 'timed out' } },
  ]);
});

test('a ping of a client is answered at once: it must not look like a call of its client', (t) => {
  const { bridge, a } = twoClients();
  a.says('{"jsonrpc":"2.0","id":"\\u0041","method":"ping"}');
  t.deepEqual(bridge.heard(), []);
  t.is(only(a.heardTexts()), '{"jsonrpc":"2.0","id":"\\u0041","result":{}}');
});

test('a full server holds back the client whose message found it full, and all may go on when it drains', (t) => {
  const { bridge, a, b } = twoClients();
  bridge.link.hasCapacity = false;
  a.call(1);
  t.true(a.peer.isPaused);
  t.false(b.peer.isPaused);
  b.call(1);
  t.true(b.peer.isPaused);
  bridge.dialer.latest.listener.serverDrained();
  t.false(a.peer.isPaused);
  t.false(b.peer.isPaused);
});

test('a full client does not stop the server for the others', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  a.peer.hasCapacity = false;
  bridge.answerAll();
  t.false(bridge.link.isPaused);
});

test('an over-long answer fails exactly its call, under the id of its client', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(5);
  b.call(5);
  const [, second] = bridge.heard() as [Message, Message];
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
  bridge.dialer.latest.listener.serverFault({ error, kind: 'result', id: second.id });
  t.deepEqual(a.heard(), []);
  const failed = only(b.heard());
  t.is(failed.id, 5);
  t.is(reasonOf(failed), 'ERR_UPSTREAM_TOO_LARGE');
});

test('an over-long request is refused to the server, an over-long notification is dropped', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  bridge.heard();
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
  const { listener } = bridge.dialer.latest;
  listener.serverFault({ error, kind: 'request', id: 'q' });
  listener.serverFault({ error, kind: 'notification', id: undefined });
  t.is(only(bridge.heard()).id, 'q');
  t.deepEqual(a.heard(), []);
});

for (const [title, blame] of [
  ['an error without id', (bridge: SharedBridge) => void bridge.says({ error: { code: -32700, message: 'what?' } })],
  [
    'an over-long message nothing is known of',
    (bridge: SharedBridge) => {
      const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
      bridge.dialer.latest.listener.serverFault({ error, kind: undefined, id: undefined });
    },
  ],
] as const) {
  test(`${title} fails the only open call of all clients, but none of several`, (t) => {
    const { bridge, a, b } = twoClients();
    a.call('x');
    b.call('x');
    const [, second] = bridge.heard() as [Message, Message];
    blame(bridge);
    t.is(a.relay.openCalls + b.relay.openCalls, 2);
    bridge.says({ id: second.id, result: {} });
    b.heard();
    blame(bridge);
    const failed = only(a.heard());
    t.is(failed.id, 'x');
    t.truthy(failed.error);
    t.deepEqual(b.heard(), []);
  });
}

test('a client that leaves has its calls canceled, and their late answers go to nobody', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  a.call(2);
  b.call(1);
  const [first, second] = bridge.heard() as [Message, Message, Message];
  a.leaves();
  t.deepEqual(
    bridge.heard().map(({ method, params }) => [method, params?.requestId]),
    [
      ['notifications/cancelled', first.id],
      ['notifications/cancelled', second.id],
    ],
  );
  a.heard();
  bridge.says({ id: first.id, result: {} });
  t.deepEqual(a.heard(), []);
  t.deepEqual(b.heard(), []);
  t.deepEqual(b.ends, []);
});

test('a client may leave twice, and what it says afterward goes nowhere', (t) => {
  const { bridge, a } = twoClients();
  a.leaves();
  a.leaves();
  a.says({ method: 'x-vendor/event' });
  t.deepEqual(bridge.heard(), []);
});

test('notifications of a client pass, but for those that are about one client only', (t) => {
  const { bridge, a } = twoClients();
  const event = a.says('{"jsonrpc":"2.0" ,"method":"x-vendor/event","params":{"a":1.0}}');
  a.says({ method: 'notifications/roots/list_changed' });
  a.says({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } });
  a.says({ method: 'notifications/initialized' });
  t.is(only(bridge.link.take()).frame, event);
});
