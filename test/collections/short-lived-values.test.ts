import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { CellMap, LinkedList } from '../../src/collections/short-lived-values.ts';

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

test('keeps its members in the order of arrival until they are removed', (t) => {
  const list = new LinkedList<string>();
  t.true(list.isEmpty);
  const nodes = ['a', 'b', 'c', 'd'].map((value) => list.add(value));
  t.deepEqual(list.toArray(), ['a', 'b', 'c', 'd']);
  nodes[1]?.remove();
  t.deepEqual(list.toArray(), ['a', 'c', 'd']);
  nodes[0]?.remove();
  nodes[3]?.remove();
  t.deepEqual(list.toArray(), ['c']);
  for (const value of list) if (value === 'c') list.add('e');
  t.deepEqual(list.toArray(), ['c', 'e']);
  t.false(list.isEmpty);
});

test('a node that is removed twice takes no other along', (t) => {
  const list = new LinkedList<string>();
  const [first] = [list.add('a'), list.add('b')];
  t.true(first.remove());
  t.false(first.remove());
  t.deepEqual(list.toArray(), ['b']);
});

test('finds the latest member that meets a condition', (t) => {
  const list = new LinkedList<number>();
  for (const value of [1, 2, 3, 4, 5]) list.add(value);
  t.is(
    list.findLast((value) => value % 2 === 0),
    4,
  );
  t.is(
    list.findLast((value) => value > 5),
    undefined,
  );
});

test('a node that was removed leads to no other, so that garbage keeps nothing', (t) => {
  const list = new LinkedList<object>();
  const [, node] = [list.add({}), list.add({}), list.add({})];
  node.remove();
  t.is(node.value, undefined);
  t.is(node.next, node);
  t.is(node.previous, node);
});

test('knows the only value as long as there is exactly one', (t) => {
  const list = new LinkedList<string>();
  t.is(list.sole, undefined);
  const first = list.add('a');
  t.is(list.sole, 'a');
  const second = list.add('b');
  t.is(list.sole, undefined);
  first.remove();
  t.is(list.sole, 'b');
  second.remove();
  t.is(list.sole, undefined);
});
