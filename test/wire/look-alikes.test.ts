import test from 'ava';
import fc from 'fast-check';
import { findSharedCanceledId, findSharedProgressToken } from '../../src/mcp/classify/correlators.ts';
import { Frame } from '../../src/wire/frame.ts';
import { findAllUnmistakable, findUnmistakable } from '../../src/wire/json/outline.ts';
import { readMessage } from '../../src/wire/read-message.ts';
import { scanStrictEnvelope } from '../../src/wire/scan-envelope.ts';
import { clientFrame } from '../support/frames.ts';

const LIMITS = { maxDepth: 100, maxBatch: 10, maxValues: 1000 };

for (const [key, like] of [
  ['ID', 'id'],
  ['Id', 'id'],
  ['\\u0049d', 'id'],
  ['Method', 'method'],
  ['METHOD', 'method'],
  ['Params', 'params'],
  ['JsonRpc', 'jsonrpc'],
  ['Result', 'result'],
  ['eRRor', 'error'],
  ['reſult', 'result'],
  ['param\\u017f', 'params'],
] as const) {
  test(`a message of a client with "${key}" is refused: its server may take that for "${like}"`, (t) => {
    for (const text of [
      `{"jsonrpc":"2.0","id":1,"method":"m","${key}":7}`,
      `{"${key}":{},"jsonrpc":"2.0","id":1,"method":"m"}`,
    ]) {
      t.deepEqual(scanStrictEnvelope(Buffer.from(text)), {
        fault: `a member can be taken for "${like}"; expected names in lower case only`,
        id: 1,
      });
      t.like(readMessage(Buffer.from(text), LIMITS), { kind: 'fault', fault: 'message', id: 1 });
      const batch = readMessage(Buffer.from(`[${text},{"jsonrpc":"2.0","method":"m"}]`), LIMITS);
      t.true(batch.kind === 'batch' && !(batch.items[0] instanceof Frame) && batch.items[1] instanceof Frame);
    }
  });
}

test('other members and members of members are no look-alikes', (t) => {
  for (const text of [
    '{"jsonrpc":"2.0","id":1,"method":"m"}',
    '{"jsonrpc":"2.0","\\u0069d":1,"method":"m","params":{"ID":1,"Method":"x"}}',
    '{"jsonrpc":"2.0","id":1,"method":"m","idx":1,"i d":2,"":3,"params2":4,"constructor":5}',
    `{"jsonrpc":"2.0","method":"m","${'ID'.repeat(100)}":1}`,
  ]) {
    t.false('fault' in scanStrictEnvelope(Buffer.from(text)), text);
  }
});

const find = (object: string) => {
  const bytes = Buffer.from(object);
  const found = findUnmistakable({ bytes }, 0, 'progressToken');
  return typeof found === 'object' ? bytes.toString('utf8', found.start, found.end) : found;
};

for (const [object, expected] of [
  ['{"progressToken":1}', '1'],
  ['{ "a":{"progressToken":2} , "progress\\u0054oken" : [3] }', '[3]'],
  ['{"progressTokens":1,"progress_token":2}', undefined],
  ['{}', undefined],
  ['[]', undefined],
  ['{"progresstoken":1}', 'unclear'],
  ['{"progressToken":1,"progressToken":1}', 'unclear'],
  ['{"progressToken":1,"ProgressToken":2}', 'unclear'],
  ['{"progreſſTo\u212aen":2,"progressToken":1}', 'unclear'],
] as const) {
  test(`progressToken in ${object}: ${expected}`, (t) => {
    t.is(find(object), expected);
  });
}

function tokenOf(params: string): string | undefined {
  const frame = clientFrame(`{"jsonrpc":"2.0","id":1,"method":"m","params":${params}}`);
  const found = findSharedProgressToken(frame);
  return typeof found === 'object' ? frame.bytes.toString('utf8', found.start, found.end) : found;
}

for (const [params, expected] of [
  ['{"_meta":{"progressToken":"\\u0061"}}', '"\\u0061"'],
  ['{"\\u005fmeta":{"progress\\u0054oken":-1.5e3}}', '-1.5e3'],
  ['{"_meta":{"progressToken":12345678901234567890}}', '12345678901234567890'],
  ['{"_meta":{"progressToken":null}}', undefined],
  ['{"_meta":{}}', undefined],
  ['{"_meta":[1]}', undefined],
  ['{"progressToken":1}', undefined],
  ['[1]', undefined],
  ['{"_meta":{"progressToken":true}}', 'unclear'],
  ['{"_meta":{"progressToken":{"a":1}}}', 'unclear'],
  ['{"_meta":{"progressToken":1},"_meta":{}}', 'unclear'],
  ['{"_Meta":{"progressToken":1}}', 'unclear'],
] as const) {
  test(`the token a shared server will read in ${params}: ${expected}`, (t) => {
    t.is(tokenOf(params), expected);
  });
}

test('a message without params has no token and cancels nothing', (t) => {
  t.is(findSharedProgressToken(clientFrame({ id: 1, method: 'm' })), undefined);
  t.is(findSharedCanceledId(clientFrame({ method: 'm' })), undefined);
});

for (const [params, expected] of [
  ['{"requestId":1,"reason":"x"}', 1],
  ['{"request\\u0049d":"1"}', '1'],
  ['{"requestId":1,"RequestID":2}', undefined],
  ['{"requestid":1}', undefined],
  ['{"requestId":1,"requestId":1}', undefined],
  ['{"requestId":null}', undefined],
] as const) {
  test(`the id a shared server will cancel by ${params}: ${expected}`, (t) => {
    const frame = clientFrame(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":${params}}`);
    t.is(findSharedCanceledId(frame)?.value, expected);
  });
}

/** By decoding every key. */
function findSlowly(object: string, key: string): string | undefined {
  const fold = (name: string): string => name.toUpperCase().toLowerCase();
  const members = [...object.matchAll(/("(?:[^"\\]|\\.)*"):(\d)/g)].map(([, name, value]) => [
    JSON.parse(name ?? ''),
    value,
  ]);
  const alike = members.filter(([name]) => fold(name) === fold(key));
  if (alike.length === 0) return undefined;
  return alike.length === 1 && alike[0]?.[0] === key ? alike[0][1] : 'unclear';
}

const KEYS = ['io.x/logLevel', 'progressToken', 'name'];

test('a member is found, several at once too, as if every key were decoded and compared without regard to case', (t) => {
  const letter = fc.constantFrom(
    's',
    'S',
    'k',
    'ſ',
    '\u212a',
    '\\u0073',
    '\\u004B',
    '/',
    '\\/',
    '?',
    '@',
    '`',
    'İ',
    'ß',
    '',
  );
  const near = fc.tuple(fc.constantFrom(...KEYS), fc.nat(14), fc.nat(1), letter).map(([key, at, gone, put]) => {
    return `${key.slice(0, at)}${put}${key.slice(at + gone)}`;
  });
  const folded = fc.constantFrom(...KEYS).map((key) => key.toUpperCase());
  const name = fc.oneof(near, folded, fc.constantFrom(...KEYS));
  const object = fc.array(fc.tuple(name, fc.nat(9)), { maxLength: 4 }).map((members) => {
    return `{${members.map(([key, value]) => `"${key}":${value}`).join(',')}}`;
  });
  fc.assert(
    fc.property(object, (text) => {
      const bytes = Buffer.from(text);
      const expected = KEYS.map((key) => findSlowly(text, key));
      const shown = (found: ReturnType<typeof findUnmistakable>): string | undefined =>
        typeof found === 'object' ? bytes.toString('utf8', found.start, found.end) : found;
      t.deepEqual(
        KEYS.map((key) => shown(findUnmistakable({ bytes }, 0, key))),
        expected,
        text,
      );
      t.deepEqual(findAllUnmistakable({ bytes }, 0, KEYS).map(shown), expected, text);
    }),
    { numRuns: 3000 },
  );
});
