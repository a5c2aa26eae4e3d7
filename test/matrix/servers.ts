import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startInetd } from '../support/inetd.ts';
import { PATIENT_BROKER, startMosquitto } from '../support/mosquitto.ts';
import { startAdaptedServer } from '../support/mqtt-adapter.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { serverProgram } from '../support/server-program.ts';
import { createSocketFetch } from '../support/socket-fetch.ts';
import type { ClientKind } from './clients.ts';
import type { Era } from './matrix-client.ts';

/** What a server process has to say about what it saw; see servers/record.js. */
export interface RecordEntry {
  readonly session: string;
  readonly kind: 'opened' | 'closed' | 'stream' | 'deleted' | 'message' | 'aborted' | 'answered';
  readonly value?: unknown;
}

export interface ServerView {
  /** Open now, whoever looks aside. */
  readonly connections: number;
  readonly entries: readonly RecordEntry[];
}

export interface RunningServer {
  /** What the user would give to mcp-portage. */
  readonly target: readonly string[];
  /** Asked beside the protocol; undefined for one on stdio, whose processes belong to the bridge. */
  readonly look: (() => Promise<ServerView>) | undefined;
  stop(): Promise<void>;
}

export interface ServerKind {
  readonly title: string;
  readonly era: Era;
  /** Which clients could do without the bridge. */
  readonly over: ClientKind['over'];
  start(): Promise<RunningServer>;
}

const LEGACY = serverProgram(new URL('./servers/legacy.js', import.meta.url));
const MODERN = serverProgram(new URL('./servers/modern.js', import.meta.url));

export type LegacyHttpKind =
  | 'http-sse'
  | 'stateful'
  | 'stateful-resumable'
  | 'stateful-json'
  | 'stateless'
  | 'stateless-json';

/** @param place a port, of which 0 picks one, or the path of a Unix socket */
export const startLegacyHttp = (kind: LegacyHttpKind, place: number | string = 0) =>
  startServerProcess(LEGACY, [kind, String(place)]);

/** @param place a port, of which 0 picks one, or the path of a Unix socket */
export const startModernHttp = (place: number | string = 0) => startServerProcess(MODERN, ['http', String(place)]);

/** @param port 0 picks one */
export const startLegacyWebSocket = (port = 0) => startServerProcess(LEGACY, ['websocket', String(port)]);

/** @param port 0 picks one */
export const startModernWebSocket = (port = 0) => startServerProcess(MODERN, ['websocket', String(port)]);

/** @param port 0 picks one */
export const startLegacyGrpc = (port = 0) => startServerProcess(LEGACY, ['grpc', String(port)]);

/** @param port 0 picks one */
export const startModernGrpc = (port = 0) => startServerProcess(MODERN, ['grpc', String(port)]);

/** For each connection to a byte stream or broker; its processes keep one record, in this folder. */
export const inetdProgram = (era: Era, folder: string): readonly string[] => [
  process.execPath,
  era === 'legacy' ? LEGACY : MODERN,
  'stdio',
  join(folder, 'record'),
];

export const SERVERS = {
  stdio: onStdio('stdio', 'legacy', LEGACY),
  httpSse: overHttp('HTTP+SSE', 'httpSse', 'http-sse'),
  stateful: overHttp('Streamable HTTP', 'streamable', 'stateful'),
  resumable: overHttp('Streamable HTTP, resumable', 'streamable', 'stateful-resumable'),
  json: overHttp('Streamable HTTP, JSON answers', 'streamable', 'stateful-json'),
  stateless: overHttp('Streamable HTTP without sessions', 'streamable', 'stateless'),
  statelessJson: overHttp('Streamable HTTP without sessions, JSON answers', 'streamable', 'stateless-json'),
  socket: atSocket('Streamable HTTP at a Unix socket', 'legacy', (path) => startLegacyHttp('stateful', path)),
  webSocket: {
    title: 'WebSocket',
    era: 'legacy',
    over: 'webSocket',
    start: async () => running(await startLegacyWebSocket()),
  },
  grpc: { title: 'gRPC', era: 'legacy', over: 'grpc', start: async () => overGrpc(await startLegacyGrpc()) },
  mqtt: atBroker('MQTT', 'legacy'),
  modernMqtt: atBroker('modern MQTT', 'modern'),
  modernStdio: onStdio('modern stdio', 'modern', MODERN),
  stream: onStream('byte stream', 'legacy'),
  modernStream: onStream('modern byte stream', 'modern'),
  modernHttp: {
    title: 'modern HTTP',
    era: 'modern',
    over: 'streamable',
    start: async () => running(await startModernHttp()),
  },
  modernSocket: atSocket('modern HTTP at a Unix socket', 'modern', startModernHttp),
  modernWebSocket: {
    title: 'modern WebSocket',
    era: 'modern',
    over: 'webSocket',
    start: async () => running(await startModernWebSocket()),
  },
  modernGrpc: {
    title: 'modern gRPC',
    era: 'modern',
    over: 'grpc',
    start: async () => overGrpc(await startModernGrpc()),
  },
} as const satisfies Record<string, ServerKind>;

export type ServerName = keyof typeof SERVERS;

/** Beside the transports that MCP defines. */
export const OTHER_CARRIERS: readonly string[] = ['socket', 'stream', 'webSocket', 'grpc', 'mqtt'];

export const SERVER_NAMES = Object.keys(SERVERS) as readonly ServerName[];

function onStdio(title: string, era: Era, program: string): ServerKind {
  return {
    title,
    era,
    over: 'stdio',
    start: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-matrix-'));
      const target = ['--', process.execPath, program, 'stdio', join(folder, 'record')];
      return { target, look: undefined, stop: () => rm(folder, { recursive: true, force: true }) };
    },
  };
}

/** A process for each connection, as inetd and socat start it. */
function onStream(title: string, era: Era): ServerKind {
  return {
    title,
    era,
    over: 'stream',
    start: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-matrix-'));
      const inetd = await startInetd(inetdProgram(era, folder));
      const stop = () => inetd.stop().finally(() => rm(folder, { recursive: true, force: true }));
      return { target: [`tcp://127.0.0.1:${inetd.port}`], look: undefined, stop };
    },
  };
}

/** A process for each session. That a server is modern has to be said, as it hears nothing that could find it out. */
function atBroker(title: string, era: Era): ServerKind {
  return {
    title,
    era,
    over: 'mqtt',
    start: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-matrix-'));
      const broker = await startMosquitto(PATIENT_BROKER);
      const place = { url: broker.url, serverId: 'matrix-1', serverName: 'matrix/server' };
      const adapted = await startAdaptedServer({ ...place, command: inetdProgram(era, folder) });
      const target = [...(era === 'modern' ? ['--protocol', 'modern'] : []), `${place.url}/${place.serverName}`];
      const stop = async (): Promise<void> => {
        await adapted.close();
        await broker.stop();
        await rm(folder, { recursive: true, force: true });
      };
      return { target, look: undefined, stop };
    },
  };
}

function overHttp(title: string, over: ServerKind['over'], kind: LegacyHttpKind): ServerKind {
  return { title, era: 'legacy', over, start: async () => running(await startLegacyHttp(kind)) };
}

function atSocket(title: string, era: Era, startAt: (path: string) => Promise<ServerProcess>): ServerKind {
  return {
    title,
    era,
    over: 'socket',
    start: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-matrix-'));
      const path = join(folder, 'server.sock');
      const removeFolder = () => rm(folder, { recursive: true, force: true });
      try {
        const server = running(await startAt(path), createSocketFetch(path));
        return { ...server, target: [`unix://${path}#/mcp`], stop: () => server.stop().finally(removeFolder) };
      } catch (error) {
        await removeFolder();
        throw error;
      }
    },
  };
}

function running(server: ServerProcess, ask: typeof fetch = fetch): RunningServer {
  const record = new URL(`http://${server.url.host}/record`);
  const look = async () => (await (await ask(record)).json()) as ServerView;
  return { target: [server.url.href], look, stop: server.stop };
}

function overGrpc(server: ServerProcess): RunningServer {
  return { ...running(server), target: [grpcTargetOf(server)] };
}

/** The path of the URL of such a server is the port of gRPC. */
export const grpcTargetOf = ({ url }: ServerProcess): string => `grpc://127.0.0.1:${url.pathname.slice(1)}`;
