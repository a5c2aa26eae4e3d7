import test from 'ava';
import { Elicitations } from '../../../src/eras/modern-to-legacy/questions/url-elicitations.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const WAIT_MS = 1000;

/** Is it known that this one is complete? */
function isKnown(elicitations: Elicitations, clock: FakeClock, id: string): boolean {
  let isDone = false;
  const stop = elicitations.whenCompleted([id], WAIT_MS, () => {
    isDone = true;
  });
  clock.advance(0);
  stop();
  return isDone;
}

test('who waits for several goes on when all are complete, in whatever order, or when the time is up', (t) => {
  const clock = new FakeClock();
  const elicitations = new Elicitations(clock);
  const done: string[] = [];
  elicitations.completed('a');
  elicitations.whenCompleted(['a', 'b', 'c'], WAIT_MS, () => done.push('all'));
  elicitations.whenCompleted(['never'], WAIT_MS, () => done.push('late'));
  elicitations.completed('c');
  t.deepEqual(done, []);
  elicitations.completed('b');
  t.deepEqual(done, ['all']);
  clock.advance(WAIT_MS);
  t.deepEqual(done, ['all', 'late']);
  t.is(clock.pendingTimers, 0);
});

test('so many completions that nobody has waited for are remembered, the latest', (t) => {
  const clock = new FakeClock();
  const elicitations = new Elicitations(clock);
  for (let n = 0; n <= 1000; n += 1) elicitations.completed(`e${n}`);
  t.deepEqual(
    ['e0', 'e1', 'e1000'].map((id) => isKnown(elicitations, clock, id)),
    [false, true, true],
  );
});

test('of long ids, which a server chooses, fewer are remembered', (t) => {
  const clock = new FakeClock();
  const elicitations = new Elicitations(clock);
  const ids = Array.from({ length: 200 }, (_, n) => `${n}`.padEnd(1024, 'x'));
  for (const id of ids) elicitations.completed(id);
  const known = ids.filter((id) => isKnown(elicitations, clock, id));
  t.deepEqual(known, ids.slice(-64));
  elicitations.completed('x'.repeat(16 * 1024 * 1024));
  elicitations.completed('short');
  t.true(isKnown(elicitations, clock, 'short'));
});
