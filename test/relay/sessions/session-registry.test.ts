import test from 'ava';
import { pino } from 'pino';
import { BridgeError } from '../../../src/errors.ts';
import { FakeObserver } from '../../support/calls.ts';
import { createFakeDeps, FakeLane, FakePeer, remainsOf } from '../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';
import {
  ALICE,
  BOB,
  call,
  type Opened,
  openAbandoned,
  REASON,
  Registry,
  SESSION_TIMEOUT_MS,
  STDIO,
} from './registry-bench.ts';

test('what is opened for modern requests is dialed with its context and needs no handshake', async (t) => {
  const registry = new Registry({ maxSessions: 1 });
  const contexts: unknown[] = [];
  const { dialer } = registry;
  const dial = dialer.dial.bind(dialer);
  dialer.dialCalls = (listener, ...[context]: unknown[]) => {
    contexts.push(context);
    return dial(listener);
  };
  const context = { principal: 'someone', metadata: undefined, headers: undefined };
  const peer = new FakePeer();
  const { relay } = registry.sessions.open(() => peer, { ...STDIO, era: 'modern', context });
  t.deepEqual(contexts, [context]);
  t.is(registry.sessions.size, 1);
  relay.fromClient(clientFrame({ id: 1, method: 'subscriptions/listen', params: {} }), new FakeLane());
  dialer.latest.listener.fromServer(serverFrame({ id: 'q', method: 'roots/list' }));
  t.deepEqual(peer.sent, [], 'a modern server asks nothing');
  await registry.sessions.drain(10_000);
  t.is(registry.deps.clock.now(), 0, 'a subscription is not waited for');
  t.is(peer.sent[0]?.frame.kind, 'result');
});

test('opens a session with a server of its own and finds it again by its id only', (t) => {
  const registry = new Registry();
  const ids: string[] = [];
  registry.sessions.open((id) => {
    ids.push(id);
    return new FakePeer();
  }, ALICE);
  const second = registry.open();
  t.is(registry.dialer.dialed.length, 2);
  t.is(registry.sessions.size, 2);
  t.is(registry.sessions.use(second.id, 'alice')?.relay, second.relay);
  t.is(registry.sessions.use(ids[0] ?? '', 'alice')?.id, ids[0]);
  t.is(registry.sessions.use('unknown', 'alice'), undefined);
  t.is(registry.sessions.use('__proto__', 'alice'), undefined);
});

test('joins both ends of a session', (t) => {
  const session = new Registry().open();
  call(session, 1);
  t.is(session.server.link.sent.length, 1);
  session.server.listener.fromServer(serverFrame({ id: 1, result: {} }));
  t.is(session.peer.sent.length, 1);
});

for (const [title, end] of [
  ['the server exits', (session: Opened) => session.server.listener.serverClosed(REASON)],
  ['the client leaves', (session: Opened) => session.listener.clientClosed(REASON)],
  ['it is closed', (session: Opened) => session.relay.close(REASON)],
] as const) {
  test(`a session is forgotten when ${title}, and others are not`, (t) => {
    const registry = new Registry();
    const ended = registry.open();
    const other = registry.open();
    end(ended);
    t.is(registry.sessions.use(ended.id, 'alice'), undefined);
    t.is(registry.sessions.size, 1);
    t.deepEqual(other.peer.closedWith, []);
    t.deepEqual(other.server.link.closedWith, []);
  });
}

test('refuses sessions beyond the limit, says when to come back and disturbs nobody', (t) => {
  const registry = new Registry({ maxSessions: 2, sessionTimeoutMs: 5000 });
  const open = [registry.open(), registry.open()];
  const message = /^All 2 sessions are taken.*raise --max-sessions/;
  const error = t.throws(() => registry.open(), { instanceOf: BridgeError, message });
  t.is(error?.code, 'ERR_SESSION_LIMIT');
  t.is(error?.retryAfterMs, 5000);
  t.is(registry.dialer.dialed.length, 2, 'no server is started for it');
  for (const session of open) {
    t.deepEqual(session.peer.closedWith, []);
    call(session, 1);
    t.is(session.server.link.sent.length, 1);
  }
  open[0]?.relay.close(REASON);
  t.notThrows(() => registry.open());
});

test('asks nobody to come back later than in half a minute', (t) => {
  const registry = new Registry({ maxSessions: 0, sessionTimeoutMs: 1_800_000 });
  t.is(t.throws(() => registry.open(), { instanceOf: BridgeError })?.retryAfterMs, 30_000);
});

test('a server that cannot be reached leaves no session behind', (t) => {
  const registry = new Registry();
  registry.dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no');
  t.is(
    t.throws(() => registry.open()),
    registry.dialer.failure,
  );
  t.is(registry.sessions.size, 0);
});

test('ends a session after a time without a sign of life', (t) => {
  const registry = new Registry();
  const session = registry.openIdle();
  registry.deps.clock.advance(SESSION_TIMEOUT_MS - 1);
  t.is(registry.sessions.size, 1);
  registry.deps.clock.advance(1000);
  t.is(registry.sessions.size, 0);
  t.is(session.peer.closedWith[0]?.code, 'ERR_SESSION_CLOSED');
  t.regex(session.peer.closedWith[0]?.message ?? '', /idle for too long/);
  t.is(session.server.link.closedWith.length, 1);
});

test('only who opened a session finds it again, and nobody else keeps it alive', (t) => {
  const registry = new Registry();
  const { id } = registry.openIdle();
  registry.deps.clock.advance(SESSION_TIMEOUT_MS - 2000);
  for (const other of ['bob', 'Alice', '', 'anonymous']) t.is(registry.sessions.use(id, other), undefined);
  registry.deps.clock.advance(4000);
  t.is(registry.sessions.use(id, 'alice'), undefined, 'it has timed out');
  t.is(registry.sessions.size, 0);
});

test('nobody finds a session of a pipe', (t) => {
  const registry = new Registry();
  const { id } = registry.sessions.open(() => new FakePeer(), STDIO);
  for (const name of ['', 'undefined', 'anonymous', 'stdio']) t.is(registry.sessions.use(id, name), undefined);
});

test('the use of a session is a sign of life', (t) => {
  const registry = new Registry();
  const { id } = registry.openIdle();
  for (let uses = 0; uses < 5; uses += 1) {
    registry.deps.clock.advance(SESSION_TIMEOUT_MS - 1);
    t.truthy(registry.sessions.use(id, 'alice'));
  }
});

test('a connected session is never idle, and its time starts when the connection is gone', (t) => {
  const registry = new Registry();
  const session = registry.open();
  registry.deps.clock.advance(10 * SESSION_TIMEOUT_MS);
  t.is(registry.sessions.size, 1);
  session.peer.isConnected = false;
  registry.deps.clock.advance(SESSION_TIMEOUT_MS - 1000);
  t.is(registry.sessions.size, 1);
  registry.deps.clock.advance(2000);
  t.is(registry.sessions.size, 0);
});

test('a call or a question that nobody is left for does not keep a session for ever', (t) => {
  const registry = new Registry();
  const session = registry.openIdle();
  call(session, 1);
  session.server.listener.fromServer(serverFrame({ id: 'q', method: 'elicitation/create' }));
  registry.deps.clock.advance(SESSION_TIMEOUT_MS - 1000);
  t.is(registry.sessions.size, 1);
  registry.deps.clock.advance(2000);
  t.is(registry.sessions.size, 0);
});

test('looks for silent calls in every session', (t) => {
  const registry = new Registry({ requestTimeoutMs: 500 });
  const sessions = [registry.open(), registry.open()];
  for (const session of sessions) call(session, 1);
  registry.deps.clock.advance(1000);
  for (const session of sessions) t.is(session.peer.sent[0]?.frame.kind, 'error');
  t.is(registry.sessions.size, 2);
});

test('draining refuses new sessions and calls at once and waits for open calls', async (t) => {
  const registry = new Registry();
  const session = registry.open();
  call(session, 1);
  let isDrained = false;
  const drained = registry.sessions.drain(10_000).then(() => {
    isDrained = true;
  });
  const message = /shutting down and opens no new sessions/;
  t.is(t.throws(() => registry.open(), { instanceOf: BridgeError, message })?.code, 'ERR_SESSION_CLOSED');
  call(session, 2);
  t.is(session.peer.take()[0]?.frame.kind, 'error');
  await registry.deps.clock.advanceInSteps(1000, 20);
  t.false(isDrained);
  session.server.listener.fromServer(serverFrame({ id: 1, result: {} }));
  await registry.deps.clock.advanceInSteps(40, 20);
  t.true(isDrained);
  t.is(session.peer.sent.length, 1);
  await drained;
});

test('draining gives up waiting after the grace time', async (t) => {
  const registry = new Registry();
  call(registry.open(), 1);
  const drained = registry.sessions.drain(200);
  await registry.deps.clock.advanceInSteps(220, 20);
  await drained;
  t.pass();
});

test('draining without open calls does not wait', async (t) => {
  const registry = new Registry();
  registry.open();
  await registry.sessions.drain(10_000);
  t.is(registry.deps.clock.now(), 0);
});

test('closing ends all sessions and the timer', (t) => {
  const registry = new Registry();
  const sessions = [registry.open(), registry.open()];
  registry.sessions.close(REASON);
  for (const session of sessions) {
    t.deepEqual(session.peer.closedWith, [REASON]);
    t.deepEqual(session.server.link.closedWith, [REASON]);
  }
  t.is(registry.sessions.size, 0);
  t.is(registry.deps.clock.pendingTimers, 0);
  t.throws(() => registry.open());
  t.notThrows(() => registry.sessions.close(REASON));
});

test('a client that cannot be set up leaves no server behind', (t) => {
  const registry = new Registry();
  const failure = new Error('no socket');
  const thrown = t.throws(() =>
    registry.sessions.open(() => {
      throw failure;
    }, ALICE),
  );
  t.is(thrown, failure);
  t.is(registry.dialer.latest.link.closedWith.length, 1);
  t.is(registry.sessions.size, 0);
});

test('a client that is gone before its session is open leaves neither server nor session behind', (t) => {
  const registry = new Registry();
  const peer = new FakePeer();
  const { relay } = registry.sessions.open((_id, listener) => {
    listener.clientClosed(REASON);
    return peer;
  }, ALICE);
  t.true(relay.isClosed);
  t.deepEqual(peer.closedWith, [REASON]);
  t.deepEqual(registry.dialer.latest.link.closedWith, [REASON]);
  t.is(registry.sessions.size, 0);
});

test('clients that never end their session lock nobody out: the session used longest ago is evicted', (t) => {
  const registry = new Registry({ maxSessions: 2 });
  const [first, second] = [openAbandoned(registry), openAbandoned(registry)];
  registry.deps.clock.advance(10);
  registry.sessions.use(first.id, 'alice');
  t.true(registry.sessions.hasCapacity);
  t.notThrows(() => registry.open());
  t.is(registry.sessions.use(second.id, 'alice'), undefined, 'its client gets 404 and starts anew');
  t.is(second.peer.closedWith[0]?.code, 'ERR_SESSION_CLOSED');
  t.regex(second.peer.closedWith[0]?.message ?? '', /abandoned, and another one needed its slot/);
  t.is(second.server.link.closedWith.length, 1, 'its server ends');
  t.truthy(registry.sessions.use(first.id, 'alice'));
  t.is(registry.sessions.size, 2);
});

test('a session whose client never came back after initialize is evicted first', (t) => {
  const registry = new Registry({ maxSessions: 2 });
  const useful = openAbandoned(registry);
  registry.deps.clock.advance(5000);
  const unused = registry.openIdle();
  registry.open();
  t.truthy(registry.sessions.use(useful.id, 'alice'));
  t.is(registry.sessions.use(unused.id, 'alice'), undefined);
});

test('where all slots are taken, an abandoned session of another caller makes way', (t) => {
  const registry = new Registry({ maxSessions: 2 });
  const bobs = registry.open(new FakePeer(), BOB);
  bobs.peer.isConnected = false;
  registry.open();
  t.notThrows(() => registry.open());
  t.is(bobs.peer.closedWith.length, 1);
});

test('there is capacity as long as a slot is free, whoever is connected', (t) => {
  const registry = new Registry({ maxSessions: 2 });
  t.true(registry.sessions.hasCapacity);
  registry.open();
  t.true(registry.sessions.hasCapacity);
  registry.open();
  t.false(registry.sessions.hasCapacity);
});

test('an observer is told whose session was opened or refused, and where', (t) => {
  const observer = new FakeObserver();
  const registry = new Registry({ maxSessions: 1, calls: { observer } });
  const origin = { transport: 'streamable-http', principal: 'alice', server: 'a server' } as const;
  const session = registry.open();
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  session.relay.fromClient(clientFrame({ id: 0, method: 'initialize', params }), new FakeLane());
  session.server.listener.fromServer(serverFrame({ id: 0, result: { protocolVersion: '2025-11-25' } }));
  t.like(observer.clients[0]?.client, { ...origin, name: 'c' });
  t.throws(() => registry.open());
  registry.sessions.refuse(BOB, new BridgeError('ERR_SESSION_BUSY', 'not now'));
  t.deepEqual(observer.refusals, [
    { client: origin, reason: 'ERR_SESSION_LIMIT' },
    { client: { ...origin, principal: 'bob' }, reason: 'ERR_SESSION_BUSY' },
  ]);
  t.notThrows(() => new Registry().sessions.refuse(BOB, REASON), 'nobody observes');
});

test('a session that somebody is connected to, or that has an open call, is not evicted', (t) => {
  const registry = new Registry({ maxSessions: 2 });
  registry.open();
  const calling = openAbandoned(registry);
  call(calling, 1);
  t.false(registry.sessions.hasCapacity);
  t.like(
    t.throws(() => registry.open()),
    { code: 'ERR_SESSION_LIMIT' },
  );
  calling.server.listener.fromServer(serverFrame({ id: 1, result: {} }));
  t.true(registry.sessions.hasCapacity);
  t.notThrows(() => registry.open());
});

test('a caller at its own limit ends its own abandoned session, and nobody else’s', (t) => {
  const registry = new Registry({ maxSessions: 4, maxCallerSessions: 2 });
  // Its client never came back, so it would go first if that helped.
  const bobs = registry.open(new FakePeer(), BOB);
  bobs.peer.isConnected = false;
  registry.deps.clock.advance(10);
  const alices = [openAbandoned(registry), openAbandoned(registry)] as const;
  t.notThrows(() => registry.open());
  t.is(registry.sessions.use(alices[0].id, 'alice'), undefined);
  t.truthy(registry.sessions.use(bobs.id, 'bob'));
});

test('where all server processes are taken, an abandoned session that has one is evicted', async (t) => {
  const registry = new Registry();
  const shared = openAbandoned(registry);
  const own = openAbandoned(registry);
  remainsOf(own.server.link);
  registry.dialer.failure = new BridgeError('ERR_SESSION_LIMIT', 'all server processes run');
  own.peer.close = () => {
    registry.dialer.failure = undefined;
  };
  t.notThrows(() => registry.open());
  t.truthy(registry.sessions.use(shared.id, 'alice'), 'to end this one would not help');
  t.is(registry.sessions.use(own.id, 'alice'), undefined);
});

test('where a server cannot be started for another reason, no session is evicted', (t) => {
  const registry = new Registry();
  const own = openAbandoned(registry);
  remainsOf(own.server.link);
  registry.dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such command');
  t.is(
    t.throws(() => registry.open()),
    registry.dialer.failure,
  );
  t.deepEqual(own.peer.closedWith, []);
});

test('where that does not help, who comes is told to come again', (t) => {
  const registry = new Registry();
  openAbandoned(registry);
  registry.dialer.failure = new BridgeError('ERR_SESSION_LIMIT', 'all server processes run', { retryAfterMs: 1000 });
  t.is(
    t.throws(() => registry.open()),
    registry.dialer.failure,
  );
  t.is(registry.sessions.size, 1);
});

const IDLE = { sessionTimeoutMs: 1_800_000, idleTimeouts: { leftMs: 300_000, quietMs: 900_000 } };

test('a session whose client closed its stream ends soon; one whose client never had one lives longer', (t) => {
  const registry = new Registry(IDLE);
  const left = openAbandoned(registry);
  left.peer.hasLeft = true;
  const quiet = openAbandoned(registry);
  registry.deps.clock.advance(299_000);
  t.is(registry.sessions.size, 2);
  registry.deps.clock.advance(2000);
  t.is(registry.sessions.size, 1);
  t.is(left.peer.closedWith.length, 1);
  registry.deps.clock.advance(600_000);
  t.is(quiet.peer.closedWith.length, 1);
});

test('a session whose client never came back after initialize ends soon', (t) => {
  const registry = new Registry(IDLE);
  registry.openIdle();
  registry.deps.clock.advance(301_000);
  t.is(registry.sessions.size, 0);
});

test('the idle time begins with the end of the last call, and the session timeout goes on', (t) => {
  const registry = new Registry(IDLE);
  const [calling, lasting] = [openAbandoned(registry), openAbandoned(registry)];
  for (const session of [calling, lasting]) {
    session.peer.hasLeft = true;
    call(session, 1);
  }
  registry.deps.clock.advance(600_000);
  t.is(registry.sessions.size, 2);
  calling.server.listener.fromServer(serverFrame({ id: 1, result: {} }));
  registry.deps.clock.advance(299_000);
  t.is(registry.sessions.size, 2);
  registry.deps.clock.advance(2000);
  t.is(registry.sessions.size, 1);
  registry.deps.clock.advance(900_000);
  t.is(registry.sessions.size, 0, 'an open call does not keep it for ever');
});

test('one caller may have so many sessions and no more, which leaves some for others', (t) => {
  const registry = new Registry({ maxSessions: 4, maxCallerSessions: 2 });
  const [first] = [registry.open(), registry.open()] as const;
  const error = t.throws(() => registry.open(), { message: /2 sessions, the most allowed.*--max-caller-sessions/ });
  t.like(error, { code: 'ERR_SESSION_LIMIT', retryAfterMs: SESSION_TIMEOUT_MS });
  t.is(registry.dialer.dialed.length, 2, 'no server was dialed for it');
  registry.open(new FakePeer(), BOB);
  first.relay.close(REASON);
  t.notThrows(() => registry.open());
});

test('the sessions of all clients share the calls that may be open, and give them back', (t) => {
  const registry = new Registry({ calls: { maxOpen: 3 } });
  const { calls } = registry;
  const [one, other] = [registry.open(), registry.open()];
  for (const id of [1, 2]) call(one, id);
  call(other, 1);
  call(other, 2);
  const refusal = { id: 2, error: { data: { bridge: { reason: 'ERR_SESSION_BUSY' } } } };
  t.like(other.peer.sent.at(-1)?.frame.json(), refusal);
  one.server.listener.fromServer(serverFrame({ id: 1, result: {} }));
  t.is(calls.size, 2);
  call(other, 3);
  t.is(calls.size, 3);
  one.relay.close(REASON);
  other.relay.close(REASON);
  t.is(calls.size, 0, 'what ends with its session is given back once');
});

test('the sessions of all clients share the bytes of large requests, and give them back', (t) => {
  const registry = new Registry({ calls: { maxOpen: 10, maxBytes: 20_000 } });
  const [one, other] = [registry.open(), registry.open()];
  const large = { text: 'x'.repeat(20_000) };
  call(one, 1, large);
  call(other, 1, large);
  const refusal = { id: 1, error: { data: { bridge: { reason: 'ERR_SESSION_BUSY' } } } };
  t.like(other.peer.sent.at(-1)?.frame.json(), refusal);
  one.server.listener.fromServer(serverFrame({ id: 1, result: {} }));
  call(other, 2, large);
  t.is(other.peer.sent.length, 1);
});

test('initialize takes no place of a call that others may need, nor needs one', (t) => {
  const registry = new Registry({ calls: { maxOpen: 1 } });
  call(registry.open(), 1);
  const next = registry.open();
  next.relay.fromClient(clientFrame({ id: 0, method: 'initialize', params: {} }), new FakeLane());
  t.deepEqual(next.peer.sent, []);
});

test('one session may have as many calls open as it is told', (t) => {
  const registry = new Registry({ maxSessionInFlight: 2 });
  const [one, other] = [registry.open(), registry.open()];
  for (const id of [1, 2, 3]) call(one, id);
  t.like(
    one.peer.sent.map(({ frame }) => frame.json()),
    [{ id: 3, error: { message: /.*/ } }].map(({ id }) => ({ id })),
  );
  call(other, 1);
  t.deepEqual(other.peer.sent, []);
});

test('the log has the beginning of a session’s id and no more', (t) => {
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line) => void lines.push(line) });
  const registry = new Registry({
    deps: { ...createFakeDeps(), log, randomId: () => 'abcdef-and-what-nobody-else-knows' },
  });
  const session = registry.openIdle();
  call(session, 1);
  session.relay.close(REASON);
  t.true(lines.some((line) => line.includes('"session":"abcdef"')));
  t.false(lines.some((line) => line.includes('nobody-else')));
});
