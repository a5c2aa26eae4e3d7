import fc from 'fast-check';
import {
  decodeFrames,
  encodeFrameHead,
  FRAME_TYPES,
  type FrameType,
  type LinkFrame,
  MAX_PAYLOAD_BYTES,
} from '../../../src/downstream/cluster/link/frames.ts';
import { decodePassedHead, decodeReturnedHead } from '../../../src/downstream/cluster/link/heads.ts';
import { RecordOpener, RecordSealer } from '../../../src/downstream/cluster/link/records.ts';
import { anySeed, havoc, pieces } from '../havoc.ts';
import { fuzzTarget, insist } from '../target.ts';

const KEY = Buffer.alloc(32, 7);

const frame = fc.record({
  type: fc.constantFrom(...(Object.keys(FRAME_TYPES) as FrameType[])),
  stream: fc.nat(0xffff_ffff),
  mark: fc.constantFrom('none', 'more', 'last'),
  payload: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
});

function encode({ type, stream, mark, payload }: LinkFrame): Buffer {
  return Buffer.concat([encodeFrameHead(type, stream, mark, payload.length), payload]);
}

function decode(record: Buffer): LinkFrame[] | undefined {
  const frames: LinkFrame[] = [];
  return decodeFrames(record, (one) => frames.push(one) > 0) ? frames : undefined;
}

const frames = fc.array(frame, { maxLength: 8 });
const anyDamage = fc.tuple(anySeed, fc.boolean());

export const linkFrames = fuzzTarget({
  name: 'link-frames',
  promise: 'a record between replicas is the frames that were written, or is refused, and no head in it is too much',
  runs: 300,
  input: fc.tuple(frames, anyDamage),
  holds: ([written, [seed, isDamaged]]) => {
    const whole = Buffer.concat(written.map(encode));
    const record = isDamaged ? havoc(whole, seed) : whole;
    const read = decode(record);
    insist(isDamaged || read !== undefined, () => 'a record was refused as it was written');
    if (read === undefined) return;
    insist(Buffer.concat(read.map(encode)).equals(record), () => 'what was decoded is something else than what came');
    for (const { payload } of read) {
      insist(payload.length <= MAX_PAYLOAD_BYTES, () => 'a payload is too large');
      decodePassedHead(payload);
      decodeReturnedHead(payload);
    }
  },
});

export const linkRecords = fuzzTarget({
  name: 'link-records',
  promise: 'what opens of records between replicas is the beginning of what was sealed, however they arrive',
  runs: 300,
  input: fc.tuple(frames, anySeed, anyDamage),
  holds: ([written, splitSeed, [seed, isDamaged]]) => {
    const plains = written.map(encode);
    const sealer = new RecordSealer(KEY);
    const whole = Buffer.concat(plains.flatMap((plain) => sealer.seal(plain)));
    const opener = new RecordOpener(KEY);
    const opened: Buffer[] = [];
    const isWell = pieces(isDamaged ? havoc(whole, seed) : whole, splitSeed).every((piece) =>
      opener.push(piece, (plain) => opened.push(plain) > 0),
    );
    const expected = isDamaged ? plains.slice(0, opened.length) : plains;
    insist(isDamaged || isWell, () => 'records were refused as they were sealed');
    insist(Buffer.concat(opened).equals(Buffer.concat(expected)), () => 'something opened that was not sealed so');
  },
});
