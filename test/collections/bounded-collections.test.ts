import test from 'ava';
import { ByteQueue, RecentNames } from '../../src/collections/bounded-collections.ts';

const createQueue = (maxItems = 3, maxBytes = 10) =>
  new ByteQueue<string>({ maxItems, maxBytes }, (item) => item.length);

test('items leave in the order in which they came, and their bytes with them', (t) => {
  const queue = createQueue();
  queue.add('one');
  queue.add('three');
  t.deepEqual([queue.length, queue.bytes], [2, 8]);
  t.is(queue.shift(), 'one');
  queue.add('x');
  t.is(queue.shift(), 'three');
  t.is(queue.shift(), 'x');
  t.is(queue.shift(), undefined);
  t.deepEqual([queue.length, queue.bytes], [0, 0]);
});

test('it is full when either limit is reached, and exceeded when one is passed', (t) => {
  const byNumber = createQueue(2, 100);
  byNumber.add('a');
  t.false(byNumber.isFull);
  byNumber.add('b');
  t.true(byNumber.isFull);
  t.false(byNumber.isExceeded);
  byNumber.add('c');
  t.true(byNumber.isExceeded);
  const byBytes = createQueue(100, 4);
  byBytes.add('four');
  t.true(byBytes.isFull);
  t.false(byBytes.isExceeded);
  byBytes.add('5');
  t.true(byBytes.isExceeded);
});

test('it tells what would still fit', (t) => {
  const queue = createQueue(2, 5);
  t.true(queue.fits('five!'));
  t.false(queue.fits('sixsix'));
  queue.add('one');
  t.true(queue.fits('ab'));
  t.false(queue.fits('abc'));
  queue.add('');
  t.false(queue.fits(''), 'the number counts, too');
});

test('what meets a condition is removed, one or all, and the rest stays in order', (t) => {
  const queue = createQueue(10, 100);
  for (const item of ['a1', 'b1', 'a2', 'b2', 'a3']) queue.add(item);
  t.is(queue.shift(), 'a1');
  t.is(
    queue.removeFirst((item) => item.startsWith('b')),
    'b1',
  );
  t.is(
    queue.removeFirst((item) => item.startsWith('c')),
    undefined,
  );
  t.deepEqual(
    queue.removeAll((item) => item.startsWith('a')),
    ['a2', 'a3'],
  );
  t.deepEqual(queue.toArray(), ['b2']);
  t.is(queue.bytes, 2);
  t.true(queue.some((item) => item === 'b2'));
  t.false(queue.some((item) => item === 'b1'));
});

test('everything is taken at once', (t) => {
  const queue = createQueue();
  queue.add('a');
  queue.add('b');
  t.is(queue.shift(), 'a');
  t.deepEqual(queue.takeAll(), ['b']);
  t.deepEqual([queue.length, queue.bytes, queue.isFull], [0, 0, false]);
});

test('it behaves as a plain array does, whatever is done in whatever order', (t) => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    return seed % below;
  };
  const queue = createQueue(50, 500);
  const array: string[] = [];
  for (let step = 0; step < 20_000; step += 1) {
    const item = 'x'.repeat(random(9)) + step;
    const action = random(8);
    if (action < 4) {
      queue.add(item);
      array.push(item);
    } else if (action < 7) {
      t.is(queue.shift(), array.shift());
    } else {
      const digit = String(random(10));
      const index = array.findIndex((other) => other.endsWith(digit));
      const [removed] = index < 0 ? [] : array.splice(index, 1);
      t.is(
        queue.removeFirst((other) => other.endsWith(digit)),
        removed,
      );
    }
  }
  // More shifts in a row than the empty entries that are held.
  for (let step = 0; step < 3000; step += 1) queue.add(String(step));
  array.push(...Array.from({ length: 3000 }, (_, step) => String(step)));
  for (let step = 0; step < 2500; step += 1) t.is(queue.shift(), array.shift());
  t.deepEqual(queue.toArray(), array);
  t.is(queue.bytes, array.join('').length);
});

const namesIn = <Value>(names: RecentNames<Value>): readonly string[] => Array.from(names, ([name]) => name);

test('so many names are known, the latest', (t) => {
  const names = new RecentNames<number>({ count: 2, length: 100 });
  for (const [index, name] of ['a', 'b', 'a', 'c'].entries()) names.set(name, index);
  t.deepEqual(Array.from(names), [['a', 2] as const, ['c', 3] as const]);
  t.is(names.get('b'), undefined);
  t.false(names.has('b'));
  t.is(names.get('a'), 2);
});

test('they have so many characters together, with those of their values', (t) => {
  const names = new RecentNames<true>({ count: 100, length: 10 });
  names.set('aaaa', true);
  names.set('bbbb', true);
  names.set('c', true, 1);
  t.is(names.size, 3);
  names.set('d', true);
  t.deepEqual(namesIn(names), ['bbbb', 'c', 'd']);
});

test('a name that is too long by itself is not kept, and drives out no other', (t) => {
  const names = new RecentNames<true>({ count: 100, length: 10 });
  names.set('aaaaa', true);
  names.set('x'.repeat(11), true);
  names.set('y', true, 10);
  names.set('bbbbb', true);
  t.deepEqual(namesIn(names), ['aaaaa', 'bbbbb']);
});

test('what is forgotten, one by one or all of it, frees capacity', (t) => {
  const names = new RecentNames<true>({ count: 100, length: 10 });
  names.set('aaaaaaaaaa', true);
  names.delete('aaaaaaaaaa');
  names.delete('aaaaaaaaaa');
  names.set('bbbbbbbbbb', true);
  t.deepEqual(namesIn(names), ['bbbbbbbbbb']);
  names.clear();
  names.set('cccccccccc', true);
  t.deepEqual(namesIn(names), ['cccccccccc']);
});
