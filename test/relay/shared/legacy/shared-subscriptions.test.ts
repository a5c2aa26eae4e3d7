import test from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import { MAX_SUBSCRIBED } from '../../../../src/mcp/vocabulary/subscribed-uris.ts';
import { type Message, only, SharedBridge, type SharedClient } from './shared-bridge.ts';

const SUBSCRIBE = 'resources/subscribe';
const UNSUBSCRIBE = 'resources/unsubscribe';

function withClients(count: number) {
  const bridge = new SharedBridge();
  const clients = Array.from({ length: count }, () => bridge.join());
  return { bridge, clients: clients as [SharedClient, SharedClient, SharedClient] };
}

/** Subscribes, and lets the server agree where it is asked. */
function subscribe(bridge: SharedBridge, client: SharedClient, uri: string): void {
  client.call(`subscribe ${uri}`, SUBSCRIBE, { uri });
  bridge.answerAll();
  if (only(client.heard()).result === undefined) throw new Error('not subscribed');
}

function updated(bridge: SharedBridge, uri: unknown): void {
  bridge.says({ method: 'notifications/resources/updated', params: { uri } });
}

const methods = (messages: readonly Message[]) => messages.map(({ method, params }) => [method, params?.uri]);

test("the first subscription is the server's to grant, the second is answered at once", (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  a.call(1, SUBSCRIBE, { uri: 'a:1' });
  t.deepEqual(a.heard(), [], 'not before the server has agreed');
  const asked = only(bridge.heard());
  t.like(asked, { method: SUBSCRIBE, params: { uri: 'a:1' } });
  bridge.says({ id: asked.id, result: { _meta: { of: 'server' } } });
  t.deepEqual(a.heard(), [{ jsonrpc: '2.0', id: 1, result: { _meta: { of: 'server' } } }]);
  b.call(1, SUBSCRIBE, { uri: 'a:1' });
  t.deepEqual(bridge.heard(), []);
  t.deepEqual(b.heard(), [{ jsonrpc: '2.0', id: 1, result: {} }]);
});

test('a subscription the server refuses is not taken for one by the next client', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  a.call(1, SUBSCRIBE, { uri: 'a:1' });
  bridge.says({ id: only(bridge.heard()).id, error: { code: -32002, message: 'no such resource' } });
  t.is(only(a.heard()).error?.code, -32002);
  b.call(1, SUBSCRIBE, { uri: 'a:1' });
  t.is(only(bridge.heard()).method, SUBSCRIBE);
  updated(bridge, 'a:1');
  t.deepEqual(a.heard(), []);
});

test("two clients that subscribe at the same time both hear the server's own answer", (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  for (const client of [a, b]) client.call(1, SUBSCRIBE, { uri: 'a:1' });
  const [first, second] = bridge.heard();
  bridge.says({ id: first?.id, error: { code: 1, message: 'busy' } });
  bridge.says({ id: second?.id, result: {} });
  t.truthy(only(a.heard()).error);
  t.truthy(only(b.heard()).result);
  updated(bridge, 'a:1');
  t.is(a.heard().length, 0);
  t.is(b.heard().length, 1);
});

test('updates go to those who subscribed and to nobody else', (t) => {
  const { bridge, clients } = withClients(3);
  const [a, b, c] = clients;
  subscribe(bridge, a, 'a:1');
  subscribe(bridge, b, 'a:1');
  subscribe(bridge, c, 'a:2');
  const update =
    '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1","title":"\\u0041"}}';
  bridge.says(update);
  t.deepEqual(a.heardTexts(), [update]);
  t.deepEqual(b.heardTexts(), [update]);
  t.deepEqual(c.heard(), []);
});

test('an update of a part reaches those who subscribed to the whole', (t) => {
  const { bridge, clients } = withClients(3);
  const [a, b, c] = clients;
  subscribe(bridge, a, 'file:///dir');
  subscribe(bridge, b, 'file:///dir/');
  subscribe(bridge, c, 'file:///di');
  updated(bridge, 'file:///dir/x');
  t.deepEqual(
    [a, b, c].map((client) => client.heard().length),
    [1, 1, 0],
  );
  updated(bridge, 'file:///directory');
  t.deepEqual(
    [a, b, c].map((client) => client.heard().length),
    [0, 0, 0],
  );
});

test('those who subscribed to the whole hear of a part that somebody else subscribed to by itself', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  subscribe(bridge, a, 'file:///dir');
  subscribe(bridge, b, 'file:///dir/x');
  updated(bridge, 'file:///dir/x');
  t.is(a.heard().length, 1);
  t.is(b.heard().length, 1);
});

test('updates that name no resource, or are not JSON, go to nobody and harm nobody', (t) => {
  const { bridge, clients } = withClients(1);
  const [a] = clients;
  subscribe(bridge, a, 'a:1');
  for (const uri of [undefined, null, 1, ['a:1']]) updated(bridge, uri);
  bridge.says({ method: 'notifications/resources/updated' });
  bridge.says({ method: 'notifications/resources/updated', params: ['a:1'] });
  bridge.says('{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1","n":NaN}}');
  t.deepEqual(a.heard(), []);
});

test('only the last one to unsubscribe makes the server stop', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  subscribe(bridge, a, 'a:1');
  subscribe(bridge, b, 'a:1');
  a.call(2, UNSUBSCRIBE, { uri: 'a:1' });
  t.deepEqual(bridge.heard(), []);
  t.deepEqual(a.heard(), [{ jsonrpc: '2.0', id: 2, result: {} }]);
  updated(bridge, 'a:1');
  t.is(a.heard().length, 0);
  t.is(b.heard().length, 1);
  b.call(2, UNSUBSCRIBE, { uri: 'a:1' });
  t.deepEqual(methods(bridge.link.sent.map(({ frame }) => frame.json() as Message)), [[UNSUBSCRIBE, 'a:1']]);
  bridge.answerAll();
  t.is(only(b.heard()).id, 2);
});

test('who is not subscribed cannot end the subscription of another', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  subscribe(bridge, a, 'a:1');
  b.call(1, UNSUBSCRIBE, { uri: 'a:1' });
  t.deepEqual(bridge.heard(), []);
  t.truthy(only(b.heard()).result);
  updated(bridge, 'a:1');
  t.is(a.heard().length, 1);
});

test('what to say about a resource nobody subscribed to, or about odd params, is up to the server', (t) => {
  const { bridge, clients } = withClients(1);
  const [a] = clients;
  a.call(1, UNSUBSCRIBE, { uri: 'a:1' });
  a.call(2, SUBSCRIBE, { uri: 7 });
  a.call(3, UNSUBSCRIBE, {});
  a.says('{"jsonrpc":"2.0","id":4,"method":"resources/subscribe"}');
  a.says('{"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":["a:1"]}');
  t.is(bridge.heard().length, 5);
});

test('a client that leaves gives up its subscriptions; the server hears of those nobody else has', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  subscribe(bridge, a, 'a:1');
  subscribe(bridge, a, 'a:2');
  subscribe(bridge, b, 'a:2');
  a.leaves();
  t.deepEqual(methods(bridge.heard()), [[UNSUBSCRIBE, 'a:1']]);
  b.leaves();
  t.deepEqual(methods(bridge.heard()), [[UNSUBSCRIBE, 'a:2']]);
});

test('a client that leaves before its subscription was granted leaves none behind', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  a.call(1, SUBSCRIBE, { uri: 'a:1' });
  const asked = only(bridge.heard());
  a.leaves();
  t.deepEqual(methods(bridge.heard()), [
    ['notifications/cancelled', undefined],
    [UNSUBSCRIBE, 'a:1'],
  ]);
  bridge.says({ id: asked.id, result: {} });
  b.call(1, SUBSCRIBE, { uri: 'a:1' });
  t.is(only(bridge.heard()).method, SUBSCRIBE, 'the server is asked anew');
});

test('a subscription that its client cancels before it was granted is given up', (t) => {
  const { bridge, clients } = withClients(1);
  const [a] = clients;
  a.call(1, SUBSCRIBE, { uri: 'a:1' });
  bridge.heard();
  a.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
  t.deepEqual(methods(bridge.heard()), [
    ['notifications/cancelled', undefined],
    [UNSUBSCRIBE, 'a:1'],
  ]);
  updated(bridge, 'a:1');
  t.deepEqual(a.heard(), []);
});

test('a client that unsubscribes before its subscription was granted is not subscribed', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  a.call(1, SUBSCRIBE, { uri: 'a:1' });
  a.call(2, UNSUBSCRIBE, { uri: 'a:1' });
  t.is(bridge.link.sent.length, 2);
  bridge.answerAll();
  t.is(a.heard().length, 2);
  updated(bridge, 'a:1');
  t.deepEqual(a.heard(), []);
  b.call(1, SUBSCRIBE, { uri: 'a:1' });
  t.is(only(bridge.heard()).method, SUBSCRIBE, 'the server is asked anew');
});

test('a subscription whose answer was too large to take is none', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  a.call(1, SUBSCRIBE, { uri: 'a:1' });
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
  bridge.dialer.latest.listener.serverFault({ error, kind: 'result', id: only(bridge.heard()).id });
  t.truthy(only(a.heard()).error);
  updated(bridge, 'a:1');
  t.deepEqual(a.heard(), []);
  b.call(1, SUBSCRIBE, { uri: 'a:1' });
  t.is(only(bridge.heard()).method, SUBSCRIBE);
});

test('a subscription that is refused for its token is none', (t) => {
  const { bridge, clients } = withClients(1);
  const [a] = clients;
  a.call(1, SUBSCRIBE, { uri: 'a:1', _meta: { progressToken: true } });
  t.truthy(only(a.heard()).error);
  t.deepEqual(bridge.heard(), []);
  updated(bridge, 'a:1');
  t.deepEqual(a.heard(), []);
});

test('a client cannot subscribe without end; it is told so, and the server hears nothing', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  for (let n = 0; n < MAX_SUBSCRIBED; n += 1) subscribe(bridge, a, `x:${n}`);
  a.call('more', SUBSCRIBE, { uri: 'x:more' });
  t.deepEqual(bridge.heard(), []);
  t.like(only(a.heard()), { id: 'more', error: { data: { bridge: { reason: 'ERR_SESSION_BUSY' } } } });
  subscribe(bridge, b, 'x:more');
  a.call('less', UNSUBSCRIBE, { uri: 'x:0' });
  bridge.answerAll();
  a.heard();
  subscribe(bridge, a, 'x:more-again');
  t.pass();
});
