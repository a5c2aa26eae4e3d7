import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { CellMap } from '../../src/collections/cell-map.ts';

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
