import test, { type ExecutionContext } from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { LinkPool } from '../../../src/upstream/resilience/link-pool.ts';
import { collectLog } from '../../process/collected-log.ts';
import { createFakeDeps, FakeDialer, FakeServerListener } from '../../support/fake-peers.ts';
import { serverFrame } from '../../support/frames.ts';

const EXITED = new BridgeError('ERR_UPSTREAM_EXITED', 'exited');
/** After this long a lost spare is replaced. */
const REFILL_MS = 1000;
/** So long the session that took a spare has to open. */
const GIVE_WAY_MS = 100;

function poolOf(size: number) {
  const dialer = new FakeDialer();
  const { clock, ...deps } = createFakeDeps();
  const pool = new LinkPool(dialer, size, { ...deps, clock });
  return { dialer, clock, pool };
}

function event(n: number) {
  return serverFrame({ method: 'x-vendor/event', params: { n } });
}

/** Lets microtasks run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('starts its spares ahead of need, as many as it is told', (t) => {
  const { dialer, clock, pool } = poolOf(3);
  clock.advance(0);
  t.is(dialer.dialled.length, 3);
  clock.advance(60_000);
  t.is(dialer.dialled.length, 3);
  t.is(pool.name, dialer.name);
});

test('hands a spare over at once and starts another when the session has had time to open', (t) => {
  const { dialer, clock, pool } = poolOf(1);
  clock.advance(0);
  const link = pool.dial(new FakeServerListener());
  t.true(link === dialer.dialled[0]?.link);
  clock.advance(GIVE_WAY_MS - 1);
  t.is(dialer.dialled.length, 1, 'the session at hand goes first');
  clock.advance(1);
  t.is(dialer.dialled.length, 2);
  clock.advance(REFILL_MS);
  t.is(dialer.dialled.length, 2);
});

test('sessions that come one after the other do not keep each other from having spares', (t) => {
  const { dialer, clock, pool } = poolOf(2);
  clock.advance(0);
  pool.dial(new FakeServerListener());
  clock.advance(GIVE_WAY_MS - 1);
  pool.dial(new FakeServerListener());
  clock.advance(1);
  t.is(dialer.dialled.length, 4);
});

test('a session that comes does not start a spare before its time where none could be started', (t) => {
  const { dialer, clock, pool } = poolOf(2);
  clock.advance(0);
  pool.dial(new FakeServerListener());
  dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no');
  clock.advance(GIVE_WAY_MS);
  dialer.failure = undefined;
  pool.dial(new FakeServerListener());
  clock.advance(REFILL_MS - 1);
  t.is(dialer.dialled.length, 2);
  clock.advance(1);
  t.is(dialer.dialled.length, 4);
});

test('hands each spare over once, oldest first, and dials when there is none left', (t) => {
  const { dialer, clock, pool } = poolOf(2);
  clock.advance(0);
  const links = [1, 2, 3].map(() => pool.dial(new FakeServerListener()));
  t.deepEqual(
    links.map((link) => dialer.dialled.findIndex((dialled) => dialled.link === link)),
    [0, 1, 2],
  );
});

test('what a spare said early reaches its client in order, after the caller has joined the two', async (t) => {
  const { dialer, clock, pool } = poolOf(1);
  clock.advance(0);
  const early = [event(1), event(2)];
  for (const frame of early) dialer.latest.listener.fromServer(frame);
  const client = new FakeServerListener();
  pool.dial(client);
  t.deepEqual(client.received, [], 'not within dial');
  await settle();
  const later = event(3);
  dialer.dialled[0]?.listener.fromServer(later);
  t.deepEqual(
    client.received.map(({ frame }) => frame),
    [...early, later],
  );
});

test('everything a handed-over server tells goes to its client', async (t) => {
  const { dialer, clock, pool } = poolOf(1);
  clock.advance(0);
  const client = new FakeServerListener();
  pool.dial(client);
  await settle();
  const { listener } = dialer.dialled[0] ?? dialer.latest;
  const fault = { error: EXITED, kind: undefined, id: undefined };
  listener.serverFault(fault);
  listener.serverDrained();
  listener.serverClosed(EXITED);
  t.deepEqual(client.faults, [fault]);
  t.is(client.drains, 1);
  t.deepEqual(client.closedWith, [EXITED]);
});

test('a spare that talks too much has to wait for its client', async (t) => {
  const { dialer, clock, pool } = poolOf(1);
  clock.advance(0);
  const { link, listener } = dialer.latest;
  for (let n = 1; n < 100; n += 1) listener.fromServer(event(n));
  t.false(link.isPaused);
  listener.fromServer(event(100));
  t.true(link.isPaused);
  const client = new FakeServerListener();
  pool.dial(client);
  await settle();
  t.is(client.received.length, 100);
  t.false(link.isPaused);
});

test('a spare that says much in few messages has to wait as well', async (t) => {
  const { dialer, clock, pool } = poolOf(1);
  clock.advance(0);
  const { link, listener } = dialer.latest;
  const large = serverFrame({ method: 'x-vendor/event', params: { text: 'x'.repeat(512 * 1024) } });
  listener.fromServer(large);
  t.false(link.isPaused);
  listener.fromServer(large);
  t.true(link.isPaused);
  const client = new FakeServerListener();
  pool.dial(client);
  await settle();
  t.is(client.received.length, 2);
  t.false(link.isPaused);
});

test('a spare that dies is replaced after a pause and never handed over', (t) => {
  const { dialer, clock, pool } = poolOf(1);
  clock.advance(0);
  dialer.latest.listener.serverClosed(EXITED);
  clock.advance(REFILL_MS - 1);
  t.is(dialer.dialled.length, 1);
  clock.advance(1);
  t.is(dialer.dialled.length, 2);
  t.true(pool.dial(new FakeServerListener()) === dialer.dialled[1]?.link);
});

test('a handed-over server that dies is the loss of its client, not a spare', (t) => {
  const { dialer, clock, pool } = poolOf(1);
  clock.advance(0);
  pool.dial(new FakeServerListener());
  clock.advance(GIVE_WAY_MS);
  dialer.dialled[0]?.listener.serverClosed(EXITED);
  clock.advance(10 * REFILL_MS);
  t.is(dialer.dialled.length, 2);
});

function failsAndRetries(t: ExecutionContext, failure: unknown, afterMs: number): void {
  const { dialer, clock } = poolOf(2);
  dialer.failure = failure as BridgeError;
  clock.advance(0);
  dialer.failure = undefined;
  clock.advance(afterMs - 1);
  t.is(dialer.dialled.length, 0);
  clock.advance(1);
  t.is(dialer.dialled.length, 2);
}

test('the log says why there is no spare, unless its link has said it', (t) => {
  const { log, entries } = collectLog();
  const dialer = new FakeDialer();
  const { clock, ...deps } = createFakeDeps();
  new LinkPool(dialer, 1, { ...deps, clock, log });
  clock.advance(0);
  dialer.latest.listener.serverClosed(EXITED);
  dialer.failure = new BridgeError('ERR_SESSION_LIMIT', 'too many processes');
  clock.advance(REFILL_MS);
  dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such program');
  clock.advance(REFILL_MS);
  t.deepEqual(
    entries.map(({ level, code, msg }) => [level, code, msg]),
    [
      [30, 'ERR_UPSTREAM_EXITED', 'a spare server is gone'],
      [40, 'ERR_SESSION_LIMIT', 'a spare server could not be started: too many processes'],
      [30, 'ERR_UPSTREAM_SPAWN', 'a spare server could not be started'],
    ],
  );
});

test('a dialer that names a time is tried again then', (t) => {
  failsAndRetries(t, new BridgeError('ERR_UPSTREAM_CRASH_LOOP', 'later', { retryAfterMs: 7000 }), 7000);
});

test('one that names none is tried again after the usual pause', (t) => {
  failsAndRetries(t, new BridgeError('ERR_UPSTREAM_SPAWN', 'no'), REFILL_MS);
  failsAndRetries(t, new Error('unforeseen'), REFILL_MS);
});

test('a session that needs a server while spares cannot be started learns why', (t) => {
  const { dialer, clock, pool } = poolOf(1);
  dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no');
  clock.advance(0);
  t.is(
    t.throws(() => pool.dial(new FakeServerListener())),
    dialer.failure,
  );
});

test('closing ends the spares, starts no more and closes the dialer', async (t) => {
  const { dialer, clock, pool } = poolOf(2);
  clock.advance(0);
  const handedOver = pool.dial(new FakeServerListener());
  await pool.close();
  clock.advance(60_000);
  t.is(dialer.dialled.length, 2);
  t.deepEqual(
    dialer.dialled.map(({ link }) => link.closedWith.length),
    [0, 1],
  );
  t.true(handedOver === dialer.dialled[0]?.link);
  t.true(dialer.isClosed);
  t.is(clock.pendingTimers, 0);
});

test('spares that end while the pool closes are not replaced', async (t) => {
  const { dialer, clock, pool } = poolOf(1);
  clock.advance(0);
  await pool.close();
  dialer.latest.listener.serverClosed(EXITED);
  t.is(clock.pendingTimers, 0);
});

test('readiness and the last resort are those of the dialer', (t) => {
  const { dialer, pool } = poolOf(1);
  dialer.readinessNow = { state: 'refused', error: EXITED };
  t.is(pool.readiness(), dialer.readinessNow);
  pool.killNow();
  t.true(dialer.isKilled);
});
