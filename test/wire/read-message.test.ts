import test from 'ava';
import fc from 'fast-check';
import { Frame } from '../../src/wire/frame.ts';
import { readMessage, SERVER_LIMITS, separateMessages } from '../../src/wire/read-message.ts';
import { serverFrame } from '../support/frames.ts';
import { anyMessage, mutate } from './json-text.ts';

const limits = { maxDepth: 10, maxBatch: 3, maxValues: 1_000_000 };

function read(text: string | Buffer) {
  return readMessage(Buffer.from(text), limits);
}

function frameOf(text: string | Buffer): Frame {
  const result = read(text);
  if (result.kind !== 'message') throw new Error(JSON.stringify(result));
  return result.frame;
}

test('reads a message and leaves its bytes as they are', (t) => {
  const text = '{"jsonrpc": "2.0", "id": "\\u00e9", "method": "a", "params": {"n": 1.0e2, "s": "\\/é"}}';
  const frame = frameOf(text);
  t.is(frame.bytes.toString(), text);
  t.like(frame, { kind: 'request', id: 'é', method: 'a' });
});

test('strips a byte order mark and the whitespace around', (t) => {
  t.is(frameOf('\ufeff \r\n{"jsonrpc":"2.0","method":"a"}\t\r\n').bytes.toString(), '{"jsonrpc":"2.0","method":"a"}');
});

test('makes one line of a pretty-printed message', (t) => {
  const message = { jsonrpc: '2.0', id: 1, method: 'a', params: { text: 'line\nline\r', list: [1, 2] } };
  for (const newline of ['\n', '\r\n', '\r']) {
    const frame = frameOf(JSON.stringify(message, null, 2).replaceAll('\n', newline));
    t.false(frame.bytes.includes('\n') || frame.bytes.includes('\r'));
    t.deepEqual(frame.json(), message);
  }
});

test('says whether bytes were no JSON or JSON that is no message', (t) => {
  const cases = [
    ['', 'parse', 'the message is empty'],
    ['\ufeff \n', 'parse', 'the message is empty'],
    ['\ufec0{"jsonrpc":"2.0","method":"a"}', 'parse', 'the message is not valid JSON'],
    ['\ufdff{"jsonrpc":"2.0","method":"a"}', 'parse', 'the message is not valid JSON'],
    ['\u2eff{"jsonrpc":"2.0","method":"a"}', 'parse', 'the message is not valid JSON'],
    [Buffer.from('x\xbb\xbf{"jsonrpc":"2.0","method":"a"}', 'latin1'), 'parse', 'the message is not valid UTF-8'],
    ['{"jsonrpc":"2.0",}', 'parse', 'the message is not valid JSON'],
    ['{"jsonrpc":"2.0","method":"a"}{}', 'parse', 'the message is not valid JSON'],
    ['{"jsonrpc":"2.0","method":"a\nb"}', 'parse', 'the message is not valid JSON'],
    [Buffer.from('{"jsonrpc":"2.0","method":"\xff"}', 'latin1'), 'parse', 'the message is not valid UTF-8'],
    [Buffer.from('{"jsonrpc":"2.0","method":"\xc3"}', 'latin1'), 'parse', 'the message is not valid UTF-8'],
    ['"text"', 'message', 'the JSON text is a plain value; expected an object or an array'],
    ['null', 'message', 'the JSON text is a plain value; expected an object or an array'],
    [
      `[${'0,'.repeat(1_000_000)}0]`,
      'message',
      'the message holds more than 1000000 values; send large data as one string',
    ],
    ['{}', 'message', '"jsonrpc" is missing; expected "jsonrpc":"2.0"'],
    ['[]', 'batch', 'the batch is empty; expected at least one message'],
    ['[ ]', 'batch', 'the batch is empty; expected at least one message'],
    ['[1,2,3,4]', 'batch', 'the batch holds more than 3 messages'],
  ] as const;
  for (const [text, fault, reason] of cases) {
    t.deepEqual(read(text), { kind: 'fault', fault, reason, id: undefined }, text.toString());
  }
});

test('tells the id of a refused message, so that it can be answered', (t) => {
  t.like(read('{"jsonrpc":"2.0","params":7,"method":"a","id":"x"}'), { kind: 'fault', fault: 'message', id: 'x' });
});

test('refuses a message that nests too deep, and megabytes of brackets at once', (t) => {
  const nested = (depth: number) =>
    `{"jsonrpc":"2.0","method":"a","params":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
  t.is(read(nested(10)).kind, 'message');
  t.like(read(nested(11)), { fault: 'message', reason: 'the message nests deeper than 10 arrays and objects' });
  t.is(read('['.repeat(5_000_000)).kind, 'fault');
});

test('splits a batch into messages and faults, in order and without copying', (t) => {
  const bytes = Buffer.from(
    '[ {"jsonrpc":"2.0","id":1,"method":"a","params":[",",{}]} ,7,\n{"jsonrpc":"2.0","id":2,"method":3}]',
  );
  const result = readMessage(bytes, limits);
  if (result.kind !== 'batch') return t.fail();
  const [first, second, third] = result.items;
  t.true(first instanceof Frame && first.bytes.buffer === bytes.buffer);
  t.like(first, { kind: 'request', id: 1, method: 'a' });
  t.is((first as Frame).bytes.toString(), '{"jsonrpc":"2.0","id":1,"method":"a","params":[",",{}]}');
  t.deepEqual(second, { fault: 'an item of the batch is not an object', id: undefined });
  t.deepEqual(third, { fault: '"method" must be a string', id: 2 });
});

test('reads every valid message, alone and in batches, as JSON.parse does', (t) => {
  const manyMessages = fc.array(anyMessage({ newlines: true }), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(manyMessages, (messages) => {
      for (const { text, kind } of messages) {
        const frame = frameOf(text);
        t.is(frame.kind, kind);
        t.deepEqual(frame.json(), JSON.parse(text));
        t.false(frame.bytes.includes('\n') || frame.bytes.includes('\r'));
      }
      const batch = read(`[${messages.map(({ text }) => text).join(' ,\n')}]`);
      if (batch.kind !== 'batch') throw new Error(JSON.stringify(batch));
      t.deepEqual(
        batch.items.map((item) => (item as Frame).json()),
        messages.map(({ text }) => JSON.parse(text)),
      );
    }),
    { numRuns: 200 },
  );
});

test('never throws on damaged messages, and what it lets through is JSON in one line', (t) => {
  fc.assert(
    fc.property(anyMessage({ newlines: true }), fc.integer(), fc.boolean(), ({ text }, seed, inBatch) => {
      const result = readMessage(mutate(Buffer.from(inBatch ? `[${text}]` : text), seed), limits);
      const items = result.kind === 'message' ? [result.frame] : result.kind === 'batch' ? result.items : [];
      for (const item of items) {
        if (!(item instanceof Frame)) continue;
        const parsed = item.json() as Record<string, unknown>;
        t.is(parsed.jsonrpc, '2.0');
        t.is(parsed.id ?? undefined, item.id);
        t.is(parsed.method, item.method);
        t.false(item.bytes.includes('\n') || item.bytes.includes('\r'));
      }
    }),
    { numRuns: 800 },
  );
});

const answer = (id: number, text = 'x') => `{"jsonrpc":"2.0","id":${id},"result":{"text":${JSON.stringify(text)}}}`;
const separate = (text: string) => separateMessages(serverFrame(text))?.map(({ bytes }) => bytes.toString());

test('one message is one message, whatever its strings hold', (t) => {
  for (const text of ['x', '}{', '} {', `${answer(2)}${answer(3)}`, '\\"}{']) {
    t.is(separate(answer(1, text)), undefined, text);
  }
});

for (const [title, seam] of [
  ['nothing', ''],
  ['a space', ' '],
] as const) {
  test(`messages with ${title} between them are taken apart`, (t) => {
    const all = [answer(1, '}{'), '{"jsonrpc":"2.0","method":"notifications/x"}', answer(2)];
    t.deepEqual(separate(all.join(seam)), all);
  });
}

test('what is no message is left out, and so is what has no end', (t) => {
  t.deepEqual(separate(`${answer(1)}{"level":"info"}${answer(2)}`), [answer(1), answer(2)]);
  t.deepEqual(separate(`${answer(1)}{"jsonrpc":"2.0","id":2,"result":{"a":"}`), [answer(1)]);
  t.deepEqual(separate(`${answer(1)}{} x ${answer(2)}`), [answer(1)]);
});

test('the messages in a batch of a server are read as its lines are, those of a client are not', (t) => {
  const batch = '[{"jsonrpc":"2.0","id":5.0,"result":{}},{"jsonrpc":"2.0","id":6,"result":{},"error":null}]';
  const ofServer = readMessage(Buffer.from(batch), SERVER_LIMITS);
  t.deepEqual(ofServer.kind === 'batch' && ofServer.items.map(({ id }) => id), [5, 6]);
  t.true(ofServer.kind === 'batch' && ofServer.items.every((item) => item instanceof Frame));
  const { isLenient: _, ...limits } = SERVER_LIMITS;
  const ofClient = readMessage(Buffer.from(batch), limits);
  t.true(ofClient.kind === 'batch' && ofClient.items.every((item) => !(item instanceof Frame)));
});
