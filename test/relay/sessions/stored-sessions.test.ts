/** Sessions that other bridges go on with, and limits that hold for several bridges. */
import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import type { SessionClient } from '../../../src/relay/sessions/session-registry.ts';
import { SessionState } from '../../../src/relay/sessions/session-state.ts';
import type { ReplayLog, SessionStorage } from '../../../src/relay/sessions/session-storage.ts';
import type { WiderRefusal } from '../../../src/relay/shared-state.ts';
import { resultFrame } from '../../../src/wire/write-message.ts';
import { FakeObserver } from '../../support/calls.ts';
import { FakeLane, FakePeer } from '../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';
import {
  ALICE,
  BOB,
  call,
  type Opened,
  openAbandoned,
  REASON,
  Registry,
  type RegistryOptions,
  STDIO,
} from './registry-bench.ts';

const SERVER = { protocolVersion: '2025-06-18', capabilities: { tools: { listChanged: true } } };
const REPLAY: ReplayLog = {
  resumable: () => {},
  hold: () => {},
  kept: () => undefined,
  add: () => {},
  waits: () => {},
  told: () => {},
  opened: () => Promise.resolve(),
  continued: () => {},
  ended: () => {},
};

/** Keeps what it is told; a session is handed over when the test says so. */
class FakeStorage implements SessionStorage {
  readonly states = new Map<string, SessionState>();
  readonly principals: string[] = [];
  readonly over: string[] = [];
  readonly handed: string[] = [];
  /** Whether the session was over here when it was handed over. */
  readonly wasOver: boolean[] = [];
  sizeNow: () => number = () => 0;
  handedOverNow: Promise<void> = Promise.resolve();

  begin(id: string, principal: string): SessionState {
    const state = new SessionState();
    this.states.set(id, state);
    this.principals.push(principal);
    return state;
  }

  replayOf(id: string): ReplayLog | undefined {
    return this.states.has(id) ? REPLAY : undefined;
  }

  ended(id: string): void {
    this.over.push(id);
  }

  handedOver(id: string): Promise<void> {
    this.handed.push(id);
    this.wasOver.push(this.sizeNow() === 0);
    return this.handedOverNow;
  }
}

interface Stored {
  readonly registry: Registry;
  readonly storage: FakeStorage;
  /** A session whose server has accepted the handshake. */
  open(client?: SessionClient): Opened & { readonly state: SessionState };
}

function stored(options: RegistryOptions = {}): Stored {
  const storage = new FakeStorage();
  const registry = new Registry({ storage, ...options });
  storage.sizeNow = () => registry.sessions.size;
  const open = (client: SessionClient = ALICE): Opened & { readonly state: SessionState } => {
    const session = registry.open(new FakePeer(), client);
    const state = storage.states.get(session.id);
    if (state === undefined) throw new Error('the session is not stored');
    accept(state);
    return { ...session, state };
  };
  return { registry, storage, open };
}

function accept(state: SessionState): void {
  const request = clientFrame({ id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18' } });
  state.succeeded(request, resultFrame(0, SERVER));
}

const isDone = async (promise: Promise<unknown>): Promise<boolean> => {
  let done = false;
  void promise.then(() => {
    done = true;
  });
  await new Promise<void>((resolve) => setImmediate(resolve));
  return done;
};

// ---- what is stored

test('sessions over Streamable HTTP are stored for their caller, with what is said in them, and no others', (t) => {
  const { registry, storage } = stored();
  const { id } = registry.open();
  registry.open(new FakePeer(), STDIO);
  registry.open(new FakePeer(), { ...ALICE, transport: 'http-sse' });
  registry.open(new FakePeer(), { ...ALICE, principal: undefined });
  const context = { principal: 'alice', metadata: undefined, headers: undefined };
  registry.open(new FakePeer(), { ...ALICE, era: 'modern', context });
  t.deepEqual([...storage.states.keys()], [id]);
  t.deepEqual(storage.principals, ['alice']);
  t.is(registry.sessions.replayOf(id), REPLAY);
  t.is(registry.sessions.replayOf('other'), undefined);
  t.is(new Registry().sessions.replayOf(id), undefined);
});

test('the server’s link goes on with the stored session', (t) => {
  const { registry, storage } = stored();
  const states: unknown[] = [];
  const dial = registry.dialer.dial.bind(registry.dialer);
  registry.dialer.dial = (listener, state?: unknown) => {
    states.push(state);
    return dial(listener);
  };
  const { id } = registry.open();
  t.deepEqual(states, [storage.states.get(id)]);
});

test('a stored session that ends is stored no longer', (t) => {
  const { storage, open } = stored();
  const [session] = [open(), open()];
  session.relay.close(REASON);
  t.deepEqual(storage.over, [session.id]);
});

// ---- letting others go on

test('where no call is open, a session is handed over at once, after it has ended here', async (t) => {
  const { registry, storage, open } = stored();
  const session = open();
  await registry.sessions.handOver(10_000, REASON);
  t.is(registry.deps.clock.now(), 0);
  t.deepEqual(storage.handed, [session.id]);
  t.deepEqual(storage.wasOver, [true]);
  t.deepEqual(storage.over, [], 'it is not forgotten');
  t.deepEqual(session.server.link.closedWith, [REASON]);
  t.true(session.state.isHandedOver);
});

test('a session with an open call is handed over as soon as the call is answered', async (t) => {
  const { registry, storage, open } = stored();
  const [calling, idle] = [open(), open()];
  call(calling, 1);
  const told = registry.sessions.handOver(10_000, REASON);
  t.deepEqual(storage.handed, [idle.id]);
  await registry.deps.clock.advanceInSteps(1000, 20);
  t.deepEqual(storage.handed, [idle.id]);
  calling.server.listener.fromServer(serverFrame({ id: 1, result: {} }));
  await registry.deps.clock.advanceInSteps(40, 20);
  await told;
  t.deepEqual(storage.handed, [idle.id, calling.id]);
  t.is(calling.peer.sent.length, 1);
});

test('a session whose call does not end is handed over after the grace time', async (t) => {
  const { registry, storage, open } = stored();
  const session = open();
  call(session, 1);
  const told = registry.sessions.handOver(500, REASON);
  await registry.deps.clock.advanceInSteps(480, 20);
  t.deepEqual(storage.handed, []);
  await registry.deps.clock.advanceInSteps(40, 20);
  await told;
  t.deepEqual(storage.handed, [session.id]);
  t.like(session.peer.sent[0]?.frame.json(), { id: 1, error: { message: 'over' } }, 'it can go on nowhere');
});

test('the client of a call that goes on elsewhere is not told that it has failed', async (t) => {
  const { registry, open } = stored();
  const session = open();
  session.state.positions = { moved: () => {}, over: () => {}, isResumable: (id) => id === 1 };
  const { listener, link } = session.server;
  call(session, 2);
  listener.fromServer(serverFrame({ id: 'of-2', method: 'elicitation/create' }));
  call(session, 1);
  listener.fromServer(serverFrame({ id: 'of-1', method: 'elicitation/create' }));
  session.peer.take();
  link.take();
  await registry.sessions.handOver(0, REASON);
  t.deepEqual(
    session.peer.sent.map(({ frame }) => frame.id),
    [2],
  );
  t.deepEqual(
    link.sent.map(({ frame }) => frame.id),
    ['of-2'],
    'whoever goes on with the call takes the answer to what its client was asked',
  );
});

test('a call that could go on elsewhere fails where its session is not handed over', (t) => {
  const { open } = stored();
  const session = open();
  session.state.positions = { moved: () => {}, over: () => {}, isResumable: () => true };
  call(session, 1);
  session.relay.close(REASON);
  t.like(session.peer.sent[0]?.frame.json(), { id: 1, error: { message: 'over' } });
});

test('a session without a handshake, or that is not stored, is not handed over', async (t) => {
  const { registry, storage } = stored();
  registry.open();
  registry.open(new FakePeer(), STDIO);
  await registry.sessions.handOver(0, REASON);
  t.deepEqual(storage.handed, []);
  t.is(registry.sessions.size, 2);
});

test('sessions have been handed over when the others know it', async (t) => {
  const { registry, storage, open } = stored();
  open();
  let known = (): void => {};
  storage.handedOverNow = new Promise((resolve) => {
    known = resolve;
  });
  const told = registry.sessions.handOver(0, REASON);
  t.false(await isDone(told));
  known();
  t.true(await isDone(told));
});

test('without a store nothing is handed over, and nobody is waited for', async (t) => {
  const registry = new Registry();
  call(registry.open(), 1);
  await registry.sessions.handOver(10_000, REASON);
  t.is(registry.sessions.size, 1);
  t.is(registry.deps.clock.now(), 0);
});

test('abandoned sessions end here, and are neither forgotten nor handed over', (t) => {
  const { registry, storage, open } = stored();
  const [session] = [open(), registry.open(new FakePeer(), STDIO)];
  registry.sessions.abandon(REASON);
  t.is(registry.sessions.size, 0);
  t.true(session.state.isHandedOver);
  t.deepEqual([storage.over, storage.handed], [[], []]);
});

// ---- going on with what others had

/** A session that another bridge has stored. */
function elsewhere(change: (state: SessionState) => void = () => {}): SessionState {
  const state = new SessionState();
  state.continuation = 'same-session';
  accept(state);
  change(state);
  return state;
}

test('a session of another bridge goes on without a handshake, in its revision, and tells of what may have been missed', (t) => {
  const registry = new Registry();
  const states: unknown[] = [];
  const dial = registry.dialer.dial.bind(registry.dialer);
  registry.dialer.dial = (listener, own?: unknown) => {
    states.push(own);
    return dial(listener);
  };
  const state = elsewhere();
  const peer = new FakePeer();
  const session = registry.sessions.restore({ id: 'theirs', state, client: ALICE }, () => peer);
  t.is(session.id, 'theirs');
  t.deepEqual(states, [state]);
  t.deepEqual(
    peer.revisions.map(({ id }) => id),
    ['2025-06-18'],
  );
  t.like(peer.take()[0]?.frame.json(), { method: 'notifications/tools/list_changed' });
  t.is(registry.sessions.use('theirs', 'alice')?.relay, session.relay);
  session.relay.fromClient(clientFrame({ id: 1, method: 'tools/call', params: {} }), new FakeLane());
  registry.dialer.latest.listener.fromServer(serverFrame({ id: 1, result: {} }));
  t.is(peer.sent.length, 1);
});

test('a session whose client is gone as soon as it has come does not go on', (t) => {
  const registry = new Registry();
  const peer = new FakePeer();
  const { relay } = registry.sessions.restore({ id: 'theirs', state: elsewhere(), client: ALICE }, (_id, listener) => {
    listener.clientClosed(REASON);
    return peer;
  });
  t.true(relay.isClosed);
  t.deepEqual(peer.revisions, []);
  t.deepEqual(peer.closedWith, [REASON]);
  t.false(registry.sessions.has('theirs'));
});

test('a second handshake that the server refuses does not end a session that goes on', (t) => {
  const registry = new Registry();
  const state = elsewhere();
  const { relay } = registry.sessions.restore({ id: 'theirs', state, client: ALICE }, () => new FakePeer());
  relay.fromClient(clientFrame({ id: 0, method: 'initialize', params: {} }), new FakeLane());
  registry.dialer.latest.listener.fromServer(serverFrame({ id: 0, error: { code: -32600, message: 'again?' } }));
  t.true(registry.sessions.has('theirs'));
});

test('an observer is told whose session goes on', (t) => {
  const observer = new FakeObserver();
  const registry = new Registry({ calls: { observer } });
  const { relay } = registry.sessions.restore(
    { id: 'theirs', state: elsewhere(), client: ALICE },
    () => new FakePeer(),
  );
  const client = { transport: 'streamable-http', principal: 'alice', server: 'a server', revision: '2025-06-18' };
  t.like(observer.clients, [{ client }]);
  relay.close(REASON);
  t.deepEqual(observer.clients[0]?.left, ['ERR_SESSION_CLOSED']);
});

test('a session of another bridge whose revision is not known is served in the oldest one', (t) => {
  const peer = new FakePeer();
  new Registry().sessions.restore({ id: 'theirs', state: new SessionState(), client: ALICE }, () => peer);
  t.deepEqual(
    peer.revisions.map(({ id }) => id),
    ['2024-11-05'],
  );
});

test('a server’s new session tells by itself what may have been missed', (t) => {
  const state = elsewhere((own) => {
    own.continuation = 'new-session';
  });
  const peer = new FakePeer();
  new Registry().sessions.restore({ id: 'theirs', state, client: ALICE }, () => peer);
  t.deepEqual(peer.sent, []);
});

test('a session of another bridge takes a slot like any other', (t) => {
  const { registry } = stored({ maxSessions: 1 });
  registry.open();
  const error = t.throws(() =>
    registry.sessions.restore({ id: 'theirs', state: elsewhere(), client: ALICE }, () => new FakePeer()),
  );
  t.like(error, { code: 'ERR_SESSION_LIMIT' });
  t.false(registry.sessions.has('theirs'));
});

// ---- sessions whose server is replaced

test('a retired registry opens nothing new, and ends each session when none of its calls is open', async (t) => {
  const registry = new Registry();
  const [calling, idle] = [registry.open(), registry.open()];
  call(calling, 1);
  const retired = registry.sessions.retire(10_000, REASON);
  t.like(
    t.throws(() => registry.open()),
    { code: 'ERR_SESSION_CLOSED', retryAfterMs: 1000 },
  );
  t.deepEqual(idle.peer.closedWith, [REASON]);
  call(calling, 2);
  t.is(calling.server.link.sent.length, 2, 'what is open goes on');
  for (const id of [1, 2]) {
    await registry.deps.clock.advanceInSteps(100, 20);
    t.deepEqual(calling.peer.closedWith, []);
    calling.server.listener.fromServer(serverFrame({ id, result: {} }));
  }
  await registry.deps.clock.advanceInSteps(40, 20);
  await retired;
  t.deepEqual(calling.peer.closedWith, [REASON]);
});

// ---- limits of several bridges

const FULL = new BridgeError('ERR_SESSION_LIMIT', 'all bridges together are full');

/** Refuses until so many sessions are open here at most. */
function limitedTo(registry: () => Registry, most: number, remedy: WiderRefusal['remedy'] = 'end-one') {
  return (): WiderRefusal | undefined => (registry().sessions.size < most ? undefined : { error: FULL, remedy });
}

const NEVER = (): undefined => undefined;

for (const [title, limits] of [
  ['all together', (refuse: () => WiderRefusal | undefined) => ({ refusal: refuse, refusalFor: NEVER })],
  ['one caller', (refuse: () => WiderRefusal | undefined) => ({ refusal: NEVER, refusalFor: refuse })],
] as const) {
  test(`where several bridges have no session left for ${title}, an abandoned one makes way`, (t) => {
    const registry: Registry = new Registry({ widerLimits: limits(limitedTo(() => registry, 1)) });
    const abandoned = openAbandoned(registry);
    const next = registry.open();
    t.deepEqual(abandoned.peer.closedWith.length, 1);
    t.is(
      t.throws(() => registry.open()),
      FULL,
      'this one is in use',
    );
    t.deepEqual(next.peer.closedWith, []);
  });

  test(`where it would not help to end a session here, none is ended for ${title}`, (t) => {
    const registry: Registry = new Registry({ widerLimits: limits(limitedTo(() => registry, 1, 'wait')) });
    const abandoned = openAbandoned(registry);
    t.is(
      t.throws(() => registry.open()),
      FULL,
    );
    t.deepEqual(abandoned.peer.closedWith, []);
  });

  test(`where one less is not enough, none is opened for ${title}`, (t) => {
    let isFull = false;
    const registry = new Registry({
      widerLimits: limits(() => (isFull ? { error: FULL, remedy: 'end-one' } : undefined)),
    });
    openAbandoned(registry);
    isFull = true;
    t.is(
      t.throws(() => registry.open()),
      FULL,
    );
    t.is(registry.dialer.dialed.length, 1);
  });
}

test('a caller at its own limit among several bridges ends no session of another caller', (t) => {
  const registry: Registry = new Registry({
    widerLimits: { refusal: NEVER, refusalFor: limitedTo(() => registry, 1) },
  });
  const bobs = openAbandoned(registry, BOB);
  t.is(
    t.throws(() => registry.open()),
    FULL,
  );
  t.deepEqual(bobs.peer.closedWith, []);
});

test('a client on the bridge’s own pipe is no caller that has a limit', (t) => {
  const asked: string[] = [];
  const refusalFor = (principal: string): undefined => void asked.push(principal);
  const registry = new Registry({ widerLimits: { refusal: NEVER, refusalFor } });
  registry.open(new FakePeer(), STDIO);
  registry.open(new FakePeer(), BOB);
  t.deepEqual(asked, ['bob']);
});
