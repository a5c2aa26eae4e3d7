import test from 'ava';
import { LiveStreams } from '../../../src/downstream/http/response-writer.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function createLive() {
  const clock = new FakeClock();
  const live = new LiveStreams(clock);
  const ticks: [string, number][] = [];
  const member = (name: string, onTick = (): void => {}) => ({
    unsentBytes: name.length,
    tick(nowMs: number): void {
      ticks.push([name, nowMs]);
      onTick();
    },
  });
  return { clock, live, ticks, member };
}

test('looks at every open response once a second, with one timer for all', (t) => {
  const { clock, live, ticks, member } = createLive();
  t.is(clock.pendingTimers, 0, 'none before there is something to look at');
  live.add(member('a'));
  live.add(member('b'));
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
  const { clock, live, ticks, member } = createLive();
  const node = live.add(member('leaving', () => node.remove()));
  live.add(member('other')).remove();
  clock.advance(3000);
  t.deepEqual(ticks, [['leaving', 1000]]);
});

test('stops its timer when it is closed', (t) => {
  const { clock, live, ticks, member } = createLive();
  live.add(member('a'));
  live.close();
  live.close();
  t.is(clock.pendingTimers, 0);
  clock.advance(5000);
  t.deepEqual(ticks, []);
});

test('adds up what clients have not taken', (t) => {
  const { live, member } = createLive();
  t.is(live.unsentBytes, 0);
  const node = live.add(member('abc'));
  live.add(member('de'));
  t.is(live.unsentBytes, 5);
  node.remove();
  t.is(live.unsentBytes, 2);
  live.close();
});
