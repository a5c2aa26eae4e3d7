import test from 'ava';
import { ABANDONED_MS } from '../../../../src/relay/shared/legacy/attribution.ts';
import { only, SharedBridge, type SharedClient } from './shared-bridge.ts';

const SET_LEVEL = 'logging/setLevel';

function withClients(count: number) {
  const bridge = new SharedBridge();
  const clients = Array.from({ length: count }, () => bridge.join());
  return { bridge, clients: clients as [SharedClient, SharedClient, SharedClient] };
}

/** Sets the level; returns what the server was told, after it agreed. */
function setLevel(bridge: SharedBridge, client: SharedClient, level: string): readonly unknown[] {
  client.call(`to ${level}`, SET_LEVEL, { level });
  const told = bridge.heard();
  for (const { id } of told) bridge.says({ id, result: {} });
  if (only(client.heard()).result === undefined) throw new Error('not set');
  return told.map(({ method, params }) => [method, params?.level]);
}

function logs(bridge: SharedBridge, level: string): void {
  bridge.says({ method: 'notifications/message', params: { level, data: level } });
}

const heardLevels = (client: SharedClient) => client.heard().map(({ params }) => params?.level);

test('the server has the most verbose level any client asked for', (t) => {
  const { bridge, clients } = withClients(3);
  const [a, b, c] = clients;
  t.deepEqual(setLevel(bridge, a, 'warning'), [[SET_LEVEL, 'warning']]);
  t.deepEqual(setLevel(bridge, b, 'error'), []);
  t.deepEqual(setLevel(bridge, c, 'debug'), [[SET_LEVEL, 'debug']]);
  t.deepEqual(setLevel(bridge, c, 'debug'), []);
  t.deepEqual(setLevel(bridge, c, 'critical'), [[SET_LEVEL, 'warning']]);
  t.deepEqual(setLevel(bridge, a, 'alert'), [[SET_LEVEL, 'error']]);
});

test('what the server says goes to each client down to its own level', (t) => {
  const { bridge, clients } = withClients(3);
  const [a, b, c] = clients;
  setLevel(bridge, a, 'debug');
  setLevel(bridge, b, 'error');
  for (const level of ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']) {
    logs(bridge, level);
  }
  t.is(a.heard().length, 8);
  t.deepEqual(heardLevels(b), ['error', 'critical', 'alert', 'emergency']);
  t.deepEqual(heardLevels(c), [], 'who never set a level hears nothing');
});

test('what is said during the calls of one client goes to that client only, on its call', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  setLevel(bridge, a, 'debug');
  setLevel(bridge, b, 'debug');
  a.call(1);
  a.call(2);
  logs(bridge, 'info');
  t.is(a.peer.sent[0]?.call?.id, 2);
  t.deepEqual(heardLevels(a), ['info']);
  t.deepEqual(heardLevels(b), []);
});

test('a client without a level hears nothing even during its own call', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  setLevel(bridge, b, 'debug');
  a.call(1);
  logs(bridge, 'emergency');
  t.deepEqual(heardLevels(a), []);
  t.deepEqual(heardLevels(b), []);
});

test('during calls of several clients it goes to nobody: it may be about any of them', (t) => {
  const { bridge, clients } = withClients(2);
  for (const client of clients) setLevel(bridge, client, 'debug');
  for (const client of clients) client.call(1);
  logs(bridge, 'info');
  for (const client of clients) t.deepEqual(heardLevels(client), []);
});

test('what is said of a call that was canceled a moment ago goes to no other client', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  for (const client of clients) setLevel(bridge, client, 'debug');
  a.call(1);
  a.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
  logs(bridge, 'info');
  t.deepEqual([heardLevels(a), heardLevels(b)], [['info'], []]);
  b.call(1);
  logs(bridge, 'notice');
  t.deepEqual([heardLevels(a), heardLevels(b)], [[], []]);
  bridge.clock.advance(ABANDONED_MS);
  logs(bridge, 'warning');
  t.deepEqual([heardLevels(a), heardLevels(b)], [[], ['warning']]);
});

test('a message without a known level, or one that is not JSON, goes to nobody and harms nobody', (t) => {
  const { bridge, clients } = withClients(1);
  const [a] = clients;
  setLevel(bridge, a, 'debug');
  bridge.says({ method: 'notifications/message' });
  bridge.says({ method: 'notifications/message', params: { level: 'loud' } });
  bridge.says({ method: 'notifications/message', params: null });
  bridge.says('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":NaN}}');
  t.deepEqual(a.heard(), []);
});

test('a client that leaves takes its level along', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  setLevel(bridge, a, 'debug');
  setLevel(bridge, b, 'error');
  a.leaves();
  t.deepEqual(
    bridge.heard().map(({ method, params }) => [method, params?.level]),
    [[SET_LEVEL, 'error']],
  );
  b.leaves();
  t.deepEqual(bridge.heard(), []);
});

test('what to say about an unknown level is up to the server', (t) => {
  const { bridge, clients } = withClients(1);
  const [a] = clients;
  a.call(1, SET_LEVEL, { level: 'loud' });
  a.call(2, SET_LEVEL, {});
  a.says('{"jsonrpc":"2.0","id":3,"method":"logging/setLevel"}');
  t.is(bridge.heard().length, 3);
});

test('a level the server refuses counts for nothing', (t) => {
  const { bridge, clients } = withClients(2);
  const [a, b] = clients;
  a.call(1, SET_LEVEL, { level: 'debug' });
  bridge.says({ id: only(bridge.heard()).id, error: { code: -32601, message: 'no logging' } });
  t.is(only(a.heard()).error?.code, -32601);
  b.call(1, SET_LEVEL, { level: 'debug' });
  t.is(only(bridge.heard()).method, SET_LEVEL, 'the next client hears it from the server, too');
  logs(bridge, 'error');
  t.deepEqual(heardLevels(a), []);
});

test('a refused level leaves the one before in place', (t) => {
  const { bridge, clients } = withClients(1);
  const [a] = clients;
  setLevel(bridge, a, 'error');
  a.call(1, SET_LEVEL, { level: 'debug' });
  bridge.says({ id: only(bridge.heard()).id, error: { code: 1, message: 'not now' } });
  a.heard();
  logs(bridge, 'info');
  logs(bridge, 'error');
  t.deepEqual(heardLevels(a), ['error']);
});
