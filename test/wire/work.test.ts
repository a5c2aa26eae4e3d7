/**
 * How much work a message makes, whatever a peer puts into it: no time is measured, but what is done is counted. What
 * this means in milliseconds is in the benchmark.
 */
import test from 'ava';
import { checkParamHeaders } from '../../src/mcp/classify/param-headers.ts';
import { modernToolEdits } from '../../src/mcp/translate/modern-tools.ts';
import { readFields } from '../../src/mcp/vocabulary/payload.ts';
import { Frame } from '../../src/wire/frame.ts';
import { checkJson } from '../../src/wire/json/check-json.ts';
import { ObjectEditor } from '../../src/wire/json/object-editor.ts';
import { findUniqueMember, outlineOf } from '../../src/wire/json/outline.ts';
import { countValues, isDeeperThan } from '../../src/wire/json/scan-json.ts';
import { LineSplitter } from '../../src/wire/ndjson.ts';
import { separateMessages } from '../../src/wire/read-message.ts';
import { scanEnvelope } from '../../src/wire/scan-envelope.ts';

/** The same bytes, and how often one of them was looked at, or some of them were decoded. */
function watched(bytes: Buffer) {
  const work = { reads: 0, decoded: 0 };
  const proxy: Buffer = new Proxy(bytes, {
    get(target, key) {
      if (typeof key === 'string' && /^-?\d+$/.test(key)) {
        work.reads += 1;
        return target[Number(key)];
      }
      if (key === 'toString') {
        return (...given: Parameters<Buffer['toString']>) => {
          work.decoded += 1;
          return target.toString(...given);
        };
      }
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { bytes: proxy, work };
}

const SIZE = 30_000;
const repeat = (unit: string): string => unit.repeat(Math.floor(SIZE / unit.length));
const list = (unit: string): string => repeat(`${unit},`).slice(0, -1);

/** What peers can fill an object with. */
const MEMBERS = {
  'short keys': list('"":1'),
  'keys with an escape': list('"\\u005f":1'),
  'keys that begin like one that is looked for': list('"\\u005fmeta_":1'),
  'keys that are looked for': list('"\\u005fmeta":{}'),
  'nested arrays': `"a":${'['.repeat(SIZE / 2)}${']'.repeat(SIZE / 2)}`,
  'nested objects': `"a":${'{"a":'.repeat(900)}0${'}'.repeat(900)}`,
  'escaped quotes': `"a":"${repeat('\\"')}"`,
  'closing braces': `"a":"${repeat('}')}"`,
  numbers: `"a":[${list('0')}]`,
  digits: `"a":${repeat('1')}`,
  space: `"a":${repeat(' ')}1`,
};

const inEnvelope = (members: string): Buffer => Buffer.from(`{"jsonrpc":"2.0",${members},"id":1,"method":"x"}`);
const inParams = (members: string): Buffer =>
  Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":"a",${members}}}`);
const payloadStart = (bytes: Buffer): number => bytes.indexOf('"params":') + '"params":'.length;

function frameOf(bytes: Buffer, seen: Buffer): Frame {
  const envelope = scanEnvelope(bytes);
  if (envelope === undefined) throw new Error('no message');
  return new Frame(seen, envelope);
}

/** Each goes over its bytes once. A pass looks at most bytes twice: as the end of one thing and the begin of another. */
const PASSES: readonly (readonly [name: string, make: (members: string) => Buffer, run: (bytes: Buffer) => unknown])[] =
  [
    ['the scan of an envelope', inEnvelope, scanEnvelope],
    ['the check of JSON', inEnvelope, (bytes) => checkJson(bytes, { maxDepth: 100_000, maxValues: SIZE })],
    ['an outline', inParams, outlineOf],
    ['the search for a member', inParams, (bytes) => findUniqueMember(bytes, payloadStart(bytes), '_metb')],
    [
      'an editor',
      inParams,
      (bytes) => ObjectEditor.read(bytes, payloadStart(bytes), ['_metb', 'inputResponses', 'requestState']),
    ],
    ['the count of values', inParams, (bytes) => countValues(bytes, SIZE)],
    ['the measure of depth', inParams, (bytes) => isDeeperThan(bytes, 500)],
  ];

/** A look at each byte as part of a token and of what is around it, and three keys compared with three names. */
const READS_A_BYTE = 8;

for (const [name, make, run] of PASSES) {
  test(`${name} goes over any message once, and decodes no key`, (t) => {
    for (const [shape, members] of Object.entries(MEMBERS)) {
      const { bytes, work } = watched(make(members));
      run(bytes);
      t.true(work.reads <= READS_A_BYTE * bytes.length, `${shape}: ${work.reads / bytes.length} looks at a byte`);
      // Method and id are wanted.
      t.true(work.decoded <= 2, `${shape}: ${work.decoded} decoded`);
    }
  });
}

test('two messages in one line are looked for in one pass, however many braces its strings hold', (t) => {
  for (const text of [repeat('}'), repeat('x}'), repeat('}}}]')]) {
    const whole = inEnvelope(`"a":"${text}"`);
    const { bytes, work } = watched(whole);
    t.is(separateMessages(frameOf(whole, bytes)), undefined);
    t.true(work.reads <= READS_A_BYTE * whole.length, `${work.reads / whole.length} looks at a byte`);
  }
});

test('empty lines are not cut off one by one', (t) => {
  const { bytes, work } = watched(Buffer.from(`${'\n'.repeat(SIZE)}{}\n`));
  const cuts: number[] = [];
  const chunk = new Proxy(bytes, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (key === 'subarray' || key === 'indexOf') cuts.push(1);
      return value;
    },
  });
  const lines: string[] = [];
  const splitter = new LineSplitter({ line: (line) => lines.push(line.toString()), oversized: () => {} }, SIZE);
  splitter.push(chunk);
  t.deepEqual(lines, ['{}']);
  t.true(cuts.length < 10, `${cuts.length} cuts`);
  t.true(work.reads <= 2 * bytes.length);
});

test('of a payload nothing is made but the members that are asked for', (t) => {
  const whole = inParams(
    `${MEMBERS['keys with an escape']},${MEMBERS['keys with an escape']},"a":${MEMBERS.space.slice(4)}`,
  );
  const { bytes, work } = watched(whole);
  t.true(whole.length > 64 * 1024);
  t.deepEqual(readFields(frameOf(whole, bytes), ['name', 'uri']), { name: 'a' });
  t.true(work.decoded <= 1);
});

test('all arguments that headers repeat are found in one walk', (t) => {
  const paths = Array.from({ length: 50 }, (_, index) => [`p${index}`]);
  const annotations = paths.map((path) => ({ name: path[0] ?? '', path, type: 'string' as const }));
  const whole = inParams(`"arguments":{${MEMBERS['keys with an escape']}}`);
  const { bytes, work } = watched(whole);
  t.is(checkParamHeaders(annotations, frameOf(whole, bytes), {}), undefined);
  // The search for the arguments, and the one within them.
  t.true(work.reads <= 2 * READS_A_BYTE * whole.length, `${work.reads / whole.length} looks at a byte`);
});

test('the schema of a tool is walked over once, however deep it is', (t) => {
  const deep = `${'{"properties":{"a":'.repeat(30)}{"x-mcp-header":"A",${list('"b":{}')}}${'}}'.repeat(30)}`;
  const { bytes, work } = watched(Buffer.from(`[{"name":"a","inputSchema":${deep}}]`));
  t.is(modernToolEdits(bytes, 0).length, 2);
  // The list, the tool, the root of the schema, and all within it.
  t.true(work.reads <= 4 * READS_A_BYTE * bytes.length, `${work.reads / bytes.length} looks at a byte`);
});
