import test from 'ava';
import { RecentNames } from '../../src/collections/recent-names.ts';

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
