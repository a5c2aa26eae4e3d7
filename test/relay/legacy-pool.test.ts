import test from 'ava';
import { canonicalCapabilities, MAX_CAPABILITIES_LENGTH } from '../../src/mcp/era-capabilities.ts';
import { LegacyPool, type LegacyPoolLimits } from '../../src/relay/legacy-pool.ts';
import { createFakeDeps, FakeDialer, FakeServerListener } from '../support/fake-peers.ts';
import { serverFrame } from '../support/frames.ts';
import { EXITED, GONE } from './shared/shared-bridge.ts';

const RESULT = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };

function createPool(limits: Partial<LegacyPoolLimits> = {}) {
  const dialer = new FakeDialer();
  const deps = createFakeDeps();
  const clientInfo = { name: 'bridge', version: '0' };
  const pool = new LegacyPool({ dialer, deps, handshakeTimeoutMs: 0, clientInfo, limits });
  const take = (principal: string, declared = {}, affinity: string | undefined = '') => {
    const listener = new FakeServerListener();
    const seat = pool.take({ principal, capabilities: canonicalCapabilities(declared), affinity }, listener);
    return { ...seat, listener };
  };
  const isClosed = (index: number) => (dialer.dialled[index]?.link.closedWith.length ?? 0) > 0;
  return { dialer, deps, pool, take, isClosed };
}

test('one session is opened for all who want the same at once', (t) => {
  const { dialer, take } = createPool();
  const sessions = [1, 2, 3].map(() => take('ada', { roots: {} }).session);
  t.is(new Set(sessions).size, 1);
  t.is(dialer.dialled.length, 1);
  t.not(take('ada', {}).session, sessions[0]);
  t.not(take('bob', { roots: {} }).session, sessions[0]);
  t.not(take('ada', { roots: {} }, 'b').session, sessions[0]);
});

test('in a full pool the session goes that nobody uses, and has not for longest', (t) => {
  const { take, isClosed, pool } = createPool({ total: 3 });
  const [a, b] = [take('a'), take('b')];
  take('c');
  a.link.close(GONE);
  b.link.close(GONE);
  take('a').link.close(GONE);
  take('d');
  t.deepEqual([0, 1, 2].map(isClosed), [false, true, false]);
  t.is(pool.size, 3);
  take('e');
  t.throws(() => take('f'), { code: 'ERR_SESSION_LIMIT' });
});

test('one caller does not take the room of the others', (t) => {
  const { take, isClosed } = createPool({ perPrincipal: 2 });
  take('ada', {}, '1');
  const second = take('ada', {}, '2');
  t.throws(() => take('ada', {}, '3'), { code: 'ERR_SESSION_LIMIT' });
  t.notThrows(() => take('bob'));
  second.link.close(GONE);
  t.notThrows(() => take('ada', {}, '3'));
  t.true(isClosed(1));
});

test('no session is opened for capabilities that are too large to be kept with it', (t) => {
  const { dialer, take } = createPool();
  const declared = (length: number): object => ({ experimental: { x: { text: 'x'.repeat(length) } } });
  take('ada', declared(MAX_CAPABILITIES_LENGTH - 100));
  t.throws(() => take('ada', declared(MAX_CAPABILITIES_LENGTH)), { code: 'ERR_WIRE_MESSAGE', message: / 16384\.$/ });
  t.is(dialer.dialled.length, 1);
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
  t.is(pool.knownResult('ada'), undefined);
  const { link, listener } = dialer.latest;
  listener.fromServer(serverFrame({ id: link.sent[0]?.frame.id, result: RESULT }));
  t.like(pool.knownResult('ada'), { serverInfo: { name: 's' } });
  t.is(pool.knownResult('bob'), undefined);
});

test('the end of the pool ends all sessions and tells who sits there', async (t) => {
  const { dialer, deps, pool, take, isClosed } = createPool();
  const ada = take('ada');
  take('bob').link.close(GONE);
  await pool.close();
  t.true(isClosed(0) && isClosed(1));
  t.is(ada.listener.closedWith.length, 1);
  t.true(dialer.isClosed);
  t.is(deps.clock.pendingTimers, 0);
  t.throws(() => take('ada'), { code: 'ERR_SESSION_CLOSED' });
});
