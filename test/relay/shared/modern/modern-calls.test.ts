import test from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import { Call } from '../../../../src/relay/call.ts';
import { asksForLogs } from '../../../../src/relay/shared/modern/modern-era.ts';
import { FakeLane, FakeServerListener } from '../../../support/fake-peers.ts';
import { clientFrame } from '../../../support/frames.ts';
import { type Message, only, RESTART_MS, reasonOf } from '../legacy/shared-bridge.ts';
import { acknowledgment, ENVELOPE, META, ModernBridge } from './modern-bridge.ts';

function twoClients() {
  const bridge = new ModernBridge();
  return { bridge, a: bridge.connect(), b: bridge.connect() };
}

function callOf(id: string | number, method: string): Call {
  return new Call(id, method, new FakeLane(), undefined, 0);
}

const LOGS = { [`${META}logLevel`]: 'debug' };
const LOG_MESSAGE = { method: 'notifications/message', params: { level: 'info', data: 'x' } };

test('the child is started with the first request, and once', (t) => {
  const { bridge, a, b } = twoClients();
  t.is(bridge.dialer.dialed.length, 0);
  a.says({ method: 'notifications/cancelled', params: { requestId: 9 } });
  t.is(bridge.dialer.dialed.length, 0, 'there is nothing to withdraw');
  a.call(1);
  b.call(1);
  t.is(bridge.dialer.dialed.length, 1);
  t.is(bridge.heard().length, 2);
});

test('prewarmed it is started before anybody asks', (t) => {
  t.is(new ModernBridge({ prewarm: true }).dialer.dialed.length, 1);
});

test('equal ids of two clients are different numbers to the server, and each gets its own answer', (t) => {
  const { bridge, a, b } = twoClients();
  a.call('x', { params: { name: 'of a' } });
  b.call('x', { params: { name: 'of b' } });
  const [first, second] = bridge.heard() as [Message, Message];
  t.is(typeof first.id, 'number');
  t.not(first.id, second.id);
  t.deepEqual(second.params, { name: 'of b', _meta: ENVELOPE }, 'the envelope goes along');
  bridge.says({ id: second.id, result: { for: 'b' } });
  bridge.says({ id: first.id, error: { code: -32021, message: 'm', data: { for: 'a' } } });
  t.deepEqual(a.heard(), [
    { jsonrpc: '2.0', id: 'x', error: { code: -32021, message: 'm', data: { for: 'a' } } },
  ] as readonly object[]);
  t.deepEqual(b.heard(), [{ jsonrpc: '2.0', id: 'x', result: { for: 'b' } }]);
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

test('only the id and the token of a call change, both ways', (t) => {
  const { bridge, a } = twoClients();
  a.says(
    '{ "params" : {"n":1.0e+2, "_meta":{"x":1, "progressToken" : "\\u00e9"}, "requestState":"a\\/b"} ,"method":"tools/call", "id" : "a\\/" ,"jsonrpc":"2.0"}',
  );
  const { id, bytes } = only(bridge.link.take()).frame;
  t.is(
    bytes.toString(),
    `{ "params" : {"n":1.0e+2, "_meta":{"x":1, "progressToken" : ${id}}, "requestState":"a\\/b"} ,"method":"tools/call", "id" : ${id} ,"jsonrpc":"2.0"}`,
  );
  bridge.says(
    `{"jsonrpc":"2.0","method":"notifications/progress","params":{ "progress":1.0, "progressToken":${id} ,"m":"\\u0041"}}`,
  );
  bridge.says(`{"result":{"resultType":"input_required","requestState":"a\\/b"} ,"id": ${id}, "jsonrpc":"2.0"}`);
  t.deepEqual(a.heardTexts(), [
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{ "progress":1.0, "progressToken":"\\u00e9" ,"m":"\\u0041"}}',
    '{"result":{"resultType":"input_required","requestState":"a\\/b"} ,"id": "a\\/", "jsonrpc":"2.0"}',
  ]);
});

test('progress goes to the call whose token it names, and to nobody once that was answered', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1, { meta: { progressToken: 1 } });
  b.call(1, { meta: { progressToken: 1 } });
  const [, second] = bridge.heard() as [Message, Message];
  const progress = (progressToken: unknown) =>
    bridge.says({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
  progress(second.id);
  t.deepEqual(only(b.heard()).params, { progressToken: 1, progress: 1 });
  bridge.says({ id: second.id, result: {} });
  b.heard();
  progress(second.id);
  progress(String(second.id));
  progress(1e6);
  t.deepEqual([...a.heard(), ...b.heard()], []);
});

for (const [title, text] of [
  ['a token given twice', '"params":{"_meta":{"progressToken":1,"progressToken":1}}'],
  ['a member beside its like', '"params":{"name":"x","Name":"y"}'],
  ['a log level in another case', `"params":{"_meta":{"${META}loglevel":"debug"}}`],
  ['a log level given twice', `"params":{"_meta":{"${META}logLevel":"debug","${META}log\\u004cevel":"info"}}`],
  ['two _meta', `"params":{"_meta":{},"_meta":{"${META}logLevel":"debug"}}`],
] as const) {
  test(`a request with ${title} is refused: the server might read something else than the bridge`, (t) => {
    const { bridge, a, b } = twoClients();
    b.call(1);
    bridge.heard();
    a.says(`{"jsonrpc":"2.0","id":7,"method":"tools/call",${text}}`);
    t.deepEqual(bridge.heard(), []);
    const refusal = only(a.heard());
    t.is(reasonOf(refusal), 'ERR_WIRE_MESSAGE');
    t.regex(refusal.error?.message ?? '', /read in several ways.*neither a string.*send each member once/);
  });
}

test('a withdrawn call is withdrawn under its number, and its late answer goes nowhere', (t) => {
  const { bridge, a, b } = twoClients();
  b.call('1');
  a.call('1');
  const [, call] = bridge.heard() as [Message, Message];
  a.says('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"\\u0041","requestId":"1"}}');
  t.is(
    only(bridge.link.take()).frame.bytes.toString(),
    `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"\\u0041","requestId":${call.id}}}`,
  );
  bridge.says({ id: call.id, result: {} });
  t.deepEqual([...a.heard(), ...b.heard()], []);
});

test('a withdrawal that could be read as one of another id is told in plain words', (t) => {
  const { bridge, a, b } = twoClients();
  b.call(1);
  a.call(7);
  const [, call] = bridge.heard() as [Message, Message];
  a.says('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"RequestId":1}}');
  t.deepEqual(only(bridge.heard()).params, { requestId: call.id });
});

test('a client that leaves withdraws all it has open, and nothing of others', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  b.call(1);
  a.listen(2);
  const [first, , third] = bridge.heard() as [Message, Message, Message];
  a.leaves();
  t.deepEqual(
    bridge.heard().map(({ method, params }) => [method, params]),
    [
      ['notifications/cancelled', { requestId: first.id, reason: 'the client left' }],
      ['notifications/cancelled', { requestId: third.id, reason: 'the client left' }],
    ],
  );
  a.peer.take();
  for (const { id } of [first, third]) bridge.says({ id, result: {} });
  t.deepEqual([...a.heard(), ...b.heard()], []);
});

test('a translator gets the answers to its own requests by their calls, and withdraws by these', (t) => {
  const { bridge, b } = twoClients();
  const listener = new FakeServerListener();
  const link = bridge.server.dial(listener);
  b.call('own');
  const [discovery, list] = [callOf('own', 'server/discover'), callOf('second', 'tools/list')];
  link.send(clientFrame({ id: 'own', method: 'server/discover', params: { _meta: ENVELOPE } }), discovery);
  link.send(clientFrame({ id: 'second', method: 'tools/list', params: { _meta: ENVELOPE } }), list);
  const [, first, second] = bridge.heard() as [Message, Message, Message];
  bridge.says({ id: first.id, result: {} });
  t.deepEqual(
    listener.received.map(({ frame, call }) => [frame.id, call]),
    [['own', discovery]],
  );
  link.send(clientFrame({ method: 'notifications/cancelled', params: { requestId: 'own' } }), discovery);
  t.deepEqual(bridge.heard(), [], 'that one was answered');
  link.send(clientFrame({ method: 'notifications/cancelled', params: { requestId: 'second' } }), list);
  t.is(only(bridge.heard()).params?.requestId, second.id);
});

test('a call of one client withdraws nothing of another', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  const [asked] = bridge.heard() as [Message];
  const link = bridge.server.dial(new FakeServerListener());
  const call = callOf(1, 'tools/call');
  call.upstreamId = asked.id as number;
  link.send(clientFrame({ method: 'notifications/cancelled', params: { requestId: 1 } }), call);
  t.deepEqual(bridge.heard(), []);
});

test('a call withdraws nothing but its own request', (t) => {
  const { bridge } = twoClients();
  const link = bridge.server.dial(new FakeServerListener());
  const [own, other] = [1, 1].map((id) => callOf(id, 'tools/call'));
  if (own === undefined || other === undefined) return t.fail();
  link.send(clientFrame({ id: 1, method: 'tools/call', params: { _meta: ENVELOPE } }), own);
  other.upstreamId = own.upstreamId;
  bridge.heard();
  link.send(clientFrame({ method: 'notifications/cancelled', params: { requestId: 1 } }), other);
  t.deepEqual(bridge.heard(), []);
});

// ---- what names no call

test('a log message goes to the only call that asked for logs, though others are open', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  b.call(1, { meta: LOGS });
  const [, wanting] = bridge.heard() as [Message, Message];
  bridge.says(LOG_MESSAGE);
  t.like(only(b.heard()), LOG_MESSAGE);
  t.is(b.peer.sent.length, 0);
  bridge.says({ id: wanting.id, result: {} });
  b.heard();
  bridge.says(LOG_MESSAGE);
  t.deepEqual([...a.heard(), ...b.heard()], []);
});

test('of two calls that asked for logs neither gets them: they are of one of the two', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1, { meta: LOGS });
  b.call(1, { meta: LOGS });
  bridge.says(LOG_MESSAGE);
  t.deepEqual([...a.heard(), ...b.heard()], []);
});

test('what the server still logs about a withdrawn call reaches no other client', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1, { meta: LOGS });
  b.call(1, { meta: LOGS });
  a.leaves();
  a.peer.take();
  bridge.says(LOG_MESSAGE);
  t.deepEqual([...a.heard(), ...b.heard()], []);
  bridge.clock.advance(10_000);
  bridge.says(LOG_MESSAGE);
  t.is(b.heard().length, 1, 'by now the server knows');
});

test('a withdrawn call is in nobody’s way any longer than the server may talk about it', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1, { meta: LOGS });
  b.call(1, { meta: LOGS });
  a.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
  bridge.clock.advance(6000);
  a.call(2);
  a.says({ method: 'notifications/cancelled', params: { requestId: 2 } });
  bridge.clock.advance(5000);
  bridge.says(LOG_MESSAGE);
  t.is(b.heard().length, 1, 'the later one asked for no logs');
});

test('so many withdrawn calls are remembered, the latest', (t) => {
  const { bridge, a, b } = twoClients();
  b.call(1, { meta: LOGS });
  const withdraw = (id: number, meta = {}): void => {
    a.call(id, { meta });
    a.says({ method: 'notifications/cancelled', params: { requestId: id } });
  };
  withdraw(0, LOGS);
  for (let id = 1; id < 1024; id += 1) withdraw(id);
  bridge.says(LOG_MESSAGE);
  t.deepEqual(b.heard(), []);
  withdraw(1024);
  bridge.says(LOG_MESSAGE);
  t.is(b.heard().length, 1);
});

test('what the server was told to stop is no matter of the one that replaces it', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1, { meta: LOGS });
  a.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
  b.call(1);
  bridge.says({ method: 'notifications/vendor' });
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  b.heard();
  b.call(2, { meta: LOGS });
  bridge.says(LOG_MESSAGE);
  t.is(b.heard().length, 1);
});

test('a client goes on hearing its own logs after it withdrew another of its calls', (t) => {
  const { bridge, a } = twoClients();
  a.call(1, { meta: LOGS });
  a.call(2, { meta: LOGS });
  a.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
  bridge.says(LOG_MESSAGE);
  t.is(a.heard().length, 1);
});

test('a log level of null asks for nothing', (t) => {
  const { bridge, a } = twoClients();
  a.call(1, { meta: { [`${META}logLevel`]: null } });
  bridge.says(LOG_MESSAGE);
  t.deepEqual(a.heard(), []);
});

test('a notification nobody knows goes to the only call there is; a subscription is none', (t) => {
  const { bridge, a, b } = twoClients();
  a.listen(1);
  b.call(1);
  bridge.says({ method: 'notifications/vendor', params: {} });
  t.is(only(b.heard()).method, 'notifications/vendor');
  b.call(2);
  bridge.says({ method: 'notifications/vendor', params: {} });
  t.deepEqual([...a.heard(), ...b.heard()], []);
});

test('an error without id fails the only call that can be meant', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  bridge.says({ id: null, error: { code: -32700, message: 'cannot read' } });
  t.is(only(a.heard()).error?.code, -32700);
  a.call(2);
  b.call(2);
  bridge.says({ error: { code: -32700, message: 'cannot read' } });
  t.deepEqual([...a.heard(), ...b.heard()], []);
});

test('a subscription that was confirmed and then closed is not what a server could not read', (t) => {
  const { bridge, a, b } = twoClients();
  a.listen(1);
  bridge.says(acknowledgment(only(bridge.heard()).id));
  a.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
  b.call(1);
  bridge.says({ error: { code: -32700, message: 'cannot read' } });
  t.is(only(b.heard()).error?.code, -32700);
});

test('a message that does not name what it is about reaches nobody', (t) => {
  const { bridge, a } = twoClients();
  a.call(1, { meta: { progressToken: 'p' } });
  const { id } = only(bridge.heard());
  t.notThrows(() => {
    bridge.says({ method: 'notifications/progress', params: { progress: 1 } });
    bridge.says({ method: 'notifications/cancelled', params: {} });
    bridge.says(
      `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${id},"progressToken":1}}`,
    );
  });
  t.deepEqual(a.heard(), []);
});

// ---- what a modern server must not do

test('a request of the server is ignored and not answered', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  bridge.heard();
  bridge.says({ id: 1, method: 'sampling/createMessage', params: {} });
  bridge.says({ id: 2, method: 'ping' });
  t.deepEqual(bridge.heard(), []);
  t.deepEqual(a.heard(), []);
});

test('a client answers nobody', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  bridge.heard();
  const link = bridge.server.dial(new FakeServerListener());
  t.true(link.send(clientFrame({ id: 1, result: {} })));
  t.true(link.send(clientFrame({ id: 1, error: { code: 1, message: 'no' } })));
  t.true(link.send(clientFrame({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } })));
  t.deepEqual(bridge.heard(), []);
});

test('a notification of a client that is about no request passes, but for one that can be read in several ways', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  bridge.heard();
  a.says({ method: 'x-vendor/event', params: { _meta: ENVELOPE } });
  a.says('{"jsonrpc":"2.0","method":"x-vendor/event","params":{"_meta":{},"_Meta":{}}}');
  t.is(only(bridge.heard()).method, 'x-vendor/event');
});

test('a withdrawal that names no request withdraws none', (t) => {
  const { bridge } = twoClients();
  const link = bridge.server.dial(new FakeServerListener());
  link.send(clientFrame({ id: 1, method: 'tools/list', params: { _meta: ENVELOPE } }), callOf(1, 'tools/list'));
  bridge.heard();
  t.true(link.send(clientFrame({ method: 'notifications/cancelled' })));
  t.deepEqual(bridge.heard(), []);
});

test('a request without its call is a mistake of its sender, and is not sent', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  bridge.heard();
  const link = bridge.server.dial(new FakeServerListener());
  t.throws(() => link.send(clientFrame({ id: 1, method: 'tools/list', params: { _meta: ENVELOPE } })));
  t.deepEqual(bridge.heard(), []);
});

test('a message that could not be taken fails its own call', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  b.call(1);
  const [, second] = bridge.heard() as [Message, Message];
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too long');
  const { listener } = bridge.dialer.latest;
  listener.serverFault({ error, kind: 'notification', id: undefined });
  listener.serverFault({ error, kind: 'notification', id: second.id });
  listener.serverFault({ error, kind: 'request', id: second.id });
  listener.serverFault({ error, kind: 'result', id: 1e6 });
  t.deepEqual(b.heard(), []);
  listener.serverFault({ error, kind: 'result', id: second.id });
  t.is(reasonOf(only(b.heard())), 'ERR_UPSTREAM_TOO_LARGE');
  t.deepEqual(a.heard(), []);
});

// ---- backpressure and the end

test('a full pipe holds the sender back, and lets all go when it has capacity', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  bridge.link.hasCapacity = false;
  a.call(2);
  t.true(a.peer.isPaused);
  t.false(b.peer.isPaused);
  bridge.dialer.latest.listener.serverDrained();
  t.false(a.peer.isPaused);
});

test('a client that does not read stops nobody', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  b.call(1);
  const [first, second] = bridge.heard() as [Message, Message];
  a.peer.hasCapacity = false;
  bridge.says({ id: first.id, result: {} });
  t.false(bridge.link.isPaused);
  bridge.says({ id: second.id, result: {} });
  t.is(b.heard().length, 1);
});

test('closing ends the sessions of all clients and the child', async (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  await bridge.server.close();
  t.is(reasonOf(only(a.heard())), 'ERR_SESSION_CLOSED');
  t.is(b.ends.length, 1);
  t.is(bridge.link.closedWith.length, 1);
  t.true(bridge.dialer.isClosed);
  t.throws(() => bridge.connect(), { code: 'ERR_SESSION_CLOSED' });
  t.like(bridge.server.readiness(), { state: 'stopped' });
  bridge.server.killNow();
  t.true(bridge.dialer.isKilled);
  t.is(bridge.clock.pendingTimers, 0);
});

test('whether a call asks for logs is told from its envelope alone, or not told at all', (t) => {
  const asks = (params: string) => asksForLogs(clientFrame(`{"jsonrpc":"2.0","id":1,"method":"x","params":${params}}`));
  t.false(asks('{}'));
  t.false(asks('{"_meta":{}}'));
  t.false(asks(`{"${META}logLevel":"debug"}`));
  t.false(asks(`{"_meta":{"${META}logLevel":null}}`));
  t.true(asks(`{"_meta":{"${META}logLevel":"debug"}}`));
  t.is(asks('{"_meta":{},"_meta":{}}'), 'unclear');
  t.is(asks('{"_Meta":{}}'), 'unclear');
});
