import test, { type ExecutionContext } from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { PreparedConnections } from '../../../src/upstream/resilience/prepared-connections.ts';
import { collectLog } from '../../process/collected-log.ts';
import { FakeConnector } from '../../support/fake-connections.ts';
import { createFakeDeps, FakeServerListener, followLink } from '../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';
import { stopped } from '../../support/readiness.ts';

const EXITED = new BridgeError('ERR_UPSTREAM_EXITED', 'exited');
/** After this long a lost spare is replaced. */
const REFILL_MS = 1000;
/** So long the session that took a spare has to open. */
const GIVE_WAY_MS = 100;

function poolOf(size: number) {
  const dialer = new FakeConnector();
  const { clock, ...deps } = createFakeDeps();
  const pool = new PreparedConnections(dialer, size, { ...deps, clock });
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
  t.is(dialer.dialed.length, 3);
  clock.advance(60_000);
  t.is(dialer.dialed.length, 3);
  t.is(pool.name, dialer.name);
});

test('hands a spare over at once and starts another when the session has had time to open', (t) => {
  const { dialer, clock, pool } = poolOf(1);
  clock.advance(0);
  const link = pool.dial(new FakeServerListener());
  t.true(link === dialer.dialed[0]?.link);
  clock.advance(GIVE_WAY_MS - 1);
  t.is(dialer.dialed.length, 1, 'the session at hand goes first');
  clock.advance(1);
  t.is(dialer.dialed.length, 2);
  clock.advance(REFILL_MS);
  t.is(dialer.dialed.length, 2);
});

test('sessions that come one after the other do not keep each other from having spares', (t) => {
  const { dialer, clock, pool } = poolOf(2);
  clock.advance(0);
  pool.dial(new FakeServerListener());
  clock.advance(GIVE_WAY_MS - 1);
  pool.dial(new FakeServerListener());
  clock.advance(1);
  t.is(dialer.dialed.length, 4);
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
  t.is(dialer.dialed.length, 2);
  clock.advance(1);
  t.is(dialer.dialed.length, 4);
});

test('hands each spare over once, oldest first, and dials when there is none left', (t) => {
  const { dialer, clock, pool } = poolOf(2);
  clock.advance(0);
  const requests = [1, 2, 3].map((id) => clientFrame({ id, method: 'ping' }));
  for (const request of requests) pool.dial(new FakeServerListener()).send(request);
  t.deepEqual(
    dialer.dialed.map(({ link }) => link.sent.map(({ frame }) => frame)),
    requests.map((request) => [request]),
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
  dialer.dialed[0]?.listener.fromServer(later);
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
  const { listener } = dialer.dialed[0] ?? dialer.latest;
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
  t.is(dialer.dialed.length, 1);
  clock.advance(1);
  t.is(dialer.dialed.length, 2);
  t.true(pool.dial(new FakeServerListener()) === dialer.dialed[1]?.link);
});

test('a handed-over server that dies is the loss of its client, not a spare', (t) => {
  const { dialer, clock, pool } = poolOf(1);
  clock.advance(0);
  pool.dial(new FakeServerListener());
  clock.advance(GIVE_WAY_MS);
  dialer.dialed[0]?.listener.serverClosed(EXITED);
  clock.advance(10 * REFILL_MS);
  t.is(dialer.dialed.length, 2);
});

function failsAndRetries(t: ExecutionContext, failure: unknown, afterMs: number): void {
  const { dialer, clock } = poolOf(2);
  dialer.failure = failure as BridgeError;
  clock.advance(0);
  dialer.failure = undefined;
  clock.advance(afterMs - 1);
  t.is(dialer.dialed.length, 0);
  clock.advance(1);
  t.is(dialer.dialed.length, 2);
}

test('the log says why there is no spare, unless its link has said it', (t) => {
  const { log, entries } = collectLog();
  const dialer = new FakeConnector();
  const { clock, ...deps } = createFakeDeps();
  new PreparedConnections(dialer, 1, { ...deps, clock, log });
  clock.advance(0);
  dialer.latest.listener.serverClosed(EXITED);
  dialer.failure = new BridgeError('ERR_SESSION_LIMIT', 'too many processes');
  clock.advance(REFILL_MS);
  dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such program');
  clock.advance(REFILL_MS);
  t.deepEqual(
    entries.map(({ level, code, msg }) => [level, code, msg]),
    [
      [30, 'ERR_UPSTREAM_EXITED', 'a prepared server process has ended'],
      [40, 'ERR_SESSION_LIMIT', 'a server process could not be prepared: too many processes'],
      [30, 'ERR_UPSTREAM_SPAWN', 'a server process could not be prepared'],
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
  t.is(dialer.dialed.length, 2);
  t.deepEqual(
    dialer.dialed.map(({ link }) => link.closedWith.length),
    [0, 1],
  );
  handedOver.close(EXITED);
  t.deepEqual(dialer.dialed[0]?.link.closedWith, [EXITED], 'its client does that');
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
  dialer.readinessNow = stopped(EXITED);
  t.is(pool.readiness(), dialer.readinessNow);
  pool.killNow();
  t.true(dialer.isKilled);
});

// ---- handshakes that are sent ahead

const initialize = (name: string) =>
  clientFrame({ id: 0, method: 'initialize', params: { clientInfo: { name, version: '1' } } });
const ANSWER = { id: 0, result: { serverInfo: { name: 'fake' } } };

/** A pool of three that has had two clients which opened their sessions in the same way. */
function acquainted(name = 'usual') {
  const made = poolOf(3);
  const { clock, pool, dialer } = made;
  const open = (opensAs: string) => {
    const client = new FakeServerListener();
    const link = followLink(client, (owner) => pool.dial(owner));
    link.send(initialize(opensAs));
    return { client, link };
  };
  clock.advance(0);
  open(name);
  open(name);
  clock.advance(GIVE_WAY_MS);
  /** Which connections a handshake was sent on, oldest first. */
  const sentOn = (): (string | undefined)[] =>
    dialer.dialed.map(({ link }) => {
      const [first] = link.sent;
      const message = first?.frame.json() as { readonly params: { readonly clientInfo: { readonly name: string } } };
      return first && message.params.clientInfo.name;
    });
  return { ...made, open, sentOn };
}

test('the handshake of two clients in succession is sent ahead on all spares but one', (t) => {
  const { sentOn } = acquainted();
  t.deepEqual(sentOn(), ['usual', 'usual', undefined, 'usual', 'usual']);
});

test('handshakes that differ are not sent ahead, nor other first messages, nor huge ones', (t) => {
  const { clock, pool, dialer } = poolOf(3);
  clock.advance(0);
  const ping = clientFrame({ id: 0, method: 'ping' });
  const huge = initialize('x'.repeat(20_000));
  for (const first of [initialize('one'), initialize('other'), ping, ping, huge, huge]) {
    pool.dial(new FakeServerListener()).send(first);
    clock.advance(GIVE_WAY_MS);
  }
  t.is(dialer.dialed.length, 9);
  t.deepEqual(
    dialer.dialed.slice(6).map(({ link }) => link.sent.length),
    [0, 0, 0],
  );
});

test('a client that sends it has its answer at once, with all the server said before, and the server gets it once', async (t) => {
  const { dialer, open } = acquainted();
  const { link, listener } = dialer.dialed[3] ?? dialer.latest;
  const said = [event(1), serverFrame(ANSWER), event(2)];
  for (const frame of said) listener.fromServer(frame);
  const { client, link: opened } = open('usual');
  await settle();
  t.deepEqual(
    client.received.map(({ frame }) => frame),
    said,
  );
  const initialized = clientFrame({ method: 'notifications/initialized' });
  opened.send(initialized);
  t.deepEqual(
    link.sent.map(({ frame }) => frame.method),
    ['initialize', 'notifications/initialized'],
  );
  t.is(opened.process, link.process);
  const later = event(3);
  listener.fromServer(later);
  t.is(client.received.at(-1)?.frame, later);
});

test('an answer that is not there yet comes when it is', async (t) => {
  const { dialer, open } = acquainted();
  const { client } = open('usual');
  await settle();
  t.deepEqual(client.received, []);
  const answer = serverFrame(ANSWER);
  dialer.dialed[3]?.listener.fromServer(answer);
  t.is(client.received[0]?.frame, answer);
});

test('a client that opens its session in another way gets a server that has heard nothing', (t) => {
  const { open, sentOn } = acquainted();
  open('another');
  t.deepEqual(sentOn(), ['usual', 'usual', 'another', 'usual', 'usual']);
  open('usual');
  open('usual');
  t.deepEqual(sentOn(), ['usual', 'usual', 'another', 'usual', 'usual'], 'it took nobody else’s');
});

test('when clients of another kind have become usual, spares are started for them', (t) => {
  const { clock, dialer, open, sentOn } = acquainted();
  open('new');
  open('new');
  t.deepEqual(
    [3, 4].map((index) => dialer.dialed[index]?.link.closedWith.length),
    [1, 1],
  );
  clock.advance(GIVE_WAY_MS);
  t.deepEqual(sentOn().slice(5), ['new', undefined, 'new', 'new']);
});

test('a client that leaves without a word leaves its spare to the next one', async (t) => {
  const { dialer, pool, open, sentOn } = acquainted();
  dialer.dialed[3]?.listener.fromServer(serverFrame(ANSWER));
  pool.dial(new FakeServerListener()).close(EXITED);
  const { client } = open('usual');
  await settle();
  t.is(client.received.length, 1);
  t.is(sentOn().length, 5);
});

test('a server that refuses a handshake ahead of its client is given none until clients have succeeded', (t) => {
  const { clock, dialer, open, sentOn } = acquainted();
  dialer.dialed[3]?.listener.fromServer(serverFrame({ id: 0, error: { code: -32602, message: 'not now' } }));
  t.is(dialer.dialed[3]?.link.closedWith.length, 1);
  clock.advance(REFILL_MS);
  t.deepEqual(sentOn().slice(5), [undefined]);
  open('usual');
  open('usual');
  open('usual');
  clock.advance(REFILL_MS);
  t.true(sentOn().slice(6).includes('usual'));
});

test('a server that ends before its client has sent anything is replaced by one that has heard nothing', async (t) => {
  const { dialer, pool } = acquainted();
  const client = new FakeServerListener();
  const link = followLink(client, (owner) => pool.dial(owner));
  dialer.dialed[3]?.listener.serverClosed(EXITED);
  link.send(initialize('usual'));
  await settle();
  t.deepEqual(client.closedWith, []);
  t.is(dialer.dialed[2]?.link.sent.length, 1);
});

test('a client is told why no server could be started for it, if it sends what was not foreseen', async (t) => {
  const { dialer, open } = acquainted();
  open('another');
  dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no');
  const { client } = open('a third');
  t.deepEqual(client.closedWith, [], 'not within send');
  await settle();
  t.deepEqual(client.closedWith, [dialer.failure]);
});

test('a spare keeps no client out for which there is no other process', (t) => {
  const { dialer, open } = acquainted();
  open('another');
  const spare = dialer.dialed[3]?.link;
  const limit = new BridgeError('ERR_SESSION_LIMIT', 'too many processes');
  dialer.failure = limit;
  if (spare === undefined) return t.fail();
  const close = spare.close.bind(spare);
  spare.close = (reason) => {
    close(reason);
    dialer.failure = undefined;
  };
  const { client, link } = open('a third');
  t.is(spare.closedWith.length, 1);
  t.is(dialer.dialed.length, 6);
  t.is(dialer.latest.link.sent.length, 1);
  link.close(EXITED);
  t.deepEqual(client.closedWith, []);
});

test('a spare outlives a server that cannot be started for another reason', (t) => {
  const { dialer, open } = acquainted();
  open('another');
  dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no');
  open('a third');
  t.deepEqual(
    [3, 4].map((index) => dialer.dialed[index]?.link.closedWith.length),
    [0, 0],
  );
});

test('what pauses and closes a link reaches the server that its client has got', (t) => {
  const { dialer, open } = acquainted();
  const { link } = open('usual');
  const server = dialer.dialed[3]?.link;
  link.pause();
  t.true(server?.isPaused);
  link.resume();
  t.false(server?.isPaused);
  link.close(EXITED);
  t.deepEqual(server?.closedWith, [EXITED]);
});
