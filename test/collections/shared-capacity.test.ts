import test from 'ava';
import fc from 'fast-check';
import { SharedCapacity } from '../../src/collections/shared-capacity.ts';

test('whoever is alone can have all of it', (t) => {
  const share = new SharedCapacity(10).share();
  for (let count = 0; count < 10; count += 1) {
    t.false(share.isFull, `${count}`);
    share.take(1);
  }
  t.true(share.isFull);
  share.give(1);
  t.false(share.isFull);
});

test('who takes all that it can leaves the others their parts', (t) => {
  const capacity = new SharedCapacity(100);
  const [greedy, modest, late] = [capacity.share(), capacity.share(), capacity.share()];
  while (!greedy.isFull) greedy.take(1);
  // Half of it is nobody's, and a third of the other half is its own.
  t.is(greedy.taken, 68);
  for (const share of [modest, late]) {
    while (!share.isFull) share.take(1);
    t.is(share.taken, 16);
  }
  greedy.give(60);
  t.false(modest.isFull, 'what is nobody’s is there for all');
});

test('a part that is given back is divided among those who stay', (t) => {
  const capacity = new SharedCapacity(10);
  const [gone, staying] = [capacity.share(), capacity.share()];
  gone.close();
  while (!staying.isFull) staying.take(1);
  t.is(staying.taken, 10);
});

test('without a limit nothing is ever full', (t) => {
  const capacity = new SharedCapacity(Number.POSITIVE_INFINITY);
  const shares = [capacity.share(), capacity.share()];
  for (const share of shares) share.take(1_000_000);
  t.false(shares.some(({ isFull }) => isFull));
});

test('however they take and give, all together stay within the total, and nobody is kept from its own part', (t) => {
  const actions = fc.array(fc.tuple(fc.nat(3), fc.boolean()), { maxLength: 300 });
  fc.assert(
    fc.property(fc.integer({ min: 4, max: 40 }), actions, (total, list) => {
      const capacity = new SharedCapacity(total);
      const shares = Array.from({ length: 4 }, () => capacity.share());
      const own = Math.floor(total / 8);
      for (const [index, isTaking] of list) {
        const share = shares[index];
        if (share === undefined) continue;
        if (share.taken < own && share.isFull) return false;
        if (isTaking && !share.isFull) share.take(1);
        else if (!isTaking && share.taken > 0) share.give(1);
        if (shares.reduce((sum, { taken }) => sum + taken, 0) > total) return false;
      }
      return true;
    }),
  );
  t.pass();
});
