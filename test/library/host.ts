/** A web server of a program, with a bridge in it. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { ExecutionContext } from 'ava';
import { type Bridge, type CreateBridgeOptions, createBridge } from '../../src/library.ts';
import { EVERYTHING, NODE } from '../support/config-bridge.ts';

export const SERVER = { command: NODE, args: [EVERYTHING] } as const;

/** Closed when the test ends. */
export async function openBridge(t: ExecutionContext, options: Partial<CreateBridgeOptions> = {}): Promise<Bridge> {
  const servers = options.servers === undefined ? { server: options.server ?? SERVER } : { servers: options.servers };
  const bridge = await createBridge({ ...options, ...servers } as CreateBridgeOptions);
  t.teardown(() => bridge.close());
  return bridge;
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface Host {
  readonly url: URL;
  readonly server: Server;
}

/** Closed when the test ends. */
export async function startHost(t: ExecutionContext, handler: Handler): Promise<Host> {
  const server = createServer(handler);
  // Connections stay until the test ends, however slow the machine is.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { url: new URL(`http://127.0.0.1:${port}/`), server };
}

/** What the program itself answers: the path and body that it saw. */
export const answerSelf: Handler = (request, response) => {
  void text(request).then((body) => response.end(`mine: ${request.method} ${request.url} ${body}`));
};

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};

/** A client's first request, as plain as it can be. */
export function postInitialize(url: URL | string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify(INITIALIZE),
  });
}

/** The code of an error that the bridge answered with. */
export async function codeOf(response: Response): Promise<unknown> {
  const { error } = (await response.json()) as {
    readonly error?: { readonly data?: { readonly bridge?: { readonly reason?: unknown } } };
  };
  return error?.data?.bridge?.reason;
}
