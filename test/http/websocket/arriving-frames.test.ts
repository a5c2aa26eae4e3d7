import test from 'ava';
import { ArrivingFrames, CHUNK_COST_BYTES, FRAGMENT_COST_BYTES } from '../../../src/http/websocket/arriving-frames.ts';
import { frame, OPCODES } from '../../support/websocket-frames.ts';

const ALL = Number.POSITIVE_INFINITY;

/** What is held after these chunks, each of which has memory of its own. */
function heldAfter(...chunks: readonly Buffer[]): number {
  const frames = new ArrivingFrames();
  for (const chunk of chunks) frames.push(ownMemory(chunk), ALL);
  return frames.heldBytes;
}

/** As Node reads from a connection; small buffers have parts of larger ones otherwise. */
function ownMemory(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
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
    for (let at = 0; at < bytes.length; at += length) frames.push(bytes.subarray(at, at + length), ALL);
    t.is(frames.heldBytes, 0, `${length}`);
  }
});

test('of a message in one frame its bytes are held, and little more', (t) => {
  const bytes = frame('x'.repeat(1_000_000));
  const frames = new ArrivingFrames();
  const chunkBytes = 64 * 1024;
  for (let at = 0; at < bytes.length - 1; at += chunkBytes) {
    frames.push(bytes.subarray(at, Math.min(at + chunkBytes, bytes.length - 1)), ALL);
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
  for (let at = 0; at < bytes.length; at += 50) frames.push(bytes.subarray(at, at + 50), ALL);
  t.is(frames.heldBytes, 0);
});

test('a chunk is followed up to the end of so many frames, of whatever kind', (t) => {
  const frames = new ArrivingFrames();
  const parts = [frame('one'), ping, begin('tw'), frame(''), frame('x'.repeat(300))];
  let chunk = Buffer.concat(parts);
  t.is(frames.push(chunk, 0), 0);
  for (const { length } of parts) {
    t.is(frames.push(chunk, 1), length);
    t.is(frames.ended, 1);
    chunk = chunk.subarray(length);
  }
  t.is(frames.push(frame('x'.repeat(300)).subarray(0, 100), 1), 100);
  t.is(frames.ended, 0, 'it has not ended yet');
});

test('behind a close frame nothing is followed', (t) => {
  const frames = new ArrivingFrames();
  const close = frame('', { opcode: OPCODES.close });
  t.is(frames.push(Buffer.concat([ping, close, begin('x')]), ALL), ping.length + close.length);
  t.true(frames.isClosed);
  t.is(frames.push(begin('x'), ALL), 0);
});

test('parts of one chunk hold its memory together', (t) => {
  const chunk = ownMemory(Buffer.concat([begin('x'), ...Array.from({ length: 999 }, () => more('x'))]));
  const frames = new ArrivingFrames();
  let parts = 0;
  for (let rest = chunk; rest.length > 0; parts += 1) rest = rest.subarray(frames.push(rest, 50));
  t.is(frames.heldBytes, chunk.length + parts * CHUNK_COST_BYTES + 1000 * FRAGMENT_COST_BYTES);
});
