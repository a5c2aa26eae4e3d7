import test from 'ava';
import { filterMatches, isMqttId, isServerName } from '../../src/mqtt/names.ts';

test('ids are one level of a topic, of at most 128 bytes', (t) => {
  for (const id of ['a', 'sensor 1', 'ü', 'x'.repeat(128), '$x']) t.true(isMqttId(id), id);
  for (const id of ['', 'a/b', 'a+', '#', 'a\n', 'a\u0000', '\u0085', 'x'.repeat(129), 'ü'.repeat(65), '\u2028']) {
    t.false(isMqttId(id), JSON.stringify(id));
  }
});

test('server names are levels of a topic, none of them empty', (t) => {
  for (const name of ['ESP32 Demo Server', 'site/kind/name', 'a']) t.true(isServerName(name), name);
  for (const name of ['', '/a', 'a/', 'a//b', 'a/+', 'a/#', 'a\u0007', 'x'.repeat(1025)])
    t.false(isServerName(name), name);
});

test('filters match topics as MQTT says', (t) => {
  for (const [filter, topic] of [
    ['a/b', 'a/b'],
    ['a/+', 'a/b'],
    ['a/#', 'a'],
    ['a/#', 'a/b/c'],
    ['#', 'a/b'],
    ['+/b', 'a/b'],
  ] as const)
    t.true(filterMatches(filter, topic), `${filter} ${topic}`);
  for (const [filter, topic] of [
    ['a', 'a/b'],
    ['a/+', 'a'],
    ['a/+', 'a/b/c'],
    ['b/#', 'a'],
    ['#/a', 'a/a'],
  ] as const)
    t.false(filterMatches(filter, topic), `${filter} ${topic}`);
});
