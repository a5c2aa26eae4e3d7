/** Tools that are hidden, with official clients and a server of the official SDK, in every pair of eras. */
import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Client as LegacySdk } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import test, { type ExecutionContext } from 'ava';
import type { Era } from '../matrix/matrix-client.ts';
import { BRIDGE_COMMAND, REPOSITORY, startBridge } from '../support/bridge.ts';
import { serverProgram } from '../support/server-program.ts';

const SERVER = serverProgram(new URL('../fixtures/everything/server.js', import.meta.url));
const serverOf = (era: Era) => ['--', process.execPath, SERVER, era === 'legacy' ? '--stdio' : '--modern-stdio'];
const FILTER = ['--include-tool', 'test_*', '--exclude-tool', '*_content', '--exclude-tool', '{test_elicitation,x}*'];
const SHOWN = 'test_simple_text';
const HIDDEN = 'test_image_content';

interface SdkClient {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  callTool(call: { readonly name: string }): Promise<unknown>;
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

const WAYS: Readonly<
  Record<string, (t: ExecutionContext, client: Era, options: readonly string[]) => Promise<SdkClient>>
> = {
  'over stdio': (t, era, options) => {
    const [command, ...args] = [...BRIDGE_COMMAND, 'connect', ...options];
    return connected(t, era, new CLIENTS[era].Stdio({ command, args, cwd: REPOSITORY, stderr: 'ignore' }));
  },
  'over HTTP': serve,
  'over HTTP, shared': (t, era, options) => serve(t, era, ['--isolation', 'shared', ...options]),
};

async function serve(t: ExecutionContext, era: Era, options: readonly string[]): Promise<SdkClient> {
  const bridge = await startBridge(options);
  t.teardown(async () => void (await bridge.stop()));
  return connected(t, era, new CLIENTS[era].Http(bridge.url));
}

async function connected(t: ExecutionContext, era: Era, transport: object): Promise<SdkClient> {
  const client = CLIENTS[era].create() as unknown as SdkClient;
  await client.connect(transport);
  t.teardown(() => client.close());
  return client;
}

const namesOf = async (client: SdkClient) => (await client.listTools()).tools.map(({ name }) => name);

for (const clientEra of ['legacy', 'modern'] as const) {
  for (const serverEra of ['legacy', 'modern'] as const) {
    for (const [way, open] of Object.entries(WAYS)) {
      test.serial(
        `${clientEra} client → ${serverEra} server, ${way}: hidden tools are not listed and not called`,
        async (t) => {
          const names = await namesOf(await open(t, clientEra, [...FILTER, ...serverOf(serverEra)]));
          t.true(names.includes(SHOWN));
          t.true(
            names.every((name) => /^test_/.test(name) && !/_content$|^test_elicitation/.test(name)),
            names.join(),
          );
          const client = await open(t, clientEra, ['--exclude-tool', HIDDEN, ...serverOf(serverEra)]);
          const all = await namesOf(client);
          t.true(all.length > names.length);
          t.false(all.includes(HIDDEN));
          await t.throwsAsync(() => client.callTool({ name: HIDDEN }), { message: /Unknown tool: test_image_content/ });
          t.regex(JSON.stringify(await client.callTool({ name: SHOWN })), /simple text response/);
        },
      );
    }
  }
}
