import type { FakeConnection } from '../../support/fake-server.ts';
import {
  type ArrivingCall,
  callHttp,
  callHttpAndArrive,
  type HttpAnswer,
  type HttpCall,
} from '../../support/http-call.ts';
import type { HttpHarness } from '../../support/http-harness.ts';
import { type Headers, POST_HEADERS, textOf } from '../../support/legacy-clients.ts';

export const META = 'io.modelcontextprotocol/';
export const REVISION = '2026-07-28';
export const ENVELOPE = {
  [`${META}protocolVersion`]: REVISION,
  [`${META}clientCapabilities`]: {},
  [`${META}clientInfo`]: { name: 'raw', version: '1' },
};

type Id = string | number;

export interface ModernMessage {
  readonly jsonrpc: '2.0';
  readonly id: Id;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export interface RpcBody {
  readonly id?: Id;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into results of all shapes
  readonly result?: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly error?: { readonly code: number; readonly message: string; readonly data?: any };
}

/** A request with its envelope; `meta` is added to it. */
export function modern(id: Id, method: string, params: object = {}, meta: object = {}): ModernMessage {
  return { jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...ENVELOPE, ...meta } } };
}

export function modernCall(id: Id, name = 'work', meta: object = {}): ModernMessage {
  return modern(id, 'tools/call', { name, arguments: {} }, meta);
}

export function listen(id: Id): ModernMessage {
  return modern(id, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
}

/** The headers that repeat what the body says. */
export function headersOf({ method, params }: ModernMessage): Headers {
  const name = method === 'resources/read' ? params.uri : params.name;
  const hasName = ['tools/call', 'prompts/get', 'resources/read'].includes(method);
  return {
    ...POST_HEADERS,
    'MCP-Protocol-Version': REVISION,
    'Mcp-Method': method,
    ...(hasName && { 'Mcp-Name': String(name) }),
  };
}

function callOf(port: number, message: ModernMessage, headers: Headers = {}): HttpCall {
  return { port, method: 'POST', headers: { ...headersOf(message), ...headers }, body: JSON.stringify(message) };
}

export function postModern(
  { port }: Pick<HttpHarness, 'port'>,
  message: ModernMessage,
  headers: Headers = {},
  signal?: AbortSignal,
): Promise<HttpAnswer> {
  return callHttp({ ...callOf(port, message, headers), ...(signal && { signal }) });
}

/** For tests that must know when the request is there. */
export function arriveModern({ port }: HttpHarness, message: ModernMessage): ArrivingCall {
  return callHttpAndArrive(callOf(port, message));
}

/** A body as it is, with whatever headers. */
export function postBody({ port }: HttpHarness, body: object | string, headers: Headers): Promise<HttpAnswer> {
  return callHttp({ port, method: 'POST', headers: { ...POST_HEADERS, ...headers }, body: textOf(body) });
}

/** The link of the call that came to the fake server last, as soon as it is there. */
export async function nextCall(harness: HttpHarness, count: number): Promise<FakeConnection> {
  while (harness.server.connections.length < count) await new Promise((resolve) => setImmediate(resolve));
  return harness.server.connections[count - 1] as FakeConnection;
}
