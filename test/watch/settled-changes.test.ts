import test from 'ava';
import { MAX_UNSETTLED_MS, SETTLED_MS, SettledChanges } from '../../src/watch/settled-changes.ts';
import { FakeClock } from '../support/fake-clock.ts';

function gather() {
  const clock = new FakeClock();
  const settled: string[][] = [];
  const changes = new SettledChanges(clock, (paths) => settled.push([...paths]));
  return { clock, settled, changes };
}

test('many changes in a row settle once, when nothing has changed for a moment', (t) => {
  const { clock, settled, changes } = gather();
  for (const path of ['a', 'b', 'a']) {
    changes.add(path);
    clock.advance(SETTLED_MS - 1);
    t.deepEqual(settled, []);
  }
  clock.advance(1);
  t.deepEqual(settled, [['a', 'b']]);
  changes.add('c');
  clock.advance(SETTLED_MS);
  t.deepEqual(settled, [['a', 'b'], ['c']]);
});

test('a file that is written all the time does not keep the changes from settling', (t) => {
  const { clock, settled, changes } = gather();
  for (let ms = 0; ms <= MAX_UNSETTLED_MS; ms += SETTLED_MS / 2) {
    changes.add('busy');
    clock.advance(SETTLED_MS / 2);
  }
  t.is(settled.length, 1);
});

test('nothing settles after the end, and no timer is left', (t) => {
  const { clock, settled, changes } = gather();
  changes.add('a');
  changes.close();
  clock.advance(MAX_UNSETTLED_MS);
  t.deepEqual(settled, []);
  t.is(clock.pendingTimers, 0);
});
