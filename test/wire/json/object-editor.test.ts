import test from 'ava';
import fc from 'fast-check';
import { replaceSpans } from '../../../src/wire/frame.ts';
import { ObjectEditor } from '../../../src/wire/json/object-editor.ts';
import { anyJson, anyText, JsonPrinter } from '../json-text.ts';

const keys = ['a', 'b', 'c/d', '__proto__'] as const;

function edited(text: string, change: (editor: ObjectEditor) => void): string {
  const bytes = Buffer.from(text);
  const editor = ObjectEditor.read(bytes, 0, keys);
  if (editor === undefined) throw new Error('not an object');
  change(editor);
  return replaceSpans(bytes, editor.edits()).toString();
}

for (const [title, before, after] of [
  ['the only member', '{ "a" : 1 }', '{  }'],
  ['the first', '{ "a":1 , "x":2}', '{ "x":2}'],
  ['the last', '{"x":2 , "a":1 }', '{"x":2 }'],
  ['one between', '{"x":1, "a":[{}] ,"y":2}', '{"x":1 ,"y":2}'],
  ['several in a row at the start', '{"a":1,"b":2,"x":3}', '{"x":3}'],
  ['several in a row at the end', '{"x":3,"b":1,"a":2}', '{"x":3}'],
  ['several apart', '{"a":1,"x":3,"b":2,"y":4}', '{"x":3,"y":4}'],
  ['one that occurs twice', '{"a":1,"x":3,"a":2}', '{"x":3}'],
  ['one spelled with escapes', '{"\\u0061":1,"x":3}', '{"x":3}'],
  ['none that is not there', '{ "x" : {"a":1} }', '{ "x" : {"a":1} }'],
] as const) {
  test(`removes ${title}`, (t) => {
    const removed = edited(before, (editor) => {
      editor.remove('a');
      editor.remove('b');
    });
    t.is(removed, after);
  });
}

for (const [title, before, after] of [
  ['a member that is there', '{"x":1, "a" : [ ] }', '{"x":1, "a" : 7 }'],
  ['a new member', '{"x":1 }', '{"x":1,"a":7 }'],
  ['the first member', '{ }', '{"a":7 }'],
  ['one that occurs twice', '{"a":1,"x":3,"a":2}', '{"a":7,"x":3}'],
] as const) {
  test(`sets ${title}`, (t) => {
    t.is(
      edited(before, (editor) => editor.set('a', Buffer.from('7'))),
      after,
    );
  });
}

test('removes, sets and adds in one go', (t) => {
  const changed = edited('{"a":1,"b":2,"x":3}', (editor) => {
    editor.remove('a');
    editor.set('b', Buffer.from('4'));
    editor.set('c/d', Buffer.from('5'));
    editor.set('__proto__', Buffer.from('6'));
  });
  t.is(changed, '{"b":4,"x":3,"c/d":5,"__proto__":6}');
  const replaced = edited('{"a":1,"b":2}', (editor) => {
    editor.remove('a');
    editor.remove('b');
    editor.set('c/d', Buffer.from('5'));
  });
  t.is(replaced, '{"c/d":5}');
});

test('edits within a value', (t) => {
  const text = '{"a":{"x":1,"b":2},"y":3}';
  const inner = ObjectEditor.read(Buffer.from(text), text.indexOf('{"x"'), keys);
  inner?.remove('b');
  t.is(
    edited(text, (editor) => editor.edit('a', inner?.edits() ?? [])),
    '{"a":{"x":1},"y":3}',
  );
});

test('knows when nothing would be left', (t) => {
  const isEmpty = (text: string) => {
    const editor = ObjectEditor.read(Buffer.from(text), 0, keys);
    editor?.remove('a');
    return editor?.isEmpty;
  };
  t.true(isEmpty('{}'));
  t.true(isEmpty('{"a":1,"a":2}'));
  t.false(isEmpty('{"a":1,"x":2}'));
});

test('reads nothing but objects that end', (t) => {
  for (const text of ['[]', 'null', '1', '"a"', '', '{', '{"a":1', '{"a":"1}', '{"a":1,', '{"a"}', '{1:2}']) {
    t.is(ObjectEditor.read(Buffer.from(text), 0, keys), undefined, text);
  }
  t.is(ObjectEditor.read(Buffer.from('{}'), -1, keys), undefined);
});

test('a name that was not asked for is a mistake of the caller', (t) => {
  t.throws(() => edited('{}', (editor) => editor.remove('other')), { message: /not asked/ });
});

test('does not slow down on names that occur many times', (t) => {
  const text = `{${'"a":1,'.repeat(50_000)}${'"b":1,'.repeat(50_000)}"x":2}`;
  const removed = edited(text, (editor) => {
    editor.remove('a');
    editor.remove('b');
  });
  t.is(removed, '{"x":2}');
});

test('changes what JSON.parse would see, and the value of nothing else', (t) => {
  const anyChange = fc.constantFrom('keep', 'remove', 'set') as fc.Arbitrary<'keep' | 'remove' | 'set'>;
  const anyObject = fc.dictionary(fc.oneof(anyText, fc.constantFrom(...keys)), anyJson, { maxKeys: 6 });
  fc.assert(
    fc.property(
      anyObject,
      fc.tuple(anyChange, anyChange, anyChange, anyChange),
      anyJson,
      fc.integer(),
      (object, changes, value, seed) => {
        const text = new JsonPrinter(seed, { newlines: false }).object(Object.entries(object));
        const expected = new Map(Object.entries(JSON.parse(text)));
        const changed = edited(text, (editor) => {
          changes.forEach((change, index) => {
            const key = keys[index] as string;
            if (change === 'remove') editor.remove(key);
            if (change === 'set') editor.set(key, Buffer.from(JSON.stringify(value)));
            if (change === 'remove') expected.delete(key);
            if (change === 'set') expected.set(key, JSON.parse(JSON.stringify(value)));
          });
        });
        t.deepEqual(Object.entries(JSON.parse(changed)), Object.entries(Object.fromEntries(expected)));
      },
    ),
    { numRuns: 1000 },
  );
});
