import test from 'ava';
import { only, SharedBridge } from './shared-bridge.ts';

for (const list of ['tools', 'prompts', 'resources']) {
  test(`changes of the list of ${list} are told to every client that has finished its handshake`, (t) => {
    const bridge = new SharedBridge();
    const clients = [bridge.join(), bridge.join()];
    const newcomer = bridge.connect();
    newcomer.initialize();
    newcomer.heard();
    const changed = bridge.says({ method: `notifications/${list}/list_changed` });
    for (const client of clients) t.is(only(client.peer.take()).frame, changed);
    t.deepEqual(newcomer.heard(), []);
  });
}

test('a notification the bridge does not know goes to the client whose calls are open, on its call', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(7);
  const event = bridge.says({ method: 'x-vendor/event' });
  const sent = only(a.peer.take());
  t.is(sent.frame, event);
  t.is(sent.call?.id, 7);
  t.deepEqual(b.heard(), []);
});

test('it goes to nobody while calls of several clients are open', (t) => {
  const bridge = new SharedBridge();
  const clients = [bridge.join(), bridge.join()];
  for (const client of clients) client.call(1);
  bridge.says({ method: 'x-vendor/event' });
  for (const client of clients) t.deepEqual(client.heard(), []);
});

test('it goes to the only client while no call is open, and to nobody if there are several', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join();
  const event = bridge.says({ method: 'x-vendor/event' });
  t.is(only(a.peer.take()).frame, event);
  const b = bridge.join();
  bridge.says({ method: 'x-vendor/event' });
  t.deepEqual(a.heard(), []);
  t.deepEqual(b.heard(), []);
});

test('the end of an elicitation at a URL is told to the client that was sent there', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join({ capabilities: { elicitation: { url: {} } } });
  const b = bridge.join({ capabilities: { elicitation: { url: {} } } });
  b.call(1);
  const params = { mode: 'url', elicitationId: 'e1', url: 'https://a.example', message: 'm' };
  bridge.says({ id: 'q', method: 'elicitation/create', params });
  const question = only(b.heard());
  b.says({ id: question.id, result: { action: 'accept' } });
  bridge.says({ id: bridge.link.take()[0]?.frame.id, result: {} });
  b.heard();
  a.call(1);
  const complete = bridge.says({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e1' } });
  t.is(only(b.peer.take()).frame, complete);
  for (const elicitationId of ['e2', 1, undefined]) {
    bridge.says({ method: 'notifications/elicitation/complete', params: { elicitationId } });
  }
  bridge.says({ method: 'notifications/elicitation/complete' });
  t.deepEqual(a.heard(), []);
  t.deepEqual(b.heard(), []);
});

test('so is the end of one that an error named', (t) => {
  const bridge = new SharedBridge();
  const [a, b] = [bridge.join(), bridge.join()];
  a.call(1);
  const { id } = only(bridge.heard());
  const elicitations = [{ mode: 'url', elicitationId: 'e1', url: 'https://a.example', message: 'm' }, null, 'x'];
  bridge.says({ id, error: { code: -32042, message: 'first this', data: { elicitations } } });
  a.heard();
  bridge.says({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e1' } });
  t.is(a.heard().length, 1);
  t.deepEqual(b.heard(), []);
});

test('errors that only look as if they named elicitations pass like any other', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.join();
  for (const data of [
    '{"elicitations":{"elicitationId":1}}',
    '"\\"elicitationId\\""',
    '{"elicitationId":NaN}',
    'null',
  ]) {
    client.call(1);
    const { id } = only(bridge.heard());
    bridge.says(`{"jsonrpc":"2.0","id":${id},"error":{"code":1,"message":"\\"elicitationId\\"","data":${data}}}`);
    t.is(client.peer.take().length, 1, data);
  }
});

test('a client that left hears of the end of its elicitation no more', (t) => {
  const bridge = new SharedBridge();
  const a = bridge.join({ capabilities: { elicitation: { url: {} } } });
  bridge.says({ id: 'q', method: 'elicitation/create', params: { mode: 'url', elicitationId: 'e1' } });
  a.leaves();
  a.heard();
  bridge.says({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e1' } });
  t.deepEqual(a.heard(), []);
});
