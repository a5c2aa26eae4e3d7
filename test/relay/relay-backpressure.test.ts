import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { readyPair } from './relay-pair.ts';

test('a server that is full holds its client back until it drains', (t) => {
  const pair = readyPair();
  pair.call(1);
  t.false(pair.peer.isPaused);
  pair.link.hasCapacity = false;
  const taken = pair.client({ id: 2, method: 'tools/call', params: {} });
  t.true(pair.peer.isPaused);
  t.is(pair.link.sent.at(-1)?.frame, taken, 'the message that found it full was taken all the same');
  t.false(pair.link.isPaused);
  pair.relay.serverDrained();
  t.false(pair.peer.isPaused);
});

test('notifications, answers and cancellations that find the server full hold the client back too', (t) => {
  const messages = [
    { method: 'x-vendor/event' },
    { id: 'q', result: {} },
    { method: 'notifications/cancelled', params: { requestId: 1 } },
  ];
  for (const message of messages) {
    const pair = readyPair();
    pair.call(1);
    pair.server({ id: 'q', method: 'roots/list' });
    pair.link.hasCapacity = false;
    pair.client(message);
    t.true(pair.peer.isPaused, JSON.stringify(message));
  }
});

test('a client that is full holds its server back until it drains', (t) => {
  const messages = [{ id: 1, result: {} }, { id: 'q', method: 'roots/list' }, { method: 'notifications/message' }];
  for (const message of messages) {
    const pair = readyPair();
    pair.call(1);
    pair.peer.hasCapacity = false;
    const taken = pair.server(message);
    t.true(pair.link.isPaused, JSON.stringify(message));
    t.is(pair.peer.sent.at(-1)?.frame, taken);
    t.false(pair.peer.isPaused);
    pair.relay.clientDrained();
    t.false(pair.link.isPaused);
  }
});

test('the end does not wait for a full client', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.peer.hasCapacity = false;
  pair.relay.close(new BridgeError('ERR_SESSION_CLOSED', 'over'));
  t.is(pair.peer.sent.length, 1);
  t.is(pair.link.closedWith.length, 1);
});
