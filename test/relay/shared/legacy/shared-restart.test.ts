import test from 'ava';
import { collectLog } from '../../../process/collected-log.ts';
import { remainsOf } from '../../../support/fake-peers.ts';
import { EXITED, only, RESTART_MS, reasonOf, SERVER_RESULT, SharedBridge } from './shared-bridge.ts';

test('when the server ends, the open calls of all clients fail with the reason, each under its own id', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(1);
  a.says('{"jsonrpc":"2.0","id":"\\u0041","method":"x-vendor/do"}');
  b.call(1);
  bridge.exits();
  const answers = a.peer.take().map(({ frame }) => frame.bytes.toString());
  t.is(answers.length, 2);
  t.true(answers[1]?.includes('"id":"\\u0041"'));
  const failed = only(b.heard());
  t.is(failed.id, 1);
  t.is(failed.error?.message, EXITED.message);
  t.is(reasonOf(failed), 'ERR_UPSTREAM_EXITED');
  t.is(a.relay.openCalls + b.relay.openCalls, 0);
  t.deepEqual([...a.ends, ...b.ends], [], 'the sessions go on');
});

test('the log says what is done about a loss, and why a server did not start unless its link has said it', (t) => {
  const { log, entries } = collectLog();
  const bridge = new SharedBridge({ log });
  bridge.join();
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  bridge.exits();
  bridge.clock.advance(2 * RESTART_MS);
  const { id } = only(bridge.heard());
  bridge.says({ id, error: { code: -32603, message: 'not now' } });
  t.deepEqual(
    entries.map(({ level, code, msg }) => [level, code, msg]),
    [
      [30, EXITED.code, 'the shared server has ended; it starts again when it is needed'],
      [30, EXITED.code, 'the shared server did not start'],
      [40, 'ERR_UPSTREAM_PROTOCOL', 'the shared server did not start: fake-server refused initialize: "not now"'],
    ],
  );
});

test('when the server ends, its open questions are withdrawn, and late answers go to no other server', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join({ capabilities: { roots: {} } });
  bridge.says({ id: 'q', method: 'roots/list' });
  const { id } = only(a.heard());
  bridge.exits();
  t.deepEqual(a.heard(), [
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id, reason: 'the server ended' } },
  ]);
  bridge.restart();
  a.heard();
  a.says({ id, result: { roots: [] } });
  t.deepEqual(bridge.heard(), []);
});

test('a new server is started after a pause and the clients do not notice but for "look again"', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  const newcomer = bridge.connect();
  newcomer.initialize();
  newcomer.heard();
  bridge.exits();
  t.is(bridge.server.readiness().state, 'failing');
  bridge.clock.advance(RESTART_MS - 1);
  t.is(bridge.dialer.dialed.length, 1);
  bridge.clock.advance(1);
  t.is(bridge.dialer.dialed.length, 2);
  bridge.answerHandshake();
  t.is(bridge.server.readiness().state, 'ready');
  for (const client of [a, b]) {
    t.deepEqual(
      client.heard().map(({ method }) => method),
      ['notifications/tools/list_changed', 'notifications/resources/list_changed'],
    );
  }
  t.deepEqual(newcomer.heard(), [], 'who has not finished its handshake is told nothing');
  a.call(1);
  bridge.answerAll();
  t.is(only(a.heard()).id, 1);
});

test('the log level and the subscriptions are restored, and updates of the latter announced', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(1, 'logging/setLevel', { level: 'debug' });
  b.call(1, 'logging/setLevel', { level: 'error' });
  a.call(2, 'resources/subscribe', { uri: 'a:1' });
  b.call(2, 'resources/subscribe', { uri: 'a:2' });
  bridge.answerAll();
  b.call(3, 'resources/subscribe', { uri: 'a:1' });
  for (const client of [a, b]) client.heard();
  bridge.exits();
  t.deepEqual(bridge.restart(), [
    ['notifications/initialized', undefined],
    ['logging/setLevel', { level: 'debug' }],
    ['resources/subscribe', { uri: 'a:1' }],
    ['resources/subscribe', { uri: 'a:2' }],
  ]);
  const updates = (client: typeof a) =>
    client
      .heard()
      .filter(({ method }) => method === 'notifications/resources/updated')
      .map(({ params }) => params?.uri);
  t.deepEqual(updates(a), ['a:1']);
  t.deepEqual(updates(b), ['a:1', 'a:2']);
});

test('a subscription the new server refuses is asked for again by the next client', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(1, 'resources/subscribe', { uri: 'a:1' });
  bridge.answerAll();
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  bridge.answerHandshake();
  const again = bridge.heard().find(({ method }) => method === 'resources/subscribe');
  bridge.says({ id: again?.id, error: { code: -32002, message: 'gone' } });
  b.call(1, 'resources/subscribe', { uri: 'a:1' });
  t.is(only(bridge.heard()).method, 'resources/subscribe');
});

test('a subscription that was not granted yet when the server ended is not restored', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  a.call(1, 'resources/subscribe', { uri: 'a:1' });
  bridge.exits();
  t.truthy(only(a.heard()).error);
  t.deepEqual(bridge.restart(), [['notifications/initialized', undefined]]);
});

test('a server that offers other capabilities ends the sessions of those who knew the old ones', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  const waiting = bridge.connect();
  bridge.exits();
  a.call(1);
  waiting.initialize();
  bridge.restart({ ...SERVER_RESULT, capabilities: { tools: {} } });
  for (const client of [a, b]) {
    t.is(only(client.ends).code, 'ERR_UPSTREAM_EXITED');
    t.is(
      only(client.ends).message,
      'fake-server was restarted and offers other capabilities than before; open a new session.',
    );
    t.is(client.peer.closedWith.length, 1);
  }
  t.truthy(only(a.heard()).error);
  t.deepEqual(waiting.ends, []);
  t.deepEqual(only(waiting.heard()).result?.capabilities, { tools: {} });
});

test('another order of the same capabilities is no other offer', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  bridge.exits();
  const capabilities = Object.fromEntries(Object.entries(SERVER_RESULT.capabilities).reverse());
  bridge.restart({ ...SERVER_RESULT, capabilities });
  t.deepEqual(a.ends, []);
});

test('clients that come to a server after all others have left are not measured by what those knew', (t) => {
  const bridge = new SharedBridge();
  bridge.join().leaves();
  bridge.exits();
  const client = bridge.connect();
  client.initialize();
  bridge.answerHandshake({ ...SERVER_RESULT, capabilities: { tools: {} } });
  t.deepEqual(client.ends, []);
  t.deepEqual(only(client.heard()).result?.capabilities, { tools: {} });
});

test('requests of the bridge itself that the old server did not answer are forgotten with it', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(1, 'logging/setLevel', { level: 'debug' });
  b.call(1, 'logging/setLevel', { level: 'error' });
  bridge.answerAll();
  a.leaves();
  const { id } = only(bridge.heard().filter(({ method }) => method === 'logging/setLevel'));
  bridge.exits();
  b.heard();
  bridge.restart();
  b.heard();
  t.notThrows(() => bridge.says({ id, result: {} }));
  t.deepEqual(b.heard(), []);
});

test('a client that leaves over the end of the server does not keep others from being told', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(1);
  b.call(1);
  bridge.link.take();
  a.peer.onSend = () => a.leaves();
  bridge.exits();
  t.is(b.heard().length, 1);
  t.deepEqual(bridge.heard(), [], 'nothing is said to a server that is gone');
});

test('a client that asks again as soon as it hears of the end is served by the next server', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  a.call(1);
  a.peer.onSend = () => {
    a.peer.onSend = () => {};
    a.call(2);
  };
  bridge.exits();
  t.is(a.heard().length, 1);
  bridge.restart();
  t.is(a.relay.openCalls, 1);
  t.true(bridge.dialer.dialed.length === 2);
});

test('until the new server has granted a subscription again, other clients ask it for themselves', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(1, 'resources/subscribe', { uri: 'a:1' });
  bridge.answerAll();
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  bridge.answerHandshake();
  const again = bridge.heard().find(({ method }) => method === 'resources/subscribe');
  b.call(1, 'resources/subscribe', { uri: 'a:1' });
  t.is(only(bridge.heard()).method, 'resources/subscribe');
  bridge.says({ id: again?.id, result: {} });
  b.call(2, 'resources/subscribe', { uri: 'a:1' });
  t.deepEqual(bridge.heard(), []);
});

test('a server that offers other capabilities is told nothing of wishes it never heard', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  a.call(1, 'resources/subscribe', { uri: 'a:1' });
  a.call(2, 'logging/setLevel', { level: 'debug' });
  bridge.answerAll();
  bridge.exits();
  t.deepEqual(bridge.restart({ ...SERVER_RESULT, capabilities: {} }), [['notifications/initialized', undefined]]);
  t.is(a.ends.length, 1);
});

test('a new server is not started while anything is left of the old one; calls wait for it, within their limits', async (t) => {
  const bridge = new SharedBridge();
  const client = bridge.join({ requestTimeoutMs: 5000 });
  const { end } = remainsOf(bridge.link);
  bridge.exits();
  client.call(1);
  bridge.clock.advance(5000);
  client.call(2);
  t.is(bridge.dialer.dialed.length, 1);
  t.like(bridge.server.readiness(), { state: 'failing', error: { code: 'ERR_UPSTREAM_EXITED' } });
  client.relay.sweep(bridge.clock.now());
  t.is(reasonOf(only(client.heard())), 'ERR_UPSTREAM_TIMEOUT', 'who has waited too long is told so');
  await end();
  t.is(bridge.dialer.dialed.length, 2);
  bridge.answerHandshake();
  bridge.answerAll();
  t.deepEqual(
    client.heard().flatMap(({ id }) => id ?? []),
    [2],
  );
});

test('a client that comes after the old server, of which something is left, waits for the new one', async (t) => {
  const bridge = new SharedBridge();
  bridge.join().leaves();
  const { end } = remainsOf(bridge.link);
  bridge.exits();
  t.is(bridge.clock.pendingTimers, 0);
  const client = bridge.connect();
  client.initialize();
  bridge.clock.advance(60_000);
  t.is(bridge.dialer.dialed.length, 1);
  t.like(bridge.server.readiness(), { state: 'starting', error: { code: 'ERR_UPSTREAM_STARTING' } });
  await end();
  bridge.answerHandshake();
  t.is(only(client.heard()).id, 'init');
});

test('nobody being left when the old server is gone, no new one is started', async (t) => {
  const bridge = new SharedBridge();
  const client = bridge.join();
  const { end } = remainsOf(bridge.link);
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  client.leaves();
  await end();
  t.is(bridge.dialer.dialed.length, 1);
  t.deepEqual(bridge.server.readiness(), { state: 'ready' });
});

test('a bridge that ends while the old server does starts no new one', async (t) => {
  const bridge = new SharedBridge();
  bridge.join();
  const { end } = remainsOf(bridge.link);
  bridge.exits();
  bridge.clock.advance(RESTART_MS);
  await bridge.server.close();
  await end();
  t.is(bridge.dialer.dialed.length, 1);
});
