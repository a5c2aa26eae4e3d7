import test from 'ava';
import {
  MAX_COMPARED,
  MAX_COMPARED_BYTES,
  OVERLAP_MS,
} from '../../../src/eras/legacy-to-modern/server-subscription.ts';
import { BridgeError } from '../../../src/errors.ts';
import { MAX_SUBSCRIBED } from '../../../src/mcp/vocabulary/subscribed-uris.ts';
import { collectLog } from '../../process/collected-log.ts';
import { DISCOVERY, LegacyFront, type LegacySession, META, type Message } from './legacy-session.ts';

const TOOLS = 'notifications/tools/list_changed';
const UPDATED = 'notifications/resources/updated';
const LISTS = { toolsListChanged: true, resourcesListChanged: true };

const subscribe = (session: LegacySession, uri: string): void =>
  session.call(`sub ${uri}`, { uri }, 'resources/subscribe');
const unsubscribe = (session: LegacySession, uri: string): void =>
  session.call(`unsub ${uri}`, { uri }, 'resources/unsubscribe');

/** Says something within a subscription; the latest one if none is named. */
function within(session: LegacySession, method: string, params: object = {}, listen = session.listens.at(-1)): void {
  session.serverSays({ method, params: { ...params, _meta: { [`${META}subscriptionId`]: listen } } });
}

function acknowledge(session: LegacySession, notifications: unknown): void {
  within(session, 'notifications/subscriptions/acknowledged', { notifications });
}

/** Lets the debounce pass and grants whatever is asked for then. Returns what the server was sent. */
function settle(session: LegacySession): readonly Message[] {
  session.clock.advance(30);
  const [listen, ...rest] = session.asked();
  if (listen?.method !== 'subscriptions/listen') return [];
  acknowledge(session, listen.params.notifications);
  return [listen, ...rest, ...session.asked()];
}

/** A session that listens to the lists. */
function openListening(front = new LegacyFront()): LegacySession {
  const session = front.open();
  settle(session);
  return session;
}

test('after the handshake the server is asked to report what it announces, and that reaches the client as of old', (t) => {
  const session = new LegacyFront().open({ capabilities: { roots: {} } });
  session.clock.advance(29);
  t.deepEqual(session.asked(), []);
  session.clock.advance(1);
  const [listen, ...rest] = session.asked();
  t.deepEqual(rest, []);
  t.deepEqual(listen?.params.notifications, LISTS);
  t.deepEqual(listen?.params._meta[`${META}clientCapabilities`], { roots: {} });
  acknowledge(session, LISTS);
  t.deepEqual(session.heard(), [], 'the acknowledgment is not for the client');
  within(session, TOOLS, { kept: 1 });
  t.deepEqual(session.heard(), [{ jsonrpc: '2.0', method: TOOLS, params: { kept: 1 } } as never]);
});

test('changes that an extension announces are not asked for, as only it knows how; those that come pass', (t) => {
  const extensions = { 'com.example/changing': { listChanged: true } };
  const { capabilities } = DISCOVERY;
  const session = new LegacyFront().open({}, { ...DISCOVERY, capabilities: { ...capabilities, extensions } });
  t.deepEqual(settle(session)[0]?.params.notifications, LISTS);
  within(session, 'notifications/changing/list_changed', { kept: 1 });
  t.like(session.heard()[0], { method: 'notifications/changing/list_changed', params: { kept: 1 } });
});

test('a server that announces nothing is not asked to', (t) => {
  const session = new LegacyFront().open({}, { ...DISCOVERY, capabilities: { tools: {} } });
  session.clock.advance(100);
  t.deepEqual(session.asked(), []);
});

test('subscribe is answered with {} once the server has taken the resource', (t) => {
  const session = openListening();
  subscribe(session, 'test://a');
  session.clock.advance(30);
  t.deepEqual(session.asked()[0]?.params.notifications, { ...LISTS, resourceSubscriptions: ['test://a'] });
  t.deepEqual(session.heard(), []);
  acknowledge(session, { ...LISTS, resourceSubscriptions: ['test://a'] });
  t.deepEqual(session.heard(), [{ jsonrpc: '2.0', id: 'sub test://a', result: {} } as never]);
  subscribe(session, 'test://a');
  t.is(session.heard().length, 1, 'a second time at once');
  session.clock.advance(100);
  t.is(session.asked().filter(({ method }) => method === 'subscriptions/listen').length, 0);
});

test('many subscribes and an unsubscribe make one subscription, opened before the old one is closed', (t) => {
  const session = openListening();
  const [base] = session.listens;
  for (const uri of ['test://a', 'test://b', 'test://c']) subscribe(session, uri);
  unsubscribe(session, 'test://b');
  session.clock.advance(30);
  const [listen, ...early] = session.asked();
  t.deepEqual(listen?.params.notifications.resourceSubscriptions, ['test://a', 'test://c']);
  t.deepEqual(early, [], 'the old one is still open');
  within(session, TOOLS, {}, base);
  t.is(session.heard().filter(({ method }) => method === TOOLS).length, 1);
  acknowledge(session, listen?.params.notifications);
  session.clock.advance(249);
  t.deepEqual(session.asked(), []);
  session.clock.advance(1);
  const [closed, ...rest] = session.asked();
  t.is(closed?.method, 'notifications/cancelled');
  t.is(closed?.params.requestId, base);
  t.deepEqual(rest, []);
  session.clock.advance(1000);
  t.deepEqual(session.asked(), []);
  t.is(session.heard().filter(({ result }) => result !== undefined).length, 2, 'a and c; b was answered before');
});

test('a filter that changes while a subscription opens is asked for right after', (t) => {
  const session = openListening();
  subscribe(session, 'test://a');
  session.clock.advance(30);
  const [first] = session.asked();
  subscribe(session, 'test://b');
  session.clock.advance(30);
  t.deepEqual(session.asked(), [], 'one at a time');
  acknowledge(session, first?.params.notifications);
  session.asked();
  const [second] = settle(session);
  t.deepEqual(second?.params.notifications.resourceSubscriptions, ['test://a', 'test://b']);
});

/** A session whose stream has just been replaced, and what its client is told of changes of the tools from then on. */
function replaceStream(subscribed: readonly string[] = []) {
  const session = openListening();
  for (const uri of subscribed) subscribe(session, uri);
  if (subscribed.length > 0) settle(session);
  session.clock.advance(OVERLAP_MS);
  session.asked();
  const old = session.listens.at(-1);
  subscribe(session, 'test://new');
  settle(session);
  session.heard();
  const changes = (method = TOOLS): number => session.heard().filter((message) => message.method === method).length;
  return { session, old, changes };
}

test('while two subscriptions overlap, a change that both report reaches the client once', (t) => {
  const { session, old, changes } = replaceStream();
  within(session, TOOLS, {}, old);
  t.is(changes(), 1);
  within(session, TOOLS);
  within(session, TOOLS);
  t.is(changes(), 0);
  within(session, TOOLS, {}, old);
  t.is(changes(), 1, 'the new one was faster');
  session.clock.advance(OVERLAP_MS);
  t.is(changes(), 0);
  within(session, TOOLS);
  within(session, TOOLS);
  t.is(changes(), 2, 'the old one is closed');
  within(session, TOOLS, {}, old);
  t.is(changes(), 0);
});

test('a change that was on its way on the old subscription when the new one was acknowledged is not lost', (t) => {
  const { session, old, changes } = replaceStream();
  session.clock.advance(OVERLAP_MS - 1);
  within(session, TOOLS, {}, old);
  t.is(changes(), 1);
});

test('a change that only the new subscription has reported when the old one is closed is told then', (t) => {
  const { session, old, changes } = replaceStream(['test://old']);
  within(session, TOOLS, {}, old);
  for (let n = 0; n < 3; n += 1) within(session, TOOLS, { n });
  within(session, UPDATED, { uri: 'test://old/part' });
  t.is(changes(), 1);
  session.clock.advance(OVERLAP_MS);
  t.deepEqual(
    session.heard().map(({ method, params }) => [method, params]),
    [
      [TOOLS, { n: 2 }],
      [UPDATED, { uri: 'test://old/part' }],
    ],
  );
});

test('a change of what only the new subscription was asked for is told at once', (t) => {
  const { session, changes } = replaceStream(['test://old']);
  within(session, UPDATED, { uri: 'test://new' });
  t.is(changes(UPDATED), 1);
  within(session, UPDATED, { uri: 'test://old' });
  t.is(changes(UPDATED), 0);
  unsubscribe(session, 'test://old');
  session.clock.advance(OVERLAP_MS);
  t.is(changes(UPDATED), 0, 'the client no longer wants it');
});

test('a replaced subscription whose connection breaks may have had more to report', (t) => {
  const { session, old, changes } = replaceStream();
  session.serverSays({ id: old, error: { code: -32603, message: 'broken' } });
  t.is(changes(), 1);
  t.deepEqual(session.asked(), []);
});

test('a replaced subscription that the server ends has reported everything', (t) => {
  const { session, old, changes } = replaceStream();
  within(session, TOOLS, {}, old);
  within(session, TOOLS);
  session.serverSays({ id: old, result: { resultType: 'complete' } });
  t.is(changes(), 1);
  within(session, TOOLS);
  t.is(changes(), 1);
});

test('a subscription that is replaced twice in a moment is closed before the next one', (t) => {
  const { session, old, changes } = replaceStream();
  within(session, TOOLS);
  subscribe(session, 'test://newer');
  const [, closed] = settle(session);
  t.is(closed?.params.requestId, old);
  t.is(changes(), 1);
});

test('beyond a limit, changes that both subscriptions report are told twice rather than not at all', (t) => {
  const { session, old, changes } = replaceStream(['test://old']);
  const uriOf = (n: number): string => `test://old/${n}`;
  for (let n = 0; n <= MAX_COMPARED; n += 1) within(session, UPDATED, { uri: uriOf(n) });
  t.is(changes(UPDATED), 1);
  for (let n = 0; n <= MAX_COMPARED; n += 1) within(session, UPDATED, { uri: uriOf(n) }, old);
  t.is(changes(UPDATED), MAX_COMPARED + 1);
  within(session, UPDATED, { uri: uriOf(0), text: 'x'.repeat(MAX_COMPARED_BYTES) });
  t.is(changes(UPDATED), 1);
});

test('updates come for what is subscribed and its parts, and not for what was unsubscribed', (t) => {
  const session = openListening();
  subscribe(session, 'test://a');
  subscribe(session, 'test://b');
  settle(session);
  session.heard();
  unsubscribe(session, 'test://b');
  for (const uri of ['test://a', 'test://b', 'test://a/part']) within(session, UPDATED, { uri });
  t.deepEqual(
    session
      .heard()
      .filter(({ method }) => method === UPDATED)
      .map(({ params }) => params),
    [{ uri: 'test://a' }, { uri: 'test://a/part' }],
  );
});

test('a resource the server does not take is refused, and not asked for again', (t) => {
  const session = openListening();
  subscribe(session, 'test://a');
  subscribe(session, 'test://b');
  session.clock.advance(30);
  session.asked();
  acknowledge(session, { toolsListChanged: true, resourceSubscriptions: ['test://b'] });
  const byId = new Map(session.heard().map((message) => [message.id, message]));
  t.is(byId.get('sub test://a')?.error.code, -32602);
  t.deepEqual(byId.get('sub test://b')?.result, {});
  session.clock.advance(OVERLAP_MS);
  session.asked();
  session.clock.advance(60_000);
  t.deepEqual(session.asked(), []);
});

test('subscribe needs a server that takes subscriptions; unsubscribe of anything else is fine', (t) => {
  const session = new LegacyFront().open({}, { ...DISCOVERY, capabilities: { resources: {} } });
  subscribe(session, 'test://a');
  t.is(session.heard()[0]?.error.code, -32601);
  const other = openListening();
  unsubscribe(other, 'test://never');
  t.deepEqual(other.heard()[0]?.result, {});
  other.call(1, {}, 'resources/subscribe');
  t.is(other.heard()[0]?.error.code, -32602);
});

test('a subscribe that is withdrawn before the server took it leaves no subscription', (t) => {
  const session = openListening();
  subscribe(session, 'test://a');
  session.says({ method: 'notifications/cancelled', params: { requestId: 'sub test://a' } });
  session.clock.advance(100);
  t.deepEqual(session.asked(), []);
  t.deepEqual(session.heard(), []);
});

test('a subscription that fails to open refuses who waited for it and leaves the old one as it is', (t) => {
  const session = openListening();
  subscribe(session, 'test://a');
  session.clock.advance(30);
  session.asked();
  session.serverSays({ id: session.listens.at(-1), error: { code: -32603, message: 'too many' } });
  t.deepEqual(session.heard()[0]?.error, { code: -32603, message: 'too many' });
  session.clock.advance(60_000);
  t.deepEqual(session.asked(), []);
  within(session, TOOLS, {}, session.listens[0]);
  t.is(session.heard().length, 1);
});

test('a subscription that dies is opened again, later and later, and then the client looks at everything', (t) => {
  const session = openListening();
  subscribe(session, 'test://a');
  settle(session);
  session.clock.advance(OVERLAP_MS);
  session.asked();
  session.heard();
  for (const delayMs of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
    session.serverSays({ id: session.listens.at(-1), error: { code: -32603, message: 'lost' } });
    session.clock.advance(delayMs - 1);
    t.deepEqual(session.asked(), []);
    session.clock.advance(1);
    t.deepEqual(session.asked()[0]?.params.notifications, { ...LISTS, resourceSubscriptions: ['test://a'] });
  }
  t.deepEqual(session.heard(), []);
  acknowledge(session, { ...LISTS, resourceSubscriptions: ['test://a'] });
  t.deepEqual(
    session.heard().map(({ method, params }) => [method, params?.uri]),
    [
      [TOOLS, undefined],
      ['notifications/resources/list_changed', undefined],
      [UPDATED, 'test://a'],
    ],
  );
});

test('sessions that lose their subscriptions together do not come back together', (t) => {
  const session = openListening(new LegacyFront({ random: () => 1 }));
  session.serverSays({ id: session.listens.at(-1), error: { code: -32603, message: 'lost' } });
  session.clock.advance(1249);
  t.deepEqual(session.asked(), []);
  session.clock.advance(1);
  t.is(session.asked()[0]?.method, 'subscriptions/listen');
});

test('a server that has all the subscriptions it can keep serves the session without one, and the log says so', (t) => {
  const { log, entries } = collectLog();
  const session = new LegacyFront({ log }).open();
  session.clock.advance(30);
  session.asked();
  const error = { code: -32603, message: 'full', data: { bridge: { reason: 'ERR_SESSION_BUSY' } } };
  for (const retryMs of [1000, 2000, 4000]) {
    session.serverSays({ id: session.listens.at(-1), error });
    session.clock.advance(retryMs);
  }
  session.call('call');
  session.serverAnswers({ resultType: 'complete', content: [] });
  t.deepEqual(session.heard(), [{ jsonrpc: '2.0', id: 'call', result: { content: [] } } as never]);
  const warnings = entries.filter(({ level }) => level === 40);
  t.deepEqual(
    warnings.map(({ code, msg }) => [code, msg.endsWith(': full')]),
    [['ERR_SESSION_BUSY', true]],
  );
  acknowledge(session, LISTS);
  within(session, TOOLS);
  t.is(session.heard().at(-1)?.method, TOOLS, 'it is tried again until it is taken');
});

for (const [how, end] of [
  ['a result', (id: number) => ({ id, result: { resultType: 'complete' } })],
  ['a cancellation', (id: number) => ({ method: 'notifications/cancelled', params: { requestId: id } })],
] as const) {
  test(`a server that ends a subscription with ${how} is asked again after five seconds`, (t) => {
    const session = openListening();
    session.serverSays(end(session.listens.at(-1) as number));
    t.deepEqual(session.heard(), []);
    session.clock.advance(4999);
    t.deepEqual(session.asked(), []);
    session.clock.advance(1);
    t.is(session.asked()[0]?.method, 'subscriptions/listen');
    acknowledge(session, LISTS);
    t.is(session.heard().length, 2, 'changes may have been missed');
  });
}

test('a server without subscriptions is not asked again, and subscribes are refused', (t) => {
  const session = new LegacyFront().open();
  subscribe(session, 'test://a');
  session.clock.advance(30);
  session.asked();
  session.serverSays({ id: session.listens.at(-1), error: { code: -32601, message: 'no' } });
  t.is(session.heard()[0]?.error.code, -32601);
  subscribe(session, 'test://b');
  t.is(session.heard()[0]?.error.code, -32601);
  session.clock.advance(60_000);
  t.deepEqual(session.asked(), []);
});

test('a session that ends takes its subscription and its timers with it', (t) => {
  const session = openListening();
  subscribe(session, 'test://a');
  session.relay.clientClosed(new BridgeError('ERR_SESSION_CLOSED', 'gone'));
  t.is(session.link.closedWith.length, 1);
  t.is(session.clock.pendingTimers, 0);
});

test('a subscription asks for no log messages', (t) => {
  const session = new LegacyFront().open();
  session.call(1, { level: 'debug' }, 'logging/setLevel');
  session.clock.advance(30);
  t.is(session.asked()[0]?.params._meta[`${META}logLevel`], undefined);
});

test('a client cannot subscribe without end: what is too much is refused at once, and asked of nobody', (t) => {
  const session = openListening();
  for (let n = 0; n < MAX_SUBSCRIBED; n += 1) subscribe(session, `x:${n}`);
  t.deepEqual(session.heard(), []);
  subscribe(session, 'x:more');
  const [refused] = session.heard();
  t.like(refused, { id: 'sub x:more', error: { data: { bridge: { reason: 'ERR_SESSION_BUSY' } } } });
  const [listen] = settle(session);
  t.is(listen?.params.notifications.resourceSubscriptions.length, MAX_SUBSCRIBED);
});
