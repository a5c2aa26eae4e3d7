import test from 'ava';
import { MAX_EARLY, MAX_EARLY_BYTES } from '../../../src/eras/modern-to-legacy/client-subscription.ts';
import { MAX_SUBSCRIBED } from '../../../src/mcp/vocabulary/subscribed-uris.ts';
import { type AskOptions, ModernBridge, type ModernRequest, SERVER_RESULT } from './modern-bridge.ts';

const ID_KEY = 'io.modelcontextprotocol/subscriptionId';
const ALL_CHANGES = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };

function listen(bridge: ModernBridge, notifications: object, options: AskOptions = {}): ModernRequest {
  return bridge.ask('subscriptions/listen', { notifications }, options);
}

/** Answers the subscriptions the server was asked for. */
function grantAll(bridge: ModernBridge): void {
  for (const { id, method } of bridge.heard()) if (method === 'resources/subscribe') bridge.says({ id, result: {} });
}

function updated(bridge: ModernBridge, uri: string): void {
  bridge.says({ method: 'notifications/resources/updated', params: { uri } });
}

test('the acknowledgment comes first and names what is granted', (t) => {
  const bridge = new ModernBridge({ greeting: { ...SERVER_RESULT, capabilities: { tools: { listChanged: true } } } });
  const stream = listen(bridge, { ...ALL_CHANGES, resourceSubscriptions: ['a:b'] }, { id: 'l' });
  t.deepEqual(stream.answer(), {
    jsonrpc: '2.0',
    method: 'notifications/subscriptions/acknowledged',
    params: { notifications: { toolsListChanged: true }, _meta: { [ID_KEY]: 'l' } },
  } as object);
  t.deepEqual(bridge.heard(), []);
});

test('nothing granted is a subscription, too', (t) => {
  const stream = listen(new ModernBridge(), {});
  t.deepEqual(stream.answer().params.notifications, {});
});

test('a filter is needed', (t) => {
  const bridge = new ModernBridge();
  t.is(bridge.ask('subscriptions/listen').answer().error?.code, -32602);
});

test('what comes carries the id of the subscription, whatever it is', (t) => {
  for (const id of [0, 'x', '']) {
    const bridge = new ModernBridge();
    const stream = listen(bridge, { toolsListChanged: true }, { id });
    bridge.says({ method: 'notifications/tools/list_changed' });
    bridge.says({ method: 'notifications/tools/list_changed', params: { a: 1, _meta: { b: 2 } } });
    bridge.says({ method: 'notifications/resources/list_changed' });
    t.deepEqual(
      stream
        .told()
        .slice(1)
        .map(({ params }) => params),
      [{ _meta: { [ID_KEY]: id } }, { a: 1, _meta: { b: 2, [ID_KEY]: id } }],
    );
  }
});

test('resources the server refuses, or does not answer for, are left out; what changes meanwhile follows', (t) => {
  const bridge = new ModernBridge();
  const stream = listen(bridge, { toolsListChanged: true, resourceSubscriptions: ['a:1', 'a:2', 'a:3'] });
  const [first, second] = bridge.heard();
  bridge.says({ id: first?.id, result: {} });
  bridge.says({ id: second?.id, error: { code: -1, message: 'no' } });
  bridge.says({ method: 'notifications/tools/list_changed' });
  t.deepEqual(stream.told(), []);
  bridge.clock.advance(5000);
  const [acknowledged, changed] = stream.told();
  t.deepEqual(acknowledged?.params.notifications, { toolsListChanged: true, resourceSubscriptions: ['a:1'] });
  t.is(changed?.method, 'notifications/tools/list_changed');
});

test('a server that says very much before it has agreed is not waited for any longer, and nothing of it is lost', (t) => {
  const padding = 'x'.repeat(MAX_EARLY_BYTES / 4);
  for (const [count, uri] of [
    [MAX_EARLY, (n: number) => `a:${n}`],
    [4, (n: number) => `a:${n}${padding}`],
  ] as const) {
    const bridge = new ModernBridge();
    const stream = listen(bridge, { resourceSubscriptions: ['a:1'] });
    for (let n = 1; n < count; n += 1) updated(bridge, uri(n));
    t.deepEqual(stream.told(), []);
    updated(bridge, uri(count));
    const [acknowledged, ...changes] = stream.told();
    t.is(acknowledged?.method, 'notifications/subscriptions/acknowledged');
    t.is(changes.length, count);
    updated(bridge, 'a:1');
    t.is(stream.told().length, 1);
  }
});

test('a server that has not begun to serve may say of each list once that it has changed, and is heard where that was granted', (t) => {
  const bridge = new ModernBridge();
  bridge.greeting = undefined;
  const stream = listen(bridge, { toolsListChanged: true, promptsListChanged: true });
  const initialize = bridge.dialer.latest.link.take()[0]?.frame;
  for (let n = 0; n < MAX_EARLY; n += 1) bridge.says({ method: 'notifications/tools/list_changed', params: { n } });
  bridge.says({ method: 'notifications/prompts/list_changed' });
  t.deepEqual(stream.told(), []);
  bridge.says({ id: initialize?.id, result: SERVER_RESULT });
  const [acknowledged, ...changes] = stream.told();
  t.deepEqual(acknowledged?.params.notifications, { toolsListChanged: true });
  t.deepEqual(
    changes.map(({ method }) => method),
    ['notifications/tools/list_changed'],
  );
});

test('of the resources that a client names no more are asked for than it can subscribe to', (t) => {
  const bridge = new ModernBridge();
  const named = Array.from({ length: MAX_SUBSCRIBED + 1 }, (_, n) => `a:${n}`);
  listen(bridge, { resourceSubscriptions: ['a:0', ...named] });
  const asked = bridge.heard().filter(({ method }) => method === 'resources/subscribe');
  t.deepEqual(
    asked.map(({ params }) => params?.uri),
    named.slice(0, MAX_SUBSCRIBED),
  );
});

test('a resource two listen to is subscribed once, and unsubscribed with the last of them', (t) => {
  const bridge = new ModernBridge();
  const filter = { resourceSubscriptions: ['a:b'] };
  const first = listen(bridge, filter, { id: 1 });
  grantAll(bridge);
  const second = listen(bridge, filter, { id: 2 });
  t.deepEqual(bridge.heard(), []);
  updated(bridge, 'a:b');
  for (const stream of [first, second]) t.is(stream.told()[1]?.params.uri, 'a:b');
  first.leaves();
  t.deepEqual(bridge.heard(), []);
  second.cancels();
  t.deepEqual(bridge.heardOnly('resources/unsubscribe').params, { uri: 'a:b' });
});

test('an update of a part reaches who subscribed to the whole, and only those', (t) => {
  const bridge = new ModernBridge();
  const whole = listen(bridge, { resourceSubscriptions: ['file:///a'] });
  const other = listen(bridge, { resourceSubscriptions: ['file:///b'] });
  grantAll(bridge);
  whole.told();
  other.told();
  updated(bridge, 'file:///a/b');
  t.is(whole.answer().params.uri, 'file:///a/b');
  t.deepEqual(other.told(), []);
});

test('an update of what nobody subscribed to by that name is told to all of the session that subscribed', (t) => {
  const bridge = new ModernBridge();
  const first = listen(bridge, { resourceSubscriptions: ['file:///a'] });
  const second = listen(bridge, { resourceSubscriptions: ['file:///b'] });
  const lists = listen(bridge, { resourcesListChanged: true });
  const other = listen(bridge, { resourceSubscriptions: ['file:///a'] }, { principal: 'bob' });
  for (const session of [0, 1]) {
    for (const { id, method } of bridge.heard(session)) {
      if (method === 'resources/subscribe') bridge.says({ id, result: {} }, session);
    }
  }
  for (const stream of [first, second, lists, other]) stream.told();
  bridge.says({ method: 'notifications/resources/updated', params: { uri: 'part:7' } }, 0);
  t.is(first.answer().params.uri, 'part:7');
  t.is(second.answer().params.uri, 'part:7');
  t.deepEqual([...lists.told(), ...other.told()], []);
});

test('a server that was restarted is subscribed to again, and each client told once to look again', (t) => {
  const bridge = new ModernBridge();
  const stream = listen(bridge, { toolsListChanged: true, resourceSubscriptions: ['a:b'] });
  grantAll(bridge);
  stream.told();
  bridge.exits();
  t.deepEqual(stream.told(), []);
  bridge.clock.advance(250);
  t.deepEqual(bridge.heardOnly('resources/subscribe').params, { uri: 'a:b' });
  t.deepEqual(
    stream.told().map(({ method }) => method),
    ['notifications/tools/list_changed', 'notifications/resources/updated'],
  );
});

test('a server that does not come back ends the subscription in good order', (t) => {
  const bridge = new ModernBridge();
  const stream = listen(bridge, { toolsListChanged: true }, { id: 'l' });
  stream.told();
  bridge.greeting = undefined;
  bridge.exits();
  bridge.clock.advance(59_999);
  t.deepEqual(stream.told(), []);
  bridge.clock.advance(1);
  t.like(stream.answer(), { id: 'l', result: { resultType: 'complete', _meta: { [ID_KEY]: 'l' } } });
});

test('so does the end of the bridge', async (t) => {
  const bridge = new ModernBridge();
  const stream = listen(bridge, { toolsListChanged: true });
  stream.told();
  await bridge.modern.close();
  t.is(stream.answer().result.resultType, 'complete');
  t.is(bridge.clock.pendingTimers, 0);
});

test('a session somebody listens to stays', (t) => {
  const bridge = new ModernBridge();
  const stream = listen(bridge, {});
  bridge.clock.advance(60 * 60_000);
  t.is(bridge.dialer.latest.link.closedWith.length, 0);
  stream.leaves();
  bridge.clock.advance(5 * 60_000);
  t.is(bridge.dialer.latest.link.closedWith.length, 1);
});

test('only so many may listen; when one leaves, another may', (t) => {
  const bridge = new ModernBridge();
  const streams = Array.from({ length: 1024 }, () => listen(bridge, {}));
  t.like(listen(bridge, {}, { principal: 'bob' }).answer().error?.data, { bridge: { reason: 'ERR_SESSION_BUSY' } });
  streams[0]?.leaves();
  t.is(listen(bridge, {}).answer().error, undefined);
});

test('of one caller fewer may listen where others have to listen, too', (t) => {
  const bridge = new ModernBridge({ maxListeningPerCaller: 2 });
  const first = listen(bridge, {});
  t.is(first.answer().error, undefined);
  t.is(listen(bridge, {}).answer().error, undefined);
  t.regex(listen(bridge, {}).answer().error?.message ?? '', /^This caller has 2 subscriptions/);
  t.is(listen(bridge, {}, { principal: 'bob' }).answer().error, undefined);
  first.leaves();
  t.is(listen(bridge, {}).answer().error, undefined);
});
