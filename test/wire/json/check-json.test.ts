import test from 'ava';
import fc from 'fast-check';
import { checkJson, type JsonCheck } from '../../../src/wire/json/check-json.ts';
import { anyJson, createRandom, JsonPrinter, mutate } from '../json-text.ts';

const LIMITS = { maxDepth: 1000, maxValues: 1_000_000 };
const check = (text: string) => checkJson(Buffer.from(text), LIMITS);

/** What JSON.parse says of it; it takes whitespace at the beginning, too. */
function expected(text: string): JsonCheck {
  try {
    JSON.parse(text);
    if (/^[ \t\r\n]/.test(text)) return 'invalid';
    return 'valid';
  } catch {
    return 'invalid';
  }
}

const VALID = [
  '0',
  '-0',
  '-1.5e+10',
  '1E9',
  '0.1',
  'true',
  'false',
  'null',
  '""',
  '"\\u00Af\\n\\/"',
  '[]',
  '{}',
  '[ ]\n',
];
const INVALID = [
  ...['', '-', '01', '1.', '.5', '1e', '1e+', '+1', '0x1', 'NaN', 'tru', 'truex', 'nul', '1 2', "'a'"],
  ...['"', '"\\', '"\\x"', '"\\u12g4"', '"\\u123', '"\t"', '"\n"', '"\u0000"', '"a" "b"'],
  ...['[', '[1', '[1,', '[1,]', '[,1]', '[1 2]', ']', '[1}', '[]]'],
  ...['{', '{"a"', '{"a":', '{"a":1', '{"a":1,}', '{a:1}', '{1:1}', '{"a" 1}', '{,}', '{"a":1]', '{}}', '{"a":}'],
];

for (const text of VALID) test(`takes ${JSON.stringify(text)}`, (t) => t.is(check(text), expected(text)));
for (const text of INVALID) test(`refuses ${JSON.stringify(text)}`, (t) => t.is(check(text), 'invalid'));

for (const [length, isLong] of [
  ['short', false],
  ['long', true],
] as const) {
  test(`takes and refuses what JSON.parse does, in ${length} texts, wherever they lie in memory`, (t) => {
    const filling = ['x'.repeat(1500), 'é€😀'.repeat(300), 'a\\"b'.repeat(400), `${'y'.repeat(700)}\\\\`.repeat(2)];
    const unusual = ['\u00a0', '\u0085', '\ufeff', '\u2028', 'é', '\0', '\u007f', '\u001f', '\n', '\\', '"', ','];
    fc.assert(
      fc.property(anyJson, fc.integer(), fc.boolean(), (value, seed, newlines) => {
        const random = createRandom(seed);
        const pick = (texts: readonly string[]) => texts[Math.floor(random() * texts.length)] ?? '';
        const printed = new JsonPrinter(seed, { newlines }).value([value, { ü: value }]);
        const text = isLong ? `["${pick(filling)}",${printed},"${pick(filling)}"]` : printed;
        const at = Math.floor(random() * (text.length + 1));
        const mutated = mutate(Buffer.from(text), seed).toString();
        for (const variant of [text, text.slice(0, at) + pick(unusual) + text.slice(at), text.slice(0, at), mutated]) {
          const offset = Math.floor(random() * 4);
          const bytes = Buffer.from(' '.repeat(offset) + variant).subarray(offset);
          t.is(checkJson(bytes, LIMITS), expected(variant), variant);
        }
      }),
      { numRuns: 1000 },
    );
  });
}

test('counts the levels of arrays and objects', (t) => {
  fc.assert(
    fc.property(anyJson, fc.integer(), (value, seed) => {
      const bytes = Buffer.from(new JsonPrinter(seed, { newlines: true }).value(value));
      const depth = depthOf(value);
      t.is(checkJson(bytes, { ...LIMITS, maxDepth: depth }), expected(bytes.toString()));
      if (depth > 0) t.is(checkJson(bytes, { ...LIMITS, maxDepth: depth - 1 }), 'too-deep');
    }),
    { numRuns: 500 },
  );
});

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

test('finds a control character wherever it stands in a long string', (t) => {
  for (let at = 0; at < 1500; at += 37) {
    for (const control of ['\u0000', '\u001f', '\n']) {
      t.is(check(`"${'x'.repeat(at)}${control}${'x'.repeat(1500 - at)}"`), 'invalid');
    }
    t.is(check(`"${'x'.repeat(at)}\u0080\u007f ${'x'.repeat(1500 - at)}"`), 'valid');
  }
});
