import test from 'ava';
import fc from 'fast-check';
import { decodeLine, encodeLine } from '../../src/grpc/json-rpc-line.ts';
import { MessageSplitter } from '../../src/grpc/message-splitter.ts';
import { JsonRpcLineType } from './json-rpc-line-type.ts';

/** Returns the one message in these bytes, without its length prefix. */
function unprefix(bytes: Buffer): Buffer {
  const messages: Buffer[] = [];
  const fault = (): void => {
    throw new Error('the message is faulty');
  };
  const splitter = new MessageSplitter({ maxMessageBytes: 1 << 24, message: (found) => messages.push(found), fault });
  splitter.push(bytes);
  const [message] = messages;
  if (message === undefined || messages.length > 1 || splitter.isWithinMessage) throw new Error('expected one message');
  return message;
}

const encoded = (line: string, id?: string): Buffer => unprefix(Buffer.concat(encodeLine(Buffer.from(line), id)));

test('what is written, protobufjs reads', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.option(fc.string({ unit: 'grapheme', minLength: 1 })), (line, id) => {
      const read = JsonRpcLineType.toObject(JsonRpcLineType.decode(encoded(line, id ?? undefined)), { defaults: true });
      t.deepEqual(read, { line, related_request_id: id ?? '', resumption_token: '' });
    }),
  );
});

test('what protobufjs writes is read', (t) => {
  const fields = fc.record({
    line: fc.string({ unit: 'grapheme' }),
    related_request_id: fc.string(),
    resumption_token: fc.string(),
  });
  fc.assert(
    fc.property(fields, (written) => {
      const bytes = Buffer.from(JsonRpcLineType.encode(JsonRpcLineType.create(written)).finish());
      t.is(decodeLine(bytes)?.toString(), written.line);
    }),
  );
});

test('lengths that need another byte are written and read', (t) => {
  for (const length of [0, 1, 127, 128, 16_383, 16_384, 16_385, 2_097_151, 2_097_152]) {
    const line = 'x'.repeat(length);
    t.true(decodeLine(encoded(line))?.toString() === line, `${length}`);
    const { line: read } = JsonRpcLineType.toObject(JsonRpcLineType.decode(encoded(line)), { defaults: true });
    t.true(read === line, `${length}`);
  }
});

test('a long line is not copied', (t) => {
  const line = Buffer.alloc(1 << 20, 'x');
  t.true(encodeLine(line, '1').some((part) => part === line));
});

test('unknown fields are skipped, and of a field that occurs twice the last one counts', (t) => {
  const unknown = Buffer.from([0x78, 0x96, 0x01, 0x71, 1, 2, 3, 4, 5, 6, 7, 8, 0x75, 1, 2, 3, 4, 0x7a, 2, 9, 9]);
  const once = encoded('first');
  t.is(decodeLine(Buffer.concat([unknown, once, unknown]))?.toString(), 'first');
  t.is(decodeLine(Buffer.concat([once, encoded('second')]))?.toString(), 'second');
  t.is(decodeLine(Buffer.from([0x08, 0x05]))?.length, 0, 'a number in the place of the line is an unknown field');
  t.is(decodeLine(Buffer.alloc(0))?.length, 0);
});

test('bytes that are no message are refused', (t) => {
  const wrong: readonly (readonly number[])[] = [
    [0x0a],
    [0x0a, 5, 1],
    [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
    [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    [0x0a, 0x80],
    [0x02, 0],
    [0x00],
    [0x0b, 0x0c],
    [0x0f],
    [0x09, 1, 2, 3],
    [0x0d, 1, 2],
    [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
  ];
  for (const bytes of wrong) t.is(decodeLine(Buffer.from(bytes)), undefined, bytes.join());
});

/** A field that is unknown, or a string of the message. protobufjs does not look at the wire type of those it knows. */
const anyField = fc.oneof(
  fc
    .tuple(fc.constantFrom(0x0a, 0x12, 0x1a, 0x7a), fc.string({ unit: 'grapheme', maxLength: 20 }))
    .map(([tag, text]) => {
      const bytes = Buffer.from(text);
      return Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);
    }),
  fc.bigInt({ min: 0n, max: 2n ** 62n }).map((value) => {
    const bytes = [0x78];
    for (let rest = value; ; rest >>= 7n) {
      bytes.push(Number(rest & 0x7fn) | (rest >= 0x80n ? 0x80 : 0));
      if (rest < 0x80n) return Buffer.from(bytes);
    }
  }),
  fc.uint8Array({ minLength: 8, maxLength: 8 }).map((bytes) => Buffer.from([0x79, ...bytes])),
  fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes) => Buffer.from([0x7d, ...bytes])),
);

test('any fields in any order are read as protobufjs reads them', (t) => {
  fc.assert(
    fc.property(fc.array(anyField, { maxLength: 8 }), (fields) => {
      const bytes = Buffer.concat(fields);
      const { line } = JsonRpcLineType.toObject(JsonRpcLineType.decode(bytes), { defaults: true });
      t.is(decodeLine(bytes)?.toString(), line);
    }),
  );
});

test('whatever arrives, reading ends, and the line is a part of what arrived', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      const line = decodeLine(Buffer.from(bytes));
      t.true(line === undefined || Buffer.from(bytes).includes(line));
    }),
    { numRuns: 2000 },
  );
});
