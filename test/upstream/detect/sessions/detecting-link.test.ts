import test from 'ava';
import { Exchange } from '../../../../src/relay/exchange.ts';
import type { FindLink } from '../../../../src/upstream/detect/found-link.ts';
import { DetectingLink } from '../../../../src/upstream/detect/sessions/detecting-link.ts';
import { notificationFrame, requestFrame } from '../../../../src/wire/write-message.ts';
import { FakeLane, FakeServerListener, messagesOf } from '../../../support/fake-peers.ts';

const createLink = (listener: FakeServerListener, findLink: FindLink = () => new Promise<never>(() => {})) =>
  new DetectingLink({ listener, first: 'initialize', findLink, left: () => {} });

test('answers a request before initialize with an error: nothing would ever come of it', (t) => {
  const listener = new FakeServerListener();
  const link = createLink(listener);
  const exchange = new Exchange(7, 'tools/list', new FakeLane(), undefined, 0);
  link.send(notificationFrame('notifications/initialized'));
  link.send(requestFrame(7, 'tools/list', {}), exchange);
  t.is(listener.received[0]?.exchange, exchange);
  t.like(messagesOf(listener.received), [
    { id: 7, error: { code: -32000, data: { bridge: { reason: 'ERR_SESSION_MISSING' } } } },
  ]);
  t.is(listener.received.length, 1);
});

test('holds requests that come while the server is being found', (t) => {
  const listener = new FakeServerListener();
  const link = createLink(listener);
  link.send(requestFrame(0, 'initialize', {}), new Exchange(0, 'initialize', new FakeLane(), undefined, 0));
  link.send(requestFrame(1, 'tools/list', {}), new Exchange(1, 'tools/list', new FakeLane(), undefined, 0));
  t.deepEqual(listener.received, []);
});
