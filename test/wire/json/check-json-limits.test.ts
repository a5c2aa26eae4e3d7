/** Messages of megabytes, up to as many values as one may have. */
import test from 'ava';
import { checkJson } from '../../../src/wire/json/check-json.ts';

const MAX_VALUES = 1_000_000;
const LIMITS = { maxDepth: 1000, maxValues: MAX_VALUES };
test('counts values, those within others and those of members as well', (t) => {
  const most = MAX_VALUES - 1;
  for (const [open, unit, close, count] of [
    ['[', '0', ']', most],
    ['{', '"":0', '}', most],
    ['[', '[]', ']', most],
    ['[', '[{}]', ']', Math.floor(most / 2)],
  ] as const) {
    const fill = (length: number) => Buffer.from(`${open}${new Array(length).fill(unit).join(',')}${close}`);
    t.is(checkJson(fill(count), LIMITS), 'valid', unit);
    t.is(checkJson(fill(count + 1), LIMITS), 'too-many', unit);
  }
});

test('megabytes of brackets and of small objects take no more memory than their depth', (t) => {
  t.is(checkJson(Buffer.from('['.repeat(5_000_000)), LIMITS), 'too-deep');
  const before = process.memoryUsage().heapUsed;
  t.is(checkJson(Buffer.from(`[${'{},'.repeat(MAX_VALUES - 2)}{}]`), LIMITS), 'valid');
  // Parsed, it would be more than fifty megabytes; three are those of the text.
  t.true(process.memoryUsage().heapUsed - before < 20_000_000);
});
