import test from 'ava';
import { widthOf } from '../../../src/observe/top/text-layout.ts';
import { renderEntryJson } from '../../../src/observe/view/entry-json.ts';
import { CallPairs, type Entry } from '../../../src/observe/view/pair-calls.ts';
import { renderEntry, renderFull, renderHeader, size } from '../../../src/observe/view/render-entry.ts';
import { parse, RecordedLines } from './recorded-lines.ts';

const NARROW = { columns: 80, color: false };

function entriesOf({ lines }: RecordedLines): readonly Entry[] {
  const pairs = new CallPairs({ lines: 'kept' });
  return [...lines.flatMap((line) => pairs.take(parse(line), line)), ...pairs.end()];
}

/** The time zone is that of the machine. */
const withoutTimes = (text: string): string => text.replace(/\d\d:\d\d:\d\d/g, '00:00:00');

test('a line a call fits into 80 columns, and questions stand below their call', (t) => {
  const recorded = new RecordedLines()
    .request(1, 'tools/call', { name: 'echo' })
    .add('client', 'out', { id: 'q1', method: 'sampling/createMessage' }, { call: 1 })
    .wait(1200)
    .add('client', 'in', { id: 'q1', result: {} }, { call: 1 })
    .answer(1, { result: { isError: true } })
    .add('server', 'in', { method: 'notifications/tools/list_changed' })
    .request(2, 'resources/read', { uri: 'file:///notes/today.md' })
    .wait(99_000)
    .answer(2, { error: { code: -32002, message: 'x'.repeat(20_000) } })
    .add('server', 'out', { id: 9, method: 'ping' })
    .add('server', 'in', { id: 8, result: {} });
  const text =
    renderHeader(NARROW) +
    entriesOf(recorded)
      .map((entry) => renderEntry(entry, NARROW))
      .join('');
  t.is(
    withoutTimes(text),
    `TIME      CLIENT → SERVER       CALL               OUTCOME        TOOK     SIZES
00:00:00  claude-… → everythi…  echo tools/call    tool-error    1.2 s     71→50
00:00:00                        ↳ sampling/creat…  answered      1.2 s     61→39
00:00:00  everything → bridge   notifications/to…  notification               61
00:00:00  claude-… → everythi…  resources/read f…  error -32002  1 min    92→20k
00:00:00  everything → bridge   answer, unpaired   answered                  →36
00:00:00  bridge → everything   ping               unanswered                 40
`,
  );
});

test('wider terminals give the room to names', (t) => {
  const [entry] = entriesOf(new RecordedLines().request(1, 'tools/call', { name: 'echo' }).answer(1, { result: {} }));
  if (entry === undefined) return t.fail();
  t.is(
    withoutTimes(renderEntry(entry, { columns: 120, color: false })),
    '00:00:00  claude-code → everything                  echo tools/call                        answered       3 ms     71→36\n',
  );
  t.true(renderEntry(entry, { columns: 120, color: true }).includes('\u001b[32manswered'));
});

test('all messages of a call are labeled with their way', (t) => {
  const recorded = new RecordedLines().request(1, 'tools/list').answer(1, { result: {} }, { hidden: 2, cut: true });
  const [entry] = entriesOf(recorded);
  if (entry === undefined) return t.fail();
  const labels = withoutTimes(renderFull(entry, { columns: 120, color: false }))
    .split('\n')
    .filter((line) => /^ {2}\S/.test(line));
  t.deepEqual(labels, [
    '  client → bridge  00:00:00.124, modern era, streamable-http, s1, 46 bytes',
    '  bridge → server  00:00:00.125, legacy era, stdio, c1, 49 bytes',
    '  server → bridge  00:00:00.126, legacy era, stdio, c1, 39 bytes, 2 hidden, cut',
    '  bridge → client  00:00:00.127, modern era, streamable-http, s1, 36 bytes, 2 hidden, cut',
  ]);
  t.true(renderFull(entry, NARROW).includes('\n    {\n      "jsonrpc": "2.0",\n      "id": 1,\n'));
});

const HOSTILE = [
  '\u001b[2J\u001b]0;forged\u0007',
  '\u202egnp.exe',
  'line\r\nforged\u2028line',
  '漢字'.repeat(400),
  `a${'\u0301'.repeat(5000)}`,
  '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}'.repeat(50),
  'x'.repeat(2_000_000),
  '\u0000\u009b31m',
];

for (const text of HOSTILE) {
  test(`what a peer is called controls no terminal and no layout: ${JSON.stringify(text.slice(0, 12))}`, (t) => {
    const facts = { server: text, client: text, carrier: text, session: text };
    const recorded = new RecordedLines()
      .request(1, text, { name: text }, facts)
      .add('client', 'out', { id: text, method: text }, { call: 1, ...facts })
      .request(2, 'tools/call', { name: text }, facts)
      .answer(2, { result: {} }, facts)
      .add('server', 'in', { method: text }, facts);
    for (const entry of entriesOf(recorded)) {
      const row = renderEntry(entry, NARROW);
      for (const line of row.trimEnd().split('\n')) {
        t.true(widthOf(line) <= 80);
        t.true(line.length < 400);
      }
      for (const shown of [row, renderFull(entry, NARROW), renderEntryJson(entry)]) {
        t.false(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(shown), JSON.stringify(shown.slice(0, 300)));
      }
    }
  });
}

test('for programs, a call is one object on one line, with its messages as they were recorded', (t) => {
  const recorded = new RecordedLines().request(1, 'tools/call', { name: 'echo' }).answer(1, { error: { code: -1 } });
  const lines = recorded.lines.map((line) => line.replace('"params":{', '"params":{"n":12345678901234567890,'));
  const pairs = new CallPairs({ lines: 'kept' });
  const [entry] = lines.flatMap((line) => pairs.take(parse(line), line));
  if (entry === undefined) return t.fail();
  const json = renderEntryJson(entry);
  t.is(json.indexOf('\n'), json.length - 1);
  t.is(json.split('12345678901234567890').length, 3);
  const { messages, ...members } = JSON.parse(json);
  t.is(messages.length, 4);
  t.deepEqual(members, {
    kind: 'call',
    at: '2026-11-28T19:30:14.124Z',
    durationMs: 3,
    method: 'tools/call',
    subject: 'echo',
    outcome: 'error',
    code: -1,
    requestBytes: 71,
    answerBytes: 44,
    server: 'everything',
    client: 'claude-code',
    call: 1,
    side: 'client',
    direction: 'in',
    era: 'modern',
    carrier: 'streamable-http',
    notifications: 0,
    questions: [],
  });
});

test('a size takes at most four characters', (t) => {
  const sizes = [0, 999, 1000, 9949, 9950, 99_499, 999_499, 999_500, 12_345_678, 999_499_999, 5e9];
  t.deepEqual(sizes.map(size), ['0', '999', '1.0k', '9.9k', '10k', '99k', '999k', '1.0M', '12M', '999M', '5.0G']);
});
