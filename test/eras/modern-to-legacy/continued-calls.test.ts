/** Calls that wait for their clients at one bridge, and go on at another. */
import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { pino } from 'pino';
import { WITHDRAWAL_MS } from '../../../src/eras/modern-to-legacy/continued-call.ts';
import type { ParkingLimits } from '../../../src/eras/modern-to-legacy/questions/parked-calls.ts';
import { BridgeError } from '../../../src/errors.ts';
import type { SessionState } from '../../../src/relay/sessions/session-state.ts';
import { StoredOutcomes } from '../../../src/replicas/stored/stored-outcomes.ts';
import type { JsonRpcId } from '../../../src/wire/frame.ts';
import { requestFrame, resultFrame } from '../../../src/wire/write-message.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import type { Dialed } from '../../support/fake-peers.ts';
import { MemoryStore } from '../../support/memory-store.ts';
import { type Message, ModernBridge, type ModernRequest, SERVER_RESULT } from './modern-bridge.ts';

const ASK = { method: 'elicitation/create', params: { message: 'who?', requestedSchema: { type: 'object' } } };
const ACCEPT = { action: 'accept', content: { n: 1 } };

/** One of several bridges. */
class Replica extends ModernBridge {
  readonly membership: { isHeld: boolean; lost: () => void };

  private constructor(
    outcomes: StoredOutcomes,
    membership: Replica['membership'],
    parkingLimits: Partial<ParkingLimits>,
  ) {
    super({ attribution: 'stream', outcomes, parkingLimits });
    this.membership = membership;
  }

  static create(store: MemoryStore, limits: Partial<ParkingLimits> = {}): Replica {
    const membership = { isHeld: true, lost: () => {} };
    const cluster = {
      store,
      get isHeld() {
        return membership.isHeld;
      },
      onLost: (run: () => void) => {
        membership.lost = run;
        return () => {};
      },
    };
    const log = pino({ level: 'silent' });
    return new Replica(new StoredOutcomes({ cluster, server: 's', clock: new FakeClock(), log }), membership, limits);
  }

  /** The server's session, which is open. */
  openSession(): SessionState {
    const { session } = this.dialer.latest;
    if (session === undefined) throw new Error('nobody keeps the session up to date');
    session.succeeded(requestFrame(0, 'initialize', { protocolVersion: '2025-11-25' }), resultFrame(0, SERVER_RESULT));
    session.sessionId = 'session';
    session.isInitialized = true;
    return session;
  }

  /** The request that was sent last, and the call of its stream. */
  sentLast(): Dialed['link']['sent'][number] {
    const sent = this.dialer.latest.link.sent.at(-1);
    if (sent === undefined) throw new Error('nothing was sent');
    return sent;
  }
}

interface Waiting {
  readonly owner: Replica;
  readonly heir: Replica;
  readonly callId: JsonRpcId | undefined;
  readonly state: string;
}

/** The server asks something in the call that it was sent last, and has said after which event that goes on. Returns its id. */
function askResumably(owner: Replica): JsonRpcId | undefined {
  const session = owner.openSession();
  const { frame, call } = owner.sentLast();
  owner.heard();
  owner.saysOn(call, { id: 'q', ...ASK });
  session.positions.moved(frame, 'event 1');
  owner.collect();
  return frame.id;
}

/** A call that waits for answers, at a server that has said after which event its stream goes on. */
async function wait(store = new MemoryStore()): Promise<Waiting> {
  const owner = Replica.create(store);
  const heir = Replica.create(store);
  const call = owner.call({ arguments: { secret: 'x' } });
  const callId = askResumably(owner);
  await turn();
  const { result } = call.answer();
  return { owner, heir, callId, state: result.requestState };
}

async function retry(at: Replica, requestState: string, params: object = {}, options = {}): Promise<ModernRequest> {
  const inputResponses = { 'elicitation-1': ACCEPT, 'elicitation-2': ACCEPT };
  const retried = at.call(
    { arguments: { secret: 'x' }, requestState, inputResponses, ...params },
    { id: 8, ...options },
  );
  await turn();
  return retried;
}

const reasonOf = ({ error }: Message): unknown => (error?.data?.bridge as { reason?: unknown } | undefined)?.reason;

test('a client is told what is asked when another bridge could go on, not before', async (t) => {
  const owner = Replica.create(new MemoryStore());
  const call = owner.call();
  askResumably(owner);
  t.deepEqual(call.told(), []);
  await turn();
  t.is(call.answer().result.resultType, 'input_required');
});

test('a call goes on at another bridge: it is not sent again, and the server gets the answers under its own ids', async (t) => {
  const { heir, callId, state } = await wait();
  const retried = await retry(heir, state);
  const { link, session } = heir.dialer.latest;
  t.is(session?.sessionId, 'session');
  t.is(link.sent[0] && session?.takeResumption(link.sent[0].frame), 'event 1');
  const [resumed, answer] = heir.heard();
  t.like(resumed, { id: callId, method: 'tools/call', params: { name: 'x' } });
  t.is(resumed?.params.arguments, undefined);
  t.deepEqual(answer, { jsonrpc: '2.0', id: 'q', result: ACCEPT } as object);
  heir.saysOn(undefined, { id: callId, result: { content: [] } });
  t.like(retried.answer(), { id: 8, result: { resultType: 'complete', content: [] } });
  t.is(link.closedWith.length, 1);
  t.true(session?.isHandedOver, 'other calls may be open in the session');
  t.like((await retry(heir, state)).answer(), { result: { resultType: 'complete' } });
});

test('what the server asks next is asked there as well, and a third bridge can go on with that', async (t) => {
  const { heir, state, callId } = await wait();
  const retried = await retry(heir, state);
  const { frame, call } = heir.dialer.latest.link.sent[0] ?? heir.sentLast();
  heir.saysOn(call, { id: 'r', ...ASK });
  heir.dialer.latest.session?.positions.moved(frame, 'event 2');
  heir.collect();
  await turn();
  const { result } = retried.answer();
  t.deepEqual(Object.keys(result.inputRequests), ['elicitation-2']);
  const third = (await retry(heir, state)).answer();
  t.deepEqual(third.result.inputRequests, result.inputRequests, 'who comes back with an older state is told the same');
  const last = await retry(heir, result.requestState);
  t.deepEqual(heir.heard().at(-1), { jsonrpc: '2.0', id: 'r', result: ACCEPT } as object);
  heir.says({ id: callId, error: { code: -32000, message: 'no' } });
  t.like(last.answer(), { error: { message: 'no' } });
});

test('progress of the call reaches the request that follows it, what is about others does not', async (t) => {
  const { heir, state, callId } = await wait();
  const retried = await retry(heir, state, {}, { progressToken: 'mine' });
  const { call } = heir.dialer.latest.link.sent[0] ?? heir.sentLast();
  heir.saysOn(call, { method: 'notifications/progress', params: { progressToken: callId, progress: 1 } });
  heir.saysOn(undefined, { method: 'notifications/tools/list_changed' });
  t.deepEqual(
    retried.told().map(({ params }) => params),
    [{ progressToken: 'mine', progress: 1 }],
  );
  heir.heard();
  heir.says({ id: 'p', method: 'ping' });
  heir.says({ id: 'o', ...ASK });
  t.deepEqual(heir.heard(), [
    { jsonrpc: '2.0', id: 'p', result: {} },
    { jsonrpc: '2.0', id: 'o', result: { action: 'cancel' } },
  ] as object[]);
  t.deepEqual(retried.told(), []);
});

test('another caller, or another request, goes on with nothing', async (t) => {
  const { heir, state } = await wait();
  t.is(reasonOf((await retry(heir, state, {}, { principal: 'bob' })).answer()), 'state_lost');
  t.is(reasonOf((await retry(heir, state, { arguments: {} })).answer()), 'state_lost');
  t.is(heir.dialer.dialed.length, 0);
});

test('a call that was withdrawn where it had gone on is withdrawn at the server, and nobody goes on with it', async (t) => {
  const { owner, heir, callId, state } = await wait();
  const retried = await retry(heir, state);
  heir.heard();
  retried.cancels();
  t.like(heir.heard()[0], { method: 'notifications/cancelled', params: { requestId: callId } });
  t.is(heir.dialer.latest.link.closedWith.length, 0, 'the server is to hear that');
  heir.clock.advance(WITHDRAWAL_MS);
  t.is(heir.dialer.latest.link.closedWith.length, 1);
  await turn();
  owner.membership.lost();
  t.is(reasonOf((await retry(owner, state)).answer()), 'state_lost');
});

test('a call whose server cannot go on with it fails, and is not repeated', async (t) => {
  const { heir, state } = await wait();
  const retried = await retry(heir, state);
  const { listener, link } = heir.dialer.latest;
  const error = new BridgeError('ERR_UPSTREAM_CLOSED', 'the answer was lost');
  listener.serverFault({ error, kind: 'error', id: 1 });
  t.is(reasonOf(retried.answer()), 'ERR_UPSTREAM_CLOSED');
  t.is(link.closedWith.length, 1);
  await turn();
  t.is(reasonOf((await retry(heir, state)).answer()), 'state_lost');
  t.is(heir.dialer.dialed.length, 1);
});

test('a bridge with too many calls that wait goes on with none, and a third one can', async (t) => {
  const store = new MemoryStore();
  const { heir, state } = await wait(store);
  const full = Replica.create(store, { total: 0 });
  t.is(reasonOf((await retry(full, state)).answer()), 'ERR_SESSION_BUSY');
  t.is(full.dialer.latest.link.closedWith.length, 1);
  t.deepEqual(full.heard(), []);
  await retry(heir, state);
  t.like(heir.heard()[1], { id: 'q', result: ACCEPT });
});

test('a bridge that shuts down leaves a call that waits to others, and tells its server nothing', async (t) => {
  const { owner, heir, state } = await wait();
  const { session, link } = owner.dialer.latest;
  await owner.modern.close();
  t.deepEqual(owner.heard(), []);
  t.true(session?.isHandedOver);
  t.is(link.closedWith.length, 1);
  await retry(heir, state);
  t.is(heir.dialer.dialed.length, 1);
});

test('a bridge that shuts down tells whoever waits for a call that has gone on there', async (t) => {
  const { heir, state } = await wait();
  const retried = await retry(heir, state);
  await heir.modern.close();
  t.is(reasonOf(retried.answer()), 'ERR_SESSION_CLOSED');
});

test('a bridge that others may take for dead neither goes on with a call nor gives it up', async (t) => {
  const { owner, state } = await wait();
  owner.membership.isHeld = false;
  t.is(reasonOf((await retry(owner, state)).answer()), 'ERR_CLUSTER_OWNER');
  owner.clock.advance(10 * 60_000);
  t.deepEqual(owner.heard(), []);
  t.is(owner.dialer.latest.link.closedWith.length, 1);
});

test('a bridge that others may take for dead takes over no call', async (t) => {
  const { heir, state } = await wait();
  heir.membership.isHeld = false;
  t.is(reasonOf((await retry(heir, state)).answer()), 'ERR_CLUSTER_OWNER');
  t.is(heir.dialer.dialed.length, 0);
});

test('a bridge that was taken for dead lets go of its calls without a word, and finds them again as others do', async (t) => {
  const { owner, state } = await wait();
  owner.membership.lost();
  owner.clock.advance(1);
  t.deepEqual(owner.heard(), []);
  t.is(owner.dialer.latest.link.closedWith.length, 1);
  await retry(owner, state);
  t.is(owner.dialer.dialed.length, 2);
  t.like(owner.heard()[1], { id: 'q', result: ACCEPT });
});

test('a call that its bridge has given up is not found again, however soon its client comes back', async (t) => {
  const { owner, state } = await wait();
  const retried = await retry(owner, state);
  retried.leaves();
  t.is(reasonOf((await retry(owner, state)).answer()), 'state_lost');
  t.is(owner.dialer.dialed.length, 1);
});

test('a call that its client left before it was told is given up', async (t) => {
  const owner = Replica.create(new MemoryStore());
  const call = owner.call();
  askResumably(owner);
  call.leaves();
  t.like(owner.heard(), [{ id: 'q', result: { action: 'cancel' } }, { method: 'notifications/cancelled' }]);
});

test('a call whose server has not said how to go on with it is lost with its bridge', async (t) => {
  const store = new MemoryStore();
  const [owner, heir] = [Replica.create(store), Replica.create(store)];
  const call = owner.call({ arguments: { secret: 'x' } });
  owner.openSession();
  owner.saysOn(owner.sentLast().call, { id: 'q', ...ASK });
  owner.collect();
  const { result } = call.answer();
  t.is(reasonOf((await retry(heir, result.requestState)).answer()), 'state_lost');
});
