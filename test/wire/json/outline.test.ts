import test from 'ava';
import fc from 'fast-check';
import { Frame, replaceSpans } from '../../../src/wire/frame.ts';
import { checkJson } from '../../../src/wire/json/check-json.ts';
import { editedOutline } from '../../../src/wire/json/edited-outline.ts';
import { ObjectEditor } from '../../../src/wire/json/object-editor.ts';
import { findMember, MAX_MEMBERS, Outline, visitMembers, walkOutline } from '../../../src/wire/json/outline.ts';
import type { Edit } from '../../../src/wire/json/scan-json.ts';
import { readMessage } from '../../../src/wire/read-message.ts';
import { scanEnvelope } from '../../../src/wire/scan-envelope.ts';
import { anyJson, anyText, JsonPrinter } from '../json-text.ts';
import { listMembers, listVisited } from '../list-members.ts';

const LIMITS = { maxDepth: 10, maxBatch: 10, maxValues: 1_000_000 };

function outlineOf(bytes: Buffer): Outline {
  const outline = new Outline(bytes);
  checkJson(bytes, { maxDepth: 1000, maxValues: 1_000_000 }, outline);
  return outline;
}

const anyObject = fc.dictionary(anyText, fc.oneof(anyJson, fc.dictionary(anyText, anyJson, { maxKeys: 4 })), {
  maxKeys: 4,
});

const anyPayload = fc.dictionary(
  fc.oneof(anyText, fc.constantFrom('_meta', '_met', '_META')),
  fc.oneof(anyJson, fc.dictionary(anyText, anyJson, { maxKeys: 4 })),
  { maxKeys: 4 },
);
const anyMessage = fc.dictionary(fc.oneof(anyText, fc.constant('_meta')), fc.oneof(anyJson, anyPayload), {
  maxKeys: 4,
});

/** Where the objects begin whose members are noted: the message, its members, and the `_meta` of those. */
function notedObjects(bytes: Buffer): readonly number[] {
  const { offsets } = listMembers(bytes, 0);
  const metas = offsets.flatMap(([, , start]) => {
    const span = findMember(bytes, start, '_meta');
    return span === undefined ? [] : [span.start];
  });
  return [0, ...offsets.map(([, , start]) => start), ...metas].filter((start) => bytes[start] === 0x7b);
}

test('has the members that walking finds, of the message, its members and their _meta', (t) => {
  fc.assert(
    fc.property(anyMessage, fc.integer(), (object, seed) => {
      const bytes = Buffer.from(new JsonPrinter(seed, { newlines: true }).value(object));
      for (const outline of [outlineOf(bytes), walkOutline(bytes).outline]) {
        t.true(outline.isComplete);
        for (const start of notedObjects(bytes)) {
          const noted = listVisited((take) => outline.visitMembers(bytes, start, take));
          t.deepEqual(noted, listMembers(bytes, start), bytes.toString());
        }
      }
    }),
    { numRuns: 2000 },
  );
});

test('finds where the object ends that it walks over', (t) => {
  fc.assert(
    fc.property(anyMessage, fc.integer(), (object, seed) => {
      const bytes = Buffer.from(new JsonPrinter(seed, { newlines: false }).value(object));
      t.is(walkOutline(Buffer.concat([bytes, Buffer.from(',{"a":1}')])).end, bytes.length);
    }),
    { numRuns: 300 },
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
      t.deepEqual(
        listVisited((take) => visitMembers(bytes, start, outline, take)),
        listMembers(bytes, start),
      );
      t.deepEqual(
        listVisited((take) => visitMembers(bytes, start, undefined, take)),
        listMembers(bytes, start),
      );
    }),
    { numRuns: 1000 },
  );
});

/** Changes of some members of some of the objects whose members are noted, and of what lies within other values. */
function someEdits(bytes: Buffer, pick: (count: number) => number): readonly Edit[] {
  const edits = notedObjects(bytes).flatMap((start) => {
    const keys = listMembers(bytes, start).offsets.map(([keyStart, keyEnd]) =>
      JSON.parse(bytes.toString('utf8', keyStart, keyEnd)),
    );
    const editor = ObjectEditor.read(bytes, start, keys);
    for (const key of keys) {
      const value = editor?.value(key);
      const change = pick(6);
      if (change === 0) editor?.remove(key);
      if (change === 1) editor?.set(key, Buffer.from(['1', '"longer"', '[{"a":1}]', '{"a":{}}'][pick(4)] ?? ''));
      if (change === 2 && value !== undefined && bytes[value.start] === 0x22) {
        editor?.edit(key, [{ start: value.start + 1, end: value.start + 1, replacement: Buffer.from('{') }]);
      }
    }
    return editor?.edits() ?? [];
  });
  const sorted = edits.sort((a, b) => a.start - b.start || a.end - b.end);
  return sorted.filter(({ start }, index) => sorted.slice(0, index).every(({ end }) => end <= start));
}

test('an outline that is kept through edits has the members that walking finds', (t) => {
  let kept = 0;
  fc.assert(
    fc.property(anyMessage, fc.integer(), fc.infiniteStream(fc.nat()), (object, seed, picks) => {
      const bytes = Buffer.from(new JsonPrinter(seed, { newlines: true }).value(object));
      const edits = someEdits(bytes, (count) => (picks.next().value ?? 0) % count);
      const edited = replaceSpans(bytes, edits);
      if (!isJson(edited)) return;
      const outline = editedOutline(walkOutline(bytes).outline, edited, edits);
      if (outline === undefined) return;
      if (edits.length > 0) kept++;
      for (const start of notedObjects(edited)) {
        const noted = listVisited((take) => outline.visitMembers(edited, start, take));
        t.deepEqual(noted, listMembers(edited, start), edited.toString());
      }
    }),
    { numRuns: 3000 },
  );
  t.true(kept > 500, `${kept}`);
});

function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(bytes.toString());
    return true;
  } catch {
    return false;
  }
}

for (const [title, from, to, replacement] of [
  ['another id', '1,"result"', ',"result"', '"a longer one"'],
  ['another value', '[1]', '}}', '{"a":{}}'],
  ['something else within a value', '1]', ']', '{"a":1}'],
  ['the first member less', '"first"', '"list"', ''],
  ['the last member less', ',"list"', '}}', ''],
  ['all members less', '"first"', '}}', ''],
] as const) {
  test(`a long message keeps its outline with ${title}`, (t) => {
    const text = JSON.stringify('x'.repeat(20_000));
    const frame = serverFrame(`{"jsonrpc":"2.0","x":${text},"id":1,"result":{"first":1,"list":[1]}}`);
    const edits = [
      { start: frame.bytes.indexOf(from), end: frame.bytes.indexOf(to), replacement: Buffer.from(replacement) },
    ];
    const bytes = replaceSpans(frame.bytes, edits);
    t.is(frame.outlineOfEdited(bytes, edits), undefined, 'nobody has asked for it yet');
    t.not(frame.outline, undefined);
    const outline = frame.outlineOfEdited(bytes, edits);
    for (const start of notedObjects(bytes)) {
      const noted = listVisited((take) => outline?.visitMembers(bytes, start, take));
      t.deepEqual(noted, listMembers(bytes, start), bytes.toString());
    }
  });
}

const MESSAGE = '{"result":{"_meta":{"a":1},"n":12,"b":{"c":2}}}';

/** What stands in front of the change, where that comes last in MESSAGE; what is removed; and what comes in its place. */
type Change = readonly [before: string, removed: string, replacement: string];

/** All leave JSON. */
const WALKED_OVER_ANEW: Readonly<Record<string, readonly Change[]>> = {
  'gets a member behind a value': [['12', '', ',"d":1']],
  'gets a member before another one': [['12,', '', '"d":1,']],
  'gets a member in front of a value': [['"b":', '', '1,"d":']],
  'gets a member at the end of an object in it': [['{"a":1', '', ',"d":1']],
  'gets a member at its own end': [['{"c":2}}', '', ',"d":1']],
  'gets something behind its end': [['{"c":2}}}', '', ' ']],
  'gets an object of which members are noted for another one': [['"_meta":', '{"a":1}', '{"z":1}']],
  'gets something else for the object in it': [['"result":', MESSAGE.slice(10, -1), '[]']],
  'loses the outside of a value': [
    ['12,', '"b":{', ''],
    ['"c":2', '}', ''],
  ],
  'loses the outside of a value of which members are noted': [
    ['"result":{', '"_meta":{', ''],
    ['"a":1', '},"n":12', ''],
  ],
  'loses a member together with the end of a value': [['"a":', '1},"n":12', '1}']],
  'loses a part of a number and the member behind it': [['"n":1', '2,"b":{"c":2}', '']],
};

for (const [what, changes] of Object.entries(WALKED_OVER_ANEW)) {
  test(`a message that ${what} is walked over anew`, (t) => {
    const bytes = Buffer.from(MESSAGE);
    const { outline } = walkOutline(bytes);
    const edits = changes.map(([before, removed, replacement]) => {
      const start = MESSAGE.lastIndexOf(before + removed) + before.length;
      return { start, end: start + removed.length, replacement: Buffer.from(replacement) };
    });
    const edited = replaceSpans(bytes, edits);
    t.true(isJson(edited), edited.toString());
    t.is(editedOutline(outline, edited, edits), undefined);
  });
}

test('a message with more members than are noted has no outline after an edit', (t) => {
  const bytes = withParams(MAX_MEMBERS + 1);
  const { outline } = walkOutline(bytes);
  t.false(outline.isComplete);
  t.is(editedOutline(outline, bytes, []), undefined);
});

const withParams = (count: number): Buffer => {
  const params = Array.from({ length: count }, (_, index) => `"p${index}":{}`).join(',');
  return Buffer.from(`{"jsonrpc":"2.0","method":"x","params":{${params}}}`);
};
const frameOf = (bytes: Buffer) => {
  const result = readMessage(bytes, LIMITS);
  return result.kind === 'message' ? result.frame : undefined;
};

const TOO_MANY = /more than 1000 members together/;

test('a message may have a thousand members beside those of its arguments', (t) => {
  t.is(MAX_MEMBERS, 1000);
  t.is(frameOf(withParams(MAX_MEMBERS - 3))?.method, 'x');
  const result = readMessage(withParams(MAX_MEMBERS - 2), LIMITS);
  t.is(result.kind, 'fault');
  t.regex(result.kind === 'fault' ? result.reason : '', TOO_MANY);
});

test('a message with too many members is answered under its id where that comes before them', (t) => {
  const many = '"a":1,'.repeat(MAX_MEMBERS);
  for (const [text, id] of [
    [`{"jsonrpc":"2.0","id":7,"method":"x","params":{${many}"b":1}}`, 7],
    [`{"jsonrpc":"2.0","id":"q","method":"x","params":{"_meta":{${many}"b":1}}}`, 'q'],
    [`{"jsonrpc":"2.0","method":"x",${many}"id":7}`, undefined],
  ] as const) {
    const result = readMessage(Buffer.from(text), LIMITS);
    t.is(result.kind === 'fault' ? result.id : 'no fault', id);
  }
});

test('arguments, results and what else a payload holds may have any number of members', (t) => {
  const many = `{${'"a":1,'.repeat(100_000)}"b":1}`;
  for (const params of [`{"name":"x","arguments":${many}}`, `{"_metb":${many}}`, `{"_meta":{"a":${many}}}`, '[]']) {
    t.is(frameOf(Buffer.from(`{"jsonrpc":"2.0","method":"x","params":${params}}`))?.method, 'x');
  }
});

test('one message of a batch that has too many members is refused alone', (t) => {
  const small = '{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"a":1}}}';
  const result = readMessage(Buffer.from(`[${small}, ${withParams(MAX_MEMBERS)}, ${small}]`), LIMITS);
  const items = result.kind === 'batch' ? result.items : [];
  t.deepEqual(
    items.map((item) => (item instanceof Frame ? item.method : TOO_MANY.test(item.fault))),
    ['x', true, 'x'],
  );
  const [first] = items;
  t.not(first instanceof Frame ? first.outline?.visitMembers(first.bytes, 0, () => true) : undefined, undefined);
});

test('notes no more of a text of any size', (t) => {
  const bytes = Buffer.from(`{${'"a":{},'.repeat(100_000)}"b":1}`);
  const outline = outlineOf(bytes);
  t.false(outline.isComplete);
  const noted = listVisited((take) => outline.visitMembers(bytes, 0, take));
  t.deepEqual(noted && { count: noted.offsets.length, end: noted.objectEnd }, {
    count: MAX_MEMBERS,
    end: -1,
  });
});

const serverFrame = (text: string): Frame => {
  const bytes = Buffer.from(text);
  const envelope = scanEnvelope(bytes);
  if (envelope === undefined) throw new Error('no message');
  return new Frame(bytes, envelope);
};

test('a short message that was not read in full has none; of a long one it is made when it is asked for', (t) => {
  t.is(serverFrame('{"jsonrpc":"2.0","id":1,"result":{"a":1}}').outline, undefined);
  const frame = serverFrame(`{"jsonrpc":"2.0","id":1,"result":{"a":"${'x'.repeat(20_000)}","b":1}}`);
  const { bytes, payloadStart, outline } = frame;
  t.is(frame.outline, outline);
  t.deepEqual(findMember(bytes, payloadStart, 'b', outline), findMember(bytes, payloadStart, 'b'));
});

test('of a long message with too many members the first ones are found, and its objects have no end', (t) => {
  const { bytes, payloadStart, outline } = serverFrame(
    `{"jsonrpc":"2.0","id":1,"result":{"first":1,${'"a":1234567890,'.repeat(2000)}"last":1}}`,
  );
  t.not(outline, undefined);
  t.not(findMember(bytes, payloadStart, 'first', outline), undefined);
  t.is(findMember(bytes, payloadStart, 'last', outline), undefined);
  t.is(ObjectEditor.readIn({ bytes, outline }, payloadStart, ['first']), undefined);
});
