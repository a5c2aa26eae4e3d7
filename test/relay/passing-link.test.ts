import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { CallsOverSessions, DecoratedDialer, PassingLink } from '../../src/relay/passing-link.ts';
import type { LinkOwner, SessionDialer, UpstreamLink } from '../../src/relay/ports.ts';
import { FakeDialer, FakeLink, FakeServerListener } from '../support/fake-peers.ts';
import { FakeServer } from '../support/fake-server.ts';
import { clientFrame, serverFrame } from '../support/frames.ts';

const GONE = new BridgeError('ERR_SESSION_CLOSED', 'gone');

class PlainLink extends PassingLink {
  protected readonly link: UpstreamLink;

  constructor(listener: LinkOwner, link: UpstreamLink) {
    super(listener);
    this.link = link;
  }
}

function plainLink() {
  const [listener, below] = [new FakeServerListener(), new FakeLink()];
  return { listener, below, link: new PlainLink(listener, below) };
}

test('when the process below was last heard of passes through any number of links, as it is at the moment', (t) => {
  const { below, link, listener } = plainLink();
  const above = new PlainLink(listener, link);
  t.is(above.process, undefined, 'no process');
  below.heardAt(5);
  t.is(above.process?.lastHeardMs, 5);
  below.heardAt(7);
  t.is(above.process?.lastHeardMs, 7);
});

test('what the relay says passes, and whether there is capacity', (t) => {
  const { below, link } = plainLink();
  const frame = clientFrame({ method: 'x-vendor/event' });
  t.true(link.send(frame));
  below.hasCapacity = false;
  t.false(link.send(frame));
  t.deepEqual(
    below.sent.map((sent) => sent.frame),
    [frame, frame],
  );
  link.pause();
  t.true(below.isPaused);
  link.resume();
  t.false(below.isPaused);
  link.close(GONE);
  t.deepEqual(below.closedWith, [GONE]);
});

test('what the server says passes', (t) => {
  const { listener, link } = plainLink();
  const frame = serverFrame({ method: 'x-vendor/event' });
  const fault = { error: GONE, kind: undefined, id: undefined };
  link.fromServer(frame);
  link.serverFault(fault);
  link.serverDrained();
  link.serverClosed(GONE);
  t.deepEqual(listener.received, [{ frame, exchange: undefined }]);
  t.deepEqual([listener.faults, listener.drains, listener.closedWith], [[fault], 1, [GONE]]);
});

test('sessions are decorated, and modern requests pass by', (t) => {
  const server = new FakeServer();
  const decorated: [SessionDialer, LinkOwner][] = [];
  const dialer = new DecoratedDialer(server, (below, listener) => {
    decorated.push([below, listener]);
    return below.dial(listener);
  });
  const listener = new FakeServerListener();
  dialer.dial(listener);
  t.deepEqual(decorated, [[server, listener]]);
  dialer.dialCalls(listener, { principal: 'anonymous', metadata: undefined, headers: undefined });
  t.is(decorated.length, 1);
  t.is(dialer.name, server.name);
  t.deepEqual(dialer.readiness(), server.readiness());
});

test('modern requests go over sessions where a server need not be told for whom they are', (t) => {
  const server = new FakeDialer();
  const dialer = new CallsOverSessions(server);
  const listener = new FakeServerListener();
  t.is(dialer.dial(listener), server.latest.link);
  t.is(dialer.dialCalls(listener), server.latest.link);
  t.deepEqual(
    server.dialled.map((dialled) => dialled.listener),
    [listener, listener],
  );
});

test('the link of a modern request is that of the dialer below, which ends with the one above', async (t) => {
  const server = new FakeDialer();
  const dialer = new DecoratedDialer(server, (below, listener) => below.dial(listener));
  const context = { principal: 'anonymous', metadata: undefined, headers: undefined };
  t.is(dialer.dialCalls(new FakeServerListener(), context), server.latest.link);
  dialer.killNow();
  t.true(server.isKilled);
  await dialer.close();
  t.true(server.isClosed);
});
