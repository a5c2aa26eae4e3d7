/**
 * Looks for messages that take longer than their length explains: a few bytes, of whatever peers can write, repeated, in
 * each place of a message and through each pass over it.
 */
import fc from 'fast-check';
import { requestDigest } from '../../../src/eras/modern-to-legacy/questions/request-state.ts';
import { isAmbiguous } from '../../../src/mcp/classify/ambiguity.ts';
import { rewriteProgress, rewriteRequest } from '../../../src/mcp/classify/correlators.ts';
import { checkParamHeaders } from '../../../src/mcp/classify/param-headers.ts';
import { readRequestMetadata, stripMetadata } from '../../../src/mcp/classify/request-metadata.ts';
import { claimsModern } from '../../../src/mcp/classify/route-era.ts';
import { readToolPage } from '../../../src/mcp/classify/tool-list.ts';
import { downgradeResult } from '../../../src/mcp/translate/downgrade-results.ts';
import { toLegacyResult, toModernResult } from '../../../src/mcp/translate/results.ts';
import { readFields } from '../../../src/mcp/vocabulary/payload.ts';
import { Frame } from '../../../src/wire/frame.ts';
import { LineSplitter } from '../../../src/wire/ndjson.ts';
import { readMessage, separateMessages } from '../../../src/wire/read-message.ts';
import { scanEnvelope } from '../../../src/wire/scan-envelope.ts';
import { SseDecoder } from '../../../src/wire/sse-decode.ts';
import { createRandom } from '../../wire/json-text.ts';
import { anySeed, TOKENS } from '../havoc.ts';
import { fuzzTarget, insist } from '../target.ts';

/** Large enough that what is quadratic takes seconds. */
const SIZE = 256 * 1024;

const unit = fc
  .array(
    fc.oneof(
      fc.constantFrom(...TOKENS.map((token) => token.toString())),
      fc.constantFrom(
        '"\\u005fmeta":{},',
        '"_META":1,',
        '"a":1,',
        '{"name":"a","inputSchema":{}},',
        '"x-mcp-header":"A",',
      ),
      fc.constantFrom('{"type":"audio"},', '"properties":{', '"arguments":{', '"p0":"x",', '\\u', '0', '1e5,', '😀'),
      fc.string({ maxLength: 4 }),
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((parts) => parts.join(''))
  .filter((text) => text !== '');

const META =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}';
/** Messages with a hole. */
const PLACES: readonly (readonly [before: string, after: string])[] = [
  ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{', '}}}'],
  [`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",${META}},`, '"z":1}}'],
  [`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",${META},`, '"z":1}}}'],
  ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"', '"}}'],
  ['{"jsonrpc":"2.0","id":1,"result":{"tools":[', ']}}'],
  ['{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"\\u0061":1,', '"z":1}}]}}'],
  ['{"jsonrpc":"2.0","id":1,"result":{"content":[', ']}}'],
  ['{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":[', ']}}'],
  ['{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":', '}}'],
  ['{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,', '"progress":1}}'],
  ['{"result":{', '},"id":1,"jsonrpc":"2.0"}'],
  ['{', '"jsonrpc":"2.0","id":1,"method":"x"}'],
  ['', ''],
];

const HEADERS = Array.from({ length: 10 }, (_, index) => ({
  name: `P${index}`,
  path: [`p${index}`],
  type: 'string' as const,
}));

type Pass = (frame: Frame, bytes: Buffer, random: () => number) => unknown;

const PASSES: ReadonlyMap<string, Pass> = new Map<string, Pass>([
  ['read', (_, bytes) => readMessage(Buffer.from(bytes), { maxDepth: 1000, maxBatch: 100, maxValues: 1_000_000 })],
  ['scan', (_, bytes) => scanEnvelope(bytes)],
  ['claims', (frame) => claimsModern(frame)],
  ['metadata', (frame) => readRequestMetadata(frame)],
  ['strip', (frame) => stripMetadata(frame)],
  ['ambiguity', (frame) => isAmbiguous(frame)],
  ['param headers', (frame) => checkParamHeaders(HEADERS, frame, {})],
  ['request', (frame) => frame.kind === 'request' && rewriteRequest(frame, 7)],
  ['progress', (frame) => rewriteProgress(frame, Buffer.from('7'))],
  ['separate', (frame) => separateMessages(frame)],
  ['fields', (frame) => readFields(frame, ['code', 'message', 'data'])],
  ['digest', (frame) => requestDigest(frame)],
  ['modern list', (frame) => toModernResult(frame, { method: 'tools/list', serverInfo: undefined })],
  ['modern result', (frame) => toModernResult(frame, { method: 'tools/call', serverInfo: undefined })],
  ['legacy result', (frame) => toLegacyResult(frame, 'tools/call')],
  ['older list', (frame) => downgradeResult(frame, { method: 'tools/list', clientRevision: '2025-06-18' })],
  ['older result', (frame) => downgradeResult(frame, { method: 'tools/call', clientRevision: '2024-11-05' })],
  ['tool list', (frame) => readToolPage(frame)],
  ['lines', (_, bytes, random) => split(bytes, random)],
  ['events', (_, bytes, random) => decode(bytes, random)],
]);

function split(bytes: Buffer, random: () => number): void {
  const splitter = new LineSplitter({ line: () => {}, oversized: () => {} }, SIZE / 2);
  for (const chunk of chunks(bytes, random)) splitter.push(chunk);
  splitter.end();
}

function decode(bytes: Buffer, random: () => number): void {
  const decoder = new SseDecoder({ event: () => {}, retry: () => {}, oversized: () => {} }, SIZE / 2);
  for (const chunk of chunks(bytes, random)) decoder.push(chunk);
  decoder.end();
}

function* chunks(bytes: Buffer, random: () => number): Iterable<Buffer> {
  // Each chunk costs a little, however short it is.
  const length = 64 + Math.floor(random() ** 3 * 64 * 1024);
  for (let at = 0; at < bytes.length; at += length) yield Buffer.from(bytes.subarray(at, at + length));
}

/** Times that a pass may take as long as a loop that looks at each byte once. What is parsed comes on top. */
const MOST_LOOPS = 100;
/** And times that it may take as long as JSON.parse for the most values that are made of one message. */
const MOST_PARSES = 12;
/** So often what seems too slow is tried again: on a busy machine the least time is the message's own. */
const TRIES = 8;

const DEAR_VALUES = `[${Array.from({ length: 25_000 }, (_, index) => `{"k${index}":1}`).join()}]`;

function timeOf(run: () => unknown): number {
  const start = process.hrtime.bigint();
  run();
  return Number(process.hrtime.bigint() - start);
}

function leastOf(times: number, run: () => unknown): number {
  return Math.min(...Array.from({ length: times }, () => timeOf(run)));
}

function lookAtEach(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 1) sum += bytes[at] as number; // at < length
  return sum;
}

interface Slowest {
  readonly loops: number;
  readonly unit: string;
}

/** Of each pass. */
const slowest = new Map<string, Slowest>();

export const time = {
  ...fuzzTarget({
    name: 'time',
    promise: 'no pass over a message takes longer than its length and the bound of what is parsed explain',
    runs: 12,
    input: fc.tuple(unit, fc.nat(PLACES.length - 1), anySeed),
    holds: ([text, place, seed]) => {
      const [before, after] = PLACES[place] ?? ['', ''];
      const bytes = Buffer.from(`${before}${text.repeat(Math.ceil(SIZE / Buffer.byteLength(text)))}${after}`);
      const envelope = scanEnvelope(bytes) ?? {
        ...{ kind: 'request' as const, id: 1, idStart: 16, idEnd: 17, method: 'tools/call' },
        payloadStart: bytes.indexOf('{', 1),
      };
      const loop = leastOf(5, () => lookAtEach(bytes));
      const parse = leastOf(2, () => JSON.parse(DEAR_VALUES));
      const most = MOST_LOOPS * loop + MOST_PARSES * parse;
      for (const [name, pass] of PASSES) {
        // A frame remembers where its members stand, so that each has one of its own.
        const run = (): unknown => pass(new Frame(bytes, envelope), bytes, createRandom(seed));
        let nanos = timeOf(run);
        for (let tries = 1; nanos > most && tries < TRIES; tries += 1) nanos = Math.min(nanos, timeOf(run));
        if (nanos > (slowest.get(name)?.loops ?? 0) * loop) nanos = Math.min(nanos, leastOf(2, run));
        const loops = nanos / loop;
        if (loops > (slowest.get(name)?.loops ?? 0)) slowest.set(name, { loops, unit: text });
        insist(nanos <= most, () => `${name} took ${loops.toFixed()} looks at each byte; place ${place}, ${text}`);
      }
    },
  }),
  /** The slowest that was met of each pass, in looks at each byte. */
  report: () =>
    [...slowest]
      .map(([name, { loops, unit: text }]) => `  ${name.padEnd(14)} ${loops.toFixed(1)}  ${JSON.stringify(text)}`)
      .join('\n'),
};
