import test from 'ava';
import { Call } from '../../../src/relay/call.ts';
import { DetectingLink, type FindLink, MAX_HELD, MAX_HELD_BYTES } from '../../../src/upstream/detect/detecting-link.ts';
import { notificationFrame, requestFrame } from '../../../src/wire/write-message.ts';
import { FakeLane, FakeServerListener, messagesOf } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';

const createLink = (listener: FakeServerListener, findLink: FindLink = () => new Promise<never>(() => {})) =>
  new DetectingLink({ owner: listener, first: { kind: 'initialize' }, findLink, left: () => {} });

test('answers a request before initialize with an error: nothing would ever come of it', (t) => {
  const listener = new FakeServerListener();
  const link = createLink(listener);
  const call = new Call(7, 'tools/list', new FakeLane(), undefined, 0);
  link.send(notificationFrame('notifications/initialized'));
  link.send(requestFrame(7, 'tools/list', {}), call);
  t.is(listener.received[0]?.call, call);
  t.like(messagesOf(listener.received), [
    { id: 7, error: { code: -32000, data: { bridge: { reason: 'ERR_SESSION_MISSING' } } } },
  ]);
  t.is(listener.received.length, 1);
});

test('holds requests that come while the server is being found', (t) => {
  const listener = new FakeServerListener();
  const link = createLink(listener);
  link.send(requestFrame(0, 'initialize', {}), new Call(0, 'initialize', new FakeLane(), undefined, 0));
  link.send(requestFrame(1, 'tools/list', {}), new Call(1, 'tools/list', new FakeLane(), undefined, 0));
  t.deepEqual(listener.received, []);
});

const createUndecided = () =>
  new DetectingLink({
    owner: new FakeServerListener(),
    first: { kind: 'any' },
    findLink: () => new Promise<never>(() => {}),
    left: () => {},
  });

test('a client is to wait when it has sent so many messages, or so many bytes', (t) => {
  const many = createUndecided();
  for (let id = 1; id < MAX_HELD; id += 1) t.true(many.send(clientFrame({ id, method: 'x' })));
  t.false(many.send(clientFrame({ id: MAX_HELD, method: 'x' })));

  const large = createUndecided();
  const half = (id: number) => clientFrame({ id, method: 'x', params: { text: 'x'.repeat(MAX_HELD_BYTES / 2) } });
  t.true(large.send(half(1)));
  t.false(large.send(half(2)));
  t.false(large.send(clientFrame({ id: 3, method: 'x' })), 'until it is told that there is capacity');
});

test('a call that is withdrawn while it waits gives back the bytes of its request', (t) => {
  const link = createUndecided();
  const call = new Call(1, 'x', new FakeLane(), undefined, 0);
  const most = (id: number) => clientFrame({ id, method: 'x', params: { text: 'x'.repeat(MAX_HELD_BYTES - 200) } });
  t.true(link.send(most(1), call));
  t.true(link.send(clientFrame({ method: 'notifications/cancelled', params: { requestId: 1 } }), call));
  t.true(link.send(most(2)));
});
