import test from 'ava';
import fc from 'fast-check';
import { parseJson } from '../../../src/wire/json/parse-json.ts';
import { anyJson, anyText, JsonPrinter } from '../json-text.ts';

const parsed = (text: string) => parseJson(Buffer.from(text));

test('reads a text as JSON.parse does, however it is spelled', (t) => {
  fc.assert(
    fc.property(anyText, anyJson, fc.integer(), (key, value, seed) => {
      const printer = new JsonPrinter(seed, { newlines: true });
      const text = ` ${printer.object([[key, value]])}\n`;
      t.deepEqual(parsed(text), JSON.parse(text));
      t.deepEqual(parsed(printer.value(value)), JSON.parse(JSON.stringify(value)));
    }),
    { numRuns: 500 },
  );
});

/** Whatever was read before, in each pair the second key is the second key. */
const KEYS = [
  ['\\\\', '\\n'],
  ['\\\\', '\\"'],
  ['\\\\', '\\u0041'],
  ['a\\\\', 'a\\n'],
  ['\\\\u0', '\\u0075ri'],
  ['\\\\u005', '\\u005fmeta'],
] as const;

for (const [index, [before, escaped]] of KEYS.entries()) {
  test(`takes the key "${escaped}" for what it says after "${before}" in the same place`, (t) => {
    const place = `place ${index}`;
    const texts = [before, escaped].map((key) => `{"${place}":0,"${key}":{"inner":[1]}}`);
    const expected = [before, escaped].map((key) => ({ [place]: 0, [JSON.parse(`"${key}"`)]: { inner: [1] } }));
    for (let round = 0; round < 3; round += 1) t.deepEqual(texts.map(parsed), expected);
  });
}

test('a text with an escaped key may hold anything that is JSON', (t) => {
  const text =
    ' { "\\u0061" : [ ] , "b\\"" : { } , "__proto__" : [ { } , null , -0.5e3 , "\\ud800\\\\" , [ [ true ] ] ] } ';
  const value = parsed(text) as Record<string, unknown>;
  t.deepEqual(Object.entries(value), [
    ['a', []],
    ['b"', {}],
    ['__proto__', [{}, null, -500, '\ud800\\', [[true]]]],
  ]);
  t.is(Object.getPrototypeOf(value), Object.prototype);
});

test('of a key that occurs twice the last value counts', (t) => {
  t.deepEqual(parsed('{"\\u0061":1,"a":2}'), { a: 2 });
});

test('reads what is nested as deep as messages may be', (t) => {
  const levels = 1000;
  let value = parsed(`${'{"\\n":'.repeat(levels)}7${'}'.repeat(levels)}`);
  for (let level = 0; level < levels; level += 1) value = (value as Record<string, unknown>)['\n'];
  t.is(value, 7);
});

for (const text of ['', ' ', '{"\\n":1', '{"\\n":1}}', '{"\\n" 1}', '{"\\x":1}', '[1,]', '{"a":NaN}', '\ufeff{}']) {
  test(`throws on ${JSON.stringify(text)}`, (t) => {
    t.throws(() => parsed(text), { instanceOf: SyntaxError });
  });
}
