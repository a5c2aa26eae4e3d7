import test from 'ava';
import { assert as check, jsonValue, property } from 'fast-check';
import { prettyJson } from '../../../src/observe/view/pretty-json.ts';

const pretty = (json: string): string => prettyJson(Buffer.from(json));

test('JSON is indented as everywhere', (t) => {
  check(
    property(jsonValue(), (value) => {
      const json = JSON.stringify(value);
      t.is(pretty(json), JSON.stringify(JSON.parse(json), undefined, 2));
    }),
  );
  t.pass();
});

test('what parsing would change stays as it is written', (t) => {
  t.is(
    pretty('{ "n":12345678901234567890 ,"n":1.0 ,"\\u0061": -0 }'),
    '{\n  "n": 12345678901234567890,\n  "n": 1.0,\n  "\\u0061": -0\n}',
  );
});

test('depth costs no stack, and no indentation without end', (t) => {
  const depth = 200_000;
  const text = pretty('['.repeat(depth) + ']'.repeat(depth));
  t.true(text.length < depth * 200);
});
