import test from 'ava';
import fc from 'fast-check';
import { editFrame, withoutParams, withParams, withPayload } from '../../src/wire/edit-frame.ts';
import { clientFrame } from '../support/frames.ts';
import { anyMessage } from './json-text.ts';

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
