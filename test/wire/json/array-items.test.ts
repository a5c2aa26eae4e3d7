import test from 'ava';
import fc from 'fast-check';
import { itemSpans, MAX_ITEMS } from '../../../src/wire/json/object-editor.ts';
import { anyJson, JsonPrinter } from '../json-text.ts';

test('finds the items of any array', (t) => {
  fc.assert(
    fc.property(fc.array(anyJson, { maxLength: 5 }), fc.integer(), (items, seed) => {
      const bytes = Buffer.from(`x${new JsonPrinter(seed, { newlines: true }).value(items)}]`);
      const spans = itemSpans(bytes, 1) ?? [];
      t.deepEqual(
        spans.map(({ start, end }) => JSON.parse(bytes.toString('utf8', start, end))),
        JSON.parse(JSON.stringify(items)),
      );
    }),
    { numRuns: 500 },
  );
});

test('finds nothing in what is no array or does not end', (t) => {
  for (const text of ['{}', '1', '', '[', '[1', '[1,', '[1 2]', '["a]', '[,]']) {
    t.is(itemSpans(Buffer.from(text), 0), undefined, text);
  }
  t.is(itemSpans(Buffer.from('[]'), -1), undefined);
});

test('takes no list of more items than are looked at one by one', (t) => {
  const list = (count: number) => Buffer.from(`[${'{},'.repeat(count - 1)}{}]`);
  t.is(itemSpans(list(MAX_ITEMS), 0)?.length, MAX_ITEMS);
  t.is(itemSpans(list(MAX_ITEMS + 1), 0), undefined);
});
