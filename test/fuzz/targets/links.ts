import fc from 'fast-check';
import {
  encodeFrameHead,
  FRAME_TYPES,
  FrameReader,
  type FrameType,
  type LinkFrame,
  MAX_PAYLOAD_BYTES,
} from '../../../src/replicas/forwarding/link/frames.ts';
import { decodePassedHead, decodeReturnedHead } from '../../../src/replicas/forwarding/link/heads.ts';
import { anySeed, havoc, pieces } from '../havoc.ts';
import { fuzzTarget, insist } from '../target.ts';

const frame = fc.record({
  type: fc.constantFrom(...(Object.keys(FRAME_TYPES) as FrameType[])),
  stream: fc.nat(0xffff_ffff),
  mark: fc.constantFrom('none', 'more', 'last'),
  payload: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
});

function encode({ type, stream, mark, payload }: LinkFrame): Buffer {
  return Buffer.concat([encodeFrameHead(type, stream, mark, payload.length), payload]);
}

const frames = fc.array(frame, { maxLength: 8 });
const anyDamage = fc.tuple(anySeed, fc.boolean());

export const linkFrames = fuzzTarget({
  name: 'link-frames',
  promise:
    'what passes between replicas is the frames that were written, in whatever pieces it comes, or is refused, and no head in it is too much',
  runs: 300,
  input: fc.tuple(frames, anySeed, anyDamage),
  holds: ([written, splitSeed, [seed, isDamaged]]) => {
    const whole = Buffer.concat(written.map(encode));
    const came = isDamaged ? havoc(whole, seed) : whole;
    const reader = new FrameReader();
    const read: LinkFrame[] = [];
    const areFrames = pieces(came, splitSeed).every((piece) => reader.push(piece, (one) => read.push(one) > 0));
    const again = Buffer.concat(read.map(encode));
    insist(came.subarray(0, again.length).equals(again), () => 'what was read is something else than what came');
    insist(isDamaged || (areFrames && again.length === whole.length), () => 'frames were refused as they were written');
    for (const { payload } of read) {
      insist(payload.length <= MAX_PAYLOAD_BYTES, () => 'a payload is too large');
      decodePassedHead(payload);
      decodeReturnedHead(payload);
    }
  },
});
