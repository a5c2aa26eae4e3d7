import type { Stream } from 'node:stream';
import { fileURLToPath } from 'node:url';
import {
  StreamableHTTPClientTransport as ModernHttpTransport,
  type Transport as ModernTransport,
} from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdioTransport } from '@modelcontextprotocol/client/stdio';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import type { Transport as LegacyTransport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { REPOSITORY } from '../support/bridge.ts';
import { openStream, transportOverGrpc } from '../support/grpc-peers.ts';
import { MqttClientTransport } from '../support/mqtt-client-transport.ts';
import { createSocketFetch } from '../support/socket-fetch.ts';
import { LegacyClient } from './legacy-client.ts';
import type { ConnectOptions, Era, MatrixClient } from './matrix-client.ts';
import { ModernClient, type Negotiation } from './modern-client.ts';
import { makePatient } from './patient-pipes.ts';
import { WebSocketTransport } from './web-socket-client.ts';

for (const Transport of [StdioClientTransport, ModernStdioTransport]) makePatient<ServerPipe>(Transport);

/** The process a client on stdio starts. */
export interface ServerPipe {
  readonly pid: number | null;
  readonly stderr: Stream | null;
  close(): Promise<void>;
}

/** What a client connects to: the bridge, or a server itself. */
export type Endpoint =
  | {
      readonly kind: 'command';
      readonly command: readonly string[];
      /** Added to the few variables that a client passes on by itself. */
      readonly env?: Readonly<Record<string, string>> | undefined;
      readonly onPipe?: (pipe: ServerPipe) => void;
      /** Where its log goes: to `onPipe`, which is the default, or to where that of the client goes. */
      readonly stderr?: 'pipe' | 'inherit';
    }
  | { readonly kind: 'url'; readonly url: URL }
  /** HTTP at a Unix socket. */
  | { readonly kind: 'socket'; readonly path: string; readonly url: URL };

export interface ClientKind {
  readonly title: string;
  /** What is spoken with the bridge. */
  readonly era: Era;
  readonly over: 'stdio' | 'httpSse' | 'streamable' | 'socket' | 'stream' | 'webSocket' | 'grpc' | 'mqtt';
  connect(endpoint: Endpoint, options: ConnectOptions): Promise<MatrixClient>;
}

export const CLIENTS = {
  stdio: {
    title: 'stdio',
    era: 'legacy',
    over: 'stdio',
    connect: (endpoint, options) => LegacyClient.connect(openPipe(endpoint, StdioClientTransport), options),
  },
  httpSse: {
    title: 'HTTP+SSE',
    era: 'legacy',
    over: 'httpSse',
    connect: (endpoint, options) => LegacyClient.connect(new SSEClientTransport(urlOf(endpoint)), options),
  },
  streamable: {
    title: 'Streamable HTTP',
    era: 'legacy',
    over: 'streamable',
    connect: overStreamable,
  },
  socket: { title: 'Streamable HTTP over a Unix socket', era: 'legacy', over: 'socket', connect: overStreamable },
  webSocket: {
    title: 'WebSocket',
    era: 'legacy',
    over: 'webSocket',
    connect: (endpoint, options) =>
      LegacyClient.connect(new WebSocketClientTransport(urlOf(endpoint)) as LegacyTransport, options),
  },
  stream: {
    title: 'byte stream',
    era: 'legacy',
    over: 'stream',
    connect: (endpoint, options) => LegacyClient.connect(openPipe(joined(endpoint), StdioClientTransport), options),
  },
  grpc: {
    title: 'gRPC',
    era: 'legacy',
    over: 'grpc',
    connect: (endpoint, options) => LegacyClient.connect(openGrpc(endpoint) as LegacyTransport, options),
  },
  modernGrpc: {
    title: 'modern gRPC',
    era: 'modern',
    over: 'grpc',
    connect: (endpoint, options) =>
      ModernClient.connect(openGrpc(endpoint) as ModernTransport, { ...options, negotiation: 'modern' }),
  },
  mqtt: {
    title: 'MQTT',
    era: 'legacy',
    over: 'mqtt',
    connect: (endpoint, options) =>
      LegacyClient.connect(new MqttClientTransport(urlOf(endpoint)) as LegacyTransport, options),
  },
  modernMqtt: {
    title: 'modern MQTT',
    era: 'modern',
    over: 'mqtt',
    connect: (endpoint, options) =>
      ModernClient.connect(new MqttClientTransport(urlOf(endpoint)) as ModernTransport, {
        ...options,
        negotiation: 'modern',
      }),
  },
  modernStdio: { title: 'modern stdio', era: 'modern', over: 'stdio', connect: overModernStdio('modern') },
  modernHttp: { title: 'modern HTTP', era: 'modern', over: 'streamable', connect: overModernHttp('modern') },
  modernSocket: {
    title: 'modern HTTP over a Unix socket',
    era: 'modern',
    over: 'socket',
    connect: overModernHttp('modern'),
  },
  modernWebSocket: {
    title: 'modern WebSocket',
    era: 'modern',
    over: 'webSocket',
    connect: (endpoint, options) =>
      ModernClient.connect(new WebSocketTransport(urlOf(endpoint)), { ...options, negotiation: 'modern' }),
  },
  autoStdio: { title: 'SDK v2 on stdio', era: 'modern', over: 'stdio', connect: overModernStdio('auto') },
  autoHttp: { title: 'SDK v2 on HTTP', era: 'modern', over: 'streamable', connect: overModernHttp('auto') },
} as const satisfies Record<string, ClientKind>;

export type ClientName = keyof typeof CLIENTS;

export const CLIENT_NAMES = Object.keys(CLIENTS) as readonly ClientName[];

/**
 * By itself the SDK gives a stream up after two attempts, before a busy machine has started another server. The bridge
 * has its clients come back after a second, so these attempts last for two minutes.
 */
const PATIENT = {
  initialReconnectionDelay: 1000,
  reconnectionDelayGrowFactor: 1.5,
  maxReconnectionDelay: 5000,
  maxRetries: 120,
};

function overStreamable(endpoint: Endpoint, options: ConnectOptions): Promise<MatrixClient> {
  const transport = new StreamableHTTPClientTransport(urlOf(endpoint), {
    ...fetchOf(endpoint),
    reconnectionOptions: PATIENT,
  });
  // A session that is gone already is as good.
  const leave = () => transport.terminateSession().catch(() => undefined);
  return LegacyClient.connect(transport, { ...options, leave });
}

function overModernStdio(negotiation: Negotiation): ClientKind['connect'] {
  return (endpoint, options) =>
    ModernClient.connect(openPipe(endpoint, ModernStdioTransport) as ModernTransport & ServerPipe, {
      ...options,
      negotiation,
    });
}

function overModernHttp(negotiation: Negotiation): ClientKind['connect'] {
  return (endpoint, options) =>
    ModernClient.connect(new ModernHttpTransport(urlOf(endpoint), fetchOf(endpoint)) as ModernTransport, {
      ...options,
      negotiation,
    });
}

/** Neither SDK has a transport over gRPC; this one is made of the official library. */
function openGrpc(endpoint: Endpoint): unknown {
  const { stream, close } = openStream(urlOf(endpoint).host);
  return transportOverGrpc(stream, close);
}

const JOIN = fileURLToPath(new URL('../fixtures/joins-stream.js', import.meta.url));

/** A program that does no more than `nc`, so that a client of stdio reaches a byte stream. */
function joined(endpoint: Endpoint): Endpoint {
  const { hostname, port } = urlOf(endpoint);
  return { kind: 'command', command: [process.execPath, JOIN, hostname, port], stderr: 'inherit' };
}

interface PipeParameters {
  readonly command: string;
  readonly args: string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly stderr: 'pipe' | 'inherit';
}

function openPipe<Pipe extends ServerPipe>(
  endpoint: Endpoint,
  Transport: new (parameters: PipeParameters) => Pipe,
): Pipe {
  if (endpoint.kind !== 'command') throw new Error('a client on stdio starts a command');
  const [command = '', ...args] = endpoint.command;
  const { env = {}, stderr = 'pipe' } = endpoint;
  const pipe = new Transport({ command, args, cwd: REPOSITORY, env: { ...env }, stderr });
  endpoint.onPipe?.(pipe);
  return pipe;
}

function urlOf(endpoint: Endpoint): URL {
  if (endpoint.kind === 'command') throw new Error('a client over HTTP is given a URL');
  return endpoint.url;
}

/** What the SDKs call instead of the fetch of Node, which reaches no sockets. */
function fetchOf(endpoint: Endpoint): { readonly fetch?: typeof fetch } {
  return endpoint.kind === 'socket' ? { fetch: createSocketFetch(endpoint.path) } : {};
}

/** At the path that a client is given, with `#` before it. */
export function atSocket(target: string): Endpoint {
  const [, path = '', below = ''] = /^unix:\/\/([^#]*)#(.*)$/.exec(target) ?? [];
  return { kind: 'socket', path, url: new URL(below, 'http://localhost') };
}

/** At a URL, or a socket as a user writes it. */
export function endpointAt(address: string): Endpoint {
  return address.startsWith('unix:') ? atSocket(address) : { kind: 'url', url: new URL(address) };
}
