import test from 'ava';
import {
  asFields,
  MAX_PARSED_VALUES,
  parseSpan,
  readFields,
  readPayload,
  showText,
} from '../../../src/mcp/vocabulary/payload.ts';
import { serverFrame } from '../../support/frames.ts';

for (const [kind, text] of [
  ['a request', '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}'],
  ['a notification', '{"jsonrpc":"2.0","method":"m","params":{"a":1}}'],
  ['a result', '{"jsonrpc":"2.0","id":1,"result":{"a":1}}'],
  ['an error', '{"jsonrpc":"2.0","id":1,"error":{"a":1}}'],
] as const) {
  test(`reads the payload of ${kind}`, (t) => {
    t.deepEqual(readPayload(serverFrame(text)), { a: 1 });
  });
}

for (const [title, text] of [
  ['is absent', '{"jsonrpc":"2.0","method":"m"}'],
  ['is an array', '{"jsonrpc":"2.0","id":1,"result":[1]}'],
  ['is null', '{"jsonrpc":"2.0","id":1,"result":null}'],
  ['is a string', '{"jsonrpc":"2.0","id":1,"result":"a"}'],
  ['is not JSON', '{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}'],
] as const) {
  test(`a payload that ${title} reads as undefined`, (t) => {
    t.is(readPayload(serverFrame(text)), undefined);
  });
}

test('only objects have fields', (t) => {
  const object = { a: 1 };
  t.is(asFields(object), object);
  for (const value of [undefined, null, 1, 'a', true, [1]]) t.is(asFields(value), undefined);
});

test('reads a part of the bytes, unless it is no JSON or nests too deep to be walked', (t) => {
  const bytes = Buffer.from('x{"a":[1]}y');
  t.deepEqual(parseSpan(bytes, { start: 1, end: 10 }), { a: [1] });
  t.is(parseSpan(bytes, { start: 1, end: 11 }), undefined);
  const deep = Buffer.from('['.repeat(1001) + ']'.repeat(1001));
  t.is(parseSpan(deep, { start: 0, end: deep.length }), undefined);
  t.deepEqual(parseSpan(deep, { start: 1000, end: 1002 }), []);
});

test('a payload that nests too deep to be walked is none', (t) => {
  const nested = (depth: number) => `{"jsonrpc":"2.0","id":1,"result":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}`;
  t.truthy(readPayload(serverFrame(nested(900))));
  t.is(readPayload(serverFrame(nested(100_000))), undefined);
});

test('what stands where a text belongs is shown as it was written, whatever its members are called', (t) => {
  t.is(showText('a'), 'a');
  t.is(showText({ toString: 1, valueOf: 1 }), '{"toString":1,"valueOf":1}');
  t.is(showText(undefined), '');
});

const values = (count: number): string => `[${'0,'.repeat(count - 2)}0]`;
const resultWith = (members: string) => serverFrame(`{"jsonrpc":"2.0","id":1,"result":{${members}}}`);

test('of a text with more values than are looked at no objects are made', (t) => {
  for (const [count, isRead] of [
    [MAX_PARSED_VALUES, true],
    [MAX_PARSED_VALUES + 1, false],
    [5_000_000, false],
  ] as const) {
    const bytes = Buffer.from(values(count));
    t.is(parseSpan(bytes, { start: 0, end: bytes.length }) !== undefined, isRead, String(count));
  }
  t.is(readPayload(resultWith(`"a":${values(MAX_PARSED_VALUES + 1)}`)), undefined);
});

test('a text of any length is read as long as it has few values', (t) => {
  const picture = 'x,{['.repeat(1_000_000);
  t.is(readPayload(resultWith(`"a":"${picture}"`))?.a, picture);
});

test('members that are asked for are read beside others of any size; the last of a name counts', (t) => {
  const large = values(MAX_PARSED_VALUES + 1);
  const frame = resultWith(`"code":1,"data":${large},"\\u0063ode":2,"message":"m"`);
  t.deepEqual(readFields(frame, ['code', 'message', 'data', 'uri']), { code: 2, message: 'm', data: undefined });
});
