import test from 'ava';
import { type Message, only, reasonOf } from '../legacy/shared-bridge.ts';
import { acknowledgment, change, META, ModernBridge, SUBSCRIPTION_ID, subscriptionOf } from './modern-bridge.ts';

function listening(...ids: readonly (string | number)[]) {
  const bridge = new ModernBridge();
  const clients = ids.map((id) => {
    const client = bridge.connect();
    client.listen(id);
    return client;
  });
  const upstreamIds = bridge.heard().map(({ id }) => id as number);
  return { bridge, clients, upstreamIds };
}

for (const id of [0, 'x', '1', -7, 'ä"\\']) {
  test(`a subscription opened under ${JSON.stringify(id)} is told of under that id`, (t) => {
    const { bridge, clients, upstreamIds } = listening(id, id);
    const [first, second] = clients;
    t.not(upstreamIds[0], upstreamIds[1]);
    bridge.says(acknowledgment(upstreamIds[1]));
    bridge.says(change(upstreamIds[1]));
    bridge.says({
      id: upstreamIds[1],
      result: { resultType: 'complete', _meta: { [SUBSCRIPTION_ID]: upstreamIds[1] } },
    });
    const heard = second?.heard() ?? [];
    t.deepEqual(
      heard.map(({ method }) => method),
      ['notifications/subscriptions/acknowledged', 'notifications/tools/list_changed', undefined],
    );
    for (const message of heard) t.is(subscriptionOf(message), id);
    t.is(heard[2]?.id, id);
    t.deepEqual(first?.heard(), []);
  });
}

test('only the subscription id is changed, and it comes back as it was written', (t) => {
  const bridge = new ModernBridge();
  const client = bridge.connect();
  client.says('{"jsonrpc":"2.0","id":"\\u0041","method":"subscriptions/listen","params":{"notifications":{}}}');
  const { id } = only(bridge.heard());
  bridge.says(
    `{"jsonrpc":"2.0", "method":"notifications/resources/updated","params":{"n":1.0,"_meta":{ "${SUBSCRIPTION_ID}" : ${id},"x":[]},"uri":"a\\/b"}}`,
  );
  t.deepEqual(client.heardTexts(), [
    `{"jsonrpc":"2.0", "method":"notifications/resources/updated","params":{"n":1.0,"_meta":{ "${SUBSCRIPTION_ID}" : "\\u0041","x":[]},"uri":"a\\/b"}}`,
  ]);
});

test('what an extension adds to the filter, and what it brings, pass', (t) => {
  const bridge = new ModernBridge();
  const client = bridge.connect();
  const other = bridge.connect();
  const notifications = { skillsChanged: true, deep: [1, { b: null }] };
  client.says({ id: 'l', method: 'subscriptions/listen', params: { notifications } });
  other.listen('l');
  const [listen] = bridge.heard();
  t.deepEqual(listen?.params?.notifications, notifications);
  const within = (method: string, params: object) =>
    bridge.says({ method, params: { ...params, _meta: { [SUBSCRIPTION_ID]: listen?.id } } });
  within('notifications/subscriptions/acknowledged', { notifications });
  within('notifications/skills/list_changed', { n: 1 });
  const heard = client.heard();
  t.deepEqual(heard[0]?.params?.notifications, notifications);
  t.like(heard[1], {
    method: 'notifications/skills/list_changed',
    params: { n: 1, _meta: { [SUBSCRIPTION_ID]: 'l' } },
  });
  t.deepEqual(other.heard(), []);
});

test('what is of no open subscription reaches nobody', (t) => {
  const { bridge, clients, upstreamIds } = listening(1);
  const [client] = clients;
  client?.call(2);
  const call = only(bridge.heard());
  for (const id of [99, String(upstreamIds[0]), call.id]) bridge.says(change(id));
  bridge.says(acknowledgment(call.id));
  t.deepEqual(client?.heard(), []);
});

test('A2.7: a server that ends a subscription by notifications/cancelled ends it as if by a result', (t) => {
  for (const id of ['x', 0]) {
    const { bridge, clients, upstreamIds } = listening(id);
    const requestId = upstreamIds[0];
    bridge.says({ method: 'notifications/cancelled', params: { requestId } });
    t.deepEqual(clients[0]?.heard(), [
      { jsonrpc: '2.0', id, result: { resultType: 'complete', _meta: { [SUBSCRIPTION_ID]: id } } },
    ]);
    bridge.says({ id: requestId, result: {} });
    bridge.says(change(requestId));
    t.deepEqual(clients[0]?.heard(), [], 'it is over');
  }
});

test('a result first and notifications/cancelled after it end the subscription once', (t) => {
  const { bridge, clients, upstreamIds } = listening(1);
  bridge.says({ id: upstreamIds[0], result: {} });
  bridge.says({ method: 'notifications/cancelled', params: { requestId: upstreamIds[0] } });
  t.is(clients[0]?.heard().length, 1);
});

test('a server withdraws no call', (t) => {
  const bridge = new ModernBridge();
  const client = bridge.connect();
  client.call(1);
  const call = only(bridge.heard());
  bridge.says({ method: 'notifications/cancelled', params: { requestId: call.id } });
  t.deepEqual(client.heard(), []);
  bridge.says({ id: call.id, result: {} });
  t.is(client.heard().length, 1);
});

test('a client that closes its subscription withdraws it under its number', (t) => {
  const { bridge, clients, upstreamIds } = listening('x');
  clients[0]?.says({ method: 'notifications/cancelled', params: { requestId: 'x' } });
  t.deepEqual(only(bridge.heard()).params, { requestId: upstreamIds[0] });
  bridge.says(change(upstreamIds[0]));
  t.deepEqual(clients[0]?.heard(), []);
});

test('a subscription takes no log messages, whatever it asked for', (t) => {
  const bridge = new ModernBridge();
  const [a, b] = [bridge.connect(), bridge.connect()];
  const meta = { [`${META}logLevel`]: 'debug' };
  a.call(1, { method: 'subscriptions/listen', meta });
  b.call(1, { meta });
  bridge.says({ method: 'notifications/message', params: { level: 'info', data: 'x' } });
  t.is(b.heard().length, 1);
  t.deepEqual(a.heard(), []);
});

test('a server takes a limited number of subscriptions; closing one allows another', (t) => {
  const bridge = new ModernBridge();
  const clients = [bridge.connect(), bridge.connect()];
  for (let n = 0; n < 1024; n += 1) clients[n % 2]?.listen(n);
  t.is(bridge.heard().length, 1024);
  const late = bridge.connect();
  late.listen(1);
  const refusal = only(late.heard());
  t.is(reasonOf(refusal), 'ERR_SESSION_BUSY');
  t.regex(refusal.error?.message ?? '', /^1024 subscriptions are open at this server, the most allowed; close some/);
  clients[0]?.leaves();
  late.listen(1);
  t.true((bridge.heard() as Message[]).some(({ method }) => method === 'subscriptions/listen'));
});

test('calls are not counted among subscriptions, neither when they come nor when they are over', (t) => {
  const bridge = new ModernBridge();
  const [caller, ...listeners] = Array.from({ length: 3 }, () => bridge.connect());
  if (caller === undefined) return t.fail();
  for (const id of [1, 2]) caller.call(id);
  bridge.says({ id: only(bridge.heard().slice(0, 1)).id, result: {} });
  for (let n = 0; n < 1024; n += 1) listeners[n % 2]?.listen(n);
  t.is(bridge.heard().length, 1024);
  caller.heard();
  caller.listen(3);
  t.is(reasonOf(only(caller.heard())), 'ERR_SESSION_BUSY');
});
