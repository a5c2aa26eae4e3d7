import test from 'ava';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { KEPT_END_BYTES, type SkippedEnds } from '../../src/wire/byte-collector.ts';
import { type DecodedEvent, SseDecoder } from '../../src/wire/sse-decode.ts';
import { encodeComment, encodeEvent, encodePriming, encodeRetry } from '../../src/wire/sse-encode.ts';
import { chunkSizes, chunksOf, mutate } from './json-text.ts';

interface Decoded {
  readonly events: { event: string; id: string | undefined; data: string }[];
  readonly retries: number[];
  readonly oversized: number[];
  lastEventId: string | undefined;
}

function decode(chunks: readonly Buffer[], maxEventBytes = 1 << 20): Decoded {
  const decoded: Decoded = { events: [], retries: [], oversized: [], lastEventId: undefined };
  const decoder = new SseDecoder(
    {
      event: ({ event, id, data }) => decoded.events.push({ event, id, data: data.toString() }),
      retry: (ms) => decoded.retries.push(ms),
      oversized: (byteLength) => decoded.oversized.push(byteLength),
    },
    maxEventBytes,
  );
  for (const chunk of chunks) decoder.push(chunk);
  decoder.end();
  decoded.lastEventId = decoder.lastEventId;
  return decoded;
}

function message(data: string, id?: string) {
  return { event: 'message', id, data };
}

for (const size of chunkSizes) {
  const name = size === 0 ? 'whole' : `in chunks of ${size}`;
  const decodeText = (text: string, maxEventBytes?: number) => decode(chunksOf(Buffer.from(text), size), maxEventBytes);

  test(`ends lines at LF, CR and CRLF alike, ${name}`, (t) => {
    for (const newline of ['\n', '\r', '\r\n']) {
      const text = ['event: a', 'data: é€😀', '', 'data: {"b":', 'data: 2}', '', ''].join(newline);
      t.deepEqual(decodeText(text).events, [{ event: 'a', id: undefined, data: 'é€😀' }, message('{"b":\n2}')]);
    }
    t.deepEqual(decodeText('data: 1\r\n\rdata: 2\n\r\ndata: 3\r\r').events, [message('1'), message('2'), message('3')]);
  });

  test(`skips a byte order mark at the start only, ${name}`, (t) => {
    t.deepEqual(decodeText('\ufeffdata: 1\n\n\ufeffdata: 2\n\n').events, [message('1')]);
  });

  test(`what begins like a byte order mark but is none is part of the first field, ${name}`, (t) => {
    for (const start of ['\ufec0', '\ufdff', '\ufeff'.repeat(2), 'x', 'xyz']) {
      t.deepEqual(decodeText(`${start}data: 1\n\ndata: 2\n\n`).events, [message('2')], start);
    }
    t.deepEqual(decodeText('\ufeff\ndata: 1\n\n').events, [message('1')]);
  });

  test(`skips comments and unknown fields, ${name}`, (t) => {
    t.deepEqual(decodeText(':\n: keep-alive\n\nfoo: bar\ndata: 1\n:data: 2\nDATA: 3\n data: 4\n\n').events, [
      message('1'),
    ]);
  });

  test(`strips one space after the colon and takes a field without a colon as empty, ${name}`, (t) => {
    t.deepEqual(decodeText('data:  1\n\ndata:2:3\n\ndata\ndata\n\ndata: 4\nevent\n\n').events, [
      message(' 1'),
      message('2:3'),
      message('\n'),
      message('4'),
    ]);
  });

  test(`keeps the id of an event without data and does not hand the event out, ${name}`, (t) => {
    const decoded = decodeText('id: 1\ndata:\n\nid: 2\n\nevent: x\n\n');
    t.deepEqual(decoded.events, []);
    t.is(decoded.lastEventId, '2');
  });

  test(`gives an event its own id and remembers the last one, ${name}`, (t) => {
    const decoded = decodeText('id: é\ndata: 1\n\ndata: 2\n\nid: a\0b\ndata: 3\n\n');
    t.deepEqual(decoded.events, [message('1', 'é'), message('2'), message('3')]);
    t.is(decoded.lastEventId, 'é');
    t.is(decodeText('id: 1\ndata: 1\n\nid\ndata: 2\n\n').lastEventId, undefined);
  });

  test(`discards an event that the end of the stream cuts off, with its id, ${name}`, (t) => {
    for (const cut of ['id: 2\ndata: 2', 'id: 2\ndata: 2\n', 'id: 2\ndata: 2\r\n']) {
      const decoded = decodeText(`id: 1\ndata: 1\n\n${cut}`);
      t.deepEqual(decoded.events, [message('1', '1')]);
      t.is(decoded.lastEventId, '1');
    }
  });

  test(`takes a retry time of digits only, ${name}`, (t) => {
    t.deepEqual(decodeText('retry: 100\nretry: -1\nretry: 1.5\nretry: 7 \nretry\nretry:20\n\n').retries, [100, 20]);
    t.deepEqual(decodeText(`retry: ${'9'.repeat(400)}\n`).retries, [Number.MAX_SAFE_INTEGER]);
  });

  test(`drops an event over the limit, keeps its id and goes on with the next, ${name}`, (t) => {
    const long = 'x'.repeat(3000);
    const streams = [
      `data: ${long}\nid: 7\n\n`,
      `id: 7\ndata: ${long}\n\n`,
      `data: ${'x'.repeat(1000)}\ndata: ${'x'.repeat(1000)}\ndata: ${'x'.repeat(988)}\nid: 7\n\n`,
      `id: 7\n${long}: ${'x'.repeat(4)}\n\n`,
    ];
    for (const stream of streams) {
      const decoded = decodeText(`${stream}data: ok\n\n`, 2500);
      t.deepEqual(decoded.events, [message('ok')]);
      t.deepEqual(decoded.oversized, [3011]);
      t.is(decoded.lastEventId, '7');
    }
  });

  test(`keeps the ends of data that is over the limit, without the rest of its event, ${name}`, (t) => {
    const begin = '{"id":1,';
    const end = ',"jsonrpc":"2.0"}';
    const filling = 'x'.repeat(3000);
    const streams = [
      `id: 7\ndata: ${begin}${filling}${end}\nevent: message\n\n`,
      `data:${begin}\n: comment ${filling}\ndata: ${filling}${end}\n\n`,
      `data: ${begin}\n${`data:${'x'.repeat(90)}\n`.repeat(40)}data: ${end}\nid: 7\n\n`,
      `data: ${begin}${end}\n${filling}: y\n\n`,
    ];
    for (const stream of streams) {
      const ends: SkippedEnds[] = [];
      const oversized = (_: number, { head, tail }: SkippedEnds) => void ends.push({ head, tail });
      const decoder = new SseDecoder({ event: () => t.fail(), retry: () => t.fail(), oversized }, 2000);
      for (const chunk of chunksOf(Buffer.from(stream), size)) decoder.push(chunk);
      t.is(ends.length, 1);
      t.true(ends[0]?.head.toString().startsWith(begin), stream.slice(0, 20));
      t.true(ends[0]?.tail.toString().endsWith(end), stream.slice(0, 20));
      t.true((ends[0]?.head.length ?? 0) <= KEPT_END_BYTES && (ends[0]?.tail.length ?? 0) <= KEPT_END_BYTES);
    }
  });

  test(`takes an event of exactly the limit, however many comments stand in it, ${name}`, (t) => {
    const text = `data: ${'x'.repeat(1994)}\n${`: ${'c'.repeat(50)}\n`.repeat(60)}\n`;
    t.is(decodeText(text, 2000).events.length, 1);
    t.deepEqual(decodeText(text, 1999).oversized, [2000]);
  });

  test(`skips a comment that is longer than an event may be, ${name}`, (t) => {
    const comment = `:${'c'.repeat(5000)}\n`;
    const decoded = decodeText(
      `${comment}\ndata: 1\n${comment}data: 2\n\ndata: ${'x'.repeat(1500)}\n${comment}\n`,
      2000,
    );
    t.deepEqual(decoded.events, [message('1\n2'), message('x'.repeat(1500))]);
    t.deepEqual(decoded.oversized, []);
  });

  test(`reads back what the encoder writes, ${name}`, (t) => {
    const stream = Buffer.concat([
      encodePriming('s-0', 500),
      encodeComment('keep-alive'),
      encodeRetry(1500),
      encodeEvent({ event: 'endpoint', data: Buffer.from('/message?s=1') }),
      encodeEvent({ event: 'message', id: 's-1', data: Buffer.from('{"text":"é: \\n"}') }),
      encodeEvent({ data: Buffer.from(' leading space') }),
    ]);
    t.deepEqual(decode(chunksOf(stream, size)), {
      events: [
        { event: 'endpoint', id: undefined, data: '/message?s=1' },
        message('{"text":"é: \\n"}', 's-1'),
        message(' leading space'),
      ],
      retries: [500, 1500],
      oversized: [],
      lastEventId: 's-1',
    });
  });
}

test('takes CR and LF for one line end even if an empty chunk lies between', (t) => {
  const chunks = ['data: 1\r', '', '\ndata: 2\n\n'].map((text) => Buffer.from(text));
  t.deepEqual(decode(chunks).events, [message('1\n2')]);
});

test('hands out a single data line within one chunk without copying it', (t) => {
  const chunk = Buffer.from('event: message\ndata: {"a":1}\n\n');
  const events: DecodedEvent[] = [];
  const sink = { event: (event: DecodedEvent) => events.push(event), retry: () => t.fail(), oversized: () => t.fail() };
  new SseDecoder(sink, 100).push(chunk);
  t.is(events[0]?.data.buffer, chunk.buffer);
  t.is(events[0]?.data.byteOffset, chunk.byteOffset + 21);
});

const anyLine = fc.oneof(
  fc.constantFrom(
    '',
    '',
    'data: 1',
    'data:',
    'data',
    'data: é€😀',
    'id: 7',
    'id:',
    'id',
    'id: \0',
    'event: x',
    'event',
  ),
  fc.constantFrom(':', ': comment', 'retry: 5', 'retry: x', 'retry:', ' data: 1', 'datax: 1', 'data :1', 'x', 'data::'),
  fc.string({ unit: fc.constantFrom('d', 'a', 't', ':', ' ', 'é'), maxLength: 12 }).map((value) => `data:${value}`),
);

test('decodes any stream as eventsource-parser does, at every chunk size', (t) => {
  const anyRow = fc.tuple(anyLine, fc.constantFrom('\n', '\n', '\r', '\r\n', '\n\n'));
  fc.assert(
    fc.property(fc.array(anyRow, { maxLength: 20 }), (rows) => {
      // The comment at the end keeps a last CR from being the parser's unfinished CRLF.
      const text = `${rows.map(([line, newline]) => line + newline).join('')}:\n`;
      const expected: Decoded['events'] = [];
      const retries: number[] = [];
      const parser = createParser({
        onEvent: ({ event = 'message', id, data }) => expected.push({ event, id, data }),
        onRetry: (ms) => retries.push(ms),
      });
      parser.feed(text);
      const handedOut = expected.filter(({ data }) => data !== '');
      for (const size of [...chunkSizes, 7]) {
        const decoded = decode(chunksOf(Buffer.from(text), size));
        t.deepEqual(decoded.events, handedOut);
        t.deepEqual(decoded.retries, retries);
      }
    }),
    { numRuns: 300 },
  );
});

test('decodes damaged streams the same at every chunk size and never throws', (t) => {
  fc.assert(
    fc.property(
      fc.array(anyLine, { maxLength: 20 }),
      fc.integer(),
      fc.integer({ min: 0, max: 40 }),
      (lines, seed, limit) => {
        const bytes = mutate(Buffer.from(lines.join('\n')), seed);
        const whole = decode(chunksOf(bytes, 0), limit);
        for (const size of [1, 2, 3, 7]) t.deepEqual(decode(chunksOf(bytes, size), limit), whole);
      },
    ),
    { numRuns: 300 },
  );
});

test('gathers many small data lines in proportionate memory and linear time', (t) => {
  const events: Buffer[] = [];
  const sink = {
    event: ({ data }: DecodedEvent) => events.push(data),
    retry: () => t.fail(),
    oversized: () => t.fail(),
  };
  const decoder = new SseDecoder(sink, 1 << 20);
  for (let count = 0; count < 100_000; count++) decoder.push(Buffer.from('data\n'));
  decoder.push(Buffer.from('data: x\n\n'));
  t.is(events[0]?.length, 100_001);
});
