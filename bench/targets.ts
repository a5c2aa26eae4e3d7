/** What mcp-portage has set itself to reach: ratios within one run, so that they hold on any machine. */
import type { Spot } from './report/last-run.ts';

export interface Target {
  readonly title: string;
  readonly spot: Spot;
  /** Another bridge in the same place; without it the limit is the figure itself. */
  readonly against?: string;
  /** The floor of a place where a peer is what it is held against. */
  readonly floor?: string;
  readonly limit: { readonly atMost: number } | { readonly timesLess: number };
}

interface Row {
  readonly title: string;
  readonly case: string;
  readonly workload: string;
  readonly metric?: Spot['metric'];
  readonly contender?: string;
  readonly floor?: readonly [name: string, atMost: number];
  /** At least this many times less than each of these. */
  readonly peers?: Readonly<Record<string, number>>;
}

const small32 = { workload: 'small-32' };
const ROWS: readonly Row[] = [
  {
    title: 'Streamable HTTP, small calls, 32 in flight',
    case: 'streamable',
    ...small32,
    floor: ['floor', 1.1],
    peers: { supergateway: 15, 'mcp-proxy': 10 },
  },
  {
    title: 'the same on a shared child',
    case: 'streamable',
    ...small32,
    contender: 'mcp-portage-shared',
    floor: ['floor', 1.1],
    peers: { supergateway: 15, 'mcp-proxy': 10 },
  },
  {
    title: 'Streamable HTTP, small calls, 1 in flight',
    case: 'streamable',
    workload: 'small-1',
    floor: ['floor', 1.1],
    peers: { supergateway: 6, 'mcp-proxy': 10 },
  },
  {
    title: 'the same, p50',
    case: 'streamable',
    workload: 'small-1',
    metric: 'p50Ms',
    floor: ['floor', 1.1],
    peers: { supergateway: 4.5, 'mcp-proxy': 10 },
  },
  {
    title: 'results of 1 MiB',
    case: 'streamable',
    workload: 'result-1MiB',
    floor: ['floor', 1.3],
    peers: { supergateway: 20, 'mcp-proxy': 25 },
  },
  {
    title: 'results of 10 MiB',
    case: 'streamable',
    workload: 'result-10MiB',
    floor: ['floor', 1.3],
    peers: { supergateway: 100 },
  },
  {
    title: '10,000 progress events',
    case: 'streamable',
    workload: 'progress',
    floor: ['floor', 1.5],
    peers: { supergateway: 50, 'mcp-proxy': 30 },
  },
  {
    title: 'HTTP+SSE, small calls',
    case: 'http-sse',
    ...small32,
    floor: ['floor', 1.25],
    peers: { supergateway: 3, 'mcp-proxy': 5 },
  },
  {
    title: 'HTTP+SSE, results of 1 MiB',
    case: 'http-sse',
    workload: 'result-1MiB',
    floor: ['floor', 1.5],
    peers: { supergateway: 17, 'mcp-proxy': 5 },
  },
  {
    title: 'WebSocket, beside Streamable HTTP, small calls',
    case: 'websocket',
    ...small32,
    contender: 'mcp-portage-websocket',
    floor: ['mcp-portage', 0.7],
  },
  {
    title: 'byte stream, beside Streamable HTTP, small calls',
    case: 'byte-stream',
    ...small32,
    contender: 'mcp-portage-stream',
    floor: ['mcp-portage', 0.7],
  },
  {
    title: 'gRPC, beside Streamable HTTP, small calls',
    case: 'grpc',
    ...small32,
    contender: 'mcp-portage-grpc',
    floor: ['mcp-portage', 0.7],
  },
  {
    title: 'MQTT, beside Streamable HTTP, small calls',
    case: 'mqtt',
    ...small32,
    contender: 'mcp-portage-mqtt',
    floor: ['mcp-portage', 2],
  },
  {
    title: 'modern → modern stdio, small calls',
    case: 'modern',
    ...small32,
    floor: ['floor', 1.2],
    peers: { supergateway: 100, 'mcp-proxy': 30 },
  },
  {
    title: 'modern → legacy stdio (translated), small calls',
    case: 'translated',
    ...small32,
    floor: ['floor', 1.5],
    peers: { 'mcp-proxy': 20 },
  },
  {
    title: 'one of 100 servers of a file, beside the only server, small calls',
    case: 'many-servers',
    ...small32,
    contender: 'mcp-portage-listed',
    floor: ['mcp-portage', 1.03],
  },
  {
    title: "a call through the aggregate, beside the same at the server's own address",
    case: 'aggregate',
    ...small32,
    contender: 'mcp-portage-aggregate',
    floor: ['mcp-portage', 1.25],
  },
  {
    title: 'the same in the modern era',
    case: 'aggregate-modern',
    ...small32,
    contender: 'mcp-portage-aggregate',
    floor: ['mcp-portage', 1.25],
  },
  {
    title: 'nobody looks at calls, beside the floor, small calls',
    case: 'observed',
    ...small32,
    contender: 'mcp-portage-unseen',
    floor: ['floor', 1.1],
  },
  {
    title: 'status, metrics, usage and audit, beside nobody who looks, small calls',
    case: 'observed',
    ...small32,
    contender: 'mcp-portage-observed',
    floor: ['mcp-portage-unseen', 2.5],
  },
  {
    title: 'a recording, beside none, small calls',
    case: 'recorded',
    ...small32,
    contender: 'mcp-portage-recorded',
    floor: ['mcp-portage', 1.5],
  },
  {
    title: 'cold start with 100 servers in a file, beside one server; 20 ms are about',
    case: 'start',
    workload: 'start',
    metric: 'p50Ms',
    contender: 'mcp-portage-listed',
    floor: ['mcp-portage', 1.08],
  },
  {
    title: 'memory with 100 servers in a file, beside one server; 5 MiB are about',
    case: 'memory',
    workload: 'idle',
    metric: 'rssMiB',
    contender: 'mcp-portage-listed',
    floor: ['mcp-portage', 1.08],
  },
  {
    title: 'connect ← Streamable HTTP, small calls',
    case: 'connect',
    ...small32,
    floor: ['floor', 1.15],
    peers: { supergateway: 18, 'mcp-remote': 20 },
  },
  {
    title: 'connect ← Streamable HTTP, results of 1 MiB',
    case: 'connect',
    workload: 'result-1MiB',
    floor: ['floor', 1.5],
    peers: { supergateway: 7, 'mcp-remote': 20 },
  },
  {
    title: 'opening a session on a shared child',
    case: 'sessions',
    workload: 'open',
    contender: 'mcp-portage-shared',
    floor: ['floor-shared', 2],
    peers: { supergateway: 10, 'mcp-proxy': 5 },
  },
  {
    title: 'opening a session on a prewarmed child, time',
    case: 'sessions',
    workload: 'open-apart',
    metric: 'p50Ms',
    contender: 'mcp-portage-prewarmed',
    floor: ['floor-shared', 3],
    peers: { supergateway: 10, 'mcp-proxy': 5 },
  },
  {
    title: 'cold start',
    case: 'start',
    workload: 'start',
    floor: ['floor', 1.5],
    peers: { supergateway: 6, 'mcp-proxy': 4 },
  },
  {
    title: 'cold start of connect',
    case: 'start-connect',
    workload: 'start',
    floor: ['floor', 1.5],
    peers: { supergateway: 6, 'mcp-remote': 4 },
  },
  {
    title: 'memory, idle',
    case: 'memory',
    workload: 'idle',
    metric: 'rssMiB',
    floor: ['floor', 1.5],
    peers: { supergateway: 2, 'mcp-proxy': 1.6 },
  },
  {
    title: 'memory, 1,000 sessions on one child',
    case: 'memory',
    workload: 'sessions-1000',
    metric: 'rssMiB',
    contender: 'mcp-portage-shared',
    floor: ['floor-shared', 1.5],
    peers: { 'mcp-proxy': 1.6 },
  },
];

const installed = { case: 'installed', workload: 'package', contender: 'mcp-portage' };

export const TARGETS: readonly Target[] = [
  ...ROWS.flatMap(({ title, metric = 'cpu', contender = 'mcp-portage', floor, peers = {}, ...place }): Target[] => {
    const spot = { case: place.case, workload: place.workload, contender, metric };
    const against = Object.entries(peers).map(([peer, timesLess]) => ({
      title,
      spot,
      against: peer,
      ...(floor !== undefined && { floor: floor[0] }),
      limit: { timesLess },
    }));
    return floor === undefined
      ? against
      : [{ title, spot, against: floor[0], limit: { atMost: floor[1] } }, ...against];
  }),
  { title: 'installed size, MiB', spot: { ...installed, metric: 'installedMiB' }, limit: { atMost: 5 } },
  { title: 'installed packages', spot: { ...installed, metric: 'packages' }, limit: { atMost: 40 } },
];
