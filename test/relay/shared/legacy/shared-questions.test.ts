import test from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import { MAX_QUESTION_ID_LENGTH } from '../../../../src/relay/questions.ts';
import { ABANDONED_MS } from '../../../../src/relay/shared/legacy/attribution.ts';
import { MAX_WAITING_BYTES } from '../../../../src/relay/shared/legacy/early-questions.ts';
import { collectLog } from '../../../process/collected-log.ts';
import { only, reasonOf, SharedBridge } from './shared-bridge.ts';

const ALL = { capabilities: { sampling: {}, elicitation: {}, roots: {} } };
const ASK = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } };

function twoClients() {
  const bridge = new SharedBridge();
  return { bridge, a: bridge.join(ALL), b: bridge.join(ALL) };
}

test('a ping of the server is answered by the bridge', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  bridge.heard();
  bridge.says({ id: 'p', method: 'ping' });
  t.deepEqual(bridge.heard(), [{ jsonrpc: '2.0', id: 'p', result: {} }]);
  t.deepEqual(a.heard(), []);
  t.deepEqual(b.heard(), []);
});

test('a question goes to the client whose call is open, on its call, under an id of the bridge, and back', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  bridge.heard();
  bridge.says('{"jsonrpc":"2.0","id":"\\u0041/","method":"sampling/createMessage","params":{"n":1.0}}');
  const asked = only(a.peer.take());
  t.is(asked.call?.id, 1);
  t.is(typeof asked.frame.id, 'number');
  t.is(
    asked.frame.bytes.toString(),
    `{"jsonrpc":"2.0","id":${asked.frame.id},"method":"sampling/createMessage","params":{"n":1.0}}`,
  );
  t.deepEqual(b.heard(), []);
  a.says(`{"jsonrpc":"2.0","id":${asked.frame.id},"result":{"x":1.50}}`);
  t.deepEqual(
    bridge.link.take().map(({ frame }) => frame.bytes.toString()),
    ['{"jsonrpc":"2.0","id":"A/","result":{"x":1.50}}'],
  );
});

test('an error of the client is passed on as well', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  bridge.heard();
  bridge.says({ id: 0, ...ASK });
  a.says({ id: only(a.heard()).id, error: { code: -1, message: 'declined' } });
  t.deepEqual(bridge.heard(), [{ jsonrpc: '2.0', id: 0, error: { code: -1, message: 'declined' } }]);
});

test('a call that hardly asks does not hide the one that does', (t) => {
  for (const quiet of ['tools/list', 'resources/list', 'prompts/list', 'completion/complete', 'resources/subscribe']) {
    const { bridge, a, b } = twoClients();
    a.call(1, 'tools/call');
    b.call(1, quiet, { uri: 'a:1' });
    bridge.says({ id: 'q', ...ASK });
    t.is(a.heard().length, 1, quiet);
    t.is(b.heard().length, 0, quiet);
  }
});

test('while calls of several clients are open nobody is asked, and the server learns why', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1, 'tools/call');
  b.call(1, 'prompts/get');
  bridge.heard();
  bridge.says({ id: 'q', ...ASK });
  t.deepEqual(a.heard(), []);
  t.deepEqual(b.heard(), []);
  const refusal = only(bridge.heard());
  t.is(refusal.id, 'q');
  t.is(refusal.error?.code, -32603);
  t.is(reasonOf(refusal), 'ERR_SHARED_AMBIGUOUS');
});

test('the log says so once, however often the server asks', (t) => {
  const { log, entries } = collectLog();
  const bridge = new SharedBridge({ log });
  const [a, b] = [bridge.join(ALL), bridge.join(ALL)];
  a.call(1, 'tools/call');
  b.call(1, 'prompts/get');
  for (let id = 0; id < 100; id++) bridge.says({ id, method: `sampling/${'x'.repeat(10_000)}` });
  const warnings = entries.filter(({ level }) => level > 30);
  t.is(warnings.length, 1);
  t.like(warnings[0], { code: 'ERR_SHARED_AMBIGUOUS', method: `sampling/${'x'.repeat(91)}` });
});

test('so it is when one of the calls has a method of its own: it may ask, too', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1, 'tools/call');
  b.call(1, 'x-vendor/do');
  bridge.heard();
  bridge.says({ id: 'q', ...ASK });
  t.is(reasonOf(only(bridge.heard())), 'ERR_SHARED_AMBIGUOUS');
});

test('so it is when one of the clients is being asked already: a call may ask twice at once', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1, 'tools/call');
  bridge.says({ id: 'first', ...ASK });
  t.is(a.heard().length, 1);
  b.call(1, 'tools/call');
  bridge.heard();
  bridge.says({ id: 'second', ...ASK });
  t.deepEqual(b.heard(), []);
  t.is(reasonOf(only(bridge.heard())), 'ERR_SHARED_AMBIGUOUS');
});

for (const how of ['canceled its call', 'left'] as const) {
  test(`what a server asks in the call of a client that ${how} is asked of no other, until that call is answered`, (t) => {
    const { bridge, a, b } = twoClients();
    a.call(1);
    const [{ id } = {}] = bridge.heard();
    if (how === 'left') a.leaves();
    else a.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
    b.call(1);
    a.heard();
    bridge.heard();
    bridge.says({ id: 'late', ...ASK });
    t.is(reasonOf(only(bridge.heard())), 'ERR_SHARED_AMBIGUOUS');
    t.deepEqual(b.heard(), []);
    bridge.says({ id, result: {} });
    bridge.says({ id: 'own', ...ASK });
    t.is(only(b.heard()).method, ASK.method);
    t.deepEqual(a.heard(), []);
  });

  test(`the call of a client that ${how} stands in nobody's way for longer than that`, (t) => {
    const { bridge, a, b } = twoClients();
    a.call(1);
    if (how === 'left') a.leaves();
    else a.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
    b.call(1);
    bridge.heard();
    bridge.clock.advance(ABANDONED_MS - 1);
    bridge.says({ id: 'q', ...ASK });
    t.is(reasonOf(only(bridge.heard())), 'ERR_SHARED_AMBIGUOUS');
    bridge.clock.advance(1);
    bridge.says({ id: 'r', ...ASK });
    t.is(only(b.heard()).method, ASK.method);
  });
}

test('an answer that is too large to be passed on is one, too', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  const { id } = only(bridge.heard());
  a.leaves();
  b.call(1);
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
  bridge.dialer.latest.listener.serverFault({ error, kind: 'result', id });
  bridge.says({ id: 'q', ...ASK });
  t.is(only(b.heard()).method, ASK.method);
});

test('a client that has canceled a call is asked in its next, or by itself where it has none', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  a.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
  bridge.says({ id: 'late', ...ASK });
  t.is(only(a.peer.take()).call, undefined);
  a.call(2);
  bridge.says({ id: 'q', ...ASK });
  t.is(only(a.peer.take()).call?.id, 2);
  t.deepEqual(b.heard(), []);
});

test('nobody is asked in place of a client that has left, not even who is alone then', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  a.leaves();
  bridge.heard();
  bridge.says({ id: 'q', ...ASK });
  t.is(reasonOf(only(bridge.heard())), 'ERR_SHARED_AMBIGUOUS');
  t.deepEqual(b.heard(), []);
});

test('a client without a connection keeps others from being asked for no longer than one that left', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  b.call(1);
  bridge.heard();
  a.lane.lostAtMs = bridge.clock.now();
  bridge.clock.advance(ABANDONED_MS - 1);
  bridge.says({ id: 'q', ...ASK });
  t.is(reasonOf(only(bridge.heard())), 'ERR_SHARED_AMBIGUOUS');
  bridge.clock.advance(1);
  bridge.says({ id: 'r', ...ASK });
  t.is(only(b.heard()).method, ASK.method);
  a.lane.lostAtMs = undefined;
  bridge.says({ id: 's', ...ASK });
  t.is(reasonOf(only(bridge.heard())), 'ERR_SHARED_AMBIGUOUS', 'it is back');
  t.deepEqual(a.heard(), []);
});

test('a client without a connection is asked as long as no other has a call open: it may come back', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  a.lane.lostAtMs = bridge.clock.now();
  bridge.clock.advance(ABANDONED_MS);
  bridge.says({ id: 'q', ...ASK });
  t.is(only(a.heard()).method, ASK.method);
  t.deepEqual(b.heard(), []);
});

test('without an open call the only client is asked, but none of several', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join(ALL);
  bridge.says({ id: 'q', method: 'roots/list' });
  t.is(only(a.heard()).method, 'roots/list');
  bridge.join(ALL);
  bridge.heard();
  bridge.says({ id: 'r', method: 'roots/list' });
  t.deepEqual(a.heard(), []);
  t.is(reasonOf(only(bridge.heard())), 'ERR_SHARED_AMBIGUOUS');
});

test('a client is not asked for what it did not declare', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join({ capabilities: { roots: {} } });
  a.call(1);
  bridge.heard();
  for (const [id, method] of ['sampling/createMessage', 'elicitation/create'].entries()) {
    bridge.says({ id, method, params: {} });
    const refusal = only(bridge.heard());
    t.is(refusal.id, id);
    t.is(refusal.error?.code, -32601);
    t.is(reasonOf(refusal), 'ERR_CLIENT_CAPABILITY');
  }
  t.deepEqual(a.heard(), []);
  bridge.says({ id: 'roots', method: 'roots/list' });
  t.is(a.heard().length, 1);
});

test('a request the bridge does not know is passed on like any other', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  bridge.says({ id: 'q', method: 'x-vendor/ask', params: [1] });
  t.like(only(a.heard()), { method: 'x-vendor/ask', params: [1] });
});

test('a question that is not JSON all through is passed on and brings nobody down', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  bridge.says('{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"temperature":NaN}}');
  t.is(a.peer.take().length, 1);
});

test('nobody can answer the question of another, nor one that was not asked, nor one twice', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  bridge.heard();
  bridge.says({ id: 'q', ...ASK });
  const { id } = only(a.heard());
  // To b's relay nothing was asked, so nothing is passed on; b then is asked something of its own.
  b.says({ id, result: { stolen: true } });
  bridge.says({ id: 'q2', ...ASK });
  const other = only(a.heard());
  a.says({ id: 12345, result: {} });
  a.says({ id: String(id), result: {} });
  t.deepEqual(bridge.heard(), []);
  a.says({ id, result: {} });
  a.says({ id, result: {} });
  t.is(only(bridge.heard()).id, 'q');
  a.says({ id: other.id, result: {} });
  t.is(only(bridge.heard()).id, 'q2');
});

test('ids toward clients are never used twice, though the server may reuse its own', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  const ids = new Set<unknown>();
  for (let n = 0; n < 5; n += 1) {
    bridge.says({ id: 1, ...ASK });
    const { id } = only(a.heard());
    ids.add(id);
    a.says({ id, result: {} });
  }
  t.is(ids.size, 5);
});

test('the server withdraws a question under its own id; the client hears it under the id it knows', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  bridge.heard();
  bridge.says({ id: 'q', ...ASK });
  const { id } = only(a.heard());
  bridge.says('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\\u0071","reason":"r"}}');
  t.deepEqual(a.heardTexts(), [
    `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id},"reason":"r"}}`,
  ]);
  a.says({ id, result: {} });
  t.deepEqual(bridge.heard(), []);
  t.deepEqual(b.heard(), []);
});

test('a withdrawal of something that is not open goes to nobody', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  bridge.says({ id: 'q', ...ASK });
  const { id } = only(a.heard());
  for (const params of [{ requestId: 'other' }, { requestId: id }, {}, undefined]) {
    bridge.says({ method: 'notifications/cancelled', params });
  }
  t.deepEqual(a.heard(), []);
  t.deepEqual(b.heard(), []);
});

test('a client that leaves has its questions answered with the reason', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1);
  bridge.says({ id: 'q', ...ASK });
  bridge.heard();
  a.leaves();
  const answer = only(bridge.heard().filter(({ error }) => error !== undefined));
  t.is(answer.id, 'q');
  t.is(reasonOf(answer), 'ERR_SESSION_CLOSED');
  t.deepEqual(b.heard(), []);
});

test('a question that finds no way to its client is answered to the server', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  bridge.heard();
  bridge.says({ id: 'q', ...ASK });
  const { frame } = only(a.peer.take());
  a.relay.undeliverable(frame, new BridgeError('ERR_CLIENT_NO_STREAM', 'no stream'));
  const answer = only(bridge.heard());
  t.is(answer.id, 'q');
  t.is(reasonOf(answer), 'ERR_CLIENT_NO_STREAM');
});

test('the call that is asking does not time out meanwhile', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join({ ...ALL, requestTimeoutMs: 100 });
  a.call(1);
  bridge.says({ id: 'q', ...ASK });
  bridge.clock.advance(1000);
  a.relay.sweep(bridge.clock.now());
  t.is(a.relay.openCalls, 1);
});

for (const how of ['says that its handshake is done', 'never says so'] as const) {
  test(`what a server asks early waits for its client, also for one that ${how}`, (t) => {
    const bridge = new SharedBridge();
    bridge.join();
    const client = bridge.connect({ capabilities: { roots: {} } });
    client.initialize();
    client.call('call');
    client.heard();
    bridge.heard();
    bridge.says({ id: 'first', method: 'roots/list' });
    bridge.says({ id: 'withdrawn', method: 'roots/list' });
    bridge.says({ method: 'notifications/cancelled', params: { requestId: 'withdrawn' } });
    t.deepEqual(
      client.heard().filter(({ method }) => method === 'roots/list'),
      [],
    );
    if (how === 'never says so') bridge.clock.advance(10_000);
    else client.says({ method: 'notifications/initialized' });
    const [asked, ...rest] = client.heard();
    t.is(asked?.method, 'roots/list');
    t.deepEqual(rest, []);
    client.says({ id: asked?.id, result: { roots: [] } });
    t.deepEqual(only(bridge.heard()), { jsonrpc: '2.0', id: 'first', result: { roots: [] } });
    bridge.says({ id: 'second', method: 'roots/list' });
    t.is(client.heard().length, 1, 'at once from then on');
    t.is(bridge.clock.pendingTimers, 0);
  });
}

test('a question under an id that is too long to be kept is refused to the server', (t) => {
  const { bridge, a } = twoClients();
  a.call(1);
  bridge.heard();
  const longest = 'x'.repeat(MAX_QUESTION_ID_LENGTH);
  bridge.says({ id: longest, ...ASK });
  t.is(a.heard().length, 1);
  bridge.says({ id: `${longest}x`, ...ASK });
  t.deepEqual(a.heard(), []);
  t.is(reasonOf(only(bridge.heard())), 'ERR_WIRE_MESSAGE');
});

test('large questions do not wait for a client that has not finished its handshake', (t) => {
  const bridge = new SharedBridge();
  bridge.join();
  const client = bridge.connect({ capabilities: { sampling: {} } });
  client.initialize();
  client.call('call');
  bridge.heard();
  const half = { ...ASK, params: { text: 'x'.repeat(MAX_WAITING_BYTES / 2 - 100) } };
  for (let id = 0; id < 3; id += 1) bridge.says({ id, ...half });
  const refused = only(bridge.heard());
  t.is(refused.id, 2);
  t.is(reasonOf(refused), 'ERR_SESSION_BUSY');
  client.heard();
  client.says({ method: 'notifications/initialized' });
  t.is(client.heard().length, 2);
  bridge.says({ id: 3, ...ASK, params: { text: 'x'.repeat(MAX_WAITING_BYTES) } });
  t.is(client.heard().length, 1, 'any size, when nothing waits anymore');
});

test('so much and no more waits for a client that has not finished its handshake, and not for one that left', (t) => {
  const bridge = new SharedBridge();
  bridge.join();
  const client = bridge.connect({ capabilities: { roots: {} } });
  client.initialize();
  client.call('call');
  bridge.heard();
  for (let id = 0; id < 17; id += 1) bridge.says({ id, method: 'roots/list' });
  const refused = only(bridge.heard());
  t.is(refused.id, 16);
  t.is(reasonOf(refused), 'ERR_SESSION_BUSY');
  client.leaves();
  t.is(bridge.clock.pendingTimers, 0);
});
