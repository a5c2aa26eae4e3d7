import test from 'ava';
import { canonicalJson } from '../../../src/wire/json/canonical-json.ts';

const MAX = 1000;
const canonical = (text: string, maxValues = MAX) => canonicalJson(Buffer.from(text), 0, maxValues);

for (const [what, one, other] of [
  ['the order of keys', '{"a":1,"b":{"x":[1],"y":2}}', '{"b":{"y":2,"x":[1]},"a":1}'],
  ['whitespace', ' {"a" : [ 1 , { } , [ ] ] } '.trim(), '{"a":[1,{},[]]}'],
  ['the spelling of strings and keys', '{"\\u0061":"\\u00e9\\/\\n"}', '{"a":"é/\\u000a"}'],
] as const) {
  test(`${what} makes no difference`, (t) => {
    t.is(canonical(one), canonical(other));
    t.deepEqual(JSON.parse(canonical(one) ?? ''), JSON.parse(one));
  });
}

for (const [what, one, other] of [
  ['a value', '{"a":1}', '{"a":2}'],
  ['the order of items', '[1,2]', '[2,1]'],
  ['a type', '{"a":"1"}', '{"a":1}'],
  ['null instead of nothing', '{"a":null}', '{}'],
  ['the nesting', '[[1],2]', '[[1,2]]'],
  ['a member more', '{"a":{}}', '{"a":{"b":1}}'],
  ['digits beyond what parsers keep', '[9223372036854775807]', '[9223372036854775806]'],
  ['a second member of the same name', '{"a":1}', '{"a":1,"a":1}'],
  ['the order of members with one name', '{"a":1,"a":2}', '{"a":2,"a":1}'],
  ['the case of a key', '{"a":1}', '{"A":1}'],
  ['a text that looks like more members', '{"a":"1,\\"b\\":2"}', '{"a":"1","b":"2"}'],
] as const) {
  test(`${what} makes a difference`, (t) => {
    t.truthy(canonical(one));
    t.not(canonical(one), canonical(other));
  });
}

for (const text of [
  '',
  '{',
  '{"a"',
  '{"a":',
  '{"a":1',
  '{"a":1,',
  '{"a":1,}',
  '{1:2}',
  '[',
  '[1',
  '[1,',
  '"a',
  '"\\q"',
  '{"a" 1}',
  '[1 2]',
]) {
  test(`what is no JSON has no canonical form: ${text}`, (t) => {
    t.is(canonical(text), undefined);
  });
}

test('only the value at the offset counts', (t) => {
  t.is(canonicalJson(Buffer.from('[{"b":1,"a":2},3]'), 1, MAX), '{"a":2,"b":1}');
});

test('too many values, or too deep ones, have no canonical form', (t) => {
  t.is(canonical('[1,2,3]', 4), '[1,2,3]');
  t.is(canonical('[1,2,3]', 3), undefined);
  t.truthy(canonical(`${'['.repeat(200)}${']'.repeat(200)}`));
  t.is(canonical(`${'['.repeat(300)}${']'.repeat(300)}`), undefined);
});

test('nested values take time by their length only', (t) => {
  const text = `${'{"a":['.repeat(90)}"${'x'.repeat(4_000_000)}"${']}'.repeat(90)}`;
  const began = performance.now();
  t.truthy(canonical(text));
  t.true(performance.now() - began < 5000);
});
