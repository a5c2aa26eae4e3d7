import test from 'ava';
import { BridgeError } from '../src/errors.ts';
import { escapeHidden, hideSecrets, printableLine, printableLines, showHidden, toPrintable } from '../src/printable.ts';

test('removes colors and cursor movements', (t) => {
  t.is(toPrintable('\u001b[31mred\u001b[0m \u001b[2Kdone\u001b]0;title\u0007', 100), 'red done');
});

test('removes what could forge a log line or hide text', (t) => {
  t.is(toPrintable('a\r\nb\u0085c\u2028d\u0000e\u007ff\u202eg', 100), 'abcdefg');
});

/** First and last of each kind. */
const HIDDEN: Readonly<Record<string, readonly number[]>> = {
  'C0 controls': [0x00, 0x08, 0x0a, 0x0d, 0x1b, 0x1f, 0x7f],
  'C1 controls': [0x80, 0x85, 0x9b, 0x9f],
  'zero widths': [0x200b, 0x200c, 0x200d, 0x2060, 0x2064, 0xfeff],
  'marks of direction': [0x200e, 0x200f, 0x061c],
  'embeddings and overrides of direction': [0x202a, 0x202b, 0x202c, 0x202d, 0x202e],
  'isolates of direction': [0x2066, 0x2067, 0x2068, 0x2069, 0x206f],
  'ends of lines and paragraphs': [0x2028, 0x2029],
  'soft hyphens and fillers': [0x00ad, 0x034f, 0x115f, 0x1160, 0x180e, 0x3164, 0xffa0],
  'variation selectors': [0xfe00, 0xfe0f, 0xe0100, 0xe01ef],
  'annotation marks': [0xfff9, 0xfffb],
  tags: [0xe0001, 0xe0020, 0xe0041, 0xe007f],
};
for (const [kind, points] of Object.entries(HIDDEN)) {
  test(`removes ${kind}, from lines, messages and errors`, (t) => {
    for (const point of points) {
      const name = `U+${point.toString(16)}`;
      const text = `a${String.fromCodePoint(point)}b`;
      t.is(toPrintable(text, 100), 'ab', name);
      t.is(printableLine(text), 'ab', name);
      const lines = point === 0x0a ? 'a\nb' : 'ab';
      t.is(printableLines(text), lines, name);
      t.is(new BridgeError('ERR_UPSTREAM_PROTOCOL', text).message, lines, name);
    }
  });
}

test('keeps letters, symbols and emoji of any script', (t) => {
  t.is(toPrintable('  naïve → 漢字 עברית عربي 👩 🚀\tok ', 100), 'naïve → 漢字 עברית عربي 👩 🚀 ok');
});

test('leaves plain text as it is, at any length', (t) => {
  const text = 'x'.repeat(100_000);
  t.is(printableLine(text), text);
  t.is(printableLines(`${text}\n${text}`), `${text}\n${text}`);
});

test('cuts long text and shows that it did', (t) => {
  t.is(toPrintable('abcdef', 6), 'abcdef');
  t.is(toPrintable('abcdefg', 6), 'abcdef…');
});

test('JSON keeps its meaning, and shows what is hidden in it', (t) => {
  const value = { name: 'a\u202eb\u{e0041}c\u200dd', lines: 'e\nf', script: '漢字' };
  const json = escapeHidden(JSON.stringify(value, undefined, 2));
  t.deepEqual(JSON.parse(json), value);
  t.regex(json, /"a\\u202eb\\udb40\\udc41c\\u200dd"/);
  t.true(json.includes('漢字') && json.includes('\n'));
});

for (const [kind, points] of Object.entries(HIDDEN)) {
  test(`shows ${kind} of names as codes`, (t) => {
    for (const point of points) {
      t.is(showHidden(`a${String.fromCodePoint(point)}b`), `a\\u{${point.toString(16)}}b`);
    }
  });
}

test('a name in which everything is seen is shown as it is', (t) => {
  for (const name of ['', 'claude-ai', 'Ünïcode 日本 👍', '\\u{200b}']) t.is(showHidden(name), name);
});

for (const [text, told] of [
  ['Invalid API key: sk-live-4eC39HqLyjWDarjtT1zdp7dc', 'Invalid API key: …'],
  ['Incorrect API key provided: sk-proj-abcdefghijkl.', 'Incorrect API key provided: …'],
  ['401 for ghp_abcdefghijklmnopqrstuv', '401 for …'],
  ['Authorization: Bearer abcdefgh', 'Authorization: Bearer …'],
  ['GITHUB_TOKEN=abcdefgh is refused', 'GITHUB_TOKEN=… is refused'],
  ['{"password": "swordfish", "user": "me"}', '{"password": "…", "user": "me"}'],
  ['connect postgres://me:swordfish@db.example/x', 'connect postgres://…@db.example/x'],
  ['rejected a1b2c3d4e5f60718 at once', 'rejected … at once'],
] as const) {
  test(`tells of "${text}" nothing that looks like a credential`, (t) => {
    t.is(hideSecrets(text), told);
  });
}

for (const text of [
  'Error: the variable GITHUB_TOKEN is not set',
  "Error: Cannot find module '/srv/app-2/node_modules/left-pad/index.js' (code MODULE_NOT_FOUND)",
  '    at Object.<anonymous> (file:///srv/app/index.js:12:34)',
  'listening on http://127.0.0.1:8000/mcp since 2026-11-24T09:30:00Z',
]) {
  test(`leaves "${text}" as it is`, (t) => {
    t.is(hideSecrets(text), text);
  });
}

test('a text is gone over once, whatever is in it', (t) => {
  for (const piece of ['key', 'key-', 'a', '/', '//', 'bearer ', 'token: ', 'sk-', ' ']) {
    t.true(hideSecrets(piece.repeat(200_000 / piece.length)).length > 0, piece);
  }
});
