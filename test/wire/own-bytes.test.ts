import test from 'ava';
import { ownBytes } from '../../src/wire/byte-collector.ts';

test('a copy is the same bytes, and keeps nothing that was read with them', (t) => {
  const read = Buffer.from('before {"a":1} after');
  const copy = ownBytes(read.subarray(7, 14));
  read.fill(0);
  t.is(copy.toString(), '{"a":1}');
  t.is(copy.buffer.byteLength, copy.length);
});
