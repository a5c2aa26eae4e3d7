import fc from 'fast-check';
import { KEPT_END_BYTES } from '../../../src/wire/byte-collector.ts';
import { LineSplitter } from '../../../src/wire/ndjson.ts';
import { anyMessage } from '../../wire/json-text.ts';
import { anySeed, damaged, pieces } from '../havoc.ts';
import { fuzzTarget, insist } from '../target.ts';

const LF = 0x0a;
const CR = 0x0d;
const BOM = '\ufeff';

/** What came out, in order: a line, or the ends and the length of one that was too long. */
type Line = { readonly line: Buffer } | { readonly head: Buffer; readonly tail: Buffer; readonly byteLength: number };

function split(chunks: readonly Buffer[], limit: number): Line[] {
  const lines: Line[] = [];
  const sink = {
    line: (line: Buffer) => lines.push({ line: Buffer.from(line) }),
    oversized: ({ head, tail, byteLength }: { head: Buffer; tail: Buffer; byteLength: number }) =>
      lines.push({ head: Buffer.from(head), tail: Buffer.from(tail), byteLength }),
  };
  const splitter = new LineSplitter(sink, limit);
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return lines;
}

/** The same in the plainest way. */
function splitPlainly(bytes: Buffer, limit: number): Line[] {
  const lines: Line[] = [];
  for (let start = 0, isFirst = true; start <= bytes.length; isFirst = false) {
    const found = bytes.indexOf(LF, start);
    const end = found === -1 ? bytes.length : found;
    const row = bytes.subarray(start, end);
    const content = isFirst && row.subarray(0, 3).equals(Buffer.from(BOM)) ? row.subarray(3) : row;
    if (row.length > limit) {
      const head = row.subarray(0, KEPT_END_BYTES).subarray(row.length - content.length);
      lines.push({ head, tail: row.subarray(-KEPT_END_BYTES), byteLength: row.length });
    } else {
      const line = trimmed(content);
      if (line.length > 0) lines.push({ line });
    }
    start = end + 1;
  }
  return lines;
}

function trimmed(row: Buffer): Buffer {
  const text = row.toString('latin1').replace(/^[ \t\r]+|[ \t\r]+$/g, '');
  return Buffer.from(text, 'latin1').map((byte) => (byte === CR ? 0x20 : byte)) as Buffer;
}

const row = fc.oneof(
  anyMessage({ newlines: true }).map(({ text }) => text),
  fc.constantFrom('', ' ', '\r', BOM, `${BOM}{}`, 'Server listening…', '{"level":30}'),
  fc.nat(5000).map((length) => `{"jsonrpc":"2.0","id":1,"result":"${'x'.repeat(length)}"}`),
);
const stream = damaged(fc.array(row, { maxLength: 12 }).map((rows) => rows.join('\n')));

export const framing = fuzzTarget({
  name: 'framing',
  promise: 'a stream of bytes falls into the same lines however it is cut, and within its limit',
  runs: 400,
  input: fc.tuple(stream, anySeed, fc.oneof(fc.nat(100), fc.nat(4000))),
  holds: ([bytes, seed, limit]) => {
    const expected = splitPlainly(bytes, limit);
    const actual = split(pieces(bytes, seed), limit);
    const shown = (lines: readonly Line[]) => JSON.stringify(lines.map(printed));
    insist(shown(actual) === shown(expected), () => `got ${shown(actual)}\ninstead of ${shown(expected)}`);
    for (const line of actual) if ('line' in line) insist(!line.line.includes(CR), () => 'a line holds a CR');
  },
});

function printed(line: Line): unknown {
  if ('line' in line) return line.line.toString('latin1');
  return [line.head.toString('latin1'), line.tail.toString('latin1'), line.byteLength];
}
