import test from 'ava';
import { HEADER_BYTES, MessageSplitter, type SplitFault } from '../../src/grpc/message-splitter.ts';
import { chunkSizes, chunksOf } from '../wire/json-text.ts';

interface Split {
  readonly messages: string[];
  readonly faults: SplitFault[];
  readonly splitter: MessageSplitter;
}

function startSplitting(maxMessageBytes = 1 << 20): Split {
  const messages: string[] = [];
  const faults: SplitFault[] = [];
  const splitter = new MessageSplitter({
    maxMessageBytes,
    message: (bytes) => messages.push(bytes.toString()),
    fault: (fault) => faults.push(fault),
  });
  return { messages, faults, splitter };
}

function prefixed(text: string, flag = 0, length = Buffer.byteLength(text)): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header[0] = flag;
  header.writeUInt32BE(length, 1);
  return Buffer.concat([header, Buffer.from(text)]);
}

for (const size of chunkSizes) {
  const name = size === 0 ? 'whole' : `in chunks of ${size}`;

  test(`splits messages, empty ones included, ${name}`, (t) => {
    const { messages, splitter } = startSplitting();
    const all = Buffer.concat(['first', '', 'é€😀', 'x'.repeat(9000)].map((text) => prefixed(text)));
    for (const chunk of chunksOf(all, size)) t.is(splitter.push(chunk), chunk.length);
    t.deepEqual(messages, ['first', '', 'é€😀', 'x'.repeat(9000)]);
    t.false(splitter.isWithinMessage);
    t.is(splitter.pendingBytes, 0);
  });

  test(`takes a message of exactly the limit, and nothing after a longer one, ${name}`, (t) => {
    const { messages, faults, splitter } = startSplitting(5);
    const all = Buffer.concat(['12345', '123456', 'abc'].map((text) => prefixed(text)));
    for (const chunk of chunksOf(all, size)) splitter.push(chunk);
    t.deepEqual(messages, ['12345']);
    t.deepEqual(faults, ['too-large']);
  });
}

test('a length of four gigabytes is refused before a byte of it arrives, and takes no memory', (t) => {
  const { faults, splitter } = startSplitting();
  splitter.push(prefixed('', 0, 0xff_ff_ff_ff));
  t.deepEqual(faults, ['too-large']);
  t.is(splitter.pendingBytes, 0);
});

test('compressed messages and other flags are told apart', (t) => {
  const compressed = startSplitting();
  compressed.splitter.push(prefixed('x', 1));
  t.deepEqual(compressed.faults, ['compressed']);
  const invalid = startSplitting();
  invalid.splitter.push(Buffer.from('GET / HTTP/1.1\r\n\r\n'));
  t.deepEqual(invalid.faults, ['invalid']);
});

test('a limit on messages leaves the rest of a chunk for the next call', (t) => {
  const { messages, splitter } = startSplitting();
  const all = Buffer.concat(['a', 'b', 'c'].map((text) => prefixed(text)));
  const taken = splitter.push(all, 2);
  t.deepEqual(messages, ['a', 'b']);
  t.is(taken, 2 * (HEADER_BYTES + 1));
  t.is(splitter.push(all.subarray(taken), 2), HEADER_BYTES + 1);
  t.deepEqual(messages, ['a', 'b', 'c']);
});

test('an unfinished header or message is known to be one', (t) => {
  const { splitter } = startSplitting();
  splitter.push(prefixed('abc').subarray(0, 2));
  t.true(splitter.isWithinMessage);
  splitter.push(prefixed('abc').subarray(2, 6));
  t.true(splitter.isWithinMessage);
  t.is(splitter.pendingBytes, 1);
  splitter.push(prefixed('abc').subarray(6));
  t.false(splitter.isWithinMessage);
});
