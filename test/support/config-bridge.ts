/** A bridge with a configuration file, and official clients of both eras for the servers in it. */
import { fileURLToPath } from 'node:url';
import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import { Client as LegacySdk } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { ExecutionContext } from 'ava';
import { type Bridge, startBridge } from './bridge.ts';
import { serverProgram } from './server-program.ts';

const published = (name: string) =>
  new URL(`../../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url);
export const EVERYTHING = serverProgram(published('server-everything'));
export const FILESYSTEM = fileURLToPath(published('server-filesystem'));
export const NODE = process.execPath;
export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/servers/${name}.js`, import.meta.url));
/** Its only tool says what a variable of its process holds. */
export const ENVIRONMENT = fixture('tells-environment');

export interface HostClient {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  callTool(call: { readonly name: string; readonly arguments: object }): Promise<unknown>;
  connect(transport: object): Promise<void>;
  close(): Promise<void>;
}

const info = { name: 'host', version: '1' };
export const legacyClient = () => new LegacySdk(info) as unknown as HostClient;
const modernClient = () =>
  new ModernSdk(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } }) as unknown as HostClient;

export const KINDS: Readonly<Record<string, (base: URL) => readonly [HostClient, object]>> = {
  'SDK v1 over Streamable HTTP': (base) => [legacyClient(), new LegacyHttp(new URL('mcp', base))],
  'SDK v1 over HTTP+SSE': (base) => [legacyClient(), new SSEClientTransport(new URL('sse', base))],
  'SDK v2, modern': (base) => [modernClient(), new ModernHttp(new URL('mcp', base))],
};
export const KIND_NAMES: readonly string[] = Object.keys(KINDS);

/** Where a server of a file is served. */
export const baseOf = ({ url }: Bridge, name: string): URL => new URL(`/${name}/`, url);

/** Closed when the test ends. */
export async function openClient(t: ExecutionContext, base: URL, kind = KIND_NAMES[0]): Promise<HostClient> {
  const [client, transport] = KINDS[kind ?? '']?.(base) ?? t.fail(kind);
  await client.connect(transport);
  t.teardown(() => client.close());
  return client;
}

/** Stopped when the test ends. */
export async function serveFile(
  t: ExecutionContext,
  file: string,
  options: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Bridge> {
  const bridge = await startBridge(['--config', file, ...options], { env });
  t.teardown(async () => void (await bridge.stop()));
  return bridge;
}

export const textOf = (result: unknown): string => (result as { content: { text: string }[] }).content[0]?.text ?? '';

/** What a variable holds in the process of a server. */
export const ask = async (client: HostClient, variable: string): Promise<string> =>
  textOf(await client.callTool({ name: 'echo', arguments: { variable } }));
