import test from 'ava';
import { ListMember } from '../../../src/collections/short-lived-values.ts';
import { LiveStreams } from '../../../src/downstream/http/response-writer.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function createLive() {
  const clock = new FakeClock();
  const live = new LiveStreams(clock);
  const ticks: [string, number][] = [];
  const add = (name: string, onTick = (_member: ListMember): void => {}): ListMember => {
    const tick = (nowMs: number): void => {
      ticks.push([name, nowMs]);
      onTick(member);
    };
    const member = Object.assign(new ListMember(), { unsentBytes: name.length, tick });
    live.add(member);
    return member;
  };
  return { clock, live, ticks, add };
}

test('looks at every open response once a second, with one timer for all', (t) => {
  const { clock, live, ticks, add } = createLive();
  t.is(clock.pendingTimers, 0, 'none before there is something to look at');
  add('a');
  add('b');
  t.is(clock.pendingTimers, 1);
  clock.advance(2500);
  t.deepEqual(ticks, [
    ['a', 1000],
    ['b', 1000],
    ['a', 2000],
    ['b', 2000],
  ]);
  t.is(live.nowMs, 2500);
});

test('looks no longer at what has left, be it during a look', (t) => {
  const { clock, ticks, add } = createLive();
  add('leaving', (member) => member.unlink());
  add('other').unlink();
  clock.advance(3000);
  t.deepEqual(ticks, [['leaving', 1000]]);
});

test('stops its timer when it is closed', (t) => {
  const { clock, live, ticks, add } = createLive();
  add('a');
  live.close();
  live.close();
  t.is(clock.pendingTimers, 0);
  clock.advance(5000);
  t.deepEqual(ticks, []);
});

test('adds up what clients have not taken', (t) => {
  const { live, add } = createLive();
  t.is(live.unsentBytes, 0);
  const member = add('abc');
  add('de');
  t.is(live.unsentBytes, 5);
  member.unlink();
  t.is(live.unsentBytes, 2);
  live.close();
});
