import type { JsonRpcId } from '../../src/wire/frame.ts';
import type { EventReader } from './event-reader.ts';
import type { FakeConnection } from './fake-server.ts';
import { callHttp, type HttpAnswer } from './http-call.ts';
import type { HttpHarness } from './http-harness.ts';

export const JSON_HEADERS = { 'Content-Type': 'application/json' } as const;
/** What every ordinary client sends with a POST. */
export const POST_HEADERS = { ...JSON_HEADERS, Accept: 'application/json, text/event-stream' } as const;

export type Headers = Readonly<Record<string, string | undefined>>;

export function initialize(revision = '2025-11-25', id: JsonRpcId = 0): object {
  const params = { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'test', version: '1.0.0' } };
  return { jsonrpc: '2.0', id, method: 'initialize', params };
}

export function call(id: JsonRpcId, name = 'work', meta?: object): object {
  const params = { name, arguments: {}, ...(meta && { _meta: meta }) };
  return { jsonrpc: '2.0', id, method: 'tools/call', params };
}

export function notification(method: string, params?: object): object {
  return { jsonrpc: '2.0', method, ...(params && { params }) };
}

export function cancellation(requestId: JsonRpcId): object {
  return notification('notifications/cancelled', { requestId });
}

export function textOf(body: object | string | Buffer): string | Buffer {
  return typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
}

/** A session over Streamable HTTP, as a client without an SDK would hold it. */
export interface HttpSession {
  readonly id: string;
  /** The answer to `initialize`. */
  readonly initialized: string;
  post(body: object | string | Buffer, headers?: Headers, signal?: AbortSignal): Promise<HttpAnswer>;
  get(headers?: Headers): Promise<HttpAnswer>;
  delete(headers?: Headers): Promise<HttpAnswer>;
}

/** The same before a fake server. */
export interface StreamableSession extends HttpSession {
  /** The server's end. */
  readonly connection: FakeConnection;
}

export async function openStreamable(harness: HttpHarness, revision?: string): Promise<StreamableSession> {
  const session = await openHttpSession(harness.port, initialize(revision));
  return { ...session, connection: harness.server.latest };
}

export async function openHttpSession(port: number, hello: object = initialize()): Promise<HttpSession> {
  const body = JSON.stringify(hello);
  const answer = await callHttp({ port, method: 'POST', headers: POST_HEADERS, body });
  const id = answer.headers['mcp-session-id'];
  if (typeof id !== 'string') throw new Error(`no session: ${answer.status} ${await answer.text()}`);
  const initialized = await answer.text();
  const session = { 'Mcp-Session-Id': id };
  return {
    id,
    initialized,
    post: (body, headers = {}, signal) =>
      callHttp({
        port,
        method: 'POST',
        headers: { ...POST_HEADERS, ...session, ...headers },
        body: textOf(body),
        ...(signal && { signal }),
      }),
    get: (headers = {}) => callHttp({ port, headers: { Accept: 'text/event-stream', ...session, ...headers } }),
    delete: (headers = {}) => callHttp({ port, method: 'DELETE', headers: { ...session, ...headers } }),
  };
}

/** A stream over HTTP+SSE, with its way back. */
export interface SseStream {
  /** What the endpoint event said. */
  readonly endpoint: string;
  readonly stream: EventReader;
  post(body: object | string | Buffer, headers?: Headers): Promise<HttpAnswer>;
}

/** The same before a fake server. */
export interface SseSession extends SseStream {
  readonly connection: FakeConnection;
}

/** Opened, not initialized. */
export async function openSse(harness: HttpHarness, path?: string): Promise<SseSession> {
  const session = await openSseStream(harness.port, path);
  return { ...session, connection: harness.server.latest };
}

export async function openSseStream(port: number, path = '/sse'): Promise<SseStream> {
  const stream = (await callHttp({ port, path, headers: { Accept: 'text/event-stream' } })).events();
  const { event, data: endpoint } = await stream.next();
  if (event !== 'endpoint') throw new Error(`expected the endpoint event first, got ${event}`);
  return {
    endpoint,
    stream,
    post: (body, headers = {}) =>
      callHttp({ port, method: 'POST', path: endpoint, headers: { ...JSON_HEADERS, ...headers }, body: textOf(body) }),
  };
}

export async function openInitializedSse(harness: HttpHarness, revision = '2024-11-05'): Promise<SseSession> {
  const session = await openSse(harness);
  await (await session.post(initialize(revision))).text();
  await session.stream.next();
  return session;
}
