/**
 * What is measured: for each pair of transports the bridges that can join it, how they are started, and why the others
 * are missing.
 */
import { WHY_NO_MOSQUITTO } from '../test/support/mosquitto.ts';
import {
  type Endpoint,
  type HttpTransport,
  openHttpClient,
  startGrpcEndpoint,
  startHttpEndpoint,
  startMqttEndpoint,
  startSocketEndpoint,
  startStdioEndpoint,
  startStreamEndpoint,
} from './bridges/endpoint.ts';
import {
  COMBINED,
  floor,
  isInstalled,
  LISTED,
  manyServersFile,
  mcpProxy,
  mcpRemote,
  observedOptions,
  type Peer,
  portage,
  recordOptions,
  stdioServer,
  supergateway,
} from './bridges/programs.ts';
import type { Era, Workload } from './load/workload.ts';
import * as workloads from './load/workload.ts';
import type { Effort } from './measure/effort.ts';
import type { Program, Started } from './measure/processes.ts';

export type Contender =
  | 'direct'
  | 'floor'
  | 'floor-shared'
  | 'mcp-portage'
  | 'mcp-portage-shared'
  | 'mcp-portage-prewarmed'
  | 'mcp-portage-first'
  | 'mcp-portage-listed'
  | 'mcp-portage-aggregate'
  | 'mcp-portage-unseen'
  | 'mcp-portage-observed'
  | 'mcp-portage-recorded'
  | 'mcp-portage-socket'
  | 'mcp-portage-websocket'
  | 'mcp-portage-stream'
  | 'mcp-portage-grpc'
  | 'mcp-portage-mqtt'
  | Peer;

/** The bench server on HTTP, where a case has one. */
export interface HttpServer {
  readonly port: number;
  readonly started: Started;
}

export interface Entrant {
  readonly name: Contender;
  start(server: HttpServer): Promise<Endpoint>;
  /** Whether its clients may all count their calls from one, as real ones do. The floor keeps nobody apart. */
  readonly ids: 'own' | 'common';
  /** One whose pipes hold the messages of one client only. */
  readonly maxClients?: 1;
  /** Where answers are not in the client's era, as nobody translates them. */
  readonly answersIn?: Era;
}

export interface Absent {
  readonly name: Contender;
  readonly reason: string;
}

export interface Case {
  readonly name: string;
  readonly title: string;
  readonly era: Era;
  readonly clients: number;
  readonly workloads: readonly Workload[];
  readonly entrants: readonly Entrant[];
  readonly absent: readonly Absent[];
}

const NODE = 'node';
const ALL = [
  workloads.SMALL_32,
  workloads.SMALL_1,
  workloads.RESULT_1M,
  workloads.RESULT_10M,
  workloads.REQUEST_50K,
  workloads.REQUEST_1M,
  workloads.PROGRESS,
];
const SOME = [workloads.SMALL_32, workloads.SMALL_1, workloads.RESULT_1M];

const TRANSPORTS: ReadonlyMap<string, HttpTransport> = new Map([
  ['/sse', 'http-sse'],
  ['/ws', 'websocket'],
]);

function onHttp(name: Contender, path: string, program: (port: string, server: HttpServer) => Program): Entrant {
  const transport = TRANSPORTS.get(path) ?? 'streamable';
  const start = (server: HttpServer): Promise<Endpoint> =>
    startHttpEndpoint({ transport, path, program: (port) => program(String(port), server) });
  return { name, ids: 'own', start };
}

function onStdio(name: Contender, program: (server: HttpServer) => Program): Entrant {
  return { name, ids: 'own', start: (server) => startStdioEndpoint(program(server)) };
}

/** The client straight at the server, without a bridge. */
function directStdio(era: Era): Entrant {
  return { ...onStdio('direct', () => ({ args: stdioServer(era) })), maxClients: 1 };
}

function directHttp(path: string): Entrant {
  const transport: HttpTransport = path === '/sse' ? 'http-sse' : 'streamable';
  return {
    name: 'direct',
    ids: 'own',
    start: async ({ port, started }) => ({
      started,
      openClient: (identity) => openHttpClient({ port, path }, identity, transport),
    }),
  };
}

const server = (era: Era): string[] => [NODE, ...stdioServer(era)];
const quoted = (era: Era): string => server(era).join(' ');
const url = ({ port }: HttpServer, path: string): string => `http://127.0.0.1:${port}${path}`;

/** The words of the floor of HTTP: how it keeps clients apart. */
const floorHttp = (name: Contender, mode: string, era: Era): Entrant => ({
  ...onHttp(name, '/mcp', (port) => floor('http', port, mode, ...server(era))),
  ids: mode === 'session' ? 'own' : 'common',
});

const NO_STDIO_FACE = 'its command line only serves HTTP';
const NO_HTTP_FACE = 'it only serves stdio';

export const STREAMABLE: Case = {
  name: 'streamable',
  title: 'Streamable HTTP → stdio',
  era: 'legacy',
  clients: 2,
  workloads: [...ALL, ...workloads.RESULT_SIZES],
  entrants: [
    directStdio('legacy'),
    floorHttp('floor', 'session', 'legacy'),
    onHttp('mcp-portage', '/mcp', (port) => portage('--port', port, '--', ...server('legacy'))),
    onHttp('mcp-portage-shared', '/mcp', (port) =>
      portage('--port', port, '--isolation', 'shared', '--', ...server('legacy')),
    ),
    onHttp('supergateway', '/mcp', (port) =>
      supergateway('--stdio', quoted('legacy'), '--outputTransport', 'streamableHttp', '--stateful', '--port', port),
    ),
    onHttp('mcp-proxy', '/mcp', (port) => mcpProxy('--host', '127.0.0.1', '--port', port, '--', ...server('legacy'))),
  ],
  absent: [{ name: 'mcp-remote', reason: NO_HTTP_FACE }],
};

/** One of a hundred servers that a configuration file names; the others are idle. */
export const LISTED_ENTRANT: Entrant = onHttp('mcp-portage-listed', LISTED.path, (port) =>
  portage('--port', port, '--config', manyServersFile()),
);

export const MANY_SERVERS: Case = {
  name: 'many-servers',
  title: `Streamable HTTP → stdio, one of ${LISTED.servers} servers of a configuration file`,
  era: 'legacy',
  clients: 2,
  workloads: [workloads.SMALL_32, workloads.SMALL_1],
  entrants: [
    floorHttp('floor', 'session', 'legacy'),
    onHttp('mcp-portage', '/mcp', (port) => portage('--port', port, '--', ...server('legacy'))),
    LISTED_ENTRANT,
  ],
  absent: [
    { name: 'supergateway', reason: 'it serves one server' },
    { name: 'mcp-proxy', reason: 'it serves one server' },
    { name: 'mcp-remote', reason: NO_HTTP_FACE },
  ],
};

const COMBINED_WORKLOADS = [workloads.SMALL_32, workloads.SMALL_1].map((workload) =>
  workloads.ofServer(workload, COMBINED.name),
);

/** The same server at its own address and as a part of the aggregate. */
function aggregate(era: Era, name: string, title: string): Case {
  const start = (port: string): Program =>
    portage('--port', port, '--config', manyServersFile(era, COMBINED.servers), '--aggregate');
  return {
    name,
    title,
    era,
    clients: 2,
    workloads: COMBINED_WORKLOADS,
    entrants: [onHttp('mcp-portage', COMBINED.path, start), onHttp('mcp-portage-aggregate', '/mcp', start)],
    absent: [
      { name: 'supergateway', reason: 'it serves one server' },
      { name: 'mcp-proxy', reason: 'it serves one server' },
      { name: 'mcp-remote', reason: NO_HTTP_FACE },
    ],
  };
}

export const AGGREGATE = aggregate(
  'legacy',
  'aggregate',
  `Streamable HTTP → stdio, one of ${COMBINED.servers} servers at its own address and in the aggregate`,
);
export const AGGREGATE_MODERN = aggregate(
  'modern',
  'aggregate-modern',
  `modern Streamable HTTP → modern stdio, one of ${COMBINED.servers} servers at its own address and in the aggregate`,
);

/** The same bridge while nobody looks, as it is by itself, and with all that counts, shows and writes calls. */
export const OBSERVED: Case = {
  name: 'observed',
  title: 'Streamable HTTP → stdio, by who looks',
  era: 'legacy',
  clients: 2,
  workloads: [workloads.SMALL_32, workloads.SMALL_1],
  entrants: [
    floorHttp('floor', 'session', 'legacy'),
    onHttp('mcp-portage-unseen', '/mcp', (port) =>
      portage('--port', port, '--no-status', '--log-level', 'warn', '--', ...server('legacy')),
    ),
    onHttp('mcp-portage', '/mcp', (port) => portage('--port', port, '--', ...server('legacy'))),
    onHttp('mcp-portage-observed', '/mcp', (port) =>
      portage('--port', port, ...observedOptions(), '--', ...server('legacy')),
    ),
  ],
  absent: [
    { name: 'supergateway', reason: 'it shows nothing of its calls' },
    { name: 'mcp-proxy', reason: 'it shows nothing of its calls' },
    { name: 'mcp-remote', reason: NO_HTTP_FACE },
  ],
};

/** The same bridge without a recording and with one. */
export const RECORDED: Case = {
  name: 'recorded',
  title: 'Streamable HTTP → stdio, without and with a recording',
  era: 'legacy',
  clients: 2,
  workloads: [workloads.SMALL_32, workloads.SMALL_1, workloads.RESULT_1M],
  entrants: [
    onHttp('mcp-portage', '/mcp', (port) => portage('--port', port, '--', ...server('legacy'))),
    onHttp('mcp-portage-recorded', '/mcp', (port) =>
      portage('--port', port, ...recordOptions(), '--', ...server('legacy')),
    ),
  ],
  absent: [
    { name: 'supergateway', reason: 'it records no messages' },
    { name: 'mcp-proxy', reason: 'it records no messages' },
    { name: 'mcp-remote', reason: NO_HTTP_FACE },
  ],
};

/** The same bridge at a port and at a socket. */
export const UNIX_SOCKET: Case = {
  name: 'unix-socket',
  title: 'Streamable HTTP over a Unix socket → stdio',
  era: 'legacy',
  clients: 2,
  workloads: [...SOME, workloads.PROGRESS],
  entrants: [
    floorHttp('floor', 'session', 'legacy'),
    onHttp('mcp-portage', '/mcp', (port) => portage('--port', port, '--', ...server('legacy'))),
    {
      name: 'mcp-portage-socket',
      ids: 'own',
      start: () => startSocketEndpoint((socket) => portage('serve', '--socket', socket, '--', ...server('legacy'))),
    },
  ],
  absent: [
    { name: 'supergateway', reason: 'it listens at ports only' },
    { name: 'mcp-proxy', reason: 'it listens at ports only' },
    { name: 'mcp-remote', reason: NO_HTTP_FACE },
  ],
};

/** The calls of Streamable HTTP beside those over another carrier, so that a ratio within one run says what the carrier costs. */
const besideStreamable = (carried: Entrant): Pick<Case, 'era' | 'clients' | 'workloads' | 'entrants'> => ({
  era: 'legacy',
  clients: 2,
  workloads: [...SOME, workloads.REQUEST_1M, workloads.PROGRESS],
  entrants: [
    directStdio('legacy'),
    onHttp('mcp-portage', '/mcp', (port) => portage('--port', port, '--', ...server('legacy'))),
    carried,
  ],
});

/** The same calls by both, so that a ratio within one run says what WebSocket costs. */
export const WEBSOCKET: Case = {
  name: 'websocket',
  title: 'WebSocket → stdio, beside Streamable HTTP',
  ...besideStreamable(
    onHttp('mcp-portage-websocket', '/ws', (port) => portage('--port', port, '--', ...server('legacy'))),
  ),
  absent: [
    { name: 'supergateway', reason: 'its WebSocket sends every answer to every client' },
    { name: 'mcp-proxy', reason: 'it serves no WebSocket' },
    { name: 'mcp-remote', reason: NO_HTTP_FACE },
  ],
};

/** The calls of Streamable HTTP beside lines on a byte stream, which nothing is put around. */
export const BYTE_STREAM: Case = {
  name: 'byte-stream',
  title: 'byte stream → stdio, beside Streamable HTTP',
  ...besideStreamable({
    name: 'mcp-portage-stream',
    ids: 'own',
    start: () =>
      startStreamEndpoint((port) =>
        portage('--port', '0', '--stream', `tcp://127.0.0.1:${port}`, '--', ...server('legacy')),
      ),
  }),
  absent: [
    { name: 'supergateway', reason: 'it serves no byte streams' },
    { name: 'mcp-proxy', reason: 'it serves no byte streams' },
    { name: 'mcp-remote', reason: NO_HTTP_FACE },
  ],
};

/** The calls of Streamable HTTP beside one stream of HTTP/2, on which every message is framed three times. */
export const GRPC: Case = {
  name: 'grpc',
  title: 'gRPC → stdio, beside Streamable HTTP',
  ...besideStreamable({
    name: 'mcp-portage-grpc',
    ids: 'own',
    start: () =>
      startGrpcEndpoint((port) => portage('--port', '0', '--grpc', `127.0.0.1:${port}`, '--', ...server('legacy'))),
  }),
  absent: [
    { name: 'supergateway', reason: 'it serves no gRPC' },
    { name: 'mcp-proxy', reason: 'it serves no gRPC' },
    { name: 'mcp-remote', reason: NO_HTTP_FACE },
  ],
};

/** The calls of Streamable HTTP beside those at a broker, which tells each side that it has got every message. */
export const MQTT: Case = {
  name: 'mqtt',
  title: 'MQTT → stdio, beside Streamable HTTP',
  ...besideStreamable({
    name: 'mcp-portage-mqtt',
    ids: 'own',
    start: () => startMqttEndpoint((url) => portage('--port', '0', '--dial', url, '--', ...server('legacy'))),
  }),
  absent: [
    { name: 'supergateway', reason: 'it knows no broker' },
    { name: 'mcp-proxy', reason: 'it knows no broker' },
    { name: 'mcp-remote', reason: NO_HTTP_FACE },
  ],
};

export const HTTP_SSE: Case = {
  name: 'http-sse',
  title: 'HTTP+SSE → stdio',
  era: 'legacy',
  // One, as supergateway sends every answer to every client here.
  clients: 1,
  workloads: SOME,
  entrants: [
    directStdio('legacy'),
    onHttp('floor', '/sse', (port) => floor('http-sse', port, ...server('legacy'))),
    onHttp('mcp-portage', '/sse', (port) => portage('--port', port, '--', ...server('legacy'))),
    onHttp('supergateway', '/sse', (port) => supergateway('--stdio', quoted('legacy'), '--port', port)),
    onHttp('mcp-proxy', '/sse', (port) => mcpProxy('--host', '127.0.0.1', '--port', port, '--', ...server('legacy'))),
  ],
  absent: [{ name: 'mcp-remote', reason: NO_HTTP_FACE }],
};

export const MODERN: Case = {
  name: 'modern',
  title: 'modern Streamable HTTP → modern stdio',
  era: 'modern',
  clients: 2,
  workloads: [...SOME, workloads.PROGRESS],
  entrants: [
    directStdio('modern'),
    floorHttp('floor', 'stateless', 'modern'),
    onHttp('mcp-portage', '/mcp', (port) => portage('--port', port, '--', ...server('modern'))),
    onHttp('supergateway', '/mcp', (port) =>
      supergateway('--stdio', quoted('modern'), '--outputTransport', 'streamableHttp', '--port', port),
    ),
    onHttp('mcp-proxy', '/mcp', (port) =>
      mcpProxy('--host', '127.0.0.1', '--port', port, '--upstreamProtocol', 'auto', '--', ...server('modern')),
    ),
  ],
  absent: [{ name: 'mcp-remote', reason: NO_HTTP_FACE }],
};

export const TRANSLATED: Case = {
  name: 'translated',
  title: 'modern Streamable HTTP → legacy stdio (translated; the floor passes the bytes on as they are)',
  era: 'modern',
  clients: 2,
  workloads: [...SOME, workloads.PROGRESS],
  entrants: [
    { ...floorHttp('floor', 'stateless', 'legacy'), answersIn: 'legacy' },
    onHttp('mcp-portage', '/mcp', (port) => portage('--port', port, '--', ...server('legacy'))),
    onHttp('mcp-proxy', '/mcp', (port) => mcpProxy('--host', '127.0.0.1', '--port', port, '--', ...server('legacy'))),
  ],
  absent: [
    { name: 'direct', reason: 'a client that speaks the server\'s era is the case "streamable"' },
    { name: 'supergateway', reason: 'it does not translate between eras' },
    { name: 'mcp-remote', reason: NO_HTTP_FACE },
  ],
};

export const CONNECT: Case = {
  name: 'connect',
  title: 'connect: stdio ← Streamable HTTP',
  era: 'legacy',
  clients: 1,
  workloads: [...SOME, workloads.REQUEST_1M, workloads.PROGRESS],
  entrants: [
    directHttp('/mcp'),
    onStdio('floor', (at) => floor('connect', url(at, '/mcp'))),
    onStdio('mcp-portage', (at) => portage('connect', url(at, '/mcp'))),
    onStdio('supergateway', (at) => supergateway('--streamableHttp', url(at, '/mcp'))),
    onStdio('mcp-remote', (at) => mcpRemote(url(at, '/mcp'))),
  ],
  absent: [{ name: 'mcp-proxy', reason: NO_STDIO_FACE }],
};

export const CONNECT_SSE: Case = {
  name: 'connect-sse',
  title: 'connect: stdio ← HTTP+SSE',
  era: 'legacy',
  clients: 1,
  workloads: [workloads.SMALL_32, workloads.RESULT_1M],
  entrants: [
    directHttp('/sse'),
    onStdio('floor', (at) => floor('connect-sse', url(at, '/sse'))),
    onStdio('mcp-portage', (at) => portage('connect', url(at, '/sse'))),
    onStdio('supergateway', (at) => supergateway('--sse', url(at, '/sse'))),
    onStdio('mcp-remote', (at) => mcpRemote(url(at, '/sse'), '--transport', 'sse-only')),
  ],
  absent: [{ name: 'mcp-proxy', reason: NO_STDIO_FACE }],
};

export const CONNECT_MODERN: Case = {
  name: 'connect-modern',
  title: 'connect: modern stdio ← modern Streamable HTTP',
  era: 'modern',
  clients: 1,
  workloads: SOME,
  entrants: [
    directHttp('/modern'),
    onStdio('floor', (at) => floor('connect', url(at, '/modern'))),
    onStdio('mcp-portage', (at) => portage('connect', url(at, '/modern'))),
    onStdio('mcp-remote', (at) => mcpRemote(url(at, '/modern'), '--protocol', 'auto')),
  ],
  absent: [
    { name: 'supergateway', reason: 'its client side speaks the legacy era only' },
    { name: 'mcp-proxy', reason: NO_STDIO_FACE },
  ],
};

export const SERVE_URL: Case = {
  name: 'serve-url',
  title: 'serve: Streamable HTTP → Streamable HTTP',
  era: 'legacy',
  clients: 2,
  workloads: [...SOME, workloads.PROGRESS],
  entrants: [
    directHttp('/mcp'),
    onHttp('floor', '/mcp', (port, at) => floor('proxy', port, url(at, '/mcp'))),
    onHttp('mcp-portage', '/mcp', (port, at) => portage('--port', port, url(at, '/mcp'))),
  ],
  absent: [
    { name: 'supergateway', reason: 'it joins HTTP with stdio only' },
    { name: 'mcp-proxy', reason: 'its command line only starts a stdio server' },
    { name: 'mcp-remote', reason: NO_HTTP_FACE },
  ],
};

export const CASES = [
  STREAMABLE,
  HTTP_SSE,
  WEBSOCKET,
  BYTE_STREAM,
  GRPC,
  MQTT,
  MODERN,
  TRANSLATED,
  CONNECT,
  CONNECT_SSE,
  CONNECT_MODERN,
  SERVE_URL,
  MANY_SERVERS,
  AGGREGATE,
  AGGREGATE_MODERN,
  OBSERVED,
  RECORDED,
  UNIX_SOCKET,
] as const;

const PEER_NAMES: readonly string[] = ['supergateway', 'mcp-proxy', 'mcp-remote'];

/** Why an entrant is not started, if so. */
export function whyMissing(name: Contender, { peers }: Effort): string | undefined {
  if (name === 'mcp-portage-mqtt') return WHY_NO_MOSQUITTO;
  if (!PEER_NAMES.includes(name)) return undefined;
  if (peers === 'none') return 'peers are not checked with --quick';
  return isInstalled(name as Peer) ? undefined : 'not installed: run `npm ci` in bench/';
}
