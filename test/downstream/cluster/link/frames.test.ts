import test from 'ava';
import {
  decodeFrames,
  detachPayload,
  encodeFrameHead,
  encodeWindow,
  FRAME_HEAD_BYTES,
  FRAME_TYPES,
  type FrameMark,
  type FrameType,
  type LinkFrame,
  MAX_PAYLOAD_BYTES,
  MAX_STREAM,
  markLast,
  windowOf,
} from '../../../../src/downstream/cluster/link/frames.ts';

const TYPES = Object.keys(FRAME_TYPES) as FrameType[];
const MARKS: readonly FrameMark[] = ['none', 'more', 'last'];

function encode({ type, stream, mark, payload }: LinkFrame): Buffer {
  return Buffer.concat([encodeFrameHead(type, stream, mark, payload.length), payload]);
}

function decode(record: Buffer): LinkFrame[] | 'invalid' {
  const frames: LinkFrame[] = [];
  const isRecord = decodeFrames(record, (frame) => {
    frames.push(frame);
    return true;
  });
  return isRecord ? frames : 'invalid';
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
  for (const frame of frames) t.deepEqual(decode(encode(frame)), [frame]);
  t.deepEqual(decode(Buffer.concat(frames.slice(0, 6).map(encode))), frames.slice(0, 6));
  t.deepEqual(decode(Buffer.alloc(0)), []);
});

test('a record that ends within a frame is none', (t) => {
  const whole = encode({ type: 'data', stream: 1, mark: 'none', payload: Buffer.from('abc') });
  for (let length = 1; length < whole.length; length += 1) {
    t.is(decode(whole.subarray(0, length)), 'invalid', `${length} bytes`);
  }
});

test('unknown types, contradicting marks and payloads that are too large are refused', (t) => {
  const changed = (first: number): Buffer => {
    const bytes = encode({ type: 'data', stream: 1, mark: 'none', payload: Buffer.alloc(0) });
    bytes[0] = first;
    return bytes;
  };
  for (const first of [0, 9, 0x3f, 0xc0 | FRAME_TYPES.data]) t.is(decode(changed(first)), 'invalid', `${first}`);
  const large = { type: 'data', stream: 1, mark: 'none', payload: Buffer.alloc(MAX_PAYLOAD_BYTES + 1) } as const;
  t.is(decode(encode(large)), 'invalid');
});

test('no frame is handed over after the taker has had enough', (t) => {
  const frame = encode({ type: 'ping', stream: 0, mark: 'none', payload: Buffer.alloc(0) });
  let taken = 0;
  t.true(decodeFrames(Buffer.concat([frame, frame, Buffer.from('junk')]), () => ++taken < 1));
  t.is(taken, 1);
});

test('a frame can be made the last of its stream until it leaves', (t) => {
  const head = encodeFrameHead('data', 5, 'none', 0);
  markLast(head);
  t.deepEqual(decode(head), [{ type: 'data', stream: 5, mark: 'last', payload: Buffer.alloc(0) }]);
  t.is(head.length, FRAME_HEAD_BYTES);
});

test('a window is a number of 32 bits, and anything else widens nothing', (t) => {
  const frameOf = (payload: Buffer): LinkFrame => ({ type: 'window', stream: 1, mark: 'none', payload });
  t.is(windowOf(frameOf(encodeWindow(0xffff_fffe))), 0xffff_fffe);
  for (const length of [0, 3, 5]) t.is(windowOf(frameOf(Buffer.alloc(length, 1))), 0);
});

test('a small payload that is kept does not keep its record in memory', (t) => {
  const record = Buffer.concat([
    encode({ type: 'data', stream: 1, mark: 'none', payload: Buffer.from('small') }),
    encode({ type: 'data', stream: 2, mark: 'none', payload: Buffer.alloc(60_000) }),
  ]);
  const [small, large] = decode(record) as [LinkFrame, LinkFrame];
  t.true(detachPayload(small.payload).buffer.byteLength <= 8192);
  t.deepEqual(detachPayload(small.payload), Buffer.from('small'));
  t.is(detachPayload(large.payload), large.payload);
});
