import test from 'ava';
import { Exchange } from '../../../src/relay/exchange.ts';
import { Delivery } from '../../../src/upstream/remote/delivery.ts';
import { FakeServerListener } from '../../support/fake-peers.ts';
import { serverFrame } from '../../support/frames.ts';

const ANSWER = serverFrame({ id: 1, result: {} });

function asked() {
  const listener = new FakeServerListener();
  const exchange = new Exchange(1, 'tools/call', { isOpen: true }, undefined, 0);
  return { listener, exchange, delivery: new Delivery(listener) };
}

test('the answer to an open call is its own', (t) => {
  const { listener, exchange, delivery } = asked();
  delivery.message(ANSWER, exchange);
  t.is(listener.received.length, 1);
  t.is(listener.received[0]?.frame, ANSWER);
  t.is(listener.received[0]?.exchange, exchange);
});

test('the answer to a call that was withdrawn, or answered before, goes nowhere', (t) => {
  for (const over of [(exchange: Exchange) => exchange.cancel('client'), (exchange: Exchange) => exchange.settle()]) {
    const { listener, exchange, delivery } = asked();
    over(exchange);
    delivery.message(ANSWER, exchange);
    t.is(listener.received.length, 0);
  }
});

test('after its end nothing is told', (t) => {
  const { listener, exchange, delivery } = asked();
  delivery.close();
  delivery.message(ANSWER, exchange);
  t.is(listener.received.length, 0);
});
