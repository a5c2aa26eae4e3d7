import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { CellMap, LinkedList, ListedValue } from '../../src/collections/short-lived-values.ts';

test('keeps what was put in under its key, in the order of arrival', (t) => {
  const map = new CellMap<string | number, { readonly name: string }>();
  map.set('1', { name: 'first' });
  map.set(1, { name: 'second' });
  map.set('1', { name: 'first again' });
  t.is(map.size, 2);
  t.true(map.has(1));
  t.false(map.has(2));
  t.is(map.get('1')?.name, 'first again');
  t.is(map.get(2), undefined);
  t.deepEqual(
    [...map.values()].map(({ name }) => name),
    ['first again', 'second'],
  );
});

test('lets go of what was taken out, and says whether it was there', (t) => {
  const map = new CellMap<number, object>();
  map.set(1, {});
  map.set(2, {});
  t.true(map.delete(1));
  t.false(map.delete(1));
  t.is(map.get(1), undefined);
  t.is(map.size, 1);
  map.clear();
  t.is(map.size, 0);
  t.deepEqual([...map.values()], []);
});

test('goes on to the others when some are taken out in the middle of a walk', (t) => {
  const map = new CellMap<number, { readonly key: number }>();
  for (let key = 1; key <= 4; key += 1) map.set(key, { key });
  const seen: number[] = [];
  for (const { key } of map.values()) {
    seen.push(key);
    map.delete(key);
    map.delete(3);
  }
  t.deepEqual(seen, [1, 2, 4]);
});

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options?: { readonly type: 'minor' }) => void;
/** Some go while some stay, so that tables are replaced with values in them. */
const STAYING = 16;
const ITEMS = 1000;
const CHANGES = 5000;

test('a map that has grown old lets collections of young garbage have what was taken out', (t) => {
  const map = new CellMap<number, number[]>();
  for (let key = 0; key < STAYING; key += 1) map.set(key, []);
  collect();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let key = STAYING; key < CHANGES; key += 1) {
    map.set(key, new Array<number>(ITEMS).fill(key));
    map.delete(key - STAYING);
    if (key % 100 === 0) collect({ type: 'minor' });
  }
  const heldBytes = process.memoryUsage().heapUsed - before;
  t.true(heldBytes < 4 * 1024 * 1024, `${heldBytes} bytes are held`);
});

const valuesOf = <Value>(list: LinkedList<ListedValue<Value>>): Value[] => list.toArray().map(({ value }) => value);

/** Adds a value and returns its member. */
function add<Value>(list: LinkedList<ListedValue<Value>>, value: Value): ListedValue<Value> {
  const member = new ListedValue(value);
  list.add(member);
  return member;
}

test('keeps its members in the order of arrival until they are taken out', (t) => {
  const list = new LinkedList<ListedValue<string>>();
  t.true(list.isEmpty);
  const members = ['a', 'b', 'c', 'd'].map((value) => add(list, value));
  t.deepEqual(valuesOf(list), ['a', 'b', 'c', 'd']);
  members[1]?.unlink();
  t.deepEqual(valuesOf(list), ['a', 'c', 'd']);
  members[0]?.unlink();
  members[3]?.unlink();
  t.deepEqual(valuesOf(list), ['c']);
  for (const { value } of list) if (value === 'c') add(list, 'e');
  t.deepEqual(valuesOf(list), ['c', 'e']);
  t.false(list.isEmpty);
});

test('the member that is visited may be taken out', (t) => {
  const list = new LinkedList<ListedValue<string>>();
  for (const value of ['a', 'b', 'c']) add(list, value);
  const visited: string[] = [];
  for (const member of list) {
    visited.push(member.value);
    member.unlink();
  }
  t.deepEqual(visited, ['a', 'b', 'c']);
  t.true(list.isEmpty);
});

test('a member that is taken out twice takes no other along', (t) => {
  const list = new LinkedList<ListedValue<string>>();
  const [first] = [add(list, 'a'), add(list, 'b')];
  t.true(first.unlink());
  t.false(first.unlink());
  t.deepEqual(valuesOf(list), ['b']);
});

test('a member that was taken out can be added again, one that was not cannot', (t) => {
  const list = new LinkedList<ListedValue<string>>();
  const [first] = [add(list, 'a'), add(list, 'b')];
  t.true(first.isListed);
  t.throws(() => list.add(first), { message: 'the member is in a list already' });
  first.unlink();
  t.false(first.isListed);
  list.add(first);
  t.deepEqual(valuesOf(list), ['b', 'a']);
});

test('finds the latest member that meets a condition', (t) => {
  const list = new LinkedList<ListedValue<number>>();
  for (const value of [1, 2, 3, 4, 5]) add(list, value);
  t.is(list.findLast(({ value }) => value % 2 === 0)?.value, 4);
  t.is(
    list.findLast(({ value }) => value > 5),
    undefined,
  );
});

test('a member that was taken out leads to no other, so that garbage keeps nothing', (t) => {
  const list = new LinkedList<ListedValue<string>>();
  const [, member] = [add(list, 'a'), add(list, 'b'), add(list, 'c')];
  member.unlink();
  t.is(member.listNext, member);
  t.is(member.listPrevious, member);
});

test('knows the only member as long as there is exactly one', (t) => {
  const list = new LinkedList<ListedValue<string>>();
  t.is(list.sole, undefined);
  const first = add(list, 'a');
  t.is(list.sole, first);
  const second = add(list, 'b');
  t.is(list.sole, undefined);
  first.unlink();
  t.is(list.sole, second);
  second.unlink();
  t.is(list.sole, undefined);
});
