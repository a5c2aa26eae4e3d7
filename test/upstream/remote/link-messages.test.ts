import test from 'ava';
import { Call } from '../../../src/relay/call.ts';
import { IdWarnings, LinkRequests } from '../../../src/upstream/answer-ids.ts';
import { Delivery, MAX_WAITING_MESSAGES, Outbox, Outgoing } from '../../../src/upstream/remote/link-messages.ts';
import { collectLog } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeServerListener } from '../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';

function createOutbox() {
  const posted: Outgoing[] = [];
  const clock = new FakeClock();
  let drains = 0;
  const { log, entries } = collectLog();
  const outbox = new Outbox({
    clock,
    log,
    post: (message) => posted.push(message),
    drained: () => {
      drains += 1;
    },
  });
  return {
    outbox,
    posted,
    clock,
    entries,
    methods: () => posted.map(({ frame }) => frame.method ?? 'answer'),
    drains: () => drains,
    find: (method: string) => posted.find(({ frame }) => frame.method === method) as Outgoing,
  };
}

let lastId = 0;
const request = (method: string) => clientFrame({ id: ++lastId, method });
const notification = (method: string) => clientFrame({ method });

test('requests leave side by side, notifications and answers one after the other', (t) => {
  const { outbox, posted, methods } = createOutbox();
  outbox.send(notification('a'));
  outbox.send(notification('b'));
  outbox.send(clientFrame({ id: 1, result: {} }));
  outbox.send(request('r1'));
  outbox.send(request('r2'));
  t.deepEqual(methods(), ['a', 'r1', 'r2']);
  outbox.answered(posted[0] as Outgoing);
  outbox.answered(posted[0] as Outgoing);
  t.deepEqual(methods().slice(3), ['b']);
  outbox.answered(posted[3] as Outgoing);
  t.deepEqual(methods().slice(4), ['answer']);
});

test('messages of the bridge itself, which no client has sent, make no room for more of the client', (t) => {
  const { outbox } = createOutbox();
  for (let asked = 0; asked < 10; asked++) outbox.answered(new Outgoing(request('ping'), undefined, () => {}));
  for (let sent = 1; sent < MAX_WAITING_MESSAGES; sent++) t.true(outbox.send(request('tools/call')));
  t.false(outbox.send(request('tools/call')));
});

test('a notification nobody acknowledges does not hold up the next one for ever', (t) => {
  const { outbox, methods, clock } = createOutbox();
  outbox.send(notification('a'));
  outbox.send(notification('b'));
  clock.advance(10_000);
  t.deepEqual(methods(), ['a', 'b']);
  outbox.close();
  t.is(clock.pendingTimers, 0);
});

test('everything waits for the answer to initialize, and then for initialized to arrive', (t) => {
  const { outbox, methods, find } = createOutbox();
  for (const frame of [request('initialize'), notification('notifications/initialized'), request('r')])
    outbox.send(frame);
  outbox.answered(find('initialize'));
  t.deepEqual(methods(), ['initialize'], 'the head of the response is no answer yet');
  outbox.opened();
  t.deepEqual(methods(), ['initialize', 'notifications/initialized']);
  outbox.left(find('notifications/initialized'));
  t.is(methods().length, 2);
  outbox.answered(find('notifications/initialized'));
  t.deepEqual(methods().slice(2), ['r']);
});

test('what goes again goes first, and nothing goes while held', (t) => {
  const { outbox, methods, posted } = createOutbox();
  outbox.send(request('first'));
  outbox.hold();
  outbox.send(request('later'));
  outbox.again(posted[0] as Outgoing);
  t.deepEqual(methods(), ['first']);
  outbox.release();
  t.deepEqual(methods(), ['first', 'first', 'later']);
});

test('a notification that goes again lets the next one take its turn', (t) => {
  const { outbox, methods, posted } = createOutbox();
  outbox.send(notification('a'));
  outbox.send(notification('b'));
  outbox.again(posted[0] as Outgoing);
  t.deepEqual(methods(), ['a', 'b']);
  outbox.answered(posted[1] as Outgoing);
  t.deepEqual(methods(), ['a', 'b', 'a']);
});

test('says when it is full, and once when there is capacity again', (t) => {
  const { outbox, posted, drains } = createOutbox();
  let isTaken = true;
  let count = 0;
  for (; isTaken && count < 1000; count += 1) isTaken = outbox.send(request('r'));
  t.is(count, MAX_WAITING_MESSAGES);
  t.false(outbox.send(request('r')));
  for (const message of posted) outbox.left(message);
  t.is(drains(), 1);
  t.true(outbox.send(request('r')));
});

test('counts bytes, too', (t) => {
  const { outbox, posted, drains } = createOutbox();
  const big = clientFrame({ id: 'big', method: 'r', params: { x: 'x'.repeat(9 * 1024 * 1024) } });
  t.false(outbox.send(big));
  outbox.left(posted[0] as Outgoing);
  t.is(drains(), 1);
});

test('gives back what it has not posted', (t) => {
  const { outbox, methods } = createOutbox();
  outbox.hold();
  outbox.send(request('r'));
  outbox.send(notification('n'));
  t.deepEqual(
    outbox.takeAll().map(({ frame }) => frame.method),
    ['r', 'n'],
  );
  outbox.release();
  t.deepEqual(methods(), []);
});

test('a server that asks and takes no answers gets so many of them, and no more until it takes some', (t) => {
  const { outbox, posted, entries, methods } = createOutbox();
  const answer = (id: number) => outbox.send(clientFrame({ id, result: {} }));
  for (let id = 1; id <= 10_000; id++) answer(id);
  t.true(entries.some(({ msg }) => msg?.includes('does not read the answers')));
  t.is(entries.length, 1);
  outbox.send(request('call'));
  t.deepEqual(methods(), ['answer', 'call'], 'calls go on');
  let taken = 0;
  for (; taken < posted.length; taken++) outbox.answered(posted[taken] as Outgoing);
  t.true(posted.length > 4000 && posted.length < 5000, `${posted.length}`);
  answer(10_001);
  t.is(posted.at(-1)?.frame.id, 10_001);
});

const ANSWER = serverFrame({ id: 1, result: {} });

function asked() {
  const listener = new FakeServerListener();
  const call = new Call(1, 'tools/call', { isOpen: true }, undefined, 0);
  const { log } = collectLog();
  const requests = new LinkRequests({ warnings: new IdWarnings('server', log), log, send: () => {} });
  return { listener, call, delivery: new Delivery(listener, requests) };
}

test('the answer to an open call is its own', (t) => {
  const { listener, call, delivery } = asked();
  delivery.message(ANSWER, call);
  t.is(listener.received.length, 1);
  t.is(listener.received[0]?.frame, ANSWER);
  t.is(listener.received[0]?.call, call);
});

test('the answer to a call that was withdrawn, or answered before, goes nowhere', (t) => {
  for (const over of [(call: Call) => call.cancel('client'), (call: Call) => call.settle()]) {
    const { listener, call, delivery } = asked();
    over(call);
    delivery.message(ANSWER, call);
    t.is(listener.received.length, 0);
  }
});

test('after its end nothing is told', (t) => {
  const { listener, call, delivery } = asked();
  delivery.close();
  delivery.message(ANSWER, call);
  t.is(listener.received.length, 0);
});
