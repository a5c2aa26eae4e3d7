import test from 'ava';
import { LinkedList, ListMember } from '../../../src/collections/short-lived-values.ts';
import {
  COMMIT_STORED_AFTER_MS,
  CommitTimer,
  type SessionLane,
} from '../../../src/downstream/streamable-session/post-lane.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('lanes of a stored session are looked at when their calls have been silent for long enough, with one timer', (t) => {
  const clock = new FakeClock();
  const lanes = new LinkedList<SessionLane>();
  const ticks: number[] = [];
  const lane = Object.assign(new ListMember(), { tick: (nowMs: number) => ticks.push(nowMs) });
  lanes.add(lane as unknown as SessionLane); // only its tick is called
  const timer = new CommitTimer(clock, lanes);
  timer.start();
  timer.start();
  t.is(clock.pendingTimers, 1);
  clock.advance(COMMIT_STORED_AFTER_MS);
  t.deepEqual(ticks, [COMMIT_STORED_AFTER_MS]);
  t.is(clock.pendingTimers, 0, 'nothing waits anymore');
  timer.start();
  timer.stop();
  t.is(clock.pendingTimers, 0);
});
