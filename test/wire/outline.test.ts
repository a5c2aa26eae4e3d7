import test from 'ava';
import fc from 'fast-check';
import { checkJson } from '../../src/wire/check-json.ts';
import { Frame } from '../../src/wire/frame.ts';
import { membersOf, Outline } from '../../src/wire/outline.ts';
import { readMessage } from '../../src/wire/read-message.ts';
import { MemberCursor } from '../../src/wire/scan-json.ts';
import { anyJson, anyText, JsonPrinter } from './json-text.ts';
import { listMembers, objectsDownTo } from './list-members.ts';

const LEVELS = 3;

function outlineOf(bytes: Buffer): Outline {
  const outline = new Outline();
  checkJson(bytes, 1000, outline);
  return outline;
}

const anyObject = fc.dictionary(anyText, fc.oneof(anyJson, fc.dictionary(anyText, anyJson, { maxKeys: 4 })), {
  maxKeys: 4,
});

test('has the members that walking finds, of the object and of those within it', (t) => {
  fc.assert(
    fc.property(anyObject, fc.integer(), (object, seed) => {
      const bytes = Buffer.from(new JsonPrinter(seed, { newlines: true }).value(object));
      const outline = outlineOf(bytes);
      if (!outline.isComplete) return;
      for (const start of objectsDownTo(LEVELS, bytes)) {
        const noted = outline.membersOf(bytes, start);
        t.deepEqual(noted && listMembers(noted), listMembers(new MemberCursor(bytes, start)), bytes.toString());
      }
    }),
    { numRuns: 2000 },
  );
});

test('finds the members of any other value, too', (t) => {
  fc.assert(
    fc.property(anyObject, fc.integer(), fc.nat(), (object, seed, at) => {
      const bytes = Buffer.from(
        new JsonPrinter(seed, { newlines: false }).value({ object: [object], list: [[object]] }),
      );
      const outline = outlineOf(bytes);
      const braces = [...bytes.keys()].filter((index) => bytes[index] === 0x7b);
      const start = braces[at % braces.length] ?? 0;
      t.deepEqual(listMembers(membersOf(bytes, start, outline)), listMembers(new MemberCursor(bytes, start)));
      t.deepEqual(listMembers(membersOf(bytes, start, undefined)), listMembers(new MemberCursor(bytes, start)));
    }),
    { numRuns: 1000 },
  );
});

const withParams = (count: number): Buffer => {
  const params = Array.from({ length: count }, (_, index) => `"p${index}":{}`).join(',');
  return Buffer.from(`{"jsonrpc":"2.0","method":"x","params":{${params}}}`);
};
const frameOf = (bytes: Buffer) => {
  const result = readMessage(bytes, { maxDepth: 10, maxBatch: 10 });
  return result.kind === 'message' ? result.frame : undefined;
};

test('a message keeps the outline of at most 64 members', (t) => {
  t.not(frameOf(withParams(61))?.outline, undefined);
  const frame = frameOf(withParams(62));
  t.is(frame?.outline, undefined);
  t.is(frame?.method, 'x');
});

test('notes no more of a text of any size', (t) => {
  const bytes = Buffer.from(`{${'"a":{},'.repeat(100_000)}"b":1}`);
  const outline = outlineOf(bytes);
  t.false(outline.isComplete);
  const noted = outline.membersOf(bytes, 0);
  t.is(noted && listMembers(noted).offsets.length, 65);
});

test('messages of a batch have none', (t) => {
  const result = readMessage(Buffer.from('[{"jsonrpc":"2.0","method":"x"}]'), { maxDepth: 10, maxBatch: 10 });
  const [item] = result.kind === 'batch' ? result.items : [];
  t.is(item instanceof Frame ? item.outline : 'no frame', undefined);
});
