/** What an observer hears of a client and its calls, besides how they end. */
import test from 'ava';
import { RelayPair, readyPair } from './relay-pair.ts';

const clientOf = (name: string) => ({
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '1' } },
});

test('a client is called what it said in its first handshake, whatever it says later', (t) => {
  const pair = new RelayPair();
  pair.client({ id: 0, ...clientOf('first') });
  pair.server({ id: 0, result: { protocolVersion: '2025-11-25' } });
  pair.client({ id: 1, ...clientOf('second') });
  pair.client({ id: 2, method: 'tools/list' });
  t.like(pair.observer.clients, [{ client: { name: 'first' } }]);
  t.deepEqual(
    pair.observer.calls.map(({ client }) => client.name),
    ['first', 'first', 'first'],
  );
});

test('what is deprecated is seen when it is used, and nothing else is', (t) => {
  const pair = readyPair();
  pair.client({ id: 1, method: 'tools/list' });
  pair.server({ id: 1, method: 'elicitation/create', params: {} });
  t.deepEqual(pair.observer.uses, []);
  pair.client({ id: 2, method: 'logging/setLevel', params: { level: 'info' } });
  pair.server({ id: 2, method: 'sampling/createMessage', params: {} });
  pair.server({ id: 3, method: 'roots/list' });
  pair.relay.batched();
  t.deepEqual(pair.observer.uses, ['logging', 'sampling', 'roots', 'batch']);
});

test('a call has as many bytes as its client was sent for it', (t) => {
  const pair = readyPair();
  pair.call(1, 'tools/call', { _meta: { progressToken: 'p' } });
  const sent = [
    pair.server({ method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } }),
    pair.server({ id: 'q', method: 'elicitation/create', params: {} }),
    pair.server({ id: 1, result: {} }),
  ];
  const call = pair.observer.calls.at(-1);
  t.is(
    call?.endings[0]?.bytes,
    sent.reduce((sum, { bytes }) => sum + bytes.length, 0),
  );
});
