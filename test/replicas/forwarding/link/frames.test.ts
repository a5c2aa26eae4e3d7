import test from 'ava';
import {
  detachPayload,
  encodeFrameHead,
  encodeWindow,
  FRAME_HEAD_BYTES,
  FRAME_TYPES,
  type FrameMark,
  FrameReader,
  type FrameType,
  type LinkFrame,
  MAX_PAYLOAD_BYTES,
  MAX_STREAM,
  markLast,
  windowOf,
} from '../../../../src/replicas/forwarding/link/frames.ts';

const TYPES = Object.keys(FRAME_TYPES) as FrameType[];
const MARKS: readonly FrameMark[] = ['none', 'more', 'last'];

function encode({ type, stream, mark, payload }: LinkFrame): Buffer {
  return Buffer.concat([encodeFrameHead(type, stream, mark, payload.length), payload]);
}

interface Read {
  readonly areFrames: boolean;
  readonly frames: readonly LinkFrame[];
}

function read(...pieces: readonly Buffer[]): Read {
  const reader = new FrameReader();
  const frames: LinkFrame[] = [];
  const areFrames = pieces.every((piece) => reader.push(piece, (frame) => frames.push(frame) > 0));
  return { areFrames, frames };
}

function cut(bytes: Buffer, pieceBytes: number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) pieces.push(bytes.subarray(at, at + pieceBytes));
  return pieces;
}

test('frames of all types, marks and sizes come out as they went in', (t) => {
  const frames = TYPES.flatMap((type) =>
    MARKS.map((mark, index) => ({
      type,
      stream: [0, 7, MAX_STREAM][index] ?? 0,
      mark,
      payload: Buffer.alloc([0, 3, MAX_PAYLOAD_BYTES][index] ?? 0, type),
    })),
  );
  for (const frame of frames) t.deepEqual(read(encode(frame)), { areFrames: true, frames: [frame] });
  t.deepEqual(read(Buffer.concat(frames.map(encode))).frames, frames);
  t.deepEqual(read(Buffer.alloc(0)), { areFrames: true, frames: [] });
});

test('frames are found whatever the pieces in which they come', (t) => {
  const frames = ['one', '', 'a longer one', 'x'.repeat(MAX_PAYLOAD_BYTES), 'last'].map(
    (text, stream): LinkFrame => ({ type: 'data', stream, mark: 'none', payload: Buffer.from(text) }),
  );
  const all = Buffer.concat(frames.map(encode));
  for (const pieceBytes of [1, 2, 3, 7, 8, 9, 1000, 1460, 16_384, all.length]) {
    t.deepEqual(read(...cut(all, pieceBytes)), { areFrames: true, frames }, `${pieceBytes} bytes a piece`);
  }
  const small = frames.filter(({ payload }) => payload.length < 100);
  const few = Buffer.concat(small.map(encode));
  for (let at = 0; at <= few.length; at += 1) {
    const split = read(few.subarray(0, at), few.subarray(at));
    t.deepEqual(split, { areFrames: true, frames: small }, `split at ${at}`);
  }
});

test('unknown types, contradicting marks and payloads that are too large are refused', (t) => {
  const changed = (first: number): Buffer => {
    const bytes = encode({ type: 'data', stream: 1, mark: 'none', payload: Buffer.alloc(0) });
    bytes[0] = first;
    return bytes;
  };
  for (const first of [0, 9, 0x3f, 0xc0 | FRAME_TYPES.data]) t.false(read(changed(first)).areFrames, `${first}`);
  const large = { type: 'data', stream: 1, mark: 'none', payload: Buffer.alloc(MAX_PAYLOAD_BYTES + 1) } as const;
  t.false(read(encode(large).subarray(0, FRAME_HEAD_BYTES)).areFrames, 'before its payload has come');
});

test('no frame is handed over after the taker has had enough', (t) => {
  const frame = encode({ type: 'ping', stream: 0, mark: 'none', payload: Buffer.alloc(0) });
  let taken = 0;
  t.true(new FrameReader().push(Buffer.concat([frame, frame, Buffer.from('longer than a head')]), () => ++taken < 1));
  t.is(taken, 1);
});

test('a frame can be made the last of its stream until it leaves', (t) => {
  const head = encodeFrameHead('data', 5, 'none', 0);
  markLast(head);
  t.deepEqual(read(head).frames, [{ type: 'data', stream: 5, mark: 'last', payload: Buffer.alloc(0) }]);
  t.is(head.length, FRAME_HEAD_BYTES);
});

test('a window is a number of 32 bits, and anything else widens nothing', (t) => {
  const frameOf = (payload: Buffer): LinkFrame => ({ type: 'window', stream: 1, mark: 'none', payload });
  t.is(windowOf(frameOf(encodeWindow(0xffff_fffe))), 0xffff_fffe);
  for (const length of [0, 3, 5]) t.is(windowOf(frameOf(Buffer.alloc(length, 1))), 0);
});

test('a small payload that is kept does not keep what came with it in memory', (t) => {
  const together = Buffer.concat([
    encode({ type: 'data', stream: 1, mark: 'none', payload: Buffer.from('small') }),
    encode({ type: 'data', stream: 2, mark: 'none', payload: Buffer.alloc(60_000) }),
  ]);
  const [small, large] = read(together).frames as [LinkFrame, LinkFrame];
  const kept = detachPayload(small.payload);
  // Node may put small buffers together, and it depends on its version how much it does.
  t.true(kept.buffer !== small.payload.buffer && kept.buffer.byteLength <= Buffer.poolSize);
  t.deepEqual(kept, Buffer.from('small'));
  t.is(detachPayload(large.payload), large.payload);
});
