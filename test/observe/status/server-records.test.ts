import test from 'ava';
import {
  MAX_RECORDS,
  MAX_RESTARTS,
  MAX_STDERR_LINES,
  MAX_TEXT_LENGTH,
  MAX_TOOLS,
  ServerRecords,
} from '../../../src/observe/status/server-records.ts';
import { resultFrame } from '../../../src/wire/write-message.ts';
import { START_MS, WallClock } from './seen.ts';

function createRecords() {
  const clock = new WallClock();
  const records = new ServerRecords({ wallClock: clock.now });
  return { clock, records, files: records.observe('files') };
}

const listOf = (names: readonly unknown[]) => resultFrame(1, { tools: names.map((name) => ({ name })) });

test('keeps the last lines of stderr with their times, the oldest first', (t) => {
  const { clock, records, files } = createRecords();
  for (let line = 0; line < MAX_STDERR_LINES + 10; line += 1) {
    clock.advance(1);
    files.wrote(`line ${line}`);
  }
  const { stderr } = records.detailOf('files');
  t.is(stderr.length, MAX_STDERR_LINES);
  t.deepEqual(stderr[0], { atMs: START_MS + 11, text: 'line 10' });
  t.is(stderr.at(-1)?.text, `line ${MAX_STDERR_LINES + 9}`);
});

test('keeps the start of the latest process, and why the last ones failed, the latest first', (t) => {
  const { clock, records, files } = createRecords();
  for (let time = 0; time < MAX_RESTARTS + 2; time += 1) {
    clock.advance(1000);
    files.started();
    files.failed(`failure ${time}`);
  }
  const { startedAtMs, restarts } = records.detailOf('files');
  t.is(startedAtMs, START_MS + (MAX_RESTARTS + 2) * 1000);
  t.is(restarts.length, MAX_RESTARTS);
  t.deepEqual(restarts[0], { atMs: startedAtMs ?? 0, text: `failure ${MAX_RESTARTS + 1}` });
});

test('a text is cut, and what controls a terminal or is hidden is not in it', (t) => {
  const { records, files } = createRecords();
  files.wrote(`\u001b[31mred\u001b[0m \u202eturned\u0007${'x'.repeat(10_000)}`);
  files.failed(`\u001b]0;title\u0007why ${'y'.repeat(10_000)}`);
  files.listedTools(listOf([`a\u202eb${'z'.repeat(10_000)}`]));
  const { stderr, restarts, tools } = records.detailOf('files');
  t.is(stderr[0]?.text, `red turned${'x'.repeat(MAX_TEXT_LENGTH - 10)}…`);
  t.regex(restarts[0]?.text ?? '', /^why y+…$/);
  t.regex(tools[0] ?? '', /^a\\u\{202e\}bz{125}$/);
});

test('knows the tools of the lists that clients got, page by page, and forgets those that are gone', (t) => {
  const { clock, records, files } = createRecords();
  files.listedTools(listOf(['write', 'read', 7, 'read']));
  clock.advance(1000);
  files.listedTools(listOf(['search']));
  t.deepEqual(records.detailOf('files').tools, ['read', 'search', 'write']);
  clock.advance(60_000);
  files.listedTools(listOf(['search', 'read']));
  t.deepEqual(records.detailOf('files').tools, ['read', 'search']);
  files.listedTools(resultFrame(1, { tools: 'none' }));
  t.deepEqual(records.detailOf('files').tools, ['read', 'search']);
});

test('keeps so many tools and counts the rest', (t) => {
  const { records, files } = createRecords();
  files.listedTools(listOf(Array.from({ length: MAX_TOOLS + 3 }, (_, index) => `tool ${index}`)));
  t.is(records.detailOf('files').tools.length, MAX_TOOLS);
  t.is(records.detailOf('files').moreTools, 3);
});

test('reads no lists that are very long, and only some of very many', (t) => {
  const { clock, records, files } = createRecords();
  files.listedTools(resultFrame(1, { tools: [{ name: 'large', description: 'x'.repeat(2_000_000) }] }));
  for (let index = 0; index < 1000; index += 1) files.listedTools(listOf([`tool ${index}`]));
  t.is(records.detailOf('files').tools.length, 10);
  clock.advance(1000);
  files.listedTools(listOf(['one more']));
  t.is(records.detailOf('files').tools.length, 11);
});

test('a server that is configured anew goes on with its record, and the oldest record makes room for a new one', (t) => {
  const { records, files } = createRecords();
  files.wrote('before');
  t.is(records.observe('files'), files);
  for (let index = 1; index < MAX_RECORDS; index += 1) records.observe(`server ${index}`);
  t.is(records.detailOf('files').stderr.length, 1);
  records.observe('one more');
  t.deepEqual(records.detailOf('files'), {
    server: 'files',
    startedAtMs: null,
    stderr: [],
    restarts: [],
    tools: [],
    moreTools: 0,
  });
});
