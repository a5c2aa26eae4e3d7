import test from 'ava';
import fc from 'fast-check';
import { findMember, findUniqueMember } from '../../../src/wire/json/outline.ts';
import {
  decodeString,
  isDeeperThan,
  isStringToken,
  skipString,
  skipValue,
  skipWhitespace,
} from '../../../src/wire/json/scan-json.ts';
import { anyJson, anyText, createRandom, JsonPrinter, mutate } from '../json-text.ts';

test('skips the four kinds of JSON whitespace and nothing else', (t) => {
  t.is(skipWhitespace(Buffer.from(' \t\r\n{'), 0), 4);
  t.is(skipWhitespace(Buffer.from('\v{'), 0), 0);
  t.is(skipWhitespace(Buffer.from('\u00a0{', 'latin1'), 0), 0);
  t.is(skipWhitespace(Buffer.from('  '), 0), 2);
});

test('finds the end of a string past escaped quotes and runs of backslashes, near and far', (t) => {
  for (const padding of [0, 5, 30, 31, 32, 33, 100]) {
    for (const content of ['', '\\"', '\\\\', '\\\\\\"', '\\\\\\\\', '\\u0022', 'é']) {
      const token = Buffer.from(`"${'x'.repeat(padding)}${content}"`);
      t.is(skipString(Buffer.concat([token, Buffer.from('","')]), 0), token.length, `${padding} ${content}`);
    }
  }
});

test('reports a string that the buffer cuts off', (t) => {
  for (const cut of ['"', '"abc', '"abc\\', '"abc\\"', `"${'x'.repeat(100)}`, `"${'x'.repeat(100)}\\"`]) {
    t.is(skipString(Buffer.from(cut), 0), -1, cut);
  }
});

test('reports a value that the buffer cuts off or that is not there', (t) => {
  for (const cut of ['{', '[1,2', '{"a":[1}', '["]', '', ',', '}']) t.is(skipValue(Buffer.from(cut), 0), -1, cut);
});

test('ends a number at the end of the buffer', (t) => {
  t.is(skipValue(Buffer.from('12'), 0), 2);
});

test('walks a deeply nested value without recursion', (t) => {
  const deep = Buffer.from('['.repeat(1_000_000) + ']'.repeat(1_000_000));
  t.is(skipValue(deep, 0), deep.length);
});

test('skips any value to where JSON.parse says it ends', (t) => {
  fc.assert(
    fc.property(anyJson, fc.integer(), (value, seed) => {
      const text = Buffer.from(new JsonPrinter(seed, { newlines: true }).value(value));
      const followed = Buffer.concat([text, Buffer.from(',"id":7}')]);
      t.is(skipValue(followed, 0), text.length);
    }),
    { numRuns: 1000 },
  );
});

test('finds each member of an object under whatever spelling its key has', (t) => {
  fc.assert(
    fc.property(fc.dictionary(anyText, anyJson, { maxKeys: 5 }), fc.integer(), (object, seed) => {
      const bytes = Buffer.from(new JsonPrinter(seed, { newlines: true }).object(Object.entries(object)));
      const parsed: Record<string, unknown> = JSON.parse(bytes.toString());
      for (const [key, value] of Object.entries(parsed)) {
        const span = findMember(bytes, 0, key);
        t.truthy(span);
        t.deepEqual(findUniqueMember(bytes, 0, key), span);
        t.deepEqual(JSON.parse(bytes.toString('utf8', span?.start, span?.end)), value);
      }
      t.is(findMember(bytes, 0, 'no such key \u0001'), undefined);
    }),
    { numRuns: 400 },
  );
});

test('takes the first of two members when asked quickly, and refuses to choose when asked strictly', (t) => {
  const bytes = Buffer.from('{"a":1,"b":{"a":9},"\\u0061":2}');
  t.deepEqual(findMember(bytes, 0, 'a'), { start: 5, end: 6 });
  t.is(findUniqueMember(bytes, 0, 'a'), 'duplicate');
  t.deepEqual(findUniqueMember(bytes, 0, 'b'), { start: 11, end: 18 });
});

test('finds nothing in what is not an object', (t) => {
  for (const text of ['[]', '', '"a"', '{', '{}', '{"b":1}', '{"a"}', '{"a":']) {
    t.is(findMember(Buffer.from(text), 0, 'a'), undefined, text);
    t.is(findUniqueMember(Buffer.from(text), 0, 'a'), undefined, text);
  }
});

test('compares a string token by what it means', (t) => {
  fc.assert(
    fc.property(anyText, anyText, fc.integer(), (text, other, seed) => {
      const token = Buffer.from(new JsonPrinter(seed, { newlines: false }).string(text));
      t.is(decodeString(token, 0, token.length), text);
      t.true(isStringToken(token, 0, token.length, text));
      t.is(isStringToken(token, 0, token.length, other), text === other);
      t.is(isStringToken(token, 0, token.length, `${text}x`), false);
    }),
    { numRuns: 500 },
  );
});

test('measures depth outside strings only', (t) => {
  t.false(isDeeperThan(Buffer.from('[[[]]]'), 3));
  t.true(isDeeperThan(Buffer.from('[[[]]]'), 2));
  t.false(isDeeperThan(Buffer.from('[[],[],{},"[[[[[\\"[[["]'), 2));
  t.true(isDeeperThan(Buffer.from('{"a":[{"b":1}]}'), 2));
  t.false(isDeeperThan(Buffer.from('{"a":[{"b":1}]}'), 3));
});

test('measures the depth that a walk over the parsed value finds', (t) => {
  fc.assert(
    fc.property(anyJson, fc.integer(), (value, seed) => {
      const bytes = Buffer.from(new JsonPrinter(seed, { newlines: true }).value(value));
      const depth = depthOf(value);
      t.false(isDeeperThan(bytes, depth));
      if (depth > 0) t.true(isDeeperThan(bytes, depth - 1));
    }),
    { numRuns: 500 },
  );
});

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

test('never throws or hangs on bytes that are not JSON', (t) => {
  fc.assert(
    fc.property(anyJson, fc.integer(), (value, seed) => {
      const bytes = mutate(Buffer.from(new JsonPrinter(seed, { newlines: true }).value({ a: value, b: value })), seed);
      const start = Math.floor(createRandom(seed)() * bytes.length);
      for (const end of [skipString(bytes, start), skipValue(bytes, start), skipValue(bytes, 0)]) {
        if (end !== -1 && (end <= 0 || end > bytes.length)) return false;
      }
      findMember(bytes, 0, 'b');
      findUniqueMember(bytes, 0, 'b');
      isDeeperThan(bytes, 2);
      return true;
    }),
    { numRuns: 1000 },
  );
  t.pass();
});
