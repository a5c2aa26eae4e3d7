import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import type { SkippedEnds } from '../../../src/wire/byte-collector.ts';
import { SseDecoder } from '../../../src/wire/sse-decode.ts';
import { encodeEvent } from '../../../src/wire/sse-encode.ts';
import { anyMessage } from '../../wire/json-text.ts';
import { anySeed, damaged, pieces } from '../havoc.ts';
import { fuzzTarget, insist } from '../target.ts';

interface Decoded {
  readonly events: { readonly event: string; readonly id: string | undefined; readonly data: string }[];
  /** Length, head and tail. */
  readonly oversized: [number, string, string][];
  lastEventId: string | undefined;
}

const LARGE = 1 << 20;

function decode(chunks: readonly Buffer[], limit: number): Decoded {
  const decoded: Decoded = { events: [], oversized: [], lastEventId: undefined };
  const sink = {
    event: ({ event, id, data }: { event: string; id: string | undefined; data: Buffer }) =>
      decoded.events.push({ event, id, data: data.toString('latin1') }),
    retry: () => {},
    oversized: (byteLength: number, { head, tail }: SkippedEnds) =>
      decoded.oversized.push([byteLength, head.toString('latin1'), tail.toString('latin1')]),
  };
  const decoder = new SseDecoder(sink, limit);
  for (const chunk of chunks) decoder.push(chunk);
  decoder.end();
  decoded.lastEventId = decoder.lastEventId;
  return decoded;
}

const encoded = fc
  .tuple(anyMessage({ newlines: false }), fc.option(fc.constantFrom('1', 'é', 's-7'), { nil: undefined }))
  .map(([{ text }, id]) => encodeEvent({ data: Buffer.from(text), ...(id !== undefined && { id }) }).toString());
const handWritten = fc.constantFrom(
  ...['data: {"a":\ndata: 1}\n\n', 'data\r\rdata: 2\r\n\r\n', ': comment\n\n', 'id: 7\n\n', 'event: x\ndata:é\n\n'],
  ...['retry: 5\n\n', 'id\ndata: 1\n\n', 'data: 1', '\ufeffdata: 1\n\n', `data: ${'x'.repeat(2000)}\n\n`],
);
const stream = damaged(fc.array(fc.oneof(encoded, handWritten), { maxLength: 8 }).map((parts) => parts.join('')));

export const sse = fuzzTarget({
  name: 'sse',
  promise: 'an event stream is read as eventsource-parser reads it, however it is cut',
  runs: 400,
  input: fc.tuple(stream, anySeed, fc.nat(3000)),
  holds: ([bytes, seed, limit]) => {
    const whole = decode([Buffer.from(bytes)], limit);
    const cut = decode(pieces(bytes, seed), limit);
    insist(isDeepStrictEqual(cut, whole), () => `${JSON.stringify(cut)}\nwhole: ${JSON.stringify(whole)}`);
    if (isUtf8(bytes)) compareWithParser(bytes.toString());
  },
});

function compareWithParser(text: string): void {
  // The comment at the end keeps a last CR from being the parser's unfinished CRLF.
  const complete = `${text.replace(/^\ufeff/, '')}\n:\n`;
  const expected: Decoded['events'] = [];
  const parser = createParser({
    onEvent: ({ event = 'message', id, data }) => expected.push({ event, id, data: latin1(data) }),
  });
  parser.feed(complete);
  const { events } = decode([Buffer.from(complete)], LARGE);
  const handedOut = expected.filter(({ data }) => data !== '');
  insist(isDeepStrictEqual(events, handedOut), () => `${JSON.stringify(events)}\nnot ${JSON.stringify(handedOut)}`);
}

const latin1 = (text: string): string => Buffer.from(text).toString('latin1');
