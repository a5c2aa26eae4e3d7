import test from 'ava';
import { AwaitedIds, IdWarnings } from '../../src/upstream/answer-ids.ts';
import { collectLog } from '../process/collected-log.ts';

function create() {
  const { log, entries } = collectLog();
  const warnings = new IdWarnings('node server.js', log);
  const said = (level: number) => entries.filter((entry) => entry.level === level).map(({ msg }) => msg);
  return { warnings, ids: new AwaitedIds(warnings), warned: () => said(40), debugged: () => said(20) };
}

test('an id that is awaited is taken as it is, also beside one of the same value', (t) => {
  const { ids, warned } = create();
  ids.add(5);
  ids.add('5');
  t.is(ids.take('5', undefined), '5');
  t.is(ids.take(5, undefined), 5);
  t.deepEqual(warned(), []);
});

test('an id of another type finds the one with its value, and a server is warned of once', (t) => {
  const { ids, warnings, warned } = create();
  for (const id of [5, 6, '7']) ids.add(id);
  t.is(ids.take('5', undefined), 5);
  t.is(ids.take('6.0', undefined), 6);
  t.is(ids.take(7, undefined), '7');
  const another = new AwaitedIds(warnings);
  another.add(1);
  t.is(another.take('1', undefined), 1);
  t.is(warned().length, 1);
  t.regex(warned()[0] ?? '', /^Server "node server.js" changes the JSON type of ids: .*is a number with a string/);
});

test('an answer that matches nothing is a warning with the type of its id, and after the first no more', (t) => {
  const { ids, warned, debugged } = create();
  ids.add(1);
  t.is(ids.take('call-1', undefined), 'call-1');
  t.is(ids.take(2, undefined), 2);
  t.is(warned().length, 1);
  t.regex(warned()[0] ?? '', /matches no open call.*its id is a string/);
  t.regex(debugged()[0] ?? '', /its id is a number/);
});

test('what the transport knows to be answered needs no second look', (t) => {
  const { ids, warned } = create();
  t.is(ids.take(5, 5), 5);
  t.is(ids.take('5', 5), 5);
  t.is(warned().length, 1);
});

test('keeps a limited number of ids, and then calls none unknown', (t) => {
  const { ids, warned } = create();
  for (let id = 0; id < 20_000; id += 1) ids.add(id);
  t.is(ids.take(0, undefined), 0);
  t.is(ids.take('19999', undefined), 19_999);
  t.false(warned().some((text) => text.includes('matches no open call')));
});

test('keeps no long id', (t) => {
  const { ids, warned } = create();
  const id = 'x'.repeat(1000);
  ids.add(id);
  t.is(ids.take(id, undefined), id);
  t.deepEqual(warned(), []);
});
