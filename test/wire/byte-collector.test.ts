import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { ByteCollector } from '../../src/wire/byte-collector.ts';

test('gives back what it was given, in order, and is empty then', (t) => {
  const collector = new ByteCollector();
  const parts = [1, 5000, 2, 3, 20_000, 4000, 1].map((length, index) => Buffer.alloc(length, index + 1));
  for (const part of parts) collector.append(part);
  t.is(collector.byteLength, Buffer.concat(parts).length);
  t.deepEqual(collector.take(), Buffer.concat(parts));
  t.is(collector.byteLength, 0);
  t.is(collector.take().length, 0);
});

/** A peer that sends byte by byte must not keep a whole chunk of the socket for each of them. */
test('short parts do not keep the chunks alive that they came in', async (t) => {
  const collector = new ByteCollector();
  const chunks: WeakRef<ArrayBufferLike>[] = [];
  for (let count = 0; count < 100; count += 1) {
    const chunk = Buffer.from(new ArrayBuffer(64 * 1024));
    chunks.push(new WeakRef(chunk.buffer));
    collector.append(chunk.subarray(0, 1));
  }
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  t.true(chunks.filter((chunk) => chunk.deref() !== undefined).length <= 1);
  t.is(collector.byteLength, 100);
});
