import test from 'ava';
import fc from 'fast-check';
import { LineSplitter, type OversizedLine } from '../../src/wire/ndjson.ts';
import { chunkSizes, chunksOf, createRandom } from './json-text.ts';

interface Split {
  readonly lines: string[];
  readonly oversized: OversizedLine[];
}

function split(chunks: readonly Buffer[], maxLineBytes = 1 << 20): Split {
  const lines: string[] = [];
  const oversized: OversizedLine[] = [];
  const splitter = new LineSplitter(
    { line: (bytes) => lines.push(bytes.toString()), oversized: (line) => oversized.push(line) },
    maxLineBytes,
  );
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return { lines, oversized };
}

for (const size of chunkSizes) {
  const name = size === 0 ? 'whole' : `in chunks of ${size}`;

  test(`splits lines, drops empty ones and takes an unterminated last one, ${name}`, (t) => {
    const text = '{"a":"é€😀"}\n\n  \t\n{"b":2}\r\n\r\n {"c":3} \n{"d":4}';
    t.deepEqual(split(chunksOf(Buffer.from(text), size)).lines, ['{"a":"é€😀"}', '{"b":2}', '{"c":3}', '{"d":4}']);
  });

  test(`strips a byte order mark at the start only, ${name}`, (t) => {
    const text = '\ufeff{"a":1}\n\ufeff{"b":2}\n';
    t.deepEqual(split(chunksOf(Buffer.from(text), size)).lines, ['{"a":1}', '\ufeff{"b":2}']);
  });

  test(`turns a CR inside a line into a space, ${name}`, (t) => {
    t.deepEqual(split(chunksOf(Buffer.from('{"a":1,\r"b":2}\r\n{"c":\r3}\n'), size)).lines, [
      '{"a":1, "b":2}',
      '{"c": 3}',
    ]);
  });

  test(`takes a line of exactly the limit and drops a longer one, ${name}`, (t) => {
    const { lines, oversized } = split(chunksOf(Buffer.from('12345\n123456\n1234567890\nabc\n'), size), 5);
    t.deepEqual(lines, ['12345', 'abc']);
    t.deepEqual(
      oversized.map(({ head, tail, byteLength }) => [head.toString(), tail.toString(), byteLength]),
      [
        ['123456', '123456', 6],
        ['1234567890', '1234567890', 10],
      ],
    );
  });

  test(`keeps both ends of an over-long line, also one without a newline, ${name}`, (t) => {
    const long = Array.from({ length: 2500 }, (_, index) => `${index},`).join('');
    const text = `\ufeff${long}\nok\n${long}`;
    const { lines, oversized } = split(chunksOf(Buffer.from(text), size), 2000);
    t.deepEqual(lines, ['ok']);
    t.is(oversized.length, 2);
    for (const [index, { head, tail, byteLength }] of oversized.entries()) {
      const bom = index === 0 ? 3 : 0;
      t.is(byteLength, long.length + bom);
      t.is(head.toString(), long.slice(0, 1024 - bom));
      t.is(tail.toString(), long.slice(-1024));
    }
  });
}

test('hands out a line within one chunk without copying it', (t) => {
  const chunk = Buffer.from('{"a":1}\n{"b":2}\n');
  const lines: Buffer[] = [];
  new LineSplitter({ line: (bytes) => lines.push(bytes), oversized: () => t.fail() }, 100).push(chunk);
  t.deepEqual(
    lines.map((line) => [line.buffer === chunk.buffer, line.byteOffset - chunk.byteOffset]),
    [
      [true, 0],
      [true, 8],
    ],
  );
});

test('emits nothing at the end of an empty or finished stream', (t) => {
  t.deepEqual(split([]).lines, []);
  t.deepEqual(split([Buffer.from('a\n')]).lines, ['a']);
  t.deepEqual(split([Buffer.from('a\n  ')]).lines, ['a']);
});

test('splits as a naive split does, whatever the chunks', (t) => {
  const anyLine = fc.string({ unit: fc.constantFrom('a', '"', '{', ' ', '\t', '\r', 'é', '😀'), maxLength: 30 });
  fc.assert(
    fc.property(
      fc.array(anyLine, { maxLength: 10 }),
      fc.integer({ min: 5, max: 60 }),
      fc.integer(),
      (rows, limit, seed) => {
        const bytes = Buffer.from(rows.join('\n'));
        const random = createRandom(seed);
        const chunks: Buffer[] = [];
        for (let at = 0; at < bytes.length; ) {
          const next = at + 1 + Math.floor(random() * 20);
          chunks.push(Buffer.from(bytes.subarray(at, next)));
          at = next;
        }
        const actual = split(chunks, limit);
        const short = rows.filter((row) => Buffer.byteLength(row) <= limit).map(naiveTrim);
        const long = rows.filter((row) => Buffer.byteLength(row) > limit);
        t.deepEqual(
          actual.lines,
          short.filter((row) => row !== ''),
        );
        t.deepEqual(
          actual.oversized.map((line) => line.head.toString()),
          long,
        );
      },
    ),
    { numRuns: 500 },
  );
});

function naiveTrim(row: string): string {
  return row.replace(/^[ \t\r]+|[ \t\r]+$/g, '').replaceAll('\r', ' ');
}

test('joins a line of many chunks in linear time and proportionate memory', (t) => {
  const part = Buffer.alloc(1, 'x');
  const lines: Buffer[] = [];
  const splitter = new LineSplitter({ line: (bytes) => lines.push(bytes), oversized: () => t.fail() }, 1 << 20);
  for (let count = 0; count < 200_000; count++) splitter.push(part);
  for (let count = 0; count < 8; count++) splitter.push(Buffer.alloc(70_000, 'y'));
  splitter.push(Buffer.from('z\n'));
  t.is(lines[0]?.toString(), `${'x'.repeat(200_000)}${'y'.repeat(560_000)}z`);
});

test('a chunk is taken in parts of so many lines, wherever it is cut', (t) => {
  const text = 'one\r\n\n\ntwo\nthree \n\nfour\nfive';
  for (const maxLines of [1, 2, 3]) {
    for (let cut = 1; cut < text.length; cut += 1) {
      const lines: string[] = [];
      const splitter = new LineSplitter({ line: (bytes) => lines.push(`${bytes}`), oversized: () => t.fail() }, 100);
      for (const part of [text.slice(0, cut), text.slice(cut)]) {
        let rest = Buffer.from(part);
        while (rest.length > 0) {
          const before = lines.length;
          rest = rest.subarray(splitter.push(rest, maxLines));
          t.true(lines.length - before <= maxLines);
        }
      }
      splitter.end();
      t.deepEqual(lines, ['one', 'two', 'three', 'four', 'five']);
    }
  }
});
