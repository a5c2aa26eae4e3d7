import test from 'ava';
import {
  DAY_MS,
  dayOf,
  MAX_DAY_COUNTS,
  MAX_DAYS,
  MAX_OTHERS_ROWS,
  MAX_ROWS,
  MAX_SERVED,
  parseUsage,
} from '../../../src/observe/usage/usage.ts';
import { MAX_FILE_BYTES } from '../../../src/observe/usage/usage-folder.ts';
import { OTHER_SERVERS } from '../../../src/observe/usage/usage-rows.ts';
import { UsageTable } from '../../../src/observe/usage/usage-table.ts';
import { CURSOR, call, createTable, EDITOR, HOUR_MS, LEGACY_SERVER, NOON_MS, SERVED } from './usage-world.ts';

test('a call is counted by client, transport, revision and what the server speaks', (t) => {
  const { table } = createTable();
  call(table, CURSOR);
  call(table, CURSOR, { outcome: { kind: 'error', code: -32000 } });
  call(table, CURSOR, { outcome: { kind: 'failed', code: 'ERR_UPSTREAM_EXITED' } });
  call(table, CURSOR, { outcome: { kind: 'cancelled' } });
  call(table, EDITOR);
  call(table, CURSOR, { server: { ...LEGACY_SERVER, revision: '2025-11-25' } });
  const { rows } = table.usage();
  t.deepEqual(
    rows.map(({ client, server, days }) => [client.name, client.transport, server.revision, days[0]?.calls]),
    [
      ['cursor', 'http-sse', '2025-06-18', 4],
      ['editor', 'streamable-http', '2025-06-18', 1],
      ['cursor', 'http-sse', '2025-11-25', 1],
    ],
  );
  t.like(rows[0], {
    client: { kind: 'client', name: 'cursor', version: '0.42', transport: 'http-sse', revision: '2024-11-05' },
    server: { name: 'everything', transport: 'stdio', revision: '2025-06-18' },
    firstSeenMs: NOON_MS,
    lastSeenMs: NOON_MS,
  });
  t.like(rows[0]?.days[0], { day: dayOf(NOON_MS), errors: 2, requestBytes: 400, answerBytes: 4000, sessions: 0 });
  const timed = rows[0]?.days[0]?.latency.reduce((sum, count) => sum + count, 0);
  t.is(timed, 2, 'a call that was withdrawn or never reached the server says nothing of how long it takes');
});

test('nothing of the caller, the tool or the session is kept', (t) => {
  const { table } = createTable();
  call(table, CURSOR);
  t.false(/somebody|echo|tools/.test(table.toJson()));
});

test('a handshake counts as a session when it succeeds, and as a call when it fails', (t) => {
  const { table } = createTable();
  call(table, CURSOR, { method: 'initialize' });
  t.deepEqual(table.usage().rows, []);
  table.connected(CURSOR, LEGACY_SERVER);
  call(table, CURSOR, { method: 'initialize', outcome: { kind: 'error', code: -32602 } });
  t.like(table.usage().rows[0]?.days[0], { sessions: 1, calls: 1, errors: 1 });
});

test('how long a client listens is not how long a call takes', (t) => {
  const { table } = createTable();
  call(table, EDITOR, { method: 'subscriptions/listen', durationMs: DAY_MS });
  t.like(table.usage().rows[0]?.days[0], { calls: 1, latency: [] });
});

test('a session that lasts is used as long as it lasts', (t) => {
  const { table, time } = createTable();
  const left = table.connected(CURSOR, LEGACY_SERVER);
  time.nowMs += 40 * DAY_MS;
  table.watch();
  const [row] = table.usage().rows;
  t.is(row?.lastSeenMs, time.nowMs);
  t.like(row?.days.at(-1), { day: dayOf(time.nowMs), sessions: 0, carried: 1 });
  time.nowMs += HOUR_MS;
  left('ERR_SESSION_CLOSED');
  t.is(table.usage().rows[0]?.lastSeenMs, time.nowMs);
  const leftAtMs = time.nowMs;
  time.nowMs += HOUR_MS;
  table.watch();
  t.is(table.usage().rows[0]?.lastSeenMs, leftAtMs);
});

test('a client that gets no session is counted, though nobody knows its name', (t) => {
  const { table } = createTable();
  table.refused(CURSOR);
  t.like(table.usage().rows[0], { client: { name: undefined, transport: 'http-sse' }, days: [{ refused: 1 }] });
});

test('uses of what is deprecated are counted for the client, or for the bridge', (t) => {
  const { table, time } = createTable();
  table.used('sampling', { server: 'everything', client: CURSOR });
  time.nowMs += HOUR_MS;
  table.used('sampling', { server: 'everything', client: CURSOR });
  table.used('dynamic-client-registration', { server: 'everything', client: undefined });
  const [client, bridge] = table.usage().rows;
  t.deepEqual(client?.deprecated, [{ feature: 'sampling', count: 2, lastSeenMs: time.nowMs }]);
  t.like(bridge, { client: { kind: 'bridge' }, deprecated: [{ feature: 'dynamic-client-registration', count: 1 }] });
});

test('each day is counted for itself, by UTC, also after the clock was set back', (t) => {
  const { table, time } = createTable();
  call(table, CURSOR);
  time.nowMs += DAY_MS;
  call(table, CURSOR);
  call(table, CURSOR);
  time.nowMs -= DAY_MS;
  call(table, CURSOR);
  time.nowMs -= DAY_MS;
  call(table, CURSOR);
  const today = dayOf(NOON_MS);
  t.deepEqual(
    table.usage().rows[0]?.days.map(({ day, calls }) => [day, calls]),
    [
      [today - 1, 1],
      [today, 2],
      [today + 1, 2],
    ],
  );
  t.like(table.usage().rows[0], { firstSeenMs: NOON_MS - DAY_MS, lastSeenMs: NOON_MS + DAY_MS });
});

test('names are cut, and clients whose names are cut alike are one', (t) => {
  const { table } = createTable();
  const long = 'x'.repeat(256);
  for (const end of ['a', 'b'])
    call(table, { ...CURSOR, name: long + end, version: long, revision: long, server: long }, { server: undefined });
  const { rows } = table.usage();
  t.is(rows.length, 1);
  t.like(rows[0], { client: { name: 'x'.repeat(64), version: 'x'.repeat(32) }, days: [{ calls: 2 }] });
  t.notThrows(() => parseUsage(JSON.parse(table.toJson())));
});

test('what is hidden in a name is seen, and two names that differ are two', (t) => {
  const { table } = createTable();
  for (const name of ['cursor', 'cur\u200bsor', '\u202ecursor']) call(table, { ...CURSOR, name, version: name });
  const shown = ['cursor', 'cur\\u{200b}sor', '\\u{202e}cursor'];
  t.deepEqual(
    table.usage().rows.map(({ client }) => client.name),
    shown,
  );
  t.deepEqual(
    table.usage().rows.map(({ client }) => client.version),
    shown,
  );
});

test('beyond the limit the clients that were seen least recently are counted together', (t) => {
  const { table, time } = createTable();
  const left = table.connected({ ...CURSOR, name: 'first' }, LEGACY_SERVER);
  for (let index = 0; index < 2 * MAX_ROWS; index += 1) {
    time.nowMs += 1000;
    call(table, { ...CURSOR, name: `client ${index}` });
  }
  const { rows } = table.usage();
  t.is(rows.length, MAX_ROWS + 1);
  const others = rows.find(({ client }) => client.kind === 'others');
  t.like(others, {
    client: { name: undefined, transport: 'http-sse' },
    server: { name: 'everything' },
    firstSeenMs: NOON_MS,
  });
  t.like(others?.days[0], { calls: MAX_ROWS, sessions: 1 });
  t.is(
    rows.flatMap(({ days }) => days).reduce((sum, { calls }) => sum + calls, 0),
    2 * MAX_ROWS,
  );
  time.nowMs += HOUR_MS;
  table.watch();
  t.is(table.usage().rows.find(({ client }) => client.kind === 'others')?.lastSeenMs, time.nowMs, 'it is still there');
  left('ERR_SESSION_CLOSED');
  time.nowMs += HOUR_MS;
  table.watch();
  t.not(table.usage().rows.find(({ client }) => client.kind === 'others')?.lastSeenMs, time.nowMs);
});

test('a client that was counted with the others is known again when it comes back', (t) => {
  const { table, time } = createTable();
  call(table, CURSOR);
  for (let index = 0; index < MAX_ROWS; index += 1) {
    time.nowMs += 1000;
    call(table, { ...CURSOR, name: `c${index}`.padEnd(40) });
  }
  call(table, CURSOR);
  const row = table.usage().rows.find(({ client }) => client.name === 'cursor');
  t.is(row?.days[0]?.calls, 1);
});

test('however many servers there are, the rows stay within their limits', (t) => {
  const { table, time } = createTable([]);
  for (let index = 0; index < 2000; index += 1) {
    time.nowMs += 1000;
    call(table, { ...CURSOR, server: `server ${index}` });
  }
  const { rows } = table.usage();
  const others = rows.filter(({ client }) => client.kind === 'others');
  t.true(others.length <= MAX_OTHERS_ROWS && rows.length - others.length <= MAX_ROWS);
  t.true(others.some(({ server }) => server.name === OTHER_SERVERS));
  t.is(
    rows.flatMap(({ days }) => days).reduce((sum, { calls }) => sum + calls, 0),
    2000,
  );
  t.notThrows(() => parseUsage(JSON.parse(table.toJson())));
});

test('days are forgotten after a while, and rows that nobody has seen since', (t) => {
  const { table, time } = createTable();
  call(table, EDITOR);
  for (let day = 0; day < 3 * MAX_DAYS; day += 1) {
    time.nowMs += DAY_MS;
    call(table, CURSOR);
    table.watch();
  }
  const { rows, served } = table.usage();
  t.is(rows.length, 1);
  t.true((rows[0]?.days.length ?? 0) <= MAX_DAYS);
  t.is(rows[0]?.firstSeenMs, NOON_MS + DAY_MS);
  t.true(served.every(({ days }) => days.length <= MAX_DAYS));
  t.true(served.every(({ sinceMs }) => sinceMs === NOON_MS));
});

test('the days of all rows together are bounded', (t) => {
  const { table, time } = createTable();
  for (let day = 0; day < 30; day += 1) {
    time.nowMs += DAY_MS;
    for (let index = 0; index < MAX_ROWS; index += 1)
      for (const durationMs of [1, 20, 300, 1e9]) call(table, { ...CURSOR, name: `client ${index}` }, { durationMs });
  }
  const days = table.usage().rows.flatMap((row) => row.days);
  t.true(days.length <= MAX_DAY_COUNTS + MAX_ROWS, `${days.length}`);
  t.is(Math.max(...days.map(({ day }) => day)), dayOf(time.nowMs));
  t.true(Buffer.byteLength(table.toJson()) < MAX_FILE_BYTES / 2, 'there is capacity for what a day can count');
});

test('endpoints are watched from when they are served, and as long', (t) => {
  const { table, time } = createTable();
  time.nowMs += HOUR_MS;
  table.serve(SERVED.slice(0, 1));
  time.nowMs += DAY_MS;
  table.watch();
  t.deepEqual(table.usage().served, [
    { ...SERVED[0], sinceMs: NOON_MS, untilMs: time.nowMs, days: [dayOf(NOON_MS), dayOf(time.nowMs)] },
    { ...SERVED[1], sinceMs: NOON_MS, untilMs: NOON_MS + HOUR_MS, days: [dayOf(NOON_MS)] },
  ]);
});

test('endpoints are bounded, too: those go that were served last of all', (t) => {
  const { table, time } = createTable([]);
  for (let index = 0; index < 2 * MAX_SERVED; index += 1) {
    time.nowMs += 1000;
    table.serve([{ server: `server ${index}`, transport: 'http-sse', path: '/sse', sunset: undefined }]);
  }
  const { served } = table.usage();
  t.is(served.length, MAX_SERVED);
  t.is(served.at(-1)?.server, `server ${2 * MAX_SERVED - 1}`);
});

test('what another process has counted is added', (t) => {
  const one = createTable();
  const other = createTable();
  call(one.table, CURSOR);
  call(other.table, CURSOR, { durationMs: 3000 });
  other.time.nowMs += DAY_MS;
  call(other.table, CURSOR);
  other.table.used('roots', { server: 'everything', client: CURSOR });
  other.table.connected(EDITOR, LEGACY_SERVER);
  one.time.nowMs += 2 * DAY_MS;
  one.table.adopt(parseUsage(JSON.parse(other.table.toJson())));
  const { rows } = one.table.usage();
  t.like(rows[0], { firstSeenMs: NOON_MS, lastSeenMs: NOON_MS + DAY_MS });
  t.deepEqual(
    rows[0]?.days.map(({ day, calls, requestBytes, latency }) => [
      day - dayOf(NOON_MS),
      calls,
      requestBytes,
      latency.reduce((sum, count) => sum + count, 0),
    ]),
    [
      [0, 2, 200, 2],
      [1, 1, 100, 1],
    ],
  );
  t.is(rows.length, 3);
  one.time.nowMs += HOUR_MS;
  one.table.watch();
  const editor = one.table.usage().rows.find(({ client }) => client.name === 'editor');
  t.is(editor?.lastSeenMs, NOON_MS + DAY_MS, 'sessions of another process are not open here');
});

test('a table that begins anew knows who is connected', (t) => {
  const { table, time } = createTable();
  const left = table.connected(CURSOR, LEGACY_SERVER);
  call(table, EDITOR);
  time.nowMs += HOUR_MS;
  table.clear();
  const { rows, served } = table.usage();
  t.is(rows.length, 1);
  t.like(rows[0], { client: { name: 'cursor' }, firstSeenMs: time.nowMs });
  t.like(rows[0]?.days, [{ sessions: 0, carried: 1 }]);
  t.true(served.every(({ sinceMs }) => sinceMs === time.nowMs));
  left('ERR_SESSION_CLOSED');
});

test('what it tells as text is what it tells as data', (t) => {
  const { table, time } = createTable();
  call(table, CURSOR);
  table.used('logging', { server: 'everything', client: EDITOR });
  const before = table.changes;
  t.deepEqual(parseUsage(JSON.parse(table.toJson())), table.usage());
  time.nowMs += DAY_MS;
  call(table, CURSOR);
  t.deepEqual(parseUsage(JSON.parse(table.toJson())), table.usage());
  t.true(table.changes > before);
});

test('a call costs a fraction of a microsecond or little more', (t) => {
  const table = new UsageTable({ wallClock: Date.now, served: SERVED });
  const ending = { outcome: { kind: 'answered' }, bytes: 1000, durationMs: 3, server: LEGACY_SERVER } as const;
  const run = (count: number): number => {
    const start = performance.now();
    for (let index = 0; index < count; index += 1)
      table.opened({
        client: CURSOR,
        method: 'tools/call',
        tool: 'echo',
        requestBytes: 100,
        openedAtMs: 0,
        traceId: undefined,
      })(ending);
    return ((performance.now() - start) * 1000) / count;
  };
  run(20_000);
  const microseconds = Math.min(run(50_000), run(50_000), run(50_000));
  t.log(`${microseconds.toFixed(3)} µs`);
  t.true(microseconds < 20);
});
