import test from 'ava';
import {
  MAX_LINES_SINCE_NAME,
  MAX_STDERR_LINE_BYTES,
  MAX_TAIL_LINE_LENGTH,
  MAX_TAIL_LINES,
  StderrLog,
} from '../../src/process/stderr-log.ts';
import { collectLog } from './collected-log.ts';

const messagesOf = (entries: readonly { msg: string }[]) => entries.map(({ msg }) => msg);

for (const size of [1, 2, 3, 1000]) {
  test(`logs line by line when stderr comes in chunks of ${size} bytes`, (t) => {
    const { log, entries } = collectLog();
    const stderr = new StderrLog(log);
    const bytes = Buffer.from('first\r\n\nsécond — 漢字\nlast without newline');
    for (let start = 0; start < bytes.length; start += size) stderr.push(bytes.subarray(start, start + size));
    stderr.end();
    t.deepEqual(messagesOf(entries), ['first', 'sécond — 漢字', 'last without newline']);
    t.deepEqual(stderr.tail, messagesOf(entries));
  });
}

test('logs at info and marks the lines as stderr', (t) => {
  const { log, entries } = collectLog();
  new StderrLog(log).push(Buffer.from('hello\n'));
  t.is(entries[0]?.level, 30);
  t.is(entries[0]?.stream, 'stderr');
});

test('cuts long lines and goes on with the next', (t) => {
  const { log, entries } = collectLog();
  const stderr = new StderrLog(log);
  for (let part = 0; part < 100; part++) stderr.push(Buffer.alloc(1000, 'x'));
  stderr.push(Buffer.from('\nnext\n'));
  t.deepEqual(messagesOf(entries), ['x'.repeat(MAX_STDERR_LINE_BYTES), 'next']);
  t.is(stderr.tail[0]?.length, MAX_TAIL_LINE_LENGTH + 1);
});

test('a line with nothing to show is no line', (t) => {
  const { log, entries } = collectLog();
  const stderr = new StderrLog(log);
  stderr.push(Buffer.from('\u001b[0m\r\n\n\u0007\nshown\n'));
  stderr.end();
  t.deepEqual(messagesOf(entries), ['shown']);
  t.deepEqual(stderr.tail, ['shown']);
});

test('what looks like a credential is in the log, which its operator reads, and not among the last words', (t) => {
  const { log, entries } = collectLog();
  const stderr = new StderrLog(log);
  const line = `${'x '.repeat(140)}API_KEY=sk-live-4eC39HqLyjWDarjtT1zdp7dc`;
  stderr.push(Buffer.from(`${line}\n`));
  t.deepEqual(messagesOf(entries), [line]);
  t.notRegex(stderr.tail.join(), /sk-|4eC/);
});

test('frames of a stack trace are in the log, and do not push the error out of the last words', (t) => {
  const { log, entries } = collectLog();
  const stderr = new StderrLog(log);
  const frames = Array.from({ length: MAX_TAIL_LINES }, (_, index) => `    at load (node:internal/a:${index}:9)`);
  const trace = [
    'Error: boom',
    ...frames,
    '    at new Promise (<anonymous>)',
    '    at node:internal/main:28:49 {',
    "  code: 'X'",
  ];
  stderr.push(Buffer.from(`${trace.join('\n')}\nlook at 10:30\n`));
  t.is(entries.length, trace.length + 1);
  t.deepEqual(stderr.tail, ['Error: boom', "code: 'X'", 'look at 10:30']);
});

test('whoever reads the lines gets all of them, stack traces too, without what looks like a credential', (t) => {
  const { log } = collectLog();
  const lines: string[] = [];
  const stderr = new StderrLog(log, [], (line) => lines.push(line));
  stderr.push(Buffer.from('Error: TOKEN=abc123 is wrong\n    at load (node:internal/a:1:9)\n\u001b[31mred\u001b[0m\n'));
  t.deepEqual(lines, ['Error: TOKEN=… is wrong', 'at load (node:internal/a:1:9)', 'red']);
  t.deepEqual(stderr.tail, [lines[0], lines[2]]);
});

test('keeps only the last lines', (t) => {
  const { log } = collectLog();
  const stderr = new StderrLog(log);
  for (let line = 0; line < 50; line++) stderr.push(Buffer.from(`${line}\n`));
  t.is(stderr.tail.length, MAX_TAIL_LINES);
  t.is(stderr.tail.at(-1), '49');
});

test('a line can neither forge another one nor drive the terminal it is shown on', (t) => {
  const { log, entries } = collectLog();
  const stderr = new StderrLog(log);
  stderr.push(Buffer.from('\u001b[31mred\u001b[0m\u2028{"level":50,"msg":"forged"}\r\u0007\n'));
  t.deepEqual(messagesOf(entries), ['red{"level":50,"msg":"forged"}']);
  t.deepEqual(stderr.tail, messagesOf(entries));
});

test('remembers which of the watched names were written, in the order in which they came last', (t) => {
  const { log } = collectLog();
  const stderr = new StderrLog(log, ['API_KEY', 'TOKEN', 'HOST_1', 'set', 'X']);
  stderr.push(Buffer.from('API_KEY is not set, X neither\nMY_TOKEN, "TOKEN" and TOKENS\nset api_key or $API_KEY\n'));
  t.deepEqual(stderr.named, ['TOKEN', 'API_KEY']);
});

test('forgets a name when many lines have come after it', (t) => {
  const { log } = collectLog();
  const stderr = new StderrLog(log, ['TOKEN']);
  stderr.push(Buffer.from(`TOKEN is not set\n${'at a line of a stack trace\n'.repeat(MAX_LINES_SINCE_NAME)}`));
  t.deepEqual(stderr.named, ['TOKEN']);
  stderr.push(Buffer.from('one more\n'));
  t.deepEqual(stderr.named, []);
});
