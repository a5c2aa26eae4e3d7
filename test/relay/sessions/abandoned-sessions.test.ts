import test from 'ava';
import { pino } from 'pino';
import { EvictionLog, findAbandoned, type SessionUse } from '../../../src/relay/sessions/abandoned-sessions.ts';
import { FakeClock } from '../../support/fake-clock.ts';

interface Named extends SessionUse {
  readonly name: string;
}

function session(name: string, use: Partial<SessionUse> = {}): Named {
  return { name, principal: 'alice', hasReturned: true, lastUsedMs: 0, isUnattended: true, ...use };
}

function find(sessions: readonly Named[], principal = 'alice', among: 'own' | 'all' = 'all'): string | undefined {
  return findAbandoned(sessions, { principal, among })?.name;
}

test('the session that was used longest ago is evicted', (t) => {
  t.is(find([session('b', { lastUsedMs: 2 }), session('a', { lastUsedMs: 1 }), session('c', { lastUsedMs: 3 })]), 'a');
});

test('a session whose client never returned goes before all others, the oldest first', (t) => {
  const sessions = [
    session('old', { lastUsedMs: 1 }),
    session('new', { lastUsedMs: 9, hasReturned: false }),
    session('less new', { lastUsedMs: 8, hasReturned: false }),
  ];
  t.is(find(sessions), 'less new');
});

test('a session that is in use, or is that of the bridge’s own pipe, is not evicted', (t) => {
  t.is(find([session('used', { isUnattended: false }), session('pipe', { principal: undefined })]), undefined);
  t.is(find([session('used', { isUnattended: false, hasReturned: false })]), undefined);
  t.is(find([session('pipe', { principal: undefined, hasReturned: false })]), undefined);
  t.is(find([]), undefined);
});

test('a caller at its own limit ends only what is its own', (t) => {
  const sessions = [
    session('other', { principal: 'bob', hasReturned: false }),
    session('own', { lastUsedMs: 5 }),
    session('newer', { lastUsedMs: 6 }),
  ];
  t.is(find(sessions, 'alice', 'own'), 'own');
  t.is(find(sessions.slice(0, 1), 'alice', 'own'), undefined);
});

test('a caller who holds most sessions loses one first, however old those of others are', (t) => {
  const sessions = [
    session('bob', { principal: 'bob', lastUsedMs: 0 }),
    session('alice 1', { lastUsedMs: 7 }),
    session('alice 2', { lastUsedMs: 6 }),
  ];
  t.is(find(sessions, 'alice'), 'alice 2', 'its own flood');
  t.is(find(sessions, 'carol'), 'alice 2', 'somebody else’s');
});

test('nobody ends the useful sessions of who holds no more than it does', (t) => {
  const flood = [1, 2, 3].map((number) => session(`alice ${number}`, { isUnattended: false }));
  const bobs = [session('bob 1', { principal: 'bob' }), session('bob 2', { principal: 'bob' })];
  t.is(find([...flood, ...bobs], 'alice'), undefined);
  t.is(find([...flood, ...bobs], 'carol'), 'bob 1', 'who has none gets a place');
  t.is(find([...flood.slice(1), ...bobs], 'alice'), undefined, 'nor of who holds as many');
  const unused = session('bob 3', { principal: 'bob', hasReturned: false });
  t.is(find([...flood, ...bobs, unused], 'alice'), 'bob 3', 'one that was never used is no loss');
});

test('the log tells how many were evicted, in one line a minute', (t) => {
  const lines: string[] = [];
  const clock = new FakeClock();
  const evictions = new EvictionLog({ log: pino({}, { write: (line) => void lines.push(line) }), clock });
  const evict = (count: number) => Array.from({ length: count }, () => evictions.evicted());
  evict(300);
  clock.advance(1000);
  evict(1);
  clock.advance(30_000);
  evict(50);
  clock.advance(30_000);
  evict(1);
  evictions.close();
  evictions.close();
  t.deepEqual(
    lines.map((line) => (JSON.parse(line) as { evicted: number }).evicted),
    [300, 51, 1],
  );
  t.regex(lines[0] ?? '', /300 abandoned sessions were ended to free slots/);
  t.regex(lines[2] ?? '', /1 abandoned session was ended to free slots/);
  t.is(clock.pendingTimers, 0);
});
