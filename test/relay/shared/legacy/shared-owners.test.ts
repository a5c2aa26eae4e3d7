/** Whose a message of the server is where it does not say so itself, and what nobody is told. */
import test from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import { Call } from '../../../../src/relay/call.ts';
import { FakeLane, FakeServerListener, messagesOf } from '../../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../../support/frames.ts';
import { type Message, only, reasonOf, SERVER_RESULT, SharedBridge } from './shared-bridge.ts';

const ALL = { capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} } };
const ASK = { id: 'q', method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } };
const TOO_LARGE = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');

function twoClients(options: object = ALL) {
  const bridge = new SharedBridge();
  return { bridge, a: bridge.join(options), b: bridge.join(options) };
}

const completed = (elicitationId: string) => ({
  method: 'notifications/elicitation/complete',
  params: { elicitationId },
});

test('what the transport knows to be of a call goes to its client, whoever else has one open', (t) => {
  const { bridge, a, b } = twoClients();
  for (const client of [a, b]) client.call('level', 'logging/setLevel', { level: 'debug' });
  bridge.answerAll();
  for (const client of [a, b]) client.call(1);
  const [, second] = bridge.heard() as [Message, Message];
  for (const client of [a, b]) client.heard();
  const known = new Call(second.id as number, 'tools/call', new FakeLane(), undefined, 0);
  const { listener } = bridge.dialer.latest;
  listener.fromServer(serverFrame({ method: 'notifications/message', params: { level: 'info', data: 'x' } }), known);
  listener.fromServer(serverFrame({ method: 'notifications/vendor' }), known);
  t.deepEqual(
    b.peer.take().map(({ frame, call }) => [frame.method, call?.id]),
    [
      ['notifications/message', 1],
      ['notifications/vendor', 1],
    ],
  );
  t.deepEqual(a.heard(), []);
});

test('a server that may not ask is told which clients stand in the way', (t) => {
  const { bridge, a, b } = twoClients();
  bridge.says(ASK);
  const nobody = only(bridge.heard());
  t.is(reasonOf(nobody), 'ERR_SHARED_AMBIGUOUS');
  t.regex(
    nobody.error?.message ?? '',
    /^sampling\/createMessage does not say.*no client has an open call.*--isolation/,
  );
  a.call(1);
  b.call(1);
  bridge.heard();
  bridge.says(ASK);
  t.regex(
    only(bridge.heard()).error?.message ?? '',
    /calls of several clients are open, or were canceled less than 10 s ago/,
  );
});

test('a server that may not ask a client is told why', (t) => {
  const { bridge, a } = twoClients({});
  a.call(1);
  bridge.heard();
  bridge.says(ASK);
  t.regex(only(bridge.heard()).error?.message ?? '', /The client of this call did not declare sampling/);
});

test('a call that hardly asks is asked where no other is open', (t) => {
  const { bridge, a, b } = twoClients();
  a.call(1, 'tools/list');
  bridge.heard();
  bridge.says({ id: 'q', method: 'roots/list' });
  t.is(only(a.heard()).method, 'roots/list');
  t.deepEqual(b.heard(), []);
});

test('only the client that was asked to open a page hears that it is done with it', (t) => {
  const params = { mode: 'url', message: 'm', url: 'https://x.example', elicitationId: 'e' };
  const refused = twoClients({});
  refused.a.call(1);
  refused.bridge.says({ id: 'q', method: 'elicitation/create', params });
  refused.bridge.says(completed('e'));
  t.deepEqual(refused.a.heard(), [], 'it was never asked');

  const other = twoClients();
  other.a.call(1);
  other.bridge.says({ ...ASK, params: { ...ASK.params, elicitationId: 'e' } });
  other.a.heard();
  other.bridge.says(completed('e'));
  t.deepEqual(other.a.heard(), [], 'it was asked for something else');

  const answered = twoClients();
  answered.a.call(1);
  const [call] = answered.bridge.heard() as [Message];
  answered.bridge.says({ id: call.id, result: { data: { elicitations: [{ elicitationId: 'e' }] } } });
  answered.a.heard();
  answered.bridge.says(completed('e'));
  t.deepEqual(answered.a.heard(), [], 'a result asks for nothing');
});

test('a request of the server that was dropped with its id is not answered', (t) => {
  const { bridge } = twoClients();
  bridge.heard();
  bridge.dialer.latest.listener.serverFault({ error: TOO_LARGE, kind: 'request', id: undefined });
  t.deepEqual(bridge.heard(), []);
});

test('what nobody waits for goes to nobody: an answer of a client, a withdrawal, changes of roots', (t) => {
  const { bridge, a } = twoClients();
  const link = bridge.server.dial(new FakeServerListener());
  const call = new Call(1, 'tools/call', new FakeLane(), undefined, 0);
  t.true(link.send(clientFrame({ id: 9, result: {} })));
  t.true(link.send(clientFrame({ method: 'notifications/cancelled', params: { requestId: 1 } }), call));
  a.says({ method: 'notifications/roots/list_changed' });
  t.deepEqual(bridge.heard(), []);
  t.false(a.peer.isPaused);
});

test('what the bridge answers by itself does not hold its client back', (t) => {
  const { bridge, a } = twoClients();
  a.call(1, 'ping');
  a.call(2, 'tasks/list');
  const [, tasks] = a.heard();
  t.regex(tasks?.error?.message ?? '', /Tasks are not available on a server shared.*--isolation session/);
  t.deepEqual(bridge.heard(), []);
  t.false(a.peer.isPaused);
});

test('a call whose progress token is none is refused, as the server might take it for another', (t) => {
  const { bridge, a } = twoClients();
  a.call(1, 'tools/call', { _meta: { progressToken: {} } });
  t.is(reasonOf(only(a.heard())), 'ERR_WIRE_MESSAGE');
  t.deepEqual(bridge.heard(), []);
});

test('a client that leaves has its calls withdrawn with the reason, and no level set that is set already', (t) => {
  const { bridge, a, b } = twoClients();
  a.call('level', 'logging/setLevel', { level: 'debug' });
  b.call('level', 'logging/setLevel', { level: 'error' });
  bridge.answerAll();
  b.call(1);
  const { id } = only(bridge.heard());
  b.leaves();
  t.deepEqual(bridge.heard(), [
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id, reason: 'the client left' } },
  ]);
});

test('a client that has given up one of its subscriptions gives up the others when it leaves', (t) => {
  const { bridge, a } = twoClients();
  for (const uri of ['a:/1', 'a:/2']) a.call(uri, 'resources/subscribe', { uri });
  bridge.answerAll();
  a.call('over', 'resources/unsubscribe', { uri: 'a:/1' });
  bridge.answerAll();
  a.leaves();
  t.deepEqual(
    bridge.heard().map(({ method, params }) => [method, params]),
    [['resources/unsubscribe', { uri: 'a:/2' }]],
  );
});

test('a client that finishes its handshake while the next server is awaited is not held back', (t) => {
  const bridge = new SharedBridge();
  bridge.join();
  const late = bridge.connect();
  late.initialize();
  bridge.exits();
  late.says({ method: 'notifications/initialized' });
  t.false(late.peer.isPaused);
});

test('a server that was initialized in the name of the bridge serves the first client with what it has answered', (t) => {
  const bridge = new SharedBridge();
  t.true(bridge.server.startInitialized(SERVER_RESULT));
  t.false(bridge.server.startInitialized(SERVER_RESULT), 'it runs');
  t.deepEqual(
    bridge.heard().map(({ method }) => method),
    ['notifications/initialized'],
  );
  const client = bridge.connect();
  client.initialize();
  t.is(only(client.heard()).result?.instructions, 'be kind');
  bridge.exits();
  bridge.restart();
  t.is(bridge.dialer.dialed.length, 2, 'the next one is asked');
});

test('a request of the bridge itself whose answer cannot be taken has failed', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.join();
  client.call(1, 'resources/subscribe', { uri: 'a:/1' });
  bridge.answerAll();
  bridge.exits();
  bridge.clock.advance(250);
  bridge.answerHandshake();
  const subscribe = bridge.heard().find(({ method }) => method === 'resources/subscribe');
  bridge.dialer.latest.listener.serverFault({ error: TOO_LARGE, kind: 'result', id: subscribe?.id });
  client.heard();
  const [other] = [bridge.join()];
  other.call(1, 'resources/subscribe', { uri: 'a:/1' });
  t.is(only(bridge.heard()).method, 'resources/subscribe', 'nobody has granted it');
});

test('a message that a closed client link is sent goes nowhere', (t) => {
  const { bridge } = twoClients();
  const listener = new FakeServerListener();
  const link = bridge.server.dial(listener);
  link.close(TOO_LARGE);
  link.send(clientFrame({ id: 1, method: 'tools/call' }));
  t.deepEqual(bridge.heard(), []);
  t.deepEqual(messagesOf(listener.received), []);
});
