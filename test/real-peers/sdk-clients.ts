/** Official clients of both eras, in all ways that they reach a server through the built program. */
import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Client as LegacySdk } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { ExecutionContext } from 'ava';
import type { Era } from '../matrix/matrix-client.ts';
import { BRIDGE_COMMAND, type Bridge, REPOSITORY, startBridge } from '../support/bridge.ts';
import { serverProgram } from '../support/server-program.ts';

const SERVER = serverProgram(new URL('../fixtures/everything/server.js', import.meta.url));
export const serverOf = (era: Era) => ['--', process.execPath, SERVER, era === 'legacy' ? '--stdio' : '--modern-stdio'];

export interface ListedTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
}

export interface SdkClient {
  listTools(): Promise<{ readonly tools: readonly ListedTool[] }>;
  callTool(call: { readonly name: string; readonly arguments?: object }): Promise<unknown>;
  connect(transport: object): Promise<void>;
  close(): Promise<void>;
}

const info = { name: 'host', version: '1' };
const CLIENTS = {
  legacy: { create: () => new LegacySdk(info), Stdio: LegacyStdio, Http: LegacyHttp },
  modern: {
    create: () => new ModernSdk(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
    Stdio: ModernStdio,
    Http: ModernHttp,
  },
} as const;

/** Opens a client before a bridge with these options, which end with the server. */
type Open = (t: ExecutionContext, client: Era, options: readonly string[]) => Promise<SdkClient>;

export const WAYS: Readonly<Record<string, Open>> = {
  'over stdio': (t, era, options) => {
    const [command, ...args] = [...BRIDGE_COMMAND, 'connect', ...options];
    return connected(t, era, new CLIENTS[era].Stdio({ command, args, cwd: REPOSITORY, stderr: 'ignore' }));
  },
  'over HTTP': serve,
  'over HTTP, shared': (t, era, options) => serve(t, era, ['--isolation', 'shared', ...options]),
};

async function serve(t: ExecutionContext, era: Era, options: readonly string[]): Promise<SdkClient> {
  return openAt(t, era, await startedBridge(t, options));
}

/** Stopped when the test ends. */
export async function startedBridge(
  t: ExecutionContext,
  options: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Bridge> {
  const bridge = await startBridge(options, { env });
  t.teardown(async () => void (await bridge.stop()));
  return bridge;
}

/** @param token the caller's, if callers have any */
export function openAt(
  t: ExecutionContext,
  era: Era,
  { url }: Pick<Bridge, 'url'>,
  token?: string,
): Promise<SdkClient> {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  return connected(t, era, new CLIENTS[era].Http(url, { requestInit: { headers } }));
}

async function connected(t: ExecutionContext, era: Era, transport: object): Promise<SdkClient> {
  const client = CLIENTS[era].create() as unknown as SdkClient;
  await client.connect(transport);
  t.teardown(() => client.close());
  return client;
}

export const namesOf = async (client: SdkClient) => (await client.listTools()).tools.map(({ name }) => name);
