import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { pino } from 'pino';
import type { InspectedServer, Inspection } from '../../../src/observe/inspection.ts';
import { createMetrics, type Metrics } from '../../../src/observe/metrics/metrics.ts';
import { metricsRoute } from '../../../src/observe/metrics/metrics-route.ts';
import { CHARACTERS_PER_TURN } from '../../../src/observe/metrics/metrics-text.ts';
import { ORIGIN } from '../../support/calls.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { client, MODERN, runCall, SERVER_2025, SERVER_2026 } from '../../support/observed.ts';
import { Scrape } from '../../support/scrape.ts';

const EVERYTHING: InspectedServer = {
  name: 'everything',
  url: 'http://localhost/everything/mcp',
  sseUrl: undefined,
  sunset: undefined,
  wsUrl: undefined,
  hubs: [],
  kind: 'command',
  state: 'ready',
  sinceMs: undefined,
  problem: undefined,
  verdicts: [SERVER_2025],
  sessions: 3,
  openCalls: 2,
  processes: 4,
  restarts: 1,
  queues: [
    { queue: 'parked_calls', items: 3, bytes: 4096 },
    { queue: 'sessions_wanted', items: 5, bytes: undefined },
  ],
};

function inspection(servers: readonly InspectedServer[] = [EVERYTHING]): Inspection {
  return {
    startedAtMs: 1_700_000_000_000,
    version: '1.2.3',
    servers,
    openCalls: 2,
    maxOpenCalls: 4096,
    processes: 4,
    maxProcesses: 64,
    connections: 7,
    unsentBytes: 123,
  };
}

async function create(inspect = (): Inspection => inspection()) {
  const clock = new FakeClock();
  return { clock, metrics: await createMetrics({ inspect, clock }) };
}

async function scrape(metrics: Metrics): Promise<Scrape> {
  return new Scrape(Buffer.concat(await metrics.text()).toString());
}

const OPERATIONS = 'mcp_server_operation_duration_seconds';
const TRAFFIC = { server: 'everything', transport: 'streamable-http', network_transport: 'tcp' };
const CONNECTION = { ...TRAFFIC, mcp_protocol_version: '2025-06-18' };

test('a call is timed with the labels of the conventions and the eras of both sides', async (t) => {
  const { metrics } = await create();
  runCall(metrics, {}, { durationMs: 15, server: SERVER_2026 });
  const [timed, ...more] = (await scrape(metrics)).timed(OPERATIONS);
  t.deepEqual(more, []);
  t.deepEqual(timed?.labels, {
    ...CONNECTION,
    mcp_method_name: 'tools/call',
    gen_ai_tool_name: 'echo',
    client_era: 'legacy',
    server_era: 'modern',
  });
  t.is(timed?.count, 1);
  t.is(timed?.sum, 0.015);
});

test('the buckets of calls are those that the conventions recommend', async (t) => {
  const { metrics } = await create();
  runCall(metrics, {}, { durationMs: 15 });
  const [timed] = (await scrape(metrics)).timed(OPERATIONS);
  const bounds = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, Number.POSITIVE_INFINITY];
  t.deepEqual(
    timed?.buckets,
    bounds.map((bound) => [bound, bound >= 0.015 ? 1 : 0]),
  );
});

for (const [what, outcome, expected] of [
  ['an error of the server by its code', { kind: 'error', code: -32602 }, '-32602'],
  ['an error without a code', { kind: 'error', code: undefined }, '_OTHER'],
  ['a tool that ran and failed', { kind: 'tool-error' }, 'tool_error'],
  ['a call that was withdrawn', { kind: 'cancelled' }, 'cancelled'],
  ['a failure by its code', { kind: 'failed', code: 'ERR_UPSTREAM_TIMEOUT' }, 'ERR_UPSTREAM_TIMEOUT'],
] as const) {
  test(`the type of an error tells ${what}`, async (t) => {
    const { metrics } = await create();
    runCall(metrics, {}, { outcome });
    const [timed] = (await scrape(metrics)).timed(OPERATIONS);
    t.is(timed?.labels.error_type, expected);
  });
}

test('a session is timed when it has ended, and an end without an error has no type', async (t) => {
  const { metrics, clock } = await create();
  const left = metrics.connected(client(), undefined);
  const broken = metrics.connected(client({ transport: 'stdio' }), SERVER_2025);
  clock.advance(90_000);
  left('ERR_SESSION_CLOSED');
  broken('ERR_UPSTREAM_EXITED');
  const scraped = await scrape(metrics);
  const [first, second] = scraped.timed('mcp_server_session_duration_seconds');
  t.deepEqual(first?.labels, CONNECTION);
  t.is(first?.sum, 90);
  t.like(second?.labels, { network_transport: 'pipe', transport: 'stdio', error_type: 'ERR_UPSTREAM_EXITED' });
  t.deepEqual(scraped.values('mcp_portage_clients_total')[0], [{ ...CONNECTION, client_name: 'cursor' }, 1]);
});

test('calls, bytes and translations are counted', async (t) => {
  const { metrics } = await create();
  runCall(metrics, { requestBytes: 10 }, { bytes: 20 });
  runCall(metrics, { requestBytes: 10 }, { bytes: 20, server: SERVER_2026 });
  runCall(metrics, { requestBytes: 10 }, { bytes: 20, server: undefined });
  runCall(metrics, { client: client({ ...MODERN, name: undefined }) }, {});
  const scraped = await scrape(metrics);
  t.deepEqual(scraped.values('mcp_portage_client_calls_total'), [
    [{ ...CONNECTION, client_name: 'cursor' }, 3],
    [{ ...CONNECTION, mcp_protocol_version: '2026-07-28' }, 1],
  ]);
  t.deepEqual(scraped.values('mcp_portage_request_bytes_total'), [[TRAFFIC, 130]]);
  t.deepEqual(scraped.values('mcp_portage_response_bytes_total'), [[TRAFFIC, 260]]);
  t.deepEqual(scraped.values('mcp_portage_translated_calls_total'), [
    [{ server: 'everything', client_era: 'legacy', server_era: 'modern' }, 1],
    [{ server: 'everything', client_era: 'modern', server_era: 'legacy' }, 1],
  ]);
});

test('refusals are counted by reason, deprecated uses by feature', async (t) => {
  const { metrics } = await create();
  metrics.refused(ORIGIN, 'ERR_SESSION_LIMIT');
  metrics.refused(ORIGIN, 'ERR_SESSION_LIMIT');
  metrics.used('sampling', { server: 'everything', client: client() });
  metrics.used('dynamic-client-registration', { server: 'everything', client: undefined });
  const scraped = await scrape(metrics);
  t.deepEqual(scraped.values('mcp_portage_session_refusals_total'), [
    [{ ...TRAFFIC, server: 'a server', reason: 'ERR_SESSION_LIMIT' }, 2],
  ]);
  t.deepEqual(scraped.values('mcp_portage_deprecated_uses_total'), [
    [{ server: 'everything', feature: 'sampling', client_name: 'cursor' }, 1],
    [{ server: 'everything', feature: 'dynamic-client-registration' }, 1],
  ]);
});

test('the state of the bridge is that of the moment when somebody looks', async (t) => {
  let servers: readonly InspectedServer[] = [EVERYTHING];
  const { metrics } = await create(() => inspection(servers));
  const first = await scrape(metrics);
  const server = { server: 'everything' };
  t.deepEqual(first.values('mcp_portage_info'), [[{ version: '1.2.3' }, 1]]);
  t.deepEqual(first.values('mcp_portage_start_time_seconds'), [[{}, 1_700_000_000]]);
  t.deepEqual(first.values('mcp_portage_open_calls_limit'), [[{}, 4096]]);
  t.deepEqual(first.values('mcp_portage_processes_limit'), [[{}, 64]]);
  t.deepEqual(first.values('mcp_portage_server_up'), [[{ ...server, kind: 'command' }, 1]]);
  t.deepEqual(first.values('mcp_portage_server_state'), [
    [{ ...server, state: 'not-started' }, 0],
    [{ ...server, state: 'starting' }, 0],
    [{ ...server, state: 'ready' }, 1],
    [{ ...server, state: 'failing' }, 0],
    [{ ...server, state: 'stopped' }, 0],
  ]);
  t.deepEqual(first.values('mcp_portage_server_speaks'), [
    [{ ...server, transport: 'stdio', server_era: 'legacy', mcp_protocol_version: '2025-06-18' }, 1],
  ]);
  t.deepEqual(first.values('mcp_portage_sessions'), [[server, 3]]);
  t.deepEqual(first.values('mcp_portage_open_calls'), [[server, 2]]);
  t.deepEqual(first.values('mcp_portage_processes'), [[server, 4]]);
  t.deepEqual(first.values('mcp_portage_restarts_total'), [[server, 1]]);
  t.deepEqual(first.values('mcp_portage_connections'), [[{}, 7]]);
  t.deepEqual(first.values('mcp_portage_unsent_bytes'), [[{}, 123]]);
  t.deepEqual(first.values('mcp_portage_queue_items'), [
    [{ ...server, queue: 'parked_calls' }, 3],
    [{ ...server, queue: 'sessions_wanted' }, 5],
  ]);
  t.deepEqual(first.values('mcp_portage_queue_bytes'), [[{ ...server, queue: 'parked_calls' }, 4096]]);

  servers = [{ ...EVERYTHING, name: 'another', state: 'stopped', verdicts: [], restarts: 5 }];
  const second = await scrape(metrics);
  t.deepEqual(second.values('mcp_portage_server_up'), [[{ server: 'another', kind: 'command' }, 0]]);
  t.deepEqual(second.values('mcp_portage_restarts_total'), [[{ server: 'another' }, 5]]);
  t.deepEqual(second.values('mcp_portage_server_speaks'), []);
});

test('a server of both eras has a verdict for each', async (t) => {
  const { metrics } = await create(() => inspection([{ ...EVERYTHING, verdicts: [SERVER_2026, SERVER_2025] }]));
  const eras = (await scrape(metrics)).values('mcp_portage_server_speaks').map(([labels]) => labels.server_era);
  t.deepEqual(eras, ['modern', 'legacy']);
});

test('requests that are refused before they are calls are counted by the code of their error', async (t) => {
  const { metrics } = await create();
  for (const reason of ['ERR_HTTP_HOST', 'ERR_AUTH_TOKEN', 'ERR_HTTP_HOST', 'connections'] as const) {
    metrics.refusedRequest(reason);
  }
  t.deepEqual((await scrape(metrics)).values('mcp_portage_refused_requests_total'), [
    [{ reason: 'ERR_HTTP_HOST' }, 2],
    [{ reason: 'ERR_AUTH_TOKEN' }, 1],
    [{ reason: 'connections' }, 1],
  ]);
});

test('memory, event loop and garbage collection are there, and nothing is registered for the whole process', async (t) => {
  const { register } = await import('prom-client');
  const first = await scrape((await create()).metrics);
  const second = await scrape((await create()).metrics);
  for (const name of ['process_resident_memory_bytes', 'nodejs_eventloop_lag_seconds', 'nodejs_gc_duration_seconds']) {
    t.true(first.types.has(name) && second.types.has(name), name);
  }
  t.deepEqual(register.getMetricsAsArray(), []);
});

// ---- Words that peers choose.

const WORDS = Array.from({ length: 2000 }, (_, index) => `word-${index}`);

async function labelsAfter(metrics: Metrics, metric: string, label: string): Promise<Set<string | undefined>> {
  return new Set((await scrape(metrics)).values(metric).map(([labels]) => labels[label]));
}

test('a server has labels for a hundred tools; further ones are one', async (t) => {
  const { metrics } = await create();
  for (const tool of WORDS) runCall(metrics, { tool });
  runCall(metrics, { tool: 'of another server', client: client({ server: 'another' }) });
  const labels = await labelsAfter(metrics, `${OPERATIONS}_count`, 'gen_ai_tool_name');
  t.is(labels.size, 102);
  t.true(labels.has('word-0') && labels.has('other') && labels.has('of another server'));
});

test('a tool that a server does not answer for has no label, so that nobody takes those of others', async (t) => {
  const { metrics } = await create();
  const failures = [
    { kind: 'error', code: -32602 },
    { kind: 'failed', code: 'ERR_SESSION_BUSY' },
    { kind: 'cancelled' },
  ] as const;
  for (const tool of WORDS) for (const outcome of failures) runCall(metrics, { tool }, { outcome });
  runCall(metrics, { tool: 'slow' }, { outcome: { kind: 'failed', code: 'ERR_UPSTREAM_TIMEOUT' } });
  runCall(metrics, { tool: 'real' });
  runCall(metrics, { tool: 'real' }, { outcome: { kind: 'error', code: -32602 } });
  t.deepEqual(
    (await scrape(metrics)).timed(OPERATIONS).map(({ labels }) => [labels.gen_ai_tool_name, labels.error_type]),
    [
      ['other', '-32602'],
      ['other', 'ERR_SESSION_BUSY'],
      ['other', 'cancelled'],
      ['slow', 'ERR_UPSTREAM_TIMEOUT'],
      ['real', undefined],
      ['real', '-32602'],
    ],
  );
});

test('methods, revisions and clients that peers make up add few series', async (t) => {
  const { metrics } = await create();
  for (const word of WORDS) {
    const made = client({ ...MODERN, revision: word, name: word, version: word });
    runCall(metrics, { client: made, method: word, tool: undefined });
    metrics.connected(made, undefined);
    metrics.used('logging', { server: 'everything', client: made });
  }
  const scraped = await scrape(metrics);
  t.is(scraped.timed(OPERATIONS).length, 1);
  t.like(scraped.timed(OPERATIONS)[0]?.labels, { mcp_method_name: 'other', mcp_protocol_version: 'other' });
  for (const name of ['client_calls', 'clients', 'deprecated_uses']) {
    t.is(scraped.values(`mcp_portage_${name}_total`).length, 51, name);
  }
});

test('a server that answers with any code adds few series', async (t) => {
  const { metrics } = await create();
  for (let code = 0; code < 2000; code += 1) runCall(metrics, {}, { outcome: { kind: 'error', code } });
  const labels = await labelsAfter(metrics, `${OPERATIONS}_count`, 'error_type');
  t.is(labels.size, 33);
  t.true(labels.has('_OTHER'));
});

test('label sets are bounded at a server, and all together', async (t) => {
  const { metrics } = await create();
  for (let server = 0; server < 10; server += 1) {
    for (let index = 0; index < 100; index += 1) {
      for (let code = 0; code < 10; code += 1) {
        const of = { client: client({ server: `server-${server}` }), tool: `tool-${index}` };
        runCall(metrics, of);
        runCall(metrics, of, { outcome: { kind: 'error', code } });
      }
    }
  }
  const samples = (await scrape(metrics)).timed(OPERATIONS);
  // Each server has two more for what exceeds the limit.
  t.true(samples.length > 2900 && samples.length <= 3000 + 2 * 10, `${samples.length}`);
  t.is(
    samples.reduce((sum, { count }) => sum + count, 0),
    20_000,
    'no call is lost',
  );
});

test('a name that could be taken for another, forge a line or fill the memory has no label', async (t) => {
  const { metrics } = await create();
  const names = ['a\nb 1', '\u202etool', 'zero\u200bwidth', '\ud800', '', 'x'.repeat(200), ' ✓ "quoted" \\ {le="1"}'];
  for (const name of names) runCall(metrics, { tool: name, client: client({ name }) });
  const tools = await labelsAfter(metrics, `${OPERATIONS}_count`, 'gen_ai_tool_name');
  const clients = await labelsAfter(metrics, 'mcp_portage_client_calls_total', 'client_name');
  t.is(tools.size, 2);
  t.is(clients.size, 2);
  t.true(tools.has('other') && clients.has('other'));
});

test('a list of servers that changes again and again has an end', async (t) => {
  const { metrics } = await create();
  for (const word of WORDS) metrics.refused({ ...ORIGIN, server: word }, 'ERR_SESSION_LIMIT');
  t.is((await labelsAfter(metrics, 'mcp_portage_session_refusals_total', 'server')).size, 1001);
});

// ---- The route.

test('metrics are answered as Prometheus wants them', async (t) => {
  const { metrics } = await create();
  const server = createServer(metricsRoute(metrics, pino({ level: 'silent' }))).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
  t.is(response.status, 200);
  t.is(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  t.is(response.headers.get('cache-control'), 'no-store');
  t.is(new Scrape(await response.text()).types.get('mcp_portage_sessions'), 'GAUGE');
});

test('a state that cannot be told is an error, and not a crash', async (t) => {
  const { metrics } = await create(() => {
    throw new Error('a fault');
  });
  const server = createServer(metricsRoute(metrics, pino({ level: 'silent' }))).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
  t.is(response.status, 500);
});

test('others are served while a text of many lines is written, and whoever asks meanwhile gets the same one', async (t) => {
  const { metrics } = await create(() =>
    inspection(Array.from({ length: 200 }, (_, index) => ({ ...EVERYTHING, name: `server-${index}` }))),
  );
  for (const index of WORDS.keys()) {
    const of = client({ server: `server-${index % 10}`, name: `client-${index % 50}` });
    runCall(metrics, { client: of, tool: `tool-${index % 100}` });
    metrics.connected(of, undefined)('ERR_SESSION_CLOSED');
  }
  let turns = 0;
  let isWriting = true;
  const count = (): void => {
    turns += 1;
    if (isWriting) setImmediate(count);
  };
  setImmediate(count);
  const [pieces, same] = await Promise.all([metrics.text(), metrics.text()]);
  isWriting = false;
  t.is(pieces, same);
  const sizes = pieces.map(({ length }) => length);
  // The series that exceeds the limit is complete.
  t.true(sizes.length > 10 && Math.max(...sizes) < 1.1 * CHARACTERS_PER_TURN, sizes.join());
  t.true(turns >= sizes.length, `${turns} turns for ${sizes.length} pieces`);
});

// ---- The documentation.

test('docs/reference/metrics.md has a row for each metric, with its type and labels, and for no other', async (t) => {
  const { metrics } = await create();
  metrics.connected(client(), SERVER_2025)('ERR_UPSTREAM_EXITED');
  metrics.refused(ORIGIN, 'ERR_SESSION_LIMIT');
  metrics.refusedRequest('ERR_HTTP_HOST');
  metrics.used('roots', { server: 'everything', client: client() });
  runCall(metrics, {}, { server: SERVER_2026 });
  runCall(metrics, {}, { outcome: { kind: 'cancelled' } });
  const scraped = await scrape(metrics);
  const text = await readFile(new URL('../../../docs/reference/metrics.md', import.meta.url), 'utf8');
  const groups = { '*connection*': Object.keys(CONNECTION), '*traffic*': Object.keys(TRAFFIC) };
  const documented = [...text.matchAll(/^\| `(mcp_\w+)` \| (\w+) \| (.*?) ?\| /gm)].map(
    ([, name = '', type, labels = '']) => {
      const words = labels.split(', ').filter((word) => word !== '');
      const all = words.flatMap((word) => groups[word as keyof typeof groups] ?? word.replaceAll('`', ''));
      return [name, type, all.sort().join()];
    },
  );
  const there = [...scraped.types].flatMap(([name, type]) => {
    if (!name.startsWith('mcp_')) return [];
    const samples = [...scraped.values(name), ...scraped.values(`${name}_count`)];
    const labels = new Set(samples.flatMap(([found]) => Object.keys(found)));
    return [[name, type.toLowerCase(), [...labels].sort().join()]];
  });
  const byName = ([one = '']: readonly (string | undefined)[], [other = '']: readonly (string | undefined)[]): number =>
    one.localeCompare(other);
  t.deepEqual(documented.sort(byName), there.sort(byName));
});
