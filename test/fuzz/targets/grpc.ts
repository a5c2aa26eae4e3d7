import fc from 'fast-check';
import { decodeLine, encodeLine } from '../../../src/grpc/json-rpc-line.ts';
import { MessageSplitter, type SplitFault } from '../../../src/grpc/message-splitter.ts';
import { anySeed, havoc, pieces } from '../havoc.ts';
import { fuzzTarget, insist } from '../target.ts';

const MAX_MESSAGE_BYTES = 4096;

const line = fc.record({
  text: fc.string({ unit: 'grapheme', maxLength: 300 }),
  related: fc.option(fc.string({ minLength: 1, maxLength: 20 }), { nil: undefined }),
});

const anyDamage = fc.tuple(anySeed, fc.boolean());

export const grpcMessages = fuzzTarget({
  name: 'grpc-messages',
  promise:
    'lines over gRPC are read as they were written, in whatever pieces they come, or are refused, and what is kept is limited',
  runs: 300,
  input: fc.tuple(fc.array(line, { maxLength: 8 }), anySeed, anyDamage, fc.integer({ min: 1, max: 4 })),
  holds: ([written, splitSeed, [seed, isDamaged], perTurn]) => {
    const whole = Buffer.concat(written.flatMap(({ text, related }) => encodeLine(Buffer.from(text), related)));
    const came = isDamaged ? havoc(whole, seed) : whole;
    const read: (string | undefined)[] = [];
    const faults: SplitFault[] = [];
    const splitter = new MessageSplitter({
      maxMessageBytes: MAX_MESSAGE_BYTES,
      message: (bytes) => {
        insist(faults.length === 0, () => 'a message was read after a fault');
        insist(bytes.length <= MAX_MESSAGE_BYTES, () => 'a message is too large');
        read.push(decodeLine(bytes)?.toString());
      },
      fault: (fault) => faults.push(fault),
    });
    for (const piece of pieces(came, splitSeed)) {
      let rest = piece;
      while (rest.length > 0) rest = rest.subarray(splitter.push(rest, perTurn));
      insist(splitter.pendingBytes <= MAX_MESSAGE_BYTES, () => 'more is kept than a message may have');
    }
    insist(faults.length <= 1, () => 'a stream has several faults');
    if (isDamaged) return;
    const texts = written.map(({ text }) => text);
    insist(JSON.stringify(read) === JSON.stringify(texts), () => 'the lines are others than those that were written');
    insist(!splitter.isWithinMessage && faults.length === 0, () => 'something is left');
  },
});
