import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { Call } from '../../../src/relay/call.ts';
import { asSessionDialer } from '../../../src/upstream/connection.ts';
import { pingWhenSilent } from '../../../src/upstream/resilience/life-check.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { collectLog } from '../../process/collected-log.ts';
import { FakeConnector } from '../../support/fake-connections.ts';
import { createFakeDeps, FakeServerListener, messagesOf } from '../../support/fake-peers.ts';

const REQUEST_TIMEOUT_MS = 20_000;

function ready({ requestTimeoutMs = REQUEST_TIMEOUT_MS } = {}) {
  const { log, entries } = collectLog();
  const deps = { ...createFakeDeps(), log };
  const dialer = new FakeConnector();
  dialer.createLifeCheck = pingWhenSilent({ name: dialer.name, idleMs: 1000, requestTimeoutMs, deps });
  const listener = new FakeServerListener();
  const link = asSessionDialer(dialer).dial(listener);
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
  server.listener.fromServer(resultFrame(ping?.frame.id ?? '', {}), ping?.call);
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

type Ready = ReturnType<typeof ready>;

/** A call that its client gives up after so long. */
function callInVain({ deps, link }: Ready, id: number, waitedMs: number): void {
  const call = new Call(id, 'tools/call', { isOpen: true }, undefined, deps.clock.now());
  link.send(requestFrame(id, 'tools/call'), call);
  deps.clock.advance(waitedMs);
  link.send(notificationFrame('notifications/cancelled', { requestId: id }), call);
}

test('a server that hangs before it has ever answered a ping is given up once calls waited in vain for as long as one may be silent', (t) => {
  const all = ready();
  callInVain(all, 1, 9000);
  callInVain(all, 2, 8500);
  all.deps.clock.advance(60_000);
  t.deepEqual(all.listener.closedWith, [], 'time in which nobody waited does not count');
  callInVain(all, 3, 1000);
  all.deps.clock.advance(1000);
  t.is(all.listener.closedWith[0]?.code, 'ERR_UPSTREAM_TIMEOUT');
  t.regex(all.listener.closedWith[0]?.message ?? '', /2 pings in a row, nor the calls that waited meanwhile/);
  t.is(all.server.link.closedWith.length, 1);
});

test('a server that answers no ping but a call between others that are given up is kept', (t) => {
  const all = ready();
  for (let id = 1; id <= 10; id += 1) {
    callInVain(all, id, 10_000);
    all.server.listener.fromServer(resultFrame(100, {}));
  }
  all.deps.clock.advance(60_000);
  t.deepEqual(all.listener.closedWith, []);
});

test('where a call may be silent for ever, a server that answers no ping is kept', (t) => {
  const all = ready({ requestTimeoutMs: 0 });
  callInVain(all, 1, 600_000);
  all.deps.clock.advance(60_000);
  t.deepEqual(all.listener.closedWith, []);
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
