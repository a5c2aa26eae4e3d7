import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { createPingingDialer } from '../../../src/upstream/resilience/pinging-dialer.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { collectLog } from '../../process/collected-log.ts';
import { createFakeDeps, FakeDialer, FakeServerListener, messagesOf } from '../../support/fake-peers.ts';

function ready() {
  const { log, entries } = collectLog();
  const deps = { ...createFakeDeps(), log };
  const dialer = new FakeDialer();
  const listener = new FakeServerListener();
  const link = createPingingDialer(dialer, 1000, deps).dial(listener);
  link.send(requestFrame(0, 'initialize'));
  deps.clock.advance(5000);
  const beforeHandshake = dialer.latest.link.take().length;
  link.send(notificationFrame('notifications/initialized'));
  dialer.latest.link.take();
  return { deps, dialer, listener, link, beforeHandshake, server: dialer.latest, entries };
}

test('sends nothing of its own before the handshake is done', (t) => {
  t.is(ready().beforeHandshake, 1);
});

test('pings a silent server and keeps the answer to itself', (t) => {
  const { deps, listener, server } = ready();
  deps.clock.advance(1000);
  const [ping] = server.link.take();
  t.is(ping?.frame.method, 'ping');
  server.listener.fromServer(resultFrame(ping?.frame.id ?? '', {}), ping?.exchange);
  t.deepEqual(listener.received, []);
});

test('an error is an answer to a ping, too', (t) => {
  const { deps, listener, server } = ready();
  for (let round = 0; round < 5; round += 1) {
    deps.clock.advance(2000);
    for (const { frame } of server.link.take()) {
      server.listener.fromServer(errorFrame(frame.id, { code: -32601, message: 'what?' }));
    }
  }
  t.deepEqual(listener.closedWith, []);
  t.deepEqual(listener.received, []);
});

test('a server that talks is not pinged', (t) => {
  const { deps, server } = ready();
  for (let round = 0; round < 10; round += 1) {
    deps.clock.advance(900);
    server.listener.fromServer(notificationFrame('notifications/message'));
  }
  t.deepEqual(messagesOf(server.link.take()), []);
});

function answerPing(server: ReturnType<typeof ready>['server']): void {
  for (const { frame } of server.link.take()) server.listener.fromServer(resultFrame(frame.id ?? '', {}));
}

test('a server that has never answered a ping is kept, whatever it answers else, and warned of once', (t) => {
  const { deps, listener, server, entries } = ready();
  deps.clock.advance(60_000);
  t.deepEqual(listener.closedWith, []);
  t.is(server.link.closedWith.length, 0);
  t.deepEqual(
    entries.map(({ level }) => level),
    [40],
  );
});

test('a server that misses two pings is given up with a reason, which the log says once', (t) => {
  const { deps, listener, server, entries } = ready();
  deps.clock.advance(1000);
  answerPing(server);
  deps.clock.advance(2999);
  t.deepEqual(listener.closedWith, []);
  deps.clock.advance(1);
  t.is(listener.closedWith[0]?.code, 'ERR_UPSTREAM_TIMEOUT');
  t.is(server.link.closedWith.length, 1);
  t.deepEqual(
    entries.map(({ level, code }) => [level, code]),
    [[40, 'ERR_UPSTREAM_TIMEOUT']],
  );
  t.is(deps.clock.pendingTimers, 0);
});

test('close ends the pings', (t) => {
  const { deps, link, server } = ready();
  deps.clock.advance(1000);
  server.link.take();
  link.close(new BridgeError('ERR_SESSION_CLOSED', 'done'));
  deps.clock.advance(60_000);
  t.deepEqual(messagesOf(server.link.take()), []);
});

test('a server that may not be read because its client is slow is neither pinged nor given up', (t) => {
  const { deps, listener, link, server } = ready();
  link.pause();
  deps.clock.advance(60_000);
  t.deepEqual(messagesOf(server.link.take()), []);
  link.resume();
  deps.clock.advance(999);
  t.deepEqual(messagesOf(server.link.take()), []);
  deps.clock.advance(1001);
  t.is(server.link.take()[0]?.frame.method, 'ping');
  t.deepEqual(listener.closedWith, []);
});
