import test from 'ava';
import { Activity } from '../../../src/observe/status/activity.ts';
import { createStatus } from '../../../src/observe/status/create-status.ts';
import type { StatusDocument } from '../../../src/observe/status/status-document.ts';
import { renderTop } from '../../../src/observe/top/render-top.ts';
import { paintLine } from '../../../src/observe/top/text-layout.ts';
import { client, fillActivity, inspectedServer, inspection, MODERN_HTTP, runCall, WallClock } from '../status/seen.ts';

const SOURCES = { usage: undefined, hosts: [], snippets: () => undefined };
const VIEW = { url: 'http://127.0.0.1:8808', notice: '', columns: 120, rows: Number.POSITIVE_INFINITY };

function linesOf(status: StatusDocument, view: Partial<typeof VIEW> = {}): readonly string[] {
  const all = { ...VIEW, ...view, nowMs: status.atMs };
  return renderTop(status, all).map((line) => paintLine(line, all.columns, false));
}

test('shows the bridge, its servers, who is connected and what was called', (t) => {
  const clock = new WallClock();
  const activity = new Activity({ wallClock: clock.now });
  activity.connected(client(), MODERN_HTTP);
  clock.advance(65_000);
  runCall(activity);
  runCall(activity, { tool: undefined, method: 'tools/list' }, { outcome: { kind: 'error', code: -32601 } });
  const failed = { problem: 'It hung.', sinceMs: clock.nowMs - 12_000 };
  const servers = [
    inspectedServer(),
    inspectedServer({ name: 'notes', state: 'failing', ...failed }),
    inspectedServer({ name: 'files', state: 'starting', ...failed }),
    inspectedServer({ name: 'mail', state: 'stopped', ...failed }),
  ];
  const lines = linesOf(createStatus({ ...SOURCES, inspect: () => inspection({ servers }), activity })());
  const today = new Date(clock.nowMs).toTimeString().slice(0, 8);
  const since = new Date(clock.nowMs - 12_000).toTimeString().slice(0, 8);
  t.deepEqual(lines, [
    'mcp-portage 0.1.0  http://127.0.0.1:8808  live',
    'up 2 h 1 min   1 client   0 of 1000 calls open   2 of 100 processes',
    'last minute: 2 calls, 1 error, median 12 ms, 95 % 12 ms',
    `ten minutes  ${' '.repeat(59)}█`,
    '',
    'SERVER      STATE                   SPEAKS            SESS  OPEN  PROC  RST  /MIN  ERR    P50  PROBLEM',
    'everything  ready                   stdio 2025-11-25     2     1     2    0     2    1  12 ms',
    `notes       failing since ${since}  stdio 2025-11-25     2     1     2    0     0    0      –  It hung.`,
    'files       starting (12 s)         stdio 2025-11-25     2     1     2    0     0    0      –  It hung.',
    'mail        stopped after failures  stdio 2025-11-25     2     1     2    0     0    0      –  It hung.',
    '',
    'CLIENT         SPEAKS               SERVER      SERVER SPEAKS    SINCE',
    'cursor 0.42.3  HTTP+SSE 2024-11-05  everything  HTTP 2026-07-28  1 min',
    '',
    'TIME      CALL        CLIENT         SERVER      OUTCOME        TOOK  BYTES',
    `${today}  tools/list  cursor 0.42.3  everything  error -32601  12 ms    480`,
    `${today}  echo        cursor 0.42.3  everything  answered      12 ms    480`,
  ]);
});

test('shows when HTTP+SSE ends, where its end is announced', (t) => {
  const activity = new Activity({ wallClock: new WallClock().now });
  const servers = [inspectedServer({ sunset: '2027-03-01' }), inspectedServer({ name: 'notes' })];
  const lines = linesOf(createStatus({ ...SOURCES, inspect: () => inspection({ servers }), activity })());
  const table = lines.slice(lines.findIndex((line) => line.startsWith('SERVER')));
  t.regex(table[0] ?? '', /P50 +HTTP\+SSE ENDS$/);
  t.regex(table[1] ?? '', /^everything .* 2027-03-01$/);
  t.regex(table[2] ?? '', /^notes .* –$/);
});

test('names the transports of clients as people do', (t) => {
  const activity = new Activity({ wallClock: new WallClock().now });
  for (const transport of ['websocket', 'byte-stream'] as const) activity.connected(client({ transport }), undefined);
  const text = linesOf(createStatus({ ...SOURCES, inspect: () => inspection(), activity })()).join('\n');
  t.regex(text, /WebSocket 2024-11-05/);
  t.regex(text, /byte stream 2024-11-05/);
});

test('fills the screen and no more, whatever its size', (t) => {
  const clock = new WallClock();
  const activity = new Activity({ wallClock: clock.now });
  fillActivity(activity, clock);
  for (let index = 0; index < 40; index += 1) activity.connected(client({ name: `client ${index}` }), undefined);
  const servers = Array.from({ length: 30 }, (_, index) => inspectedServer({ name: `server ${index}` }));
  const status = createStatus({ ...SOURCES, inspect: () => inspection({ servers }), activity })();
  const lines = linesOf(status, { rows: 40, columns: 80 });
  t.is(lines.length, 40);
  t.true(lines.every((line) => line.length <= 80));
  t.true(lines.includes('… and 19 more'), lines.join('\n'));
  t.true(lines.some((line) => line.startsWith('TIME')));
  for (let rows = 0; rows < 60; rows += 1) t.true(linesOf(status, { rows, columns: rows + 1 }).length <= rows);
});

test('says that nobody is connected, and what is wrong with its own connection', (t) => {
  const activity = new Activity({ wallClock: new WallClock().now });
  const lines = linesOf(createStatus({ ...SOURCES, inspect: () => inspection(), activity })(), {
    notice: 'connection lost',
  });
  t.is(lines[0], 'mcp-portage 0.1.0  http://127.0.0.1:8808  connection lost');
  t.true(lines.includes('Nobody is connected.'));
});
