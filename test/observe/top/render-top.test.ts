import test from 'ava';
import type { InspectedServer } from '../../../src/observe/inspection.ts';
import { Activity } from '../../../src/observe/status/activity.ts';
import { createStatus } from '../../../src/observe/status/create-status.ts';
import type { StatusDocument } from '../../../src/observe/status/status-document.ts';
import { renderScreen, renderText } from '../../../src/observe/top/render-top.ts';
import { paintLine, widthOf } from '../../../src/observe/top/text-layout.ts';
import { FIRST_VIEW, type ViewState } from '../../../src/observe/top/view-state.ts';
import {
  call,
  client,
  fillActivity,
  inspectedServer,
  inspection,
  MODERN_HTTP,
  NO_REFUSALS,
  runCall,
  START_MS,
  WallClock,
} from '../status/seen.ts';

const SOURCES = { refusals: NO_REFUSALS, usage: undefined, hosts: [], snippets: () => undefined };
const VIEW = { url: 'http://127.0.0.1:8808', notice: '', columns: 120 };

function linesOf(status: StatusDocument, view: Partial<typeof VIEW> = {}): readonly string[] {
  const all = { ...VIEW, ...view, nowMs: status.atMs };
  return renderText(status, all).map((line) => paintLine(line, all.columns, false));
}

interface Size {
  readonly columns: number;
  readonly rows: number;
}

function screenOf(
  status: StatusDocument,
  size: Size,
  state: Partial<ViewState> = {},
  keyboard: 'present' | 'none' = 'present',
) {
  const view = { ...VIEW, ...size, nowMs: status.atMs, keyboard };
  const { lines, seen } = renderScreen(status, { ...FIRST_VIEW, ...state }, view);
  return { seen, lines: lines.map((line) => paintLine(line, size.columns, false)) };
}

function statusOf(
  servers: readonly Partial<InspectedServer>[],
  fill: (activity: Activity, clock: WallClock) => void = () => {},
) {
  const clock = new WallClock();
  const activity = new Activity({ wallClock: clock.now });
  fill(activity, clock);
  return createStatus({ ...SOURCES, inspect: () => inspection({ servers: servers.map(inspectedServer) }), activity })();
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
    'SERVER      STATE                   SPEAKS            SESS  OPEN  PROC  RST  /MIN  ERR    P50    P95  PROBLEM',
    'everything  ready                   stdio 2025-11-25     2     1     2    0     2    1  12 ms  12 ms',
    `notes       failing since ${since}  stdio 2025-11-25     2     1     2    0     0    0      –      –  It hung.`,
    'files       starting (12 s)         stdio 2025-11-25     2     1     2    0     0    0      –      –  It hung.',
    'mail        stopped after failures  stdio 2025-11-25     2     1     2    0     0    0      –      –  It hung.',
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
  t.regex(table[0] ?? '', /P95 +HTTP\+SSE ENDS$/);
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

test('says that nobody is connected, and what is wrong with its own connection', (t) => {
  const activity = new Activity({ wallClock: new WallClock().now });
  const lines = linesOf(createStatus({ ...SOURCES, inspect: () => inspection(), activity })(), {
    notice: 'connection lost',
  });
  t.is(lines[0], 'mcp-portage 0.1.0  http://127.0.0.1:8808  connection lost');
  t.true(lines.includes('Nobody is connected.'));
});

const LONG = 'a-server-with-a-very-long-name-that-is-cut';
const PROBLEM = 'Server "node" exited with code 3 before it answered, as its database cannot be reached from here.';
const FAILING = { name: LONG, state: 'failing', sinceMs: START_MS - 12_000, problem: PROBLEM } as const;

for (const columns of [1, 20, 40, 80, 120]) {
  test(`fills a screen of ${columns} columns and no more, whatever its height and content`, (t) => {
    const names = Array.from({ length: 30 }, (_, index) => ({ name: `server ${index} 日本語` }));
    const status = statusOf([FAILING, ...names], (activity, clock) => {
      fillActivity(activity, clock);
      for (let index = 0; index < 40; index += 1) activity.connected(client({ name: `client ${index}` }), undefined);
    });
    const pages: readonly Partial<ViewState>[] = [
      {},
      { sort: 'p95', order: 'reversed', filter: 'some text that is longer than it is shown' },
      { page: { kind: 'typing' }, filter: '日本語'.repeat(20) },
      { page: { kind: 'keys', back: { kind: 'tables' } } },
      { page: { kind: 'details', server: LONG, scrolled: 2 } },
      { page: { kind: 'details', server: 'gone', scrolled: 0 } },
    ];
    for (const state of pages) {
      for (let rows = 0; rows < 60; rows += 7) {
        const { lines } = screenOf(status, { columns, rows }, state);
        t.is(lines.length, rows);
        t.deepEqual(
          lines.filter((line) => widthOf(line) > columns),
          [],
        );
      }
    }
  });
}

test('at 80 columns names and states are readable, and less important columns give way', (t) => {
  const { lines } = screenOf(statusOf([{ name: 'notes' }, FAILING]), { columns: 80, rows: 24 });
  const since = new Date(START_MS - 12_000).toTimeString().slice(0, 8);
  const from = lines.findIndex((line) => line.includes('SERVER'));
  t.deepEqual(lines.slice(from, from + 4), [
    '  SERVER               STATE                   SPEAKS            OPEN  /MIN  ERR',
    `> a-server-with-a-ve…  failing since ${since}  stdio 2025-11-25     1     0    0`,
    '    Server "node" exited with code 3 before it answered, as its database cannot…',
    '  notes                ready                   stdio 2025-11-25     1     0    0',
  ]);
});

test('at 40 columns name and state are left', (t) => {
  const { lines } = screenOf(statusOf([{ name: 'notes' }, FAILING]), { columns: 40, rows: 24 });
  const since = new Date(START_MS - 12_000).toTimeString().slice(0, 8);
  const from = lines.findIndex((line) => line.includes('SERVER'));
  t.deepEqual(lines.slice(from, from + 4), [
    '  SERVER            STATE',
    `> a-server-with-a…  failing since ${since.slice(0, 5)}…`,
    '    Server "node" exited with code 3 be…',
    '  notes             ready',
  ]);
});

test('the column that servers are sorted by is never left out', (t) => {
  const status = statusOf([{ name: 'notes' }, FAILING]);
  const { lines } = screenOf(status, { columns: 80, rows: 24 }, { sort: 'p95' });
  t.regex(lines.find((line) => line.includes('SERVER')) ?? '', /ERR +P95$/);
});

test('the last line names the most important keys that fit, and what was chosen', (t) => {
  const status = statusOf([{}]);
  const last = (columns: number, state: Partial<ViewState> = {}) =>
    screenOf(status, { columns, rows: 24 }, state).lines[23];
  t.is(last(80), 'q quit  ? keys  ↑↓ select  Enter details  / filter  s sort: state  r reverse');
  t.is(last(40), 'q quit  ? keys  ↑↓ select  Enter details');
  t.is(last(10), 'q quit');
  t.is(
    last(120, { filter: 'echo', sort: 'errors', order: 'reversed' }),
    'q quit  ? keys  filter: echo  Esc clear  ↑↓ select  Enter details  / filter  s sort: errors reversed  r reverse',
  );
  t.is(last(80, { page: { kind: 'typing' }, filter: 'ech' }), '/ech_  Enter keep  Esc clear');
  t.is(
    last(80, { page: { kind: 'details', server: 'everything', scrolled: 0 } }),
    'q quit  ? keys  Esc back  ↑↓ scroll',
  );
});

test('without a keyboard nothing is selected and no key is named', (t) => {
  const { lines } = screenOf(statusOf([{}]), { columns: 80, rows: 24 }, {}, 'none');
  t.true(lines.some((line) => line.startsWith('everything ')));
  t.false(lines.some((line) => line.includes('quit')));
});

test('the list of servers follows the selection', (t) => {
  const status = statusOf(Array.from({ length: 40 }, (_, index) => ({ name: `server ${index}` })));
  const shown = (selected?: string) => screenOf(status, { columns: 80, rows: 24 }, { selected }).lines;
  t.true(shown().some((line) => line.startsWith('> server 0 ')));
  t.true(shown().some((line) => /^… and \d\d more$/.test(line)));
  t.true(shown('server 20').some((line) => line.startsWith('> server 20 ')));
  t.true(shown('server 20').some((line) => /^… \d+ above and 19 below$/.test(line)));
  t.true(shown('server 39').some((line) => line.startsWith('> server 39 ')));
});

test('no server is left out while lines are empty', (t) => {
  const status = statusOf(Array.from({ length: 10 }, (_, index) => ({ name: `server ${index}` })));
  const { lines } = screenOf(status, { columns: 80, rows: 21 });
  t.true(lines.some((line) => line.includes('server 9')));
  t.is(lines.at(-2), 'No calls yet.');
});

test('the details show everything about a server, and can be scrolled', (t) => {
  const status = statusOf(
    [
      {
        ...FAILING,
        sunset: '2027-03-01',
        restarts: 3,
        hubs: [{ url: 'wss://hub.example/', state: 'calling', problem: 'It refused.' }],
      },
    ],
    (activity, clock) => {
      activity.connected(client({ server: LONG }), MODERN_HTTP);
      activity.connected(client({ server: 'another', name: 'somebody else' }), MODERN_HTTP);
      runCall(activity, { client: client({ server: LONG }) });
      activity.opened(call({ client: client({ server: LONG }), tool: 'slow' }));
      clock.advance(3000);
    },
  );
  const page = { kind: 'details', server: LONG, scrolled: 0 } as const;
  const { lines, seen } = screenOf(status, { columns: 80, rows: 26 }, { page });
  const at = (ms: number) => new Date(ms).toTimeString().slice(0, 8);
  t.deepEqual(lines.slice(1, -1), [
    '',
    `server       ${LONG}`,
    `state        failing, since ${at(START_MS - 12_000)} (15 s)`,
    'problem      Server "node" exited with code 3 before it answered, as its',
    '             database cannot be reached from here.',
    'kind         a command that the bridge runs',
    'speaks       stdio 2025-11-25',
    'HTTP         http://127.0.0.1:8808/everything/mcp',
    'HTTP+SSE     http://127.0.0.1:8808/everything/sse',
    '             ends 2027-03-01',
    'WebSocket    ws://127.0.0.1:8808/everything/ws',
    'hub          wss://hub.example/ calling: It refused.',
    'runs         2 processes, 3 restarts, 2 sessions, 1 call open',
    'last minute  1 call, 0 errors, median 12 ms, 95 % 12 ms',
    `ten minutes  ${' '.repeat(59)}█`,
    '',
    'CLIENT         SPEAKS               SERVER SPEAKS    SINCE',
    'cursor 0.42.3  HTTP+SSE 2024-11-05  HTTP 2026-07-28    3 s',
    '',
    'TIME      CALL  CLIENT         OPEN FOR',
    `${at(START_MS)}  slow  cursor 0.42.3       3 s`,
    '',
    'TIME      CALL  CLIENT         OUTCOME    TOOK  BYTES',
    `${at(START_MS)}  echo  cursor 0.42.3  answered  12 ms    480`,
  ]);
  t.is(seen.hiddenLines, 0);
  const short = screenOf(status, { columns: 80, rows: 11 }, { page });
  t.is(short.seen.hiddenLines, 15);
  const scrolled = screenOf(status, { columns: 80, rows: 11 }, { page: { ...page, scrolled: 15 } });
  t.true(scrolled.lines.some((line) => line.includes(' echo ')));
});

test('names that others chose cannot drive the terminal, in tables or details', (t) => {
  const name = '\u001b[2Jevil\r\n\u202e';
  const status = statusOf([{ name, problem: name, url: `http://x/${name}`, state: 'failing' }], (activity) => {
    activity.connected(client({ server: name, name }), MODERN_HTTP);
    runCall(activity, { client: client({ server: name, name }), tool: name });
  });
  for (const page of [
    { kind: 'tables' },
    { kind: 'details', server: name, scrolled: 0 },
    { kind: 'details', server: `${name}?`, scrolled: 0 },
  ] as const) {
    const { lines } = screenOf(status, { columns: 80, rows: 40 }, { page, filter: name });
    t.true(lines.some((line) => line.includes('evil')));
    t.notRegex(lines.join(''), /[\p{Cc}\p{Cf}]/u);
  }
});
