import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { Frame, withId } from '../../../src/wire/frame.ts';
import { checkJson } from '../../../src/wire/json/check-json.ts';
import { walkMembers } from '../../../src/wire/json/scan-json.ts';
import { type ReadResult, readMessage } from '../../../src/wire/read-message.ts';
import { recoverEnvelope, scanEnvelope, scanStrictEnvelope } from '../../../src/wire/scan-envelope.ts';
import { anyMessage, createRandom } from '../../wire/json-text.ts';
import { listMembers, listVisited, objectsDownTo } from '../../wire/list-members.ts';
import { anySeed, damaged } from '../havoc.ts';
import { fuzzTarget, insist } from '../target.ts';

const LIMITS = { maxDepth: 64, maxBatch: 20, maxValues: 1_000_000 };
const END_BYTES = 1024;

const message = anyMessage({ newlines: true }).map(({ text }) => text);
const body = fc.oneof(
  { weight: 6, arbitrary: message },
  { weight: 1, arbitrary: fc.array(message, { maxLength: 4 }).map((texts) => `[${texts.join(',')}]`) },
  { weight: 1, arbitrary: fc.nat(100).map((depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`) },
);

interface Parsed {
  readonly id?: unknown;
  readonly method?: unknown;
}

function parse(bytes: Buffer): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(bytes.toString()) };
  } catch {
    return undefined;
  }
}

export const envelope = fuzzTarget({
  name: 'envelope',
  promise: 'a client’s message means the same to the bridge and to every JSON parser, or is refused',
  runs: 500,
  input: fc.tuple(damaged(body), anySeed),
  holds: ([bytes, seed]) => {
    const text = withoutSurroundings(bytes);
    const parsed = isUtf8(text) ? parse(text) : undefined;
    const result = readMessage(Buffer.from(bytes), LIMITS);
    const isNoJson = isRefusedAsNoJson(result);
    insist(isNoJson === 'unread' || isNoJson === (parsed === undefined), () => `${result.kind} of ${bytes}`);
    for (const frame of framesOf(result)) checkFrame(frame, seed);
    // A server's line is trusted to be JSON; whatever it is, it is looked at without harm.
    scanEnvelope(bytes);
    scanStrictEnvelope(bytes);
    checkJson(bytes, LIMITS);
    recoverEnvelope(bytes, bytes.subarray(seed % (bytes.length + 1)));
  },
});

/** Without byte order mark and whitespace around it. */
function withoutSurroundings(bytes: Buffer): Buffer {
  const text = bytes.toString('latin1').replace(/^\u00ef\u00bb\u00bf/, '');
  return Buffer.from(text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, ''), 'latin1');
}

/** What nests too deep was not read to its end, so it is refused for that. */
function isRefusedAsNoJson(result: ReadResult): boolean | 'unread' {
  if (result.kind !== 'fault') return false;
  return result.reason.includes('nests deeper') ? 'unread' : result.fault === 'parse';
}

function framesOf(result: ReadResult): readonly Frame[] {
  if (result.kind === 'message') return [result.frame];
  return result.kind === 'batch' ? result.items.filter((item) => item instanceof Frame) : [];
}

function checkFrame(frame: Frame, seed: number): void {
  const parsed = frame.json() as Parsed;
  insist((parsed.id ?? undefined) === frame.id, () => `id ${frame.id} of ${frame.bytes}`);
  insist(parsed.method === frame.method, () => `method ${frame.method} of ${frame.bytes}`);
  insist(!/[\r\n]/.test(frame.bytes.toString('latin1')), () => 'a frame of several lines');
  for (const start of objectsDownTo(3, frame.bytes)) {
    const listed = listMembers(frame.bytes, start);
    const noted = listVisited((take) => frame.outline?.visitMembers(frame.bytes, start, take));
    insist(noted === undefined || isDeepStrictEqual(noted, listed), () => `the outline of ${frame.bytes}`);
    const walked = listVisited((take) => walkMembers(frame.bytes, start, take));
    insist(isDeepStrictEqual(walked, listed), () => `the members of ${frame.bytes}`);
  }
  const trusting = scanEnvelope(frame.bytes);
  insist(trusting?.id === frame.id && trusting?.kind === frame.kind, () => `the two scans differ about ${frame.bytes}`);
  if (frame.id === undefined) return;
  const renamed = withId(frame, seed);
  insist(isDeepStrictEqual(renamed.json(), { ...parsed, id: seed }), () => `${renamed.bytes} out of ${frame.bytes}`);
}

/** Members and values that say nothing and take space, within a message or around its payload. */
const padding = fc.record({ members: fc.nat(3), length: fc.integer({ min: 1500, max: 6000 }), seed: anySeed });

export const oversized = fuzzTarget({
  name: 'oversized',
  promise: 'what the ends of an over-long message tell of it is true',
  runs: 400,
  input: fc.tuple(anyMessage({ newlines: false }), padding),
  holds: ([{ text, kind }, { members, length, seed }]) => {
    const long = padded(text, { members, length, seed });
    const whole = JSON.parse(long) as Parsed;
    const bytes = Buffer.from(long);
    const found = recoverEnvelope(bytes.subarray(0, END_BYTES), bytes.subarray(-END_BYTES));
    insist(found.id === undefined || found.id === whole.id, () => `id ${found.id} of ${long}`);
    insist(found.method === undefined || found.method === whole.method, () => `method ${found.method} of ${long}`);
    // An id too long for the ends makes a request look like a notification; nobody is answered then.
    const isKind = found.kind === undefined || found.kind === kind || kind === 'request';
    insist(isKind, () => `${found.kind} instead of ${kind}: ${long}`);
  },
});

function padded(text: string, { members, length, seed }: { members: number; length: number; seed: number }): string {
  const random = createRandom(seed);
  const decoy = ['x', '\\"', '\\\\', '{', ',\\"id\\":7', '\\"}'][Math.floor(random() * 6)] ?? 'x';
  const filler = decoy.repeat(Math.ceil(length / decoy.length));
  const more = Array.from({ length: members }, (_, index) => `"pad${index}":"${filler}"`);
  const inner = text.trim().slice(1, -1);
  const front = random() < 0.5;
  const parts = front ? [`"pad":"${filler}"`, ...more, inner] : [inner, ...more, `"pad":["${filler}"]`];
  return `{${parts.join(',')}}`;
}
