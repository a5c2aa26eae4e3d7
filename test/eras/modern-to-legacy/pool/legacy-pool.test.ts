import test from 'ava';
import { LegacyPool, type LegacyPoolLimits } from '../../../../src/eras/modern-to-legacy/pool/legacy-pool.ts';
import { LEASE_WAIT_MS } from '../../../../src/eras/modern-to-legacy/pool/session-queue.ts';
import type { Attribution } from '../../../../src/eras/modern-to-legacy/pool/sole-owner.ts';
import { BridgeError } from '../../../../src/errors.ts';
import { MAX_CAPABILITIES_LENGTH } from '../../../../src/mcp/translate/capabilities.ts';
import { EXITED } from '../../../relay/shared/legacy/shared-bridge.ts';
import { createFakeDeps, FakeDialer } from '../../../support/fake-peers.ts';
import { serverFrame } from '../../../support/frames.ts';
import { FakeSessionUser, wants } from './fake-session-user.ts';

const RESULT = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };

function createPool(limits: Partial<LegacyPoolLimits> = {}, attribution: Attribution = 'lease') {
  const dialer = new FakeDialer();
  const deps = createFakeDeps();
  const pool = new LegacyPool({ dialer, deps, handshakeTimeoutMs: 0, attribution, calls: 'lost', limits });
  const take = (principal: string, declared = {}, affinity: string | undefined = '') => {
    const user = new FakeSessionUser(pool, wants(principal, declared, affinity));
    user.joinSession();
    return user;
  };
  /** For a call that may be asked something, at once or later. */
  const lease = (name: string, declared: object = { roots: {} }) => {
    const user = new FakeSessionUser(pool, wants(name, declared));
    user.leaseSession();
    return user;
  };
  const isClosed = (index: number) => (dialer.dialed[index]?.link.closedWith.length ?? 0) > 0;
  return { dialer, deps, pool, take, lease, isClosed };
}

test('one session is opened for all who want the same at once', (t) => {
  const { dialer, take } = createPool();
  const sessions = [1, 2, 3].map(() => take('ada', { roots: {} }).given);
  t.is(new Set(sessions).size, 1);
  t.is(dialer.dialed.length, 1);
  t.not(take('ada', {}).given, sessions[0]);
  t.not(take('bob', { roots: {} }).given, sessions[0]);
  t.not(take('ada', { roots: {} }, 'b').given, sessions[0]);
});

test('in a full pool the session goes that nobody uses, and has not for longest', (t) => {
  const { take, isClosed, pool } = createPool({ total: 3 });
  const [a, b] = [take('a'), take('b')];
  take('c');
  a.leaveSession();
  b.leaveSession();
  take('a').leaveSession();
  take('d');
  t.deepEqual([0, 1, 2].map(isClosed), [false, true, false]);
  t.is(pool.size, 3);
  take('e');
  t.throws(() => take('f'), { code: 'ERR_SESSION_LIMIT' });
});

test('one caller does not take the capacity of the others', (t) => {
  const { take, isClosed } = createPool({ perCaller: 2 });
  take('ada', {}, '1');
  const second = take('ada', {}, '2');
  t.throws(() => take('ada', {}, '3'), { code: 'ERR_SESSION_LIMIT' });
  t.notThrows(() => take('bob'));
  second.leaveSession();
  t.notThrows(() => take('ada', {}, '3'));
  t.true(isClosed(1));
});

test('no session is opened for capabilities that are too large to be kept with it', (t) => {
  const { dialer, take } = createPool();
  const declared = (length: number): object => ({ experimental: { x: { text: 'x'.repeat(length) } } });
  take('ada', declared(MAX_CAPABILITIES_LENGTH - 100));
  t.throws(() => take('ada', declared(MAX_CAPABILITIES_LENGTH)), { code: 'ERR_WIRE_MESSAGE', message: / 16384\.$/ });
  t.is(dialer.dialed.length, 1);
});

test('a server that cannot be started leaves nothing behind', (t) => {
  const { dialer, pool, take } = createPool();
  dialer.failure = EXITED;
  t.throws(() => take('ada'), { code: EXITED.code });
  t.is(pool.size, 0);
});

test('what a server said of itself is known to its caller only', (t) => {
  const { dialer, pool, take } = createPool();
  take('ada');
  t.is(pool.knownResult(wants('ada')), undefined);
  const { link, listener } = dialer.latest;
  listener.fromServer(serverFrame({ id: link.sent[0]?.frame.id, result: RESULT }));
  t.like(pool.knownResult(wants('ada')), { serverInfo: { name: 's' } });
  t.is(pool.knownResult(wants('bob')), undefined);
});

test('the end of the pool ends all sessions and tells their users', async (t) => {
  const { dialer, deps, pool, take, isClosed } = createPool();
  const ada = take('ada');
  take('bob').leaveSession();
  await pool.close();
  t.true(isClosed(0) && isClosed(1));
  t.is(ada.losses.length, 1);
  t.true(dialer.isClosed);
  t.is(deps.clock.pendingTimers, 0);
  t.throws(() => take('ada'), { code: 'ERR_SESSION_CLOSED' });
});

test('a call that may be asked something has a session to itself; calls that cannot be asked share it', (t) => {
  const { lease, take } = createPool();
  const first = lease('ada');
  const second = lease('ada');
  t.truthy(second.given);
  t.false(first.given === second.given);
  t.true(take('ada', { roots: {} }).given === first.given);
});

test('calls one after the other always meet the same session, whatever others were open between them', (t) => {
  const { lease } = createPool();
  const first = lease('ada');
  const session = first.given;
  const meanwhile = [lease('ada'), lease('ada')];
  first.leaveSession();
  for (const call of meanwhile) call.leaveSession();
  for (let n = 0; n < 3; n += 1) {
    const next = lease('ada');
    t.true(next.given !== undefined && next.given === session);
    next.leaveSession();
  }
});

test('a call waits for a session and gets it in its turn', (t) => {
  const { lease, dialer } = createPool({ total: 2 });
  const [one, two] = [lease('ada'), lease('ada')];
  const waiting = [lease('ada'), lease('bob'), lease('ada')];
  const granted = () => waiting.map(({ given }) => given !== undefined);
  t.deepEqual(granted(), [false, false, false]);
  two.leaveSession();
  t.deepEqual(granted(), [true, false, false]);
  t.is(waiting[0]?.given, two.given);
  one.leaveSession();
  t.deepEqual(granted(), [true, true, false], 'the session of another client is closed for it');
  t.is(dialer.dialed.length, 3);
  waiting[1]?.leaveSession();
  t.deepEqual(granted(), [true, true, true]);
});

test('who comes later does not get in before those who wait', (t) => {
  const { lease } = createPool({ total: 1 });
  const first = lease('ada');
  const waiting = lease('bob');
  first.leaveSession();
  t.truthy(waiting.given);
  const [third, fourth] = [lease('ada'), lease('bob')];
  waiting.leaveSession();
  t.truthy(third.given);
  t.is(fourth.given, undefined);
});

test('a caller that has all it may have does not hold up others', (t) => {
  const { lease } = createPool({ total: 3, perCaller: 1 });
  lease('ada');
  const waiting = lease('ada');
  t.truthy(lease('bob').given);
  t.is(waiting.given, undefined);
});

test('a call that was given up waits no more', (t) => {
  const { lease, deps } = createPool({ total: 1 });
  const first = lease('ada');
  const gone = lease('ada');
  const next = lease('ada');
  gone.leaveSession();
  first.leaveSession();
  t.is(gone.given, undefined);
  t.truthy(next.given);
  next.leaveSession();
  t.is(deps.clock.pendingTimers, 1, 'of the session that is kept');
});

test('a call that waits for too long is refused, with the limit that it met', (t) => {
  const { lease, deps } = createPool({ total: 2, perCaller: 1 });
  const first = lease('ada');
  const own = lease('ada');
  lease('bob');
  const others = lease('eve');
  deps.clock.advance(LEASE_WAIT_MS - 1);
  t.is(own.refusedWith, undefined);
  deps.clock.advance(1);
  t.is(own.refusedWith?.code, 'ERR_SESSION_LIMIT');
  t.regex(own.refusedWith?.message ?? '', /1 sessions for this caller.* in use for 50000 ms;.* --pool-size/);
  t.regex(others.refusedWith?.message ?? '', /2 sessions for requests like this.* in use for 50000 ms/);
  first.leaveSession();
  t.is(own.given, undefined);
});

test('no more calls wait than may, of one caller and together', (t) => {
  const { lease } = createPool({ total: 1, waiting: 3, waitingPerCaller: 2 });
  const first = lease('ada');
  lease('ada');
  lease('ada');
  t.throws(() => lease('ada'), { code: 'ERR_SESSION_BUSY', message: /^2 calls of this caller wait/ });
  lease('bob');
  t.throws(() => lease('eve'), { code: 'ERR_SESSION_BUSY', message: /^3 calls wait/ });
  first.leaveSession();
  t.notThrows(() => lease('eve'));
});

test('who waits is told why the server cannot be started, and the next one gets its chance', (t) => {
  const { dialer, lease } = createPool({ total: 1 });
  const first = lease('ada');
  const waiting = [lease('bob'), lease('eve')];
  dialer.failure = EXITED;
  first.leaveSession();
  t.deepEqual(
    waiting.map(({ refusedWith }) => refusedWith?.code),
    [EXITED.code, EXITED.code],
  );
});

test('a call waits where no more processes may run, if one of its client’s runs', (t) => {
  const { dialer, lease } = createPool();
  const first = lease('ada');
  dialer.failure = new BridgeError('ERR_SESSION_LIMIT', 'as many run as may');
  const waiting = lease('ada');
  t.is(waiting.refusedWith, undefined);
  t.is(lease('bob').refusedWith?.code, 'ERR_SESSION_LIMIT');
  first.leaveSession();
  t.is(waiting.given, first.given);
});

test('where the transport tells which call is asked, calls share', (t) => {
  const { lease, dialer } = createPool({}, 'stream');
  t.is(lease('ada').given, lease('ada').given);
  t.is(dialer.dialed.length, 1);
});

test('who waits when the pool ends is told so', async (t) => {
  const { lease, pool, deps } = createPool({ total: 1 });
  lease('ada');
  const waiting = lease('ada');
  await pool.close();
  t.is(waiting.refusedWith?.code, 'ERR_SESSION_CLOSED');
  t.is(deps.clock.pendingTimers, 0);
});
