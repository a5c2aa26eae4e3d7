import test from 'ava';
import { cutString } from '../../../src/wire/json/cut-string.ts';

/** The kept part of a token, as all parsers read it, with what was measured. */
function cut(token: string, maxBytes: number) {
  const bytes = Buffer.from(`[${token}]`);
  const found = cutString(bytes, { start: 1, end: bytes.length - 1 }, maxBytes);
  if (found === undefined) return undefined;
  const kept = JSON.parse(`${bytes.toString('utf8', 1, found.at)}"`) as string;
  return { kept, keptBytes: found.keptBytes, fullBytes: found.fullBytes };
}

const TEXTS = [
  'plain text',
  'déjà vu €',
  '🙂a🙂🙂',
  'a\nb\t"c"\\d/',
  '\u0000\u007f\u0080\u07ff\u0800\uffff',
  'e\u0301',
  '',
];
/** Every way to write a text as JSON. */
const SPELLINGS: readonly ((text: string) => string)[] = [
  (text) => JSON.stringify(text),
  (text) => `"${[...text].flatMap(unitsOf).join('')}"`,
  (text) => `"${[...text].map((char, index) => (index % 2 === 0 ? unitsOf(char).join('') : inner(char))).join('')}"`,
  (text) => JSON.stringify(text).replaceAll('/', '\\/'),
];
const inner = (char: string): string => JSON.stringify(char).slice(1, -1);
const unitsOf = (char: string): string[] =>
  Array.from(char, (_, index) => char.charCodeAt(index))
    .concat(char.length > 1 ? [char.charCodeAt(1)] : [])
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`);

test('a text in any spelling is cut between two characters, as near to the limit as possible', (t) => {
  for (const text of TEXTS) {
    for (const spell of SPELLINGS) {
      const token = spell(text);
      t.is(JSON.parse(token), text);
      const fullBytes = Buffer.byteLength(text);
      for (let maxBytes = 0; maxBytes <= fullBytes + 1; maxBytes++) {
        const found = cut(token, maxBytes);
        if (maxBytes >= fullBytes) {
          t.is(found, undefined);
          continue;
        }
        const prefix = prefixOf(text, maxBytes);
        t.deepEqual(
          found,
          { kept: prefix, keptBytes: Buffer.byteLength(prefix), fullBytes },
          `${token} at ${maxBytes}`,
        );
      }
    }
  }
});

/** The longest beginning of whole characters with so many bytes. */
function prefixOf(text: string, maxBytes: number): string {
  let prefix = '';
  for (const char of text) {
    if (Buffer.byteLength(prefix + char) > maxBytes) break;
    prefix += char;
  }
  return prefix;
}

test('half of a surrogate pair counts as the character that replaces it', (t) => {
  t.deepEqual(cut('"a\\ud83db"', 3), { kept: 'a', keptBytes: 1, fullBytes: 5 });
  t.deepEqual(cut('"a\\ud83d\\u0041"', 4), { kept: 'a\ud83d', keptBytes: 4, fullBytes: 5 });
  t.deepEqual(cut('"a\\ud83d\\n"', 4), { kept: 'a\ud83d', keptBytes: 4, fullBytes: 5 });
});

test('bytes that are no UTF-8 are cut somewhere, and escapes that are none do no harm', (t) => {
  const bytes = Buffer.concat([Buffer.from('"'), Buffer.alloc(100, 0xbf), Buffer.from('"')]);
  const found = cutString(bytes, { start: 0, end: bytes.length }, 50);
  t.is(found?.fullBytes, 100);
  t.true((found?.keptBytes ?? 0) >= 47 && (found?.keptBytes ?? 0) <= 50);
  for (const text of ['"\\', '"\\u"', '"aa\\q\\u12"', '"\\uZZZZ\\uZZZZ"']) {
    const token = Buffer.from(text);
    t.notThrows(() => cutString(token, { start: 0, end: token.length }, 1));
  }
});

test('a text of many escapes takes time by its length only', (t) => {
  const bytes = Buffer.from(`"${'\\n'.repeat(4_000_000)}"`);
  const began = performance.now();
  t.is(cutString(bytes, { start: 0, end: bytes.length }, 10)?.fullBytes, 4_000_000);
  t.true(performance.now() - began < 5000);
});
