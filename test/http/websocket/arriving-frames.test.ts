import test from 'ava';
import { ArrivingFrames, CHUNK_COST_BYTES, FRAGMENT_COST_BYTES } from '../../../src/http/websocket/arriving-frames.ts';
import { frame, OPCODES } from '../../support/websocket-frames.ts';

/** What is held after these chunks. */
function heldAfter(...chunks: readonly Buffer[]): number {
  const frames = new ArrivingFrames();
  for (const chunk of chunks) frames.push(chunk);
  return frames.heldBytes;
}

const begin = (payload: string) => frame(payload, { fin: false });
const more = (payload: string) => frame(payload, { fin: false, opcode: OPCODES.continuation });
const end = (payload: string) => frame(payload, { opcode: OPCODES.continuation });
const ping = frame('x'.repeat(125), { opcode: OPCODES.ping });

test('nothing is held of messages that are complete, however they are cut', (t) => {
  const sizes = [0, 1, 125, 126, 70_000];
  const messages = sizes.map((size) => frame('x'.repeat(size)));
  const bytes = Buffer.concat([...messages, ping, begin('a'), ping, more(''), end('b'), frame('', { masked: false })]);
  for (const length of [1, 2, 3, 7, 1000, bytes.length]) {
    const frames = new ArrivingFrames();
    for (let at = 0; at < bytes.length; at += length) frames.push(bytes.subarray(at, at + length));
    t.is(frames.heldBytes, 0, `${length}`);
  }
});

test('of a message in one frame its bytes are held, and little more', (t) => {
  const bytes = frame('x'.repeat(1_000_000));
  const frames = new ArrivingFrames();
  const chunkBytes = 64 * 1024;
  for (let at = 0; at < bytes.length - 1; at += chunkBytes) {
    frames.push(bytes.subarray(at, Math.min(at + chunkBytes, bytes.length - 1)));
  }
  t.true(frames.heldBytes >= bytes.length - 1 && frames.heldBytes < 1.02 * bytes.length, `${frames.heldBytes}`);
});

test('each fragment counts as the object that it is', (t) => {
  const chunk = Buffer.concat([begin('x'), ...Array.from({ length: 1000 }, () => more('x'))]);
  t.is(heldAfter(chunk), chunk.length + CHUNK_COST_BYTES + 1001 * FRAGMENT_COST_BYTES);
});

test('bytes that come one by one count as the chunks that they are', (t) => {
  const bytes = frame('x'.repeat(1000), { length: 2000 });
  const chunks = [...bytes].map((byte) => Buffer.of(byte));
  t.true(heldAfter(...chunks) > 1000 * CHUNK_COST_BYTES);
});

test('a fragment holds the chunk that it came in, with all the pings in it', (t) => {
  const chunk = Buffer.concat([begin('x'), ...Array.from({ length: 100 }, () => ping)]);
  t.true(heldAfter(chunk) >= chunk.length);
  t.is(heldAfter(chunk, ping, ping), heldAfter(chunk), 'pings alone hold nothing');
});

test('the beginning of the next message is held with the chunk that ends the one before', (t) => {
  const chunk = Buffer.concat([frame('x'.repeat(500)), begin('y')]);
  t.is(heldAfter(chunk), chunk.length + CHUNK_COST_BYTES + FRAGMENT_COST_BYTES);
  t.is(heldAfter(chunk, end('z')), 0);
});

test('pings that are cut hold nothing', (t) => {
  const bytes = Buffer.concat(Array.from({ length: 1000 }, () => ping));
  const frames = new ArrivingFrames();
  for (let at = 0; at < bytes.length; at += 50) frames.push(bytes.subarray(at, at + 50));
  t.is(frames.heldBytes, 0);
});
