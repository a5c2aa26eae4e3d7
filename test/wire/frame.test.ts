import test from 'ava';
import fc from 'fast-check';
import {
  editFrame,
  encodeId,
  Frame,
  idOfOtherType,
  idToken,
  type JsonRpcId,
  replaceSpans,
  withId,
  withoutParams,
  withParams,
  withPayload,
} from '../../src/wire/frame.ts';
import { scanStrictEnvelope } from '../../src/wire/scan-envelope.ts';
import { clientFrame } from '../support/frames.ts';
import { anyMessage, anyText } from './json-text.ts';

const edit = (text: string, part: string, replacement: string) => ({
  start: text.indexOf(part),
  end: text.indexOf(part) + part.length,
  replacement: Buffer.from(replacement),
});

for (const text of [
  '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}',
  '{"params":{"a":1},"method":"m","id":1,"jsonrpc":"2.0"}',
]) {
  test(`keeps track of id and payload: ${text}`, (t) => {
    const frame = clientFrame(text);
    const edited = editFrame(frame, [edit(text, '"a":1', '"a":12345,"b":[]')]);
    t.deepEqual(edited, clientFrame(text.replace('"a":1', '"a":12345,"b":[]')));
    const renamed = { start: frame.idStart, end: frame.idEnd, replacement: Buffer.from('"x"') };
    const both = [renamed, edit(text, '"a":1', '"a":1')].sort((one, other) => one.start - other.start);
    t.deepEqual(editFrame(frame, both, 'x'), clientFrame(text.replace('"id":1', '"id":"x"')));
    const emptied = editFrame(frame, [edit(text, '"a":1', '')]);
    t.deepEqual(emptied, clientFrame(text.replace('"a":1', '')));
  });
}

test('without edits the frame is the same one', (t) => {
  const frame = clientFrame('{"jsonrpc":"2.0","id":1,"method":"m"}');
  t.is(editFrame(frame, []), frame);
  t.is(withoutParams(frame), frame);
});

test('gives any request or notification other params, or none, and changes nothing else', (t) => {
  fc.assert(
    fc.property(anyMessage({ newlines: false }), ({ text, kind }) => {
      fc.pre(kind === 'request' || kind === 'notification');
      const frame = clientFrame(text);
      const { params: _, ...rest } = JSON.parse(text);
      const given = withParams(frame, Buffer.from('{"new":[1]}'));
      t.deepEqual(given.json(), { ...rest, params: { new: [1] } });
      t.deepEqual(given, clientFrame(given.bytes.toString()));
      const bare = withoutParams(given);
      t.deepEqual(bare.json(), rest);
      t.deepEqual(bare, clientFrame(bare.bytes.toString()));
    }),
    { numRuns: 300 },
  );
});

test('gives any message that has a payload another one', (t) => {
  fc.assert(
    fc.property(anyMessage({ newlines: false }), ({ text }) => {
      const frame = clientFrame(text);
      fc.pre(frame.payloadStart !== -1);
      const given = withPayload(frame, Buffer.from('{"new":[1]}'));
      const key = frame.isResponse ? frame.kind : 'params';
      t.deepEqual(given.json(), { ...JSON.parse(text), [key]: { new: [1] } });
      t.deepEqual(given, clientFrame(given.bytes.toString()));
    }),
    { numRuns: 300 },
  );
  const bare = clientFrame('{"jsonrpc":"2.0","id":1,"method":"m"}');
  t.throws(() => withPayload(bare, Buffer.from('{}')), { message: /has none to replace/ });
});

function frameOf(text: string | Buffer): Frame {
  const bytes = Buffer.from(text);
  const envelope = scanStrictEnvelope(bytes);
  if ('fault' in envelope) throw new Error(envelope.fault);
  return new Frame(bytes, envelope);
}

test('replaces, inserts and removes spans in one go', (t) => {
  const edits = [
    { start: 0, end: 1, replacement: Buffer.from('long') },
    { start: 1, end: 1, replacement: Buffer.from('+') },
    { start: 3, end: 5, replacement: Buffer.alloc(0) },
  ];
  t.is(replaceSpans(Buffer.from('abcdef'), edits).toString(), 'long+bcf');
  t.is(replaceSpans(Buffer.from('abc'), []).toString(), 'abc');
  t.is(replaceSpans(Buffer.from('abc'), [{ start: 3, end: 3, replacement: Buffer.from('d') }]).toString(), 'abcd');
});

test('a message that has an id as it is written already stays the same frame', (t) => {
  for (const token of ['1', '"a"', '"\\u0061"', '-7']) {
    const frame = frameOf(`{"jsonrpc":"2.0","id":${token},"result":{}}`);
    t.is(withId(frame, Buffer.from(token)), frame);
  }
  const frame = frameOf('{"jsonrpc":"2.0","id":"a","result":{}}');
  for (const token of ['"b"', '"\\u0061"', '"ab"', '""', '1']) {
    t.is(withId(frame, Buffer.from(token)).bytes.toString(), `{"jsonrpc":"2.0","id":${token},"result":{}}`);
  }
});

test('refuses edits that overlap, run backward or leave the bytes', (t) => {
  const replacement = Buffer.alloc(0);
  const bytes = Buffer.from('abcdef');
  const wrong = [
    [
      { start: 2, end: 4, replacement },
      { start: 3, end: 5, replacement },
    ],
    [
      { start: 4, end: 5, replacement },
      { start: 0, end: 1, replacement },
    ],
    [{ start: 3, end: 2, replacement }],
    [{ start: 3, end: 7, replacement }],
  ];
  for (const edits of wrong) t.throws(() => replaceSpans(bytes, edits), { message: /is out of order/ });
});

test('replaces spans as string slices do', (t) => {
  const anyEdit = fc.record({ gap: fc.nat(5), length: fc.nat(5), text: fc.string({ maxLength: 8 }) });
  fc.assert(
    fc.property(fc.array(anyEdit, { maxLength: 5 }), fc.nat(5), (rows, rest) => {
      let source = '';
      let expected = '';
      const edits = rows.map(({ gap, length, text }) => {
        const start = source.length + gap;
        source += '.'.repeat(gap) + 'x'.repeat(length);
        expected += '.'.repeat(gap) + text;
        return { start, end: start + length, replacement: Buffer.from(text, 'latin1') };
      });
      const spliced = replaceSpans(Buffer.from(source + '.'.repeat(rest)), edits);
      t.is(spliced.toString('latin1'), expected + '.'.repeat(rest));
    }),
    { numRuns: 300 },
  );
});

test('puts another id into any message and changes nothing else', (t) => {
  const anyNewId: fc.Arbitrary<JsonRpcId> = fc.oneof(fc.integer(), anyText);
  fc.assert(
    fc.property(anyMessage({ newlines: false }), anyNewId, ({ text, kind }, id) => {
      fc.pre(kind !== 'notification');
      const frame = frameOf(text);
      const before = Buffer.from(frame.bytes);
      const edited = withId(frame, id);
      t.deepEqual(frameOf(edited.bytes), edited);
      t.is(edited.id, id);
      t.deepEqual(edited.json(), { ...JSON.parse(text), id });
      t.deepEqual(idToken(edited), encodeId(id));
      t.deepEqual(frame.bytes, before);
      if (frame.idStart !== -1 && frame.id !== undefined) {
        t.deepEqual(withId(edited, idToken(frame)), frame);
      }
    }),
    { numRuns: 500 },
  );
});

test('echoes a raw token byte for byte', (t) => {
  const frame = frameOf('{"jsonrpc":"2.0","id":1,"result":{}}');
  const edited = withId(frame, Buffer.from('"\\u00e9"'));
  t.is(edited.bytes.toString(), '{"jsonrpc":"2.0","id":"\\u00e9","result":{}}');
  t.is(edited.id, 'é');
});

test('gives an id to an error that has none', (t) => {
  for (const text of ['{ "jsonrpc":"2.0","error":{"code":1}}', '{ "jsonrpc":"2.0","id":null,"error":{"code":1}}']) {
    const edited = withId(frameOf(text), 5);
    t.deepEqual(edited.json(), { jsonrpc: '2.0', id: 5, error: { code: 1 } });
    t.deepEqual(frameOf(edited.bytes), edited);
  }
});

test('has no id to give to or take from a notification, and takes no token that is not an id', (t) => {
  const notification = frameOf('{"jsonrpc":"2.0","method":"a"}');
  t.throws(() => withId(notification, 1), { message: 'a notification has no id' });
  t.throws(() => idToken(notification), { message: 'a notification without an id has no id token' });
  t.throws(() => withId(frameOf('{"jsonrpc":"2.0","id":1,"result":{}}'), Buffer.from('null')));
});

test('keeps an id token without keeping its message', (t) => {
  const message = Buffer.from(`{"jsonrpc":"2.0","id":"abc","result":"${'x'.repeat(100_000)}"}`);
  const token = idToken(frameOf(message));
  t.is(token.toString(), '"abc"');
  t.true(token.buffer.byteLength < 100_000);
});

for (const [id, other] of [
  [5, '5'],
  ['5', 5],
  ['-5', -5],
  ['5.0', 5],
  ['9007199254740991', 9007199254740991],
  ['9007199254740992', undefined],
  ['', undefined],
  [' 5', undefined],
  ['0x5', undefined],
  ['5e0', undefined],
  ['call-5', undefined],
] as const) {
  test(`the id ${JSON.stringify(id)} is ${JSON.stringify(other)} as the other JSON type`, (t) => {
    t.is(idOfOtherType(id), other);
  });
}
