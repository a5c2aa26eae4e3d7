import test from 'ava';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import fc from 'fast-check';
import { EventGuard, KEPT_TAIL_BYTES } from '../../../src/upstream/remote/event-guard.ts';

function split(bytes: Buffer, size: number): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
  return chunks;
}

function guard(text: string, { size = 1000, max = 1000 } = {}): string {
  const guarding = new EventGuard(max);
  return Buffer.concat(split(Buffer.from(text), size).map((chunk) => guarding.push(chunk))).toString();
}

function parse(text: string): { events: EventSourceMessage[]; retries: number[] } {
  const events: EventSourceMessage[] = [];
  const retries: number[] = [];
  const parser = createParser({ onEvent: (event) => events.push(event), onRetry: (ms) => retries.push(ms) });
  parser.feed(text.replace(/^\ufeff/, ''));
  return { events, retries };
}

const line = fc.oneof(
  fc.constantFrom(
    '',
    '',
    'data',
    'data:',
    'id',
    'retry: 10',
    'retry: x',
    'retry',
    'event',
    ': comment',
    'unknown: x',
    '\ufeffdata: x',
  ),
  fc
    .tuple(
      fc.constantFrom('data: ', 'data:', 'id: ', 'event: ', ':', 'dat: ', 'ids: '),
      fc.string({ unit: 'grapheme' }),
    )
    .map(([field, value]) => field + value.replaceAll(/[\r\n\0]/g, '')),
);
const stream = fc
  .array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 30 })
  .map((lines) => `${lines.map(([text, end]) => text + end).join('')}\n\n`);

test('means the same as what went in, however it is cut', (t) => {
  fc.assert(
    fc.property(stream, fc.constantFrom(1, 2, 3, 7, 10_000), (text, size) => {
      const guarded = guard(text, { size, max: 1_000_000 });
      t.deepEqual(parse(guarded), parse(text));
      t.notRegex(guarded, /\r|^:/m);
    }),
  );
});

test('keeps head and tail of an event that is too long, and what follows whole', (t) => {
  const long = Array.from({ length: 50_000 }, (_, index) => (index % 10).toString()).join('');
  for (const size of [1, 1000, 100_000]) {
    const { events } = parse(guard(`id: 1\ndata: ${long}\n\ndata: next\n\n`, { size, max: 2000 }));
    const [first, second] = events;
    t.is(first?.id, '1');
    t.true((first?.data.length ?? 0) > 2000 && (first?.data.length ?? 0) < 5000);
    t.is(first?.data.slice(0, 2000), long.slice(0, 2000));
    t.is(first?.data.slice(-KEPT_TAIL_BYTES), long.slice(-KEPT_TAIL_BYTES));
    t.is(second?.data, 'next');
  }
});

test('bounds an event of endless short lines, and lines without end', (t) => {
  const guarding = new EventGuard(1000);
  let passed = 0;
  for (let count = 0; count < 10_000; count += 1) passed += guarding.push(Buffer.from('data: 0123456789\n')).length;
  t.true(passed < 20_000, `${passed}`);
  const endless = new EventGuard(1000);
  passed = 0;
  for (const start of ['data: ', 'id: ', 'event: ', 'retry: ', ': ', 'x']) {
    passed += endless.push(Buffer.from(start)).length;
    for (let count = 0; count < 1000; count += 1) passed += endless.push(Buffer.alloc(1000, 0x30)).length;
    passed += endless.push(Buffer.from('\n\n')).length;
  }
  t.true(passed < 10_000, `${passed}`);
});

test('a pause longer than a timer can take becomes the longest one', (t) => {
  t.deepEqual(parse(guard('retry: 99999999999999\n\nretry: 500\n\n')).retries, [2 ** 31 - 1, 500]);
});
