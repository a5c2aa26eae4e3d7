import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Server as McpServer } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createContractServer } from '../fixtures/contract-server/server.js';
import { MemoryEventStore } from '../fixtures/everything/event-store.js';
import { ownPort } from './own-port.ts';

/** Asked of a server, as far as tests look at it. */
export interface Asked {
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
}

export interface SdkHttpServer {
  readonly url: URL;
  readonly asked: readonly Asked[];
  /** Sessions that are open now. */
  readonly sessions: ReadonlyMap<string, unknown>;
  /** Forgets all sessions, as a restart does, but goes on listening. */
  forget(): Promise<void>;
  /** Cuts every connection. */
  cut(): void;
  /** Stops listening and cuts; `restart` listens on the same port again. */
  stop(): Promise<void>;
  restart(): Promise<void>;
  close(): Promise<void>;
}

export interface StreamableOptions {
  /** Default: yes. */
  readonly hasSessions?: boolean;
  /** Events get ids and streams can be resumed. */
  readonly hasEventStore?: boolean;
  readonly retryMs?: number;
  /** Answers are JSON, never streams. */
  readonly isJson?: boolean;
  /** What a session that is not known is told. */
  readonly unknownSessionStatus?: number;
  readonly createServer?: () => McpServer;
}

/** The contract server over Streamable HTTP, with the SDK's own transport. */
export function startStreamable(options: StreamableOptions = {}): Promise<SdkHttpServer> {
  const { hasSessions = true, hasEventStore = false, retryMs, isJson = false, unknownSessionStatus = 404 } = options;
  const createMcpServer = options.createServer ?? createContractServer;
  const sessions = new Map<string, StreamableHTTPServerTransport>();

  async function open(): Promise<StreamableHTTPServerTransport> {
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: hasSessions ? randomUUID : undefined,
      enableJsonResponse: isJson,
      onsessioninitialized: (id: string) => void sessions.set(id, transport),
      onsessionclosed: (id: string) => void sessions.delete(id),
      ...(hasEventStore && { eventStore: new MemoryEventStore() }),
      ...(retryMs !== undefined && { retryInterval: retryMs }),
    } as ConstructorParameters<typeof StreamableHTTPServerTransport>[0]);
    await createMcpServer().connect(transport as never);
    return transport;
  }

  return serve(sessions, async (request, response) => {
    const id = request.headers['mcp-session-id'];
    if (id !== undefined && !sessions.has(String(id))) return void response.writeHead(unknownSessionStatus).end();
    const transport = id === undefined ? await open() : sessions.get(String(id));
    await transport?.handleRequest(request, response);
    if (!hasSessions) response.on('close', () => void transport?.close());
  });
}

/** The contract server over HTTP+SSE: GET /sse, POST /messages. */
export function startHttpSse(createMcpServer: () => McpServer = createContractServer): Promise<SdkHttpServer> {
  const sessions = new Map<string, SSEServerTransport>();
  return serve(
    sessions,
    async (request, response) => {
      if (request.method === 'GET') {
        const transport = new SSEServerTransport('/messages', response);
        sessions.set(transport.sessionId, transport);
        response.on('close', () => sessions.delete(transport.sessionId));
        return createMcpServer().connect(transport as never);
      }
      const id = new URL(request.url ?? '', 'http://x').searchParams.get('sessionId') ?? '';
      const transport = sessions.get(id);
      if (transport === undefined) return void response.writeHead(404).end('no such session');
      return transport.handlePostMessage(request, response);
    },
    '/sse',
  );
}

async function serve(
  sessions: Map<string, { close(): Promise<void> }>,
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  path = '/mcp',
): Promise<SdkHttpServer> {
  const asked: Asked[] = [];
  const sockets = new Set<Socket>();
  let http: Server | undefined;
  const port = await ownPort();
  async function start(): Promise<void> {
    const server = createServer((request, response) => {
      asked.push({ method: request.method ?? '', headers: request.headers });
      handle(request, response).catch(() => response.destroy());
    });
    // Longer than anybody here is idle: a call that meets the end of its connection is lost, as it should be.
    server.keepAliveTimeout = 60_000;
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    });
    http = server;
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  }
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const forget = async (): Promise<void> => {
    const transports = [...sessions.values()];
    sessions.clear();
    await Promise.all(transports.map((transport) => transport.close()));
  };
  const stop = async (): Promise<void> => {
    const server = http;
    http = undefined;
    const closed = new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
    cut();
    await closed;
  };
  await start();
  return {
    url: new URL(`http://127.0.0.1:${port}${path}`),
    asked,
    sessions,
    forget,
    cut,
    stop,
    restart: start,
    close: async () => {
      await forget();
      await stop();
    },
  };
}
