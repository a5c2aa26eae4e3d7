import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import test from 'ava';
import { pino } from 'pino';
import { thisProcess } from '../../../src/io/owning-process.ts';
import { type ReportRequest, type ReportResult, runReport } from '../../../src/observe/usage/report-command.ts';
import { DAY_MS, parseUsage, type ServedEndpoint } from '../../../src/observe/usage/usage.ts';
import { UsageFile } from '../../../src/observe/usage/usage-file.ts';
import { UsageTable } from '../../../src/observe/usage/usage-table.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { CURSOR, call, createStateDirectory, createTable, EDITOR, LEGACY_SERVER, NOON_MS } from './usage-world.ts';

const REQUEST = { windowMs: 30 * DAY_MS, format: 'human', width: 100, color: false } as const;

async function reportOn(usage: UsageTable, nowMs: number, more: Partial<ReportRequest> = {}): Promise<ReportResult> {
  const source = { kind: 'usage', usage: parseUsage(JSON.parse(usage.toJson())) } as const;
  return runReport({ ...REQUEST, source, wallClock: () => nowMs, ...more });
}

test('after a month one transport has to stay and the other can go', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const clock = new FakeClock();
  const wallClock = (): number => NOON_MS + clock.now();
  const served = ['old', 'new'].flatMap((server): readonly ServedEndpoint[] => [
    { server, transport: 'streamable-http', path: `/${server}/mcp`, sunset: undefined },
    { server, transport: 'http-sse', path: `/${server}/sse`, sunset: undefined },
  ]);
  let runs = 0;
  const log = pino({ level: 'silent' });
  const start = () => {
    runs += 1;
    const table = new UsageTable({ wallClock, served });
    // Each run is a container of its own on the same volume.
    const self = { ...thisProcess(), startedAtMs: Date.now() + runs * 1000 };
    const deps = { clock, log, wallClock, randomId: () => `run-${runs}` };
    return { table, file: new UsageFile({ table, stateDirectory, self, deps }) };
  };
  const report = (more: Partial<ReportRequest> = {}): Promise<ReportResult> =>
    runReport({ ...REQUEST, source: { kind: 'state', stateDirectory }, wallClock, ...more });

  let bridge = start();
  await bridge.file.flush();
  for (let day = 1; day <= 31; day += 1) {
    for (const server of ['old', 'new']) {
      call(bridge.table, { ...EDITOR, server });
      // All clients of one server have moved on after the first night.
      if (server === 'new' && day > 1) continue;
      if (day > 30) continue;
      const left = bridge.table.connected({ ...CURSOR, server }, LEGACY_SERVER);
      call(bridge.table, { ...CURSOR, server });
      left('ERR_SESSION_CLOSED');
    }
    clock.advance(DAY_MS);
    await bridge.file.flush();
    if (day % 7 === 0) {
      await bridge.file.close();
      bridge = start();
      await bridge.file.flush();
    }
    if (day === 10) {
      const early = await report();
      t.is(early.exitCode, 75);
      t.regex(early.report, /\/old\/sse: last used 1 day ago by cursor 0\.42 \(10 sessions\): not yet/);
      t.regex(early.report, /\/new\/sse: last used 10 days ago by cursor 0\.42 \(1 session\): not yet/);
    }
  }
  const end = await report();
  t.is(end.exitCode, 75);
  t.regex(end.report, /✗ \/old\/sse: last used 2 days ago by cursor 0\.42 \(29 sessions\): not yet\n/);
  t.regex(
    end.report,
    /✓ \/new\/sse: unused for 30 days: safe to switch off, but --no-sse has to wait for the others\n/,
  );
  t.regex(end.report, /→ not yet: somebody would miss it\n$/);

  for (let day = 0; day < 29; day += 1) {
    clock.advance(DAY_MS);
    await bridge.file.flush();
  }
  const safe = await report();
  t.is(safe.exitCode, 0);
  t.regex(safe.report, /✓ \/old\/sse: unused for 30 days: safe to switch off with --no-sse\n/);
  t.regex(safe.report, /✓ \/new\/sse: unused for 30 days: safe to switch off with --no-sse\n/);
  t.regex(safe.report, /→ safe\n$/);
  await bridge.file.close();
});

test('the report for programs is JSON of a fixed shape', async (t) => {
  const { table, time } = createTable();
  table.connected(CURSOR, LEGACY_SERVER)('ERR_SESSION_CLOSED');
  call(table, CURSOR);
  const { report, exitCode } = await reportOn(table, time.nowMs, { format: 'json' });
  t.is(exitCode, 75);
  const at = '2026-11-01T12:00:00.000Z';
  const client = {
    kind: 'client',
    name: 'cursor',
    version: '0.42',
    transport: 'http-sse',
    revision: '2024-11-05',
  };
  const server = { name: 'everything', transport: 'stdio', revision: '2025-06-18' };
  const json = JSON.parse(report);
  t.deepEqual(Object.keys(json), [
    'format',
    'since',
    'until',
    'conclusion',
    'endpoints',
    'rows',
    'deprecated',
    'problems',
  ]);
  t.like(json, { format: 1, since: '2026-10-02T12:00:00.000Z', until: at, conclusion: 'not-yet', problems: [] });
  t.deepEqual(json.endpoints[0], {
    server: 'everything',
    transport: 'http-sse',
    path: '/sse',
    verdict: {
      kind: 'not-yet',
      use: { lastUsed: at, client, clients: 1, sessions: 1, refused: 0, calls: 1 },
    },
    text: '/sse: last used just now by cursor 0.42 (1 session): not yet',
  });
  const { p50Ms, p95Ms, ...row } = json.rows[0];
  t.true(p50Ms > 7 && p95Ms < 14);
  t.deepEqual(row, {
    client,
    server,
    sessions: 1,
    refused: 0,
    calls: 1,
    errors: 0,
    requestBytes: 100,
    answerBytes: 1000,
    firstSeen: at,
    lastSeen: at,
    deprecated: [
      { name: 'http-sse', side: 'client', lastSeen: at },
      { name: 'old-revision', side: 'client', lastSeen: at },
      { name: 'old-revision', side: 'server', lastSeen: at },
    ],
  });
  t.deepEqual(json.deprecated[0], {
    name: 'http-sse',
    title: 'HTTP+SSE transport',
    removal: { kind: 'from', date: '2026-09-03' },
    instead: 'Streamable HTTP',
    source: 'https://modelcontextprotocol.io/seps/2596-spec-feature-lifecycle-and-deprecation#transition',
    users: [{ side: 'client', client, server, lastSeen: at }],
  });
});

for (const width of [40, 80, 120, 200]) {
  test(`the report fits into ${width} columns, but for what is to be copied`, async (t) => {
    const { table, time } = createTable();
    for (const name of ['cursor', 'a client with a name that is rather long and goes on', '日本語']) {
      call(table, { ...CURSOR, name });
      call(table, { ...EDITOR, name });
    }
    table.used('sampling', { server: 'everything', client: CURSOR });
    const { report } = await reportOn(table, time.nowMs, { width });
    for (const line of report.split('\n').filter((text) => !text.includes('https://')))
      t.true(line.length <= Math.max(width, 48), line);
  });
}

test('colors change nothing of the text', async (t) => {
  const { table, time } = createTable();
  call(table, CURSOR);
  const [plain, colored] = await Promise.all([
    reportOn(table, time.nowMs),
    reportOn(table, time.nowMs, { color: true }),
  ]);
  t.not(colored.report, plain.report);
  t.is(stripVTControlCharacters(colored.report), plain.report);
});

test('what clients call themselves drives no terminal and makes no lines', async (t) => {
  const { table, time } = createTable();
  call(table, { ...CURSOR, name: '\u001b[2J\nnot yet', version: '\u202e1', revision: '\u001b]0;x\u0007' });
  call(table, { ...CURSOR, name: ' ', server: 'a\u001b[31mb' });
  const human = await reportOn(table, time.nowMs, { width: 300 });
  const json = await reportOn(table, time.nowMs, { format: 'json' });
  for (const { report } of [human, json])
    for (const hidden of ['\u001b', '\u0007', '\u202e']) t.false(report.includes(hidden));
  t.true(human.report.includes('a client without a name'));
});

test('the report of a folder that nobody has written to says that it is too early', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  const { report, exitCode } = await runReport({
    ...REQUEST,
    source: { kind: 'state', stateDirectory },
    wallClock: () => NOON_MS,
  });
  t.is(exitCode, 75);
  t.is(
    report,
    [
      'Who used what in the last 30 days',
      'Nobody was seen.',
      '',
      'Can HTTP+SSE be switched off?',
      '  → too early to say: nothing has been observed yet',
      '',
    ].join('\n'),
  );
});

test('a bridge that does not serve HTTP+SSE has nothing to switch off', async (t) => {
  const { table, time } = createTable([
    { server: 'everything', transport: 'streamable-http', path: '/mcp', sunset: undefined },
  ]);
  const { report, exitCode } = await reportOn(table, time.nowMs + 7 * 60_000);
  t.is(exitCode, 0);
  // Nobody can say more after seven minutes.
  t.regex(report, /· \/mcp: unused for 7 minutes; not deprecated\n {2}→ safe: HTTP\+SSE is not served\n$/);
});

test('a folder that cannot be read is an error, which has an exit code of its own', async (t) => {
  const stateDirectory = await createStateDirectory(t);
  await writeFile(join(stateDirectory, 'usage'), '');
  const request = { ...REQUEST, source: { kind: 'state', stateDirectory }, wallClock: () => NOON_MS } as const;
  const error = await t.throwsAsync(runReport(request));
  t.like(error, { code: 'ERR_CONFIG_OPTION', audiences: { exit: 2 } });
});
