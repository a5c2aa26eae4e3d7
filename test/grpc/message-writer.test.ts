import { Writable } from 'node:stream';
import test from 'ava';
import { HIGH_WATER_BYTES, MessageWriter } from '../../src/grpc/message-writer.ts';

/** A stream that passes a batch on when it is told to. */
function createStream() {
  const batches: Buffer[] = [];
  let pass: (() => void) | undefined;
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      batches.push(chunk);
      pass = () => done();
    },
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return {
    stream,
    batches,
    passOn: async () => {
      const now = pass;
      pass = undefined;
      now?.();
      await turn();
    },
  };
}

test('the first message is written at once, and those that follow meanwhile are written together', async (t) => {
  const { stream, batches, passOn } = createStream();
  const writer = new MessageWriter(stream, () => {});
  for (const text of ['a', 'b', 'c']) t.true(writer.send([Buffer.from(text)]));
  t.deepEqual(batches.map(String), ['a']);
  t.is(writer.waitingBytes, 3);
  await passOn();
  t.deepEqual(batches.map(String), ['a', 'bc']);
  await passOn();
  t.is(writer.waitingBytes, 0);
  t.is(writer.leftBytes, 3);
});

test('a large message is given to the stream in parts, so that its progress is known', async (t) => {
  const { stream, batches, passOn } = createStream();
  let drained = 0;
  const writer = new MessageWriter(stream, () => {
    drained += 1;
  });
  const size = 5 * HIGH_WATER_BYTES + 1;
  t.false(writer.send([Buffer.alloc(size, 'x')]));
  let flushed = false;
  const flushing = writer.flush().then(() => {
    flushed = true;
  });
  for (let count = 1; count <= 5; count += 1) {
    t.is(drained, 0);
    t.is(writer.waitingBytes, size - (count - 1) * HIGH_WATER_BYTES);
    await passOn();
  }
  t.is(drained, 1, 'once there is capacity again');
  t.false(flushed);
  await passOn();
  await flushing;
  t.is(Buffer.concat(batches).length, size);
});

test('what is sent after the end is dropped, and nobody waits for it', async (t) => {
  const { stream } = createStream();
  const writer = new MessageWriter(stream, () => t.fail());
  t.true(writer.send([Buffer.from('a')]));
  const flushed = writer.flush();
  stream.destroy();
  await flushed;
  t.true(writer.send([Buffer.alloc(HIGH_WATER_BYTES)]));
  t.is(writer.waitingBytes, 0);
});
