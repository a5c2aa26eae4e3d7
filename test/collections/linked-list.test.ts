import test from 'ava';
import { LinkedList } from '../../src/collections/linked-list.ts';

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
