import test from 'ava';
import { PlaceList } from '../../src/collections/place-list.ts';

test('keeps its members in the order of arrival until they leave', (t) => {
  const list = new PlaceList<string>();
  t.true(list.isEmpty);
  const places = ['a', 'b', 'c', 'd'].map((value) => list.add(value));
  t.deepEqual(list.toArray(), ['a', 'b', 'c', 'd']);
  places[1]?.leave();
  t.deepEqual(list.toArray(), ['a', 'c', 'd']);
  places[0]?.leave();
  places[3]?.leave();
  t.deepEqual(list.toArray(), ['c']);
  for (const value of list) if (value === 'c') list.add('e');
  t.deepEqual(list.toArray(), ['c', 'e']);
  t.false(list.isEmpty);
});

test('who leaves twice takes nobody else along', (t) => {
  const list = new PlaceList<string>();
  const [first] = [list.add('a'), list.add('b')];
  t.true(first.leave());
  t.false(first.leave());
  t.deepEqual(list.toArray(), ['b']);
});

test('finds the latest member that meets a condition', (t) => {
  const list = new PlaceList<number>();
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

test('a place that was left leads to no other, so that garbage keeps nothing', (t) => {
  const list = new PlaceList<object>();
  const [, place] = [list.add({}), list.add({}), list.add({})];
  place.leave();
  t.is(place.value, undefined);
  t.is(place.next, place);
  t.is(place.previous, place);
});

test('knows the only value as long as there is exactly one', (t) => {
  const list = new PlaceList<string>();
  t.is(list.sole, undefined);
  const first = list.add('a');
  t.is(list.sole, 'a');
  const second = list.add('b');
  t.is(list.sole, undefined);
  first.leave();
  t.is(list.sole, 'b');
  second.leave();
  t.is(list.sole, undefined);
});
