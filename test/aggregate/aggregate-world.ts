/** The program with an aggregate of servers that are told what they have. */
import { writeFile } from 'node:fs/promises';
import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import { Client as LegacySdk } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { ExecutionContext } from 'ava';
import type { Bridge } from '../support/bridge.ts';
import { fixture, NODE, serveFile } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';

const SCRIPTED = fixture('scripted');

/** What a server has and does; see fixtures/servers/scripted.js. `portage` is for the bridge. */
export interface ServerScript {
  readonly portage?: object;
  readonly [key: string]: unknown;
}

export const tool = (name: string, more: object = {}): object => ({ name, inputSchema: { type: 'object' }, ...more });

export const entryOf = ({ portage, ...spec }: ServerScript): object => ({
  command: NODE,
  args: [SCRIPTED, JSON.stringify(spec)],
  ...(portage && { portage }),
});

export const fileOf = (servers: Readonly<Record<string, ServerScript>>): object => ({
  mcpServers: Object.fromEntries(Object.entries(servers).map(([name, script]) => [name, entryOf(script)])),
});

export interface Aggregate {
  readonly bridge: Bridge;
  readonly url: URL;
  readonly file: string;
  rewrite(servers: Readonly<Record<string, ServerScript>>): Promise<void>;
}

export async function serveAggregate(
  t: ExecutionContext,
  servers: Readonly<Record<string, ServerScript>>,
  options: readonly string[] = ['--aggregate'],
  env: Readonly<Record<string, string>> = {},
): Promise<Aggregate> {
  const folder = await createConfigFolder(t);
  const file = await folder.write('mcp.json', fileOf(servers));
  const bridge = await serveFile(t, file, options, env);
  const rewrite = (changed: Readonly<Record<string, ServerScript>>) => writeFile(file, JSON.stringify(fileOf(changed)));
  return { bridge, url: new URL('/mcp', bridge.url), file, rewrite };
}

/** An official client of either era, as far as the tests use it. */
export interface AnyClient {
  listTools(params?: object): Promise<{ readonly tools: readonly Listed[]; readonly nextCursor?: string }>;
  listPrompts(): Promise<{ readonly prompts: readonly Listed[] }>;
  listResources(): Promise<{ readonly resources: readonly { readonly uri: string }[] }>;
  listResourceTemplates(): Promise<{ readonly resourceTemplates: readonly { readonly uriTemplate: string }[] }>;
  callTool(call: object, ...more: unknown[]): Promise<unknown>;
  getPrompt(call: object): Promise<unknown>;
  readResource(call: object): Promise<unknown>;
  complete(call: object): Promise<unknown>;
  getInstructions(): string | undefined;
  getServerCapabilities(): Readonly<Record<string, unknown>> | undefined;
  setRequestHandler(...parts: unknown[]): void;
  setNotificationHandler(...parts: unknown[]): void;
  connect(transport: object): Promise<void>;
  close(): Promise<void>;
}

export interface Listed {
  readonly name: string;
  readonly [key: string]: unknown;
}

export type Era = 'legacy' | 'modern';
export const ERAS: readonly Era[] = ['legacy', 'modern'];

const INFO = { name: 'host', version: '1' };

export interface ClientOptions {
  readonly capabilities?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly prepare?: (client: AnyClient) => void;
}

/** Closed when the test ends. */
export async function connectTo(
  t: ExecutionContext,
  url: URL,
  era: Era = 'legacy',
  { capabilities = {}, headers = {}, prepare }: ClientOptions = {},
): Promise<AnyClient> {
  const requestInit = { headers };
  const client = (era === 'legacy'
    ? new LegacySdk(INFO, { capabilities })
    : new ModernSdk(INFO, {
        capabilities,
        versionNegotiation: { mode: { pin: '2026-07-28' } },
      })) as unknown as AnyClient;
  prepare?.(client);
  await client.connect(era === 'legacy' ? new LegacyHttp(url, { requestInit }) : new ModernHttp(url, { requestInit }));
  t.teardown(() => client.close());
  return client;
}

export const namesOf = (items: readonly Listed[]): readonly string[] => items.map(({ name }) => name);

/** What a scripted tool answers: its own name, and the arguments it got. */
export async function called(client: AnyClient, name: string, args: object = {}): Promise<unknown> {
  const result = (await client.callTool({ name, arguments: args })) as { content: { text: string }[] };
  return JSON.parse(result.content[0]?.text ?? 'null');
}

/** Sends a request of any method, and takes any result. */
export async function ask(client: AnyClient, method: string, params: object = {}): Promise<unknown> {
  const anything = { parse: (value: unknown) => value, safeParse: (data: unknown) => ({ success: true, data }) };
  return (client as unknown as LegacySdk).request({ method, params } as never, anything as never);
}
