/**
 * Clients and servers of gRPC made of the official library, with message definitions of their own: nothing of them is
 * ours.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import {
  type ChannelCredentials,
  type ChannelOptions,
  type ClientDuplexStream,
  credentials as clientCredentials,
  loadPackageDefinition,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceClientConstructor,
  type StatusObject,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { Server as McpServer } from '@modelcontextprotocol/sdk/server/index.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { Inbox } from '../contract/inbox.ts';
import { createContractServer } from '../fixtures/contract-server/server.js';
import { textOf } from './legacy-clients.ts';

/** The definitions that others have published. */
const PROTO = join(dirname(createRequire(import.meta.url).resolve('mcp-grpc-transport/package.json')), 'proto');

interface Package {
  readonly [name: string]: Package & ServiceClientConstructor;
}

const definitions = loadPackageDefinition(
  loadSync(['mcp/transport/v1/mcp.proto', 'grpc/health/v1/health.proto'], {
    includeDirs: [PROTO],
    keepCase: true,
    defaults: true,
    enums: String,
  }),
) as unknown as Package;

const Mcp = definitions.mcp?.transport?.v1?.Mcp as ServiceClientConstructor;
const Health = definitions.grpc?.health?.v1?.Health as ServiceClientConstructor;

export interface JsonRpcLine {
  readonly line: string;
  readonly related_request_id: string;
  readonly resumption_token: string;
}

/** One message of the service as bytes, without what gRPC writes before it. */
export const encodeLine = (line: string): Buffer => Mcp.service.Session?.requestSerialize({ line }) ?? Buffer.alloc(0);

/** The line of such a message. */
export const decodeLine = (bytes: Buffer): string => Mcp.service.Session?.responseDeserialize(bytes).line;

type SessionStream =
  | ClientDuplexStream<Partial<JsonRpcLine>, JsonRpcLine>
  | ServerDuplexStream<JsonRpcLine, Partial<JsonRpcLine>>;

/** A transport of the SDK over a stream of either side. */
export function transportOverGrpc(stream: SessionStream, ended?: () => void) {
  const transport = {
    onmessage: undefined as ((message: JSONRPCMessage) => void) | undefined,
    onclose: undefined as (() => void) | undefined,
    onerror: undefined as ((error: Error) => void) | undefined,
    async start() {
      stream.on('data', ({ line }: JsonRpcLine) => transport.onmessage?.(JSON.parse(line) as JSONRPCMessage));
      stream.on('end', () => transport.onclose?.());
      stream.on('error', () => transport.onclose?.());
    },
    async send(message: JSONRPCMessage) {
      stream.write({ line: JSON.stringify(message) });
    },
    async close() {
      stream.end();
      ended?.();
    },
  };
  return transport;
}

// ---- clients

export interface GrpcClientOptions {
  readonly metadata?: Readonly<Record<string, string>>;
  readonly credentials?: ChannelCredentials;
  /** From now, in milliseconds. */
  readonly deadlineMs?: number;
  readonly channel?: ChannelOptions;
}

const UNLIMITED: ChannelOptions = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };

/** One stream of a client, with the messages that have come and the status at its end. */
export class GrpcSession {
  readonly stream: ClientDuplexStream<Partial<JsonRpcLine>, JsonRpcLine>;
  readonly ended: Promise<StatusObject>;
  readonly #inbox = new Inbox();
  readonly #closeClient: () => void;

  private constructor(stream: GrpcSession['stream'], closeClient: () => void) {
    this.stream = stream;
    this.#closeClient = closeClient;
    stream.on('data', (message: JsonRpcLine) => this.#inbox.put(JSON.stringify(message)));
    stream.on('error', () => undefined);
    this.ended = new Promise((resolve) => void stream.on('status', resolve));
  }

  static open(address: string, options: GrpcClientOptions = {}): GrpcSession {
    const { stream, close } = openStream(address, options);
    return new GrpcSession(stream, close);
  }

  send(message: object | string, more: Partial<JsonRpcLine> = {}): void {
    this.stream.write({ line: textOf(message).toString(), ...more });
  }

  /** The next message, with what is said about it. */
  async nextLine(): Promise<JsonRpcLine> {
    return JSON.parse(await this.#inbox.next()) as JsonRpcLine;
  }

  async next(): Promise<string> {
    return (await this.nextLine()).line;
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages of any shape.
  async nextMessage(): Promise<any> {
    return JSON.parse(await this.next());
  }

  close(): void {
    this.stream.cancel();
    this.#closeClient();
  }
}

/** Opens a stream that nobody reads yet. */
export function openStream(address: string, options: GrpcClientOptions = {}) {
  const { metadata = {}, credentials = clientCredentials.createInsecure(), deadlineMs, channel } = options;
  const client = new Mcp(address, credentials, { ...UNLIMITED, ...channel });
  const all = new Metadata();
  for (const [name, value] of Object.entries(metadata)) all.set(name, value);
  const deadline = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
  const stream = client.Session?.(all, deadline) as ClientDuplexStream<Partial<JsonRpcLine>, JsonRpcLine>;
  return { stream, close: () => client.close() };
}

export type ServingStatus = 'UNKNOWN' | 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';

/** Asks the health service once. Rejects with the status of the call. */
export async function checkHealth(address: string, service = ''): Promise<ServingStatus> {
  const client = new Health(address, clientCredentials.createInsecure());
  try {
    return await new Promise((resolve, reject) => {
      client.Check?.({ service }, (error: Error | null, answer: { readonly status: ServingStatus }) => {
        if (error === null) resolve(answer.status);
        else reject(error);
      });
    });
  } finally {
    client.close();
  }
}

/** Watches the health of a service. */
export function watchHealth(address: string, service = '') {
  const client = new Health(address, clientCredentials.createInsecure());
  const inbox = new Inbox();
  const stream = client.Watch?.({ service });
  const ended = new Promise<StatusObject>((resolve) => void stream.on('status', resolve));
  stream.on('data', ({ status }: { readonly status: ServingStatus }) => inbox.put(status));
  stream.on('error', () => undefined);
  const close = (): void => {
    stream.cancel();
    client.close();
  };
  return { next: () => inbox.next(), ended, close };
}

// ---- servers

export interface GrpcServerOptions {
  readonly createServer?: () => McpServer;
  readonly credentials?: ServerCredentials;
  readonly port?: number;
  /** What becomes of a stream instead of a server on it. */
  readonly session?: (stream: ServerDuplexStream<JsonRpcLine, Partial<JsonRpcLine>>) => void;
  readonly channel?: ChannelOptions;
}

export interface RunningGrpcServer {
  readonly port: number;
  /** As a user gives it to mcp-portage. */
  readonly target: string;
  /** Streams that were opened, with their metadata. */
  readonly opened: readonly Metadata[];
  /** Streams that are open now. */
  readonly open: ReadonlySet<ServerDuplexStream<JsonRpcLine, Partial<JsonRpcLine>>>;
  /** Ends at once, without a word to anybody. May be called twice. */
  stop(): void;
}

/** A server of gRPC with the SDK on each of its streams. */
export async function startGrpcServer(options: GrpcServerOptions = {}): Promise<RunningGrpcServer> {
  const { createServer = createContractServer, credentials = ServerCredentials.createInsecure(), session } = options;
  const server = new Server({ ...UNLIMITED, ...options.channel });
  const opened: Metadata[] = [];
  const open = new Set<ServerDuplexStream<JsonRpcLine, Partial<JsonRpcLine>>>();
  server.addService(Mcp.service, {
    Session(stream: ServerDuplexStream<JsonRpcLine, Partial<JsonRpcLine>>) {
      opened.push(stream.metadata);
      open.add(stream);
      const left = (): void => void open.delete(stream);
      stream.on('error', left);
      stream.on('cancelled', left);
      stream.on('finish', left);
      if (session !== undefined) return session(stream);
      const mcp = createServer();
      stream.on('end', () => void mcp.close());
      void mcp.connect(transportOverGrpc(stream) as never);
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${options.port ?? 0}`, credentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, target: `grpc://127.0.0.1:${port}`, opened, open, stop: () => server.forceShutdown() };
}
