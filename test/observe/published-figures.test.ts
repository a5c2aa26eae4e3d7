/** Every figure that the documentation names moves when that happens which it counts, in the built program. */
import { readFile } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import test from 'ava';
import { post as postModern } from '../replicas/running/modern-client.ts';
import { openSession, type RawSession } from '../replicas/running/raw-session.ts';
import { type Bridge, startBridge } from '../support/bridge.ts';
import { Scrape } from '../support/scrape.ts';
import { serverProgram } from '../support/server-program.ts';
import { waitFor } from '../support/wait-for.ts';

const LEGACY = serverProgram(new URL('../matrix/servers/legacy.js', import.meta.url));
const MAX_SESSIONS = 3;
const SERVE = ['--metrics', '--max-sessions', String(MAX_SESSIONS), '--', process.execPath, LEGACY, 'stdio'];
const CONFIGURED = ['--max-in-flight', '77', '--max-children', '99'];
const BIG_BYTES = 2 * 1024 * 1024;
const TIMEOUT_MS = 4 * 60_000;

interface World {
  readonly bridge: Bridge;
  readonly port: number;
  readonly sessions: RawSession[];
  readonly sockets: Socket[];
}

/** What happens, in this order; what it changes is there when it has happened. */
const EVENTS = {
  'nothing yet': async () => undefined,
  'a modern client calls': async ({ port }: World) =>
    void (await postModern(port, 'tools/call', { name: 'echo', arguments: { value: 'x' } })),
  'a client opens a session': async ({ port, sessions }: World) => void sessions.push(await openSession(port)),
  'it calls': async ({ port, sessions }: World) =>
    void (await sessions[0]?.post(port, 'tools/call', { name: 'echo', arguments: { value: 'x' } })),
  'it calls in vain': async ({ port, sessions }: World) => void (await sessions[0]?.post(port, 'no/such/method')),
  'it uses what is deprecated': async ({ port, sessions }: World) =>
    void (await sessions[0]?.post(port, 'logging/setLevel', { level: 'info' })),
  'a call stays open': async (world: World) => hold(world, 'first'),
  'a large request is not answered': async (world: World) => hold(world, 'x'.repeat(BIG_BYTES)),
  'an answer is not read': async ({ port, sessions, sockets }: World) => {
    const params = { name: 'echo', arguments: { value: 'x'.repeat(4 * BIG_BYTES) } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 'unread', method: 'tools/call', params });
    const headers = { ...sessions[0]?.headers, Host: `127.0.0.1:${port}`, 'Content-Length': String(body.length) };
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const socket = createConnection(port, '127.0.0.1').pause();
    socket.write(`POST /mcp HTTP/1.1\r\n${head.join('')}\r\n${body}`);
    sockets.push(socket);
  },
  'an unknown path is asked for': async ({ port }: World) =>
    void (await (await fetch(`http://127.0.0.1:${port}/nothing/here`)).text()),
  'too many sessions are wanted': async (world: World) => {
    while (world.sessions.length < MAX_SESSIONS) {
      world.sessions.push(await openSession(world.port));
      await hold(world, `of ${world.sessions.length}`);
    }
    await openSession(world.port).catch(() => undefined);
  },
  'a process crashes': async ({ bridge }: World) => {
    for (const pid of bridge.children()) process.kill(pid, 'SIGKILL');
  },
} as const;
type EventName = keyof typeof EVENTS;

/** Has the last session send a call that is not answered. */
async function hold({ port, sessions }: World, value: string): Promise<void> {
  const call = { id: value.slice(0, 20), method: 'tools/call', params: { name: 'hold', arguments: { value } } };
  void sessions
    .at(-1)
    ?.send(port, call)
    .then((answer) => answer.text())
    .catch(() => undefined);
}

/** Which of them moves a metric, and where another one is told apart by a label, which one. */
const METRICS: Readonly<Record<string, EventName | 'another configuration' | 'another version'>> = {
  mcp_server_operation_duration_seconds: 'it calls',
  mcp_server_session_duration_seconds: 'a process crashes',
  mcp_portage_client_calls_total: 'it calls',
  mcp_portage_clients_total: 'a client opens a session',
  mcp_portage_session_refusals_total: 'too many sessions are wanted',
  mcp_portage_refused_requests_total: 'an unknown path is asked for',
  mcp_portage_translated_calls_total: 'a modern client calls',
  mcp_portage_deprecated_uses_total: 'it uses what is deprecated',
  mcp_portage_request_bytes_total: 'it calls',
  mcp_portage_response_bytes_total: 'it calls',
  mcp_portage_server_up: 'another configuration',
  mcp_portage_server_state: 'another configuration',
  mcp_portage_server_speaks: 'a modern client calls',
  mcp_portage_sessions: 'a client opens a session',
  mcp_portage_open_calls: 'a call stays open',
  mcp_portage_open_calls_limit: 'another configuration',
  mcp_portage_processes: 'a client opens a session',
  mcp_portage_processes_limit: 'another configuration',
  mcp_portage_queue_items: 'a modern client calls',
  mcp_portage_queue_bytes: 'a large request is not answered',
  mcp_portage_connections: 'an answer is not read',
  mcp_portage_unsent_bytes: 'an answer is not read',
  mcp_portage_restarts_total: 'a process crashes',
  mcp_portage_start_time_seconds: 'another configuration',
  mcp_portage_info: 'another version',
};

/** The same of the numbers in the status document. Numbers that are times, or set by the program, are not figures. */
const STATUS: Readonly<Record<string, EventName | 'another configuration'>> = {
  'bridge.openCalls': 'a call stays open',
  'bridge.maxOpenCalls': 'another configuration',
  'bridge.processes': 'a client opens a session',
  'bridge.maxProcesses': 'another configuration',
  'servers[].sessions': 'a client opens a session',
  'servers[].openCalls': 'a call stays open',
  'servers[].processes': 'a client opens a session',
  'servers[].restarts': 'a process crashes',
  'servers[].lastMinute.calls': 'it calls',
  'servers[].lastMinute.errors': 'it calls in vain',
  'servers[].series.calls[]': 'it calls',
  'servers[].series.errors[]': 'it calls in vain',
  'calls.open': 'a call stays open',
  'calls.longestOpen[].number': 'a call stays open',
  'calls.longestOpen[].requestBytes': 'a call stays open',
  'calls.lastMinute.calls': 'it calls',
  'calls.lastMinute.errors': 'it calls in vain',
  'calls.series.calls[]': 'it calls',
  'calls.series.errors[]': 'it calls in vain',
  'calls.recent[].number': 'it calls',
  'calls.recent[].requestBytes': 'it calls',
  'calls.recent[].bytes': 'it calls',
  'calls.recent[].code': 'it calls in vain',
  'refused.total': 'an unknown path is asked for',
  'refused.lastHour': 'an unknown path is asked for',
  'refused.byCode[].count': 'an unknown path is asked for',
  'clients[].number': 'a client opens a session',
};
/** Clients and tools beyond those that are listed; other tests of test/observe/status have so many. */
const ELSEWHERE =
  /^(shape|moreClients|detail\.moreTools|atMs)$|AtMs$|\.atMs(\[\])?$|sinceMs$|\.step(s|Ms)$|\.p\d+Ms(\[\])?$|durationMs$/;

interface Figures {
  readonly metrics: Scrape;
  readonly status: ReadonlyMap<string, number>;
}

const isMetric = (name: string): string => name.replace(/_(sum|count|bucket)$/, '');

async function look(port: number): Promise<Figures> {
  const read = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  const status = new Map<string, number>();
  collectNumbers(JSON.parse(await read('/status.json')), '', status);
  return { metrics: new Scrape(await read('/metrics')), status };
}

/** The sum of the numbers at each place of a document. */
function collectNumbers(value: unknown, path: string, into: Map<string, number>): void {
  if (typeof value === 'number') into.set(path, (into.get(path) ?? 0) + value);
  else if (Array.isArray(value)) for (const each of value) collectNumbers(each, `${path}[]`, into);
  else if (typeof value === 'object' && value !== null) {
    for (const [name, each] of Object.entries(value)) {
      collectNumbers(each, path === '' ? name : `${path}.${name}`, into);
    }
  }
}

/** What it comes to, of a histogram how often. A state is told apart by its label. */
function readMetric({ metrics }: Figures, name: string): string {
  const samples = [...metrics.values(`${name}_count`), ...metrics.values(name)];
  return JSON.stringify(samples.map(([labels, value]) => [Object.entries(labels).toSorted(), value]).toSorted());
}

test('each figure of the metrics page and the status document moves with what it counts', async (t) => {
  t.timeout(TIMEOUT_MS);
  const page = await readFile('docs/reference/metrics.md', 'utf8');
  const documented = [...page.matchAll(/^\| `(mcp_\w+)` \|/gm)].map(([, name = '']) => isMetric(name));
  t.deepEqual(Object.keys(METRICS).toSorted(), documented.toSorted(), 'the page and this table name the same metrics');
  const bridge = await startBridge(SERVE);
  t.teardown(() => bridge.stop());
  const other = await startBridge(['--metrics', ...CONFIGURED, '--', process.execPath, '-e', 'process.exit(1)']);
  t.teardown(() => other.stop());
  const world: World = { bridge, port: Number(bridge.url.port), sessions: [], sockets: [] };
  t.teardown(() => {
    for (const socket of world.sockets) socket.destroy();
  });
  const seen = new Set<string>();
  for (const [event, happen] of Object.entries(EVENTS)) {
    const before = await look(world.port);
    await happen(world);
    const moving = Object.keys(METRICS).filter((name) => METRICS[name] === event);
    const places = Object.keys(STATUS).filter((place) => STATUS[place] === event);
    const still = (now: Figures): readonly string[] => [
      ...moving.filter((name) => readMetric(now, name) === readMetric(before, name)),
      ...places.filter((place) => now.status.get(place) === before.status.get(place)),
    ];
    let waiting: readonly string[] = [];
    const haveMoved = async (): Promise<boolean> => {
      const now = await look(world.port);
      for (const place of now.status.keys()) seen.add(place);
      waiting = still(now);
      return waiting.length === 0;
    };
    await waitFor(haveMoved, { message: () => `${waiting.join(' and ')} to move after: ${event}` });
  }
  await openSession(Number(other.url.port)).catch(() => undefined);
  const [one, another] = [await look(world.port), await look(Number(other.url.port))];
  for (const [name, event] of Object.entries(METRICS)) {
    if (event === 'another configuration') t.not(readMetric(one, name), readMetric(another, name), name);
  }
  for (const [place, event] of Object.entries(STATUS)) {
    if (event === 'another configuration') t.not(one.status.get(place), another.status.get(place), place);
  }
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
  t.deepEqual(one.metrics.values('mcp_portage_info'), [[{ version }, 1]]);
  const untold = [...seen].filter((place) => STATUS[place] === undefined && !ELSEWHERE.test(place));
  t.deepEqual(untold, [], 'numbers of the status document that nothing here moves');
});
