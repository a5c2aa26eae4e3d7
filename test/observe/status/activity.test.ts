import test from 'ava';
import {
  Activity,
  CALLER_SHOWN_MS,
  MAX_LISTED_CLIENTS,
  MAX_LISTED_OPEN_CALLS,
  MAX_RECENT_CALLS,
} from '../../../src/observe/status/activity.ts';
import {
  call,
  client,
  ending,
  FAILED,
  LEGACY_STDIO,
  MODERN_HTTP,
  modernClient,
  runCall,
  START_MS,
  WallClock,
} from './seen.ts';

function createActivity() {
  const clock = new WallClock();
  return { clock, activity: new Activity({ wallClock: clock.now }) };
}

test('lists a client from its session until it leaves, with what its messages become', (t) => {
  const { activity, clock } = createActivity();
  const leave = activity.connected(client(), LEGACY_STDIO);
  clock.advance(1000);
  t.deepEqual(activity.report().clients, [
    {
      number: 1,
      presence: 'connected',
      name: 'cursor',
      version: '0.42.3',
      speaks: { transport: 'http-sse', era: 'legacy', revision: '2024-11-05' },
      server: 'everything',
      serverSpeaks: { transport: 'stdio', era: 'legacy', revision: '2025-11-25' },
      sinceMs: START_MS,
    },
  ]);
  leave('ERR_SESSION_CLOSED');
  leave('ERR_SESSION_CLOSED');
  t.deepEqual(activity.report().clients, []);
  t.is(activity.report().moreClients, 0);
});

test('learns from a call what a server speaks that nobody knew when the client connected', (t) => {
  const { activity } = createActivity();
  activity.connected(client(), undefined);
  t.is(activity.report().clients[0]?.serverSpeaks, null);
  runCall(activity, {}, { server: MODERN_HTTP });
  t.is(activity.report().clients[0]?.serverSpeaks?.era, 'modern');
});

test('knows a modern client over HTTP by its calls for some minutes', (t) => {
  const { activity, clock } = createActivity();
  runCall(activity, { client: modernClient() });
  clock.advance(CALLER_SHOWN_MS - 1);
  runCall(activity, { client: modernClient() });
  runCall(activity, { client: modernClient({ name: 'other' }) });
  clock.advance(CALLER_SHOWN_MS - 1);
  t.deepEqual(
    activity.report().clients.map(({ name, presence, sinceMs }) => ({ name, presence, sinceMs })),
    [
      { name: 'other', presence: 'calling', sinceMs: START_MS + CALLER_SHOWN_MS - 1 },
      { name: 'claude-code', presence: 'calling', sinceMs: START_MS },
    ],
  );
  t.is(activity.report().clients[0]?.serverSpeaks?.transport, 'stdio');
  clock.advance(1);
  t.deepEqual(activity.report().clients, []);
});

test('takes no call of a session or a pipe for a client of its own', (t) => {
  const { activity } = createActivity();
  runCall(activity, { client: client() });
  runCall(activity, { client: modernClient({ transport: 'stdio' }) });
  t.deepEqual(activity.report().clients, []);
});

test('lists so many clients and counts the rest', (t) => {
  const { activity } = createActivity();
  const leaves = Array.from({ length: MAX_LISTED_CLIENTS + 5 }, () => activity.connected(client(), undefined));
  for (let index = 0; index < 3; index += 1) runCall(activity, { client: modernClient({ name: `caller ${index}` }) });
  const { clients, moreClients } = activity.report();
  t.is(clients.length, MAX_LISTED_CLIENTS);
  t.is(moreClients, 8);
  t.is(clients[0]?.name, 'caller 2');
  for (const leave of leaves) leave('ERR_SESSION_CLOSED');
  t.is(activity.report().clients.length, 3);
});

test('keeps so many clients that choose a new name with each call', (t) => {
  const { activity } = createActivity();
  const long = 'x'.repeat(250);
  for (let index = 0; index < 5000; index += 1) {
    runCall(activity, { client: modernClient({ name: `${index}${long}`, version: `${long}${index}` }) });
  }
  t.true(activity.report().clients.length <= MAX_LISTED_CLIENTS);
});

test('counts the calls that are open, and lists the longest', (t) => {
  const { activity, clock } = createActivity();
  const ends = Array.from({ length: MAX_LISTED_OPEN_CALLS + 2 }, (_, index) => {
    clock.advance(1);
    return activity.opened(call({ tool: `tool ${index}` }));
  });
  const { open, longestOpen } = activity.report().calls;
  t.is(open, MAX_LISTED_OPEN_CALLS + 2);
  t.is(longestOpen.length, MAX_LISTED_OPEN_CALLS);
  t.is(longestOpen[0]?.tool, 'tool 0');
  for (const end of ends) end(ending());
  t.is(activity.report().calls.open, 0);
  t.deepEqual(activity.report().calls.longestOpen, []);
});

test('remembers the latest calls, the last one first, and how each ended', (t) => {
  const { activity, clock } = createActivity();
  for (let index = 0; index < MAX_RECENT_CALLS + 10; index += 1) runCall(activity);
  clock.advance(50);
  runCall(activity, { tool: undefined, method: 'tools/list' }, { outcome: FAILED, durationMs: 12.3456, bytes: 7 });
  const { recent } = activity.report().calls;
  t.is(recent.length, MAX_RECENT_CALLS);
  t.deepEqual(recent[0], {
    number: MAX_RECENT_CALLS + 11,
    atMs: START_MS + 50,
    client: 'cursor',
    clientVersion: '0.42.3',
    transport: 'http-sse',
    server: 'everything',
    method: 'tools/list',
    tool: null,
    requestBytes: 120,
    outcome: 'failed',
    code: 'ERR_UPSTREAM_EXITED',
    durationMs: 12.3,
    bytes: 7,
  });
  t.deepEqual(
    recent.map(({ number }) => number),
    Array.from({ length: MAX_RECENT_CALLS }, (_, index) => MAX_RECENT_CALLS + 11 - index),
  );
});

test('counts errors and failures as errors, but no call that was canceled', (t) => {
  const { activity } = createActivity();
  runCall(activity, {}, { outcome: { kind: 'error', code: -32602 } });
  runCall(activity, {}, { outcome: { kind: 'error', code: undefined } });
  runCall(activity, {}, { outcome: FAILED });
  runCall(activity, {}, { outcome: { kind: 'cancelled' } });
  runCall(activity, { client: client({ server: 'other' }) });
  const report = activity.report();
  t.like(report.calls.lastMinute, { calls: 5, errors: 3 });
  t.like(report.ofServer('everything').lastMinute, { calls: 4, errors: 3 });
  t.like(report.ofServer('other').lastMinute, { calls: 1, errors: 0 });
  t.like(report.ofServer('unheard of').lastMinute, { calls: 0, p50Ms: null });
  t.deepEqual(
    report.calls.recent.map(({ code }) => code),
    [null, null, 'ERR_UPSTREAM_EXITED', null, -32602],
  );
});

test('ends a call once, however often it is told', (t) => {
  const { activity } = createActivity();
  const end = activity.opened(call());
  end(ending());
  end(ending());
  t.is(activity.report().calls.open, 0);
  t.is(activity.report().calls.recent.length, 1);
});

test('cuts what peers have written at length', (t) => {
  const { activity } = createActivity();
  const long = 'm'.repeat(100_000);
  runCall(activity, { method: long, tool: long, client: modernClient({ name: long, version: long, revision: long }) });
  activity.connected(client({ name: long }), undefined);
  t.true(JSON.stringify(activity.report()).length < 5000);
});

test('shows what is hidden in names', (t) => {
  const { activity } = createActivity();
  const name = 'a\u202e\u200bb';
  runCall(activity, { method: name, tool: name, client: modernClient({ name, version: name, revision: name }) });
  const report = JSON.stringify(activity.report());
  t.notRegex(report, /[\u202e\u200b]/);
  t.is(report.split('a\\\\u{202e}\\\\u{200b}b').length - 1 >= 6, true);
});

test('tells nobody who the authenticated caller is', (t) => {
  const { activity } = createActivity();
  activity.connected(client({ principal: 'ada@example.org' }), LEGACY_STDIO);
  runCall(activity, { client: modernClient({ principal: 'ada@example.org' }) });
  activity.opened(call({ client: client({ principal: 'ada@example.org' }) }));
  t.notRegex(JSON.stringify(activity.report()), /ada/);
});

test('replaces servers by those that are called now, where a configuration has had many', (t) => {
  const { activity, clock } = createActivity();
  for (let index = 0; index < 600; index += 1) runCall(activity, { client: client({ server: `old ${index}` }) });
  runCall(activity, { client: client({ server: 'too many' }) });
  t.is(activity.report().ofServer('too many').lastMinute.calls, 0);
  clock.advance(11 * 60_000);
  runCall(activity, { client: client({ server: 'new' }) });
  t.is(activity.report().ofServer('new').lastMinute.calls, 1);
});

test('wants to see calls while somebody looks, and for some minutes after', (t) => {
  const { activity, clock } = createActivity();
  t.false(activity.seesCalls);
  activity.report();
  t.true(activity.seesCalls);
  clock.advance(5 * 60_000 - 1);
  runCall(activity);
  t.true(activity.seesCalls);
  clock.advance(1);
  runCall(activity);
  t.false(activity.seesCalls);
});
