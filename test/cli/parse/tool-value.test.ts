import test from 'ava';
import {
  checkRenaming,
  checkToolText,
  parseRenaming,
  parseToolName,
  parseToolText,
} from '../../../src/cli/parse/servers/tool-value.ts';

test('a renaming ends with the new name, so that the old one may have any character', (t) => {
  t.deepEqual(parseRenaming('a=b'), { ok: true, value: ['a', 'b'] });
  t.deepEqual(parseRenaming('a b=ü==c.d-E_1'), { ok: true, value: ['a b=ü=', 'c.d-E_1'] });
  t.deepEqual(checkRenaming('a=b', 'c'), { ok: true, value: ['a=b', 'c'] });
});

test('a new name is one that hosts accept', (t) => {
  t.deepEqual(parseToolName('x'.repeat(128)), { ok: true, value: 'x'.repeat(128) });
  for (const name of ['', 'a b', 'ü', 'a/b', 'x'.repeat(129), 'a\n']) t.false(parseToolName(name).ok, name);
  for (const text of ['', 'a', '=', 'a=', '=b', 'a=b c', `a=${'x'.repeat(129)}`]) {
    t.deepEqual(parseRenaming(text), {
      ok: false,
      expected: 'OLD=NEW, where NEW has 1 to 128 letters, digits, "_", "-" and "."',
    });
  }
});

test('the text of a tool is all that follows its name, and may be empty', (t) => {
  t.deepEqual(parseToolText('a=b=c\nd'), { ok: true, value: ['a', 'b=c\nd'] });
  t.deepEqual(parseToolText('a='), { ok: true, value: ['a', ''] });
  t.deepEqual(checkToolText('a=b', 'c'), { ok: true, value: ['a=b', 'c'] });
  for (const text of ['', 'a', '=b']) {
    t.deepEqual(parseToolText(text), {
      ok: false,
      expected: 'NAME=TEXT, the name that the server gives a tool and its description',
    });
  }
});
