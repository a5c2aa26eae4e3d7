import test from 'ava';
import {
  createMigrationReport,
  exitCodeOf,
  type MigrationReport,
} from '../../../src/observe/usage/migration-report.ts';
import { DAY_MS, parseUsage, type ServedEndpoint, type Usage } from '../../../src/observe/usage/usage.ts';
import type { UsageTable } from '../../../src/observe/usage/usage-table.ts';
import { CURSOR, call, createTable, EDITOR, HOUR_MS, LEGACY_SERVER, NOON_MS, SERVED } from './usage-world.ts';

const WINDOW_MS = 30 * DAY_MS;

function report(usage: Usage, nowMs: number, problems: readonly string[] = []): MigrationReport {
  return createMigrationReport(usage, { windowMs: WINDOW_MS, nowMs, problems });
}

function textsOf({ endpoints }: MigrationReport): readonly string[] {
  return endpoints.map(({ text }) => text);
}

/** A bridge that runs for so many days, and notes every hour that it does. */
function run(time: { nowMs: number }, table: UsageTable, days: number, each: (day: number) => void = () => {}): void {
  for (let day = 0; day < days; day += 1) {
    each(day);
    for (let hour = 0; hour < 24; hour += 1) {
      time.nowMs += HOUR_MS;
      table.watch();
    }
  }
}

test('where nothing was observed it is too early to say', (t) => {
  const nothing = report({ format: 1, served: [], rows: [] }, NOON_MS);
  t.is(nothing.conclusion, 'too-early');
  t.is(exitCodeOf(nothing), 75);
  t.deepEqual(nothing.endpoints, []);
});

test('nothing is called unused before it was watched for the whole time', (t) => {
  const { table, time } = createTable();
  run(time, table, 12);
  const early = report(table.usage(), time.nowMs);
  t.is(early.conclusion, 'too-early');
  t.is(exitCodeOf(early), 75);
  t.deepEqual(textsOf(early), [
    '/sse: unused so far, but watched on only 12 of 30 days: too early to say',
    '/mcp: unused for 12 days; not deprecated',
  ]);
  run(time, table, 17);
  t.is(report(table.usage(), time.nowMs).conclusion, 'too-early');
  run(time, table, 1);
  const safe = report(table.usage(), time.nowMs);
  t.is(safe.conclusion, 'safe');
  t.is(exitCodeOf(safe), 0);
  t.is(textsOf(safe)[0], '/sse: unused for 30 days: safe to switch off with --no-sse');
});

test('who used it last is named, with how often', (t) => {
  const { table, time } = createTable();
  run(time, table, 40, (day) => {
    if (day < 35 || day > 37) return;
    table.connected(CURSOR, LEGACY_SERVER)('ERR_SESSION_CLOSED');
    call(table, CURSOR);
  });
  const used = report(table.usage(), time.nowMs);
  t.is(textsOf(used)[0], '/sse: last used 3 days ago by cursor 0.42 (3 sessions): not yet');
  t.is(used.conclusion, 'not-yet');
  t.is(exitCodeOf(used), 75);
  run(time, table, 26);
  t.regex(textsOf(report(table.usage(), time.nowMs))[0] ?? '', /not yet$/);
  run(time, table, 2);
  t.is(report(table.usage(), time.nowMs).conclusion, 'safe');
});

test('a session that lasts for months without a call is a use', (t) => {
  const { table, time } = createTable();
  table.connected(CURSOR, LEGACY_SERVER);
  run(time, table, 90);
  t.is(textsOf(report(table.usage(), time.nowMs))[0], '/sse: last used just now by cursor 0.42 (1 session): not yet');
});

test('a client that gets no session tries to use it all the same', (t) => {
  const { table, time } = createTable();
  run(time, table, 40);
  table.refused(CURSOR);
  time.nowMs += HOUR_MS;
  t.is(
    textsOf(report(table.usage(), time.nowMs))[0],
    '/sse: last used 1 hour ago by a client without a name (refused 1 time): not yet',
  );
});

test('clients that were counted together may be any', (t) => {
  const { table, time } = createTable();
  run(time, table, 40);
  const others = { kind: 'others', name: undefined, version: undefined, revision: undefined } as const;
  const usage = table.usage();
  const [row] = (() => {
    call(table, CURSOR);
    return table.usage().rows;
  })();
  if (row === undefined) throw new Error('it was counted');
  for (const name of ['everything', '(others)']) {
    const client = { ...others, transport: 'http-sse' } as const;
    const server = { name, transport: undefined, revision: undefined };
    const found = report({ ...usage, rows: [{ ...row, client, server }] }, time.nowMs);
    t.is(textsOf(found)[0], '/sse: last used just now by other clients (1 call): not yet');
  }
});

test('a bridge that has hardly run has not seen enough', (t) => {
  const { table, time } = createTable();
  run(time, table, 2);
  time.nowMs += 40 * DAY_MS;
  table.watch();
  t.is(
    textsOf(report(table.usage(), time.nowMs))[0],
    '/sse: unused so far, but watched on only 1 of 30 days: too early to say',
  );
});

test('a bridge that rests on weekends has seen enough', (t) => {
  const { table, time } = createTable();
  for (let week = 0; week < 6; week += 1) {
    run(time, table, 5);
    time.nowMs += 2 * DAY_MS;
  }
  table.watch();
  t.is(report(table.usage(), time.nowMs).conclusion, 'safe');
});

test('a clock that was wrong at the start makes nothing safe', (t) => {
  const { table, time } = createTable();
  time.nowMs = 0;
  table.watch();
  time.nowMs = NOON_MS;
  run(time, table, 1);
  t.is(report(table.usage(), time.nowMs).conclusion, 'too-early');
});

test('an endpoint that was switched off has nothing to switch off', (t) => {
  const { table, time } = createTable();
  call(table, CURSOR);
  run(time, table, 3);
  table.serve(SERVED.slice(0, 1));
  run(time, table, 2);
  const off = report(table.usage(), time.nowMs);
  t.deepEqual(textsOf(off), [
    '/sse: not served for 2 days; last used 5 days ago by cursor 0.42 (1 call)',
    '/mcp: unused for 5 days; not deprecated',
  ]);
  t.is(off.conclusion, 'safe');
});

test('of a bridge that has not run in all that time nobody knows anything', (t) => {
  const { table, time } = createTable();
  run(time, table, 3);
  time.nowMs += 60 * DAY_MS;
  const found = report(table.usage(), time.nowMs);
  t.deepEqual(textsOf(found), ['/mcp: not served for 60 days', '/sse: not served for 60 days']);
  t.is(found.conclusion, 'too-early');
});

test('a bridge that does not run now is not switched off', (t) => {
  const { table, time } = createTable();
  run(time, table, 40, (day) => {
    if (day === 39) call(table, CURSOR);
  });
  time.nowMs += 3 * DAY_MS;
  t.is(report(table.usage(), time.nowMs).conclusion, 'not-yet');
});

test('a verdict says which end was announced, the latest one', (t) => {
  const at = (sunset: string | undefined): readonly ServedEndpoint[] => [
    { server: 'everything', transport: 'http-sse', path: '/sse', sunset },
  ];
  const { table, time } = createTable(at('2027-01-31'));
  const textOf = () => report(table.usage(), time.nowMs).endpoints[0];
  run(time, table, 40, () => call(table, CURSOR));
  t.regex(textOf()?.text ?? '', /: not yet; announced to end on 2027-01-31$/);
  table.serve(at('2027-03-31'));
  t.like(textOf(), { sunset: '2027-03-31' });
  const adopted = createTable(at(undefined)).table;
  adopted.adopt(parseUsage(JSON.parse(table.toJson())));
  t.like(report(adopted.usage(), time.nowMs).endpoints[0], { sunset: '2027-03-31' });
  table.serve(at(undefined));
  t.like(textOf(), { sunset: undefined });
});

test('--no-sse waits for all servers', (t) => {
  const served: readonly ServedEndpoint[] = ['a', 'b'].map((server) => ({
    server,
    transport: 'http-sse',
    path: `/${server}/sse`,
    sunset: undefined,
  }));
  const { table, time } = createTable(served);
  run(time, table, 40, () => call(table, { ...CURSOR, server: 'b' }));
  const both = report(table.usage(), time.nowMs);
  t.deepEqual(textsOf(both), [
    '/b/sse: last used 1 day ago by cursor 0.42 (30 calls): not yet',
    '/a/sse: unused for 30 days: safe to switch off, but --no-sse has to wait for the others',
  ]);
  t.is(both.conclusion, 'not-yet');
});

test('a server that was added later is watched from then on', (t) => {
  const { table, time } = createTable();
  run(time, table, 40);
  table.serve([...SERVED, { server: 'new', transport: 'http-sse', path: '/sse', sunset: undefined }]);
  run(time, table, 5);
  const later = report(table.usage(), time.nowMs);
  t.deepEqual(textsOf(later).slice(0, 2), [
    '/sse of new: unused so far, but watched on only 5 of 30 days: too early to say',
    '/sse of everything: unused for 30 days: safe to switch off, but --no-sse has to wait for the others',
  ]);
  t.is(later.conclusion, 'too-early');
});

test('a use of an endpoint that nobody told of is a use', (t) => {
  const { table, time } = createTable(SERVED.slice(0, 1));
  run(time, table, 40);
  call(table, CURSOR);
  const found = report(table.usage(), time.nowMs);
  t.is(found.conclusion, 'not-yet');
  t.is(textsOf(found)[0], 'HTTP+SSE of everything: last used just now by cursor 0.42 (1 call): not yet');
});

test('where a file could not be read nothing is safe', (t) => {
  const { table, time } = createTable();
  run(time, table, 40);
  const found = report(table.usage(), time.nowMs, ['a file is left out']);
  t.is(found.conclusion, 'too-early');
  t.is(textsOf(found)[0], '/sse: unused as far as is known, but some of the usage could not be read');
  t.deepEqual(found.problems, ['a file is left out']);
});

test('a row has what was counted in the time of the report', (t) => {
  const { table, time } = createTable();
  run(time, table, 60, (day) => {
    if (day === 0 || day === 50) {
      table.connected(CURSOR, LEGACY_SERVER)('ERR_SESSION_CLOSED');
      for (let index = 0; index < 20; index += 1) call(table, CURSOR, { durationMs: index === 19 ? 4000 : 10 });
      call(table, CURSOR, { outcome: { kind: 'error', code: 1 } });
    }
  });
  const [row] = report(table.usage(), time.nowMs).rows;
  t.like(row, {
    sessions: 1,
    calls: 21,
    errors: 1,
    requestBytes: 2100,
    answerBytes: 21_000,
    firstSeen: new Date(NOON_MS).toISOString(),
    lastSeen: new Date(NOON_MS + 50 * DAY_MS).toISOString(),
  });
  t.true(Math.abs((row?.p50Ms ?? 0) - 10) < 4);
  t.true((row?.p95Ms ?? 0) < 20);
});

test('what was counted before everything was known belongs to the client', (t) => {
  const { table, time } = createTable();
  table.connected(CURSOR, undefined);
  table.used('roots', { server: 'everything', client: CURSOR });
  call(table, { ...CURSOR, revision: undefined }, { method: 'initialize', outcome: { kind: 'error', code: 1 } });
  call(table, CURSOR);
  call(table, { ...CURSOR, version: '0.43' });
  const { rows } = report(table.usage(), time.nowMs);
  t.is(rows.length, 2);
  const row = rows.find(({ client }) => client.version === '0.42');
  t.like(row, { sessions: 1, calls: 2, server: { transport: 'stdio', revision: '2025-06-18' } });
});

test('what is deprecated is told with its date, its source and who uses it', (t) => {
  const { table, time } = createTable();
  call(table, CURSOR);
  call(table, EDITOR, { server: { transport: 'http-sse', era: 'legacy', revision: '2024-11-05' } });
  table.used('sampling', { server: 'everything', client: CURSOR });
  table.used('sampling', { server: 'everything', client: CURSOR });
  table.used('dynamic-client-registration', { server: 'everything', client: undefined });
  const { deprecated } = report(table.usage(), time.nowMs);
  t.deepEqual(
    deprecated.map(({ name, users }) => [name, users.map(({ side, client, count }) => [side, client.name, count])]),
    [
      [
        'http-sse',
        [
          ['client', 'cursor', undefined],
          ['server', 'editor', undefined],
        ],
      ],
      ['sampling', [['client', 'cursor', 2]]],
      ['dynamic-client-registration', [['bridge', undefined, 1]]],
      [
        'old-revision',
        [
          ['client', 'cursor', undefined],
          ['server', 'cursor', undefined],
        ],
      ],
    ],
  );
  t.like(deprecated[0], { removal: { kind: 'from', date: '2026-09-03' } });
  t.deepEqual(report(table.usage(), time.nowMs + 31 * DAY_MS).deprecated, []);
});
