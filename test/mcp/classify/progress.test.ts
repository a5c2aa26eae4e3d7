import test from 'ava';
import fc from 'fast-check';
import { findProgressOf, readProgress, rewriteProgress } from '../../../src/mcp/classify/correlators.ts';
import { readPayload } from '../../../src/mcp/vocabulary/payload.ts';
import { decodeId } from '../../../src/wire/decode-id.ts';
import { Frame, replaceSpans } from '../../../src/wire/frame.ts';
import { findUniqueMember } from '../../../src/wire/json/outline.ts';
import { scanEnvelope } from '../../../src/wire/scan-envelope.ts';
import { serverFrame } from '../../support/frames.ts';
import { progressLine } from '../../support/progress-lines.ts';

const frames = progressLine
  .map((line) => ({ line, envelope: scanEnvelope(line) }))
  .filter(({ envelope }) => envelope?.kind === 'notification')
  .map(({ line, envelope }) => new Frame(line, envelope as NonNullable<typeof envelope>));

/** By a walk over all members. */
function tokenOf({ bytes, payloadStart }: Frame) {
  const span = payloadStart === -1 ? undefined : findUniqueMember(bytes, payloadStart, 'progressToken');
  if (span === undefined || span === 'duplicate') return undefined;
  const value = decodeId(bytes, span.start, span.end) ?? readInteger(bytes.toString('utf8', span.start, span.end));
  return value === undefined ? undefined : { ...span, value };
}

/** However it is written. */
function readInteger(text: string): number | undefined {
  return /^[-\d]/.test(text) && Number.isInteger(Number(text)) ? Number(text) : undefined;
}

test('the token of a notification is the one that a walk over all its members finds', (t) => {
  fc.assert(
    fc.property(frames, (frame) => {
      t.deepEqual(findProgressOf(frame), tokenOf(frame), frame.bytes.toString());
    }),
    { numRuns: 3000 },
  );
});

test('progress under another token is what a new scan of its bytes makes of them', (t) => {
  const tokens = fc.constantFrom('7', '"\\""', '"a,b}"', '1234567').map((text) => Buffer.from(text));
  fc.assert(
    fc.property(frames, tokens, (frame, replacement) => {
      const found = tokenOf(frame);
      const bytes = found && replaceSpans(frame.bytes, [{ ...found, replacement }]);
      const envelope = bytes && scanEnvelope(bytes);
      t.deepEqual(rewriteProgress(frame, replacement), bytes && envelope && new Frame(bytes, envelope));
    }),
    { numRuns: 3000 },
  );
});

for (const [params, expected] of [
  ['{"progressToken":1,"progress":12}', 12],
  ['{"progressToken":1,"progress":0.5,"total":1}', 0.5],
  ['{"progressToken":1,"progress":-1}', -1],
  ['{"progressToken":1,"progress":123456789012345678}', 123456789012345680],
  ['{"progressToken":1,"progress":1,"progress":2}', 2],
  ['{"progressToken":1,"progress":"1"}', undefined],
  ['{"progressToken":1,"progress":null}', undefined],
  ['{"progressToken":1,"progress":1x}', undefined],
  ['{"progressToken":1}', undefined],
  ['[1]', undefined],
] as const) {
  test(`progress of ${params}: ${expected}`, (t) => {
    t.is(readProgress(serverFrame(`{"jsonrpc":"2.0","method":"notifications/progress","params":${params}}`)), expected);
  });
}

test('progress is what parsing finds, where the message is JSON', (t) => {
  fc.assert(
    fc.property(frames, (frame) => {
      const params = readPayload(frame);
      if (params === undefined) return;
      t.is(readProgress(frame), typeof params.progress === 'number' ? params.progress : undefined);
    }),
  );
});
