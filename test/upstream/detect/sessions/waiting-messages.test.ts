import test from 'ava';
import { Exchange } from '../../../../src/relay/exchange.ts';
import {
  MAX_HELD,
  MAX_HELD_BYTES,
  WaitingMessages,
} from '../../../../src/upstream/detect/sessions/waiting-messages.ts';
import { FakeLane } from '../../../support/fake-peers.ts';
import { clientFrame } from '../../../support/frames.ts';

test('a client is to wait when it has sent so many messages, or so many bytes', (t) => {
  const many = new WaitingMessages();
  for (let id = 1; id < MAX_HELD; id += 1) t.true(many.add(clientFrame({ id, method: 'x' }), undefined));
  t.false(many.add(clientFrame({ id: MAX_HELD, method: 'x' }), undefined));

  const large = new WaitingMessages();
  const half = (id: number) => clientFrame({ id, method: 'x', params: { text: 'x'.repeat(MAX_HELD_BYTES / 2) } });
  t.true(large.add(half(1), undefined));
  t.false(large.add(half(2), undefined));
  t.false(large.add(clientFrame({ id: 3, method: 'x' }), undefined), 'until it is told that there is capacity');
});

test('a call that is withdrawn while it waits gives back the bytes of its request', (t) => {
  const messages = new WaitingMessages();
  const exchange = new Exchange(1, 'x', new FakeLane(), undefined, 0);
  const most = (id: number) => clientFrame({ id, method: 'x', params: { text: 'x'.repeat(MAX_HELD_BYTES - 200) } });
  t.true(messages.add(most(1), exchange));
  t.true(messages.add(clientFrame({ method: 'notifications/cancelled', params: { requestId: 1 } }), exchange));
  t.true(messages.add(most(2), undefined));
});
