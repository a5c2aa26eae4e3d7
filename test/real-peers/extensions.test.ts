/** Extensions with the packages of their authors at both ends, in every pair of eras. [SEP-2640 skills, SEP-1865 apps] */
import { fileURLToPath } from 'node:url';
import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { EXTENSION_ID, RESOURCE_MIME_TYPE } from '@modelcontextprotocol/ext-apps/server';
import { Client as LegacySdk } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  getSkill,
  listSkills,
  readDirectory,
  readSkill,
  readSkillResource,
  type SkillsClient,
  serverSupportsDirectoryRead,
} from '@olaservo/ext-skills/client';
import test, { type ExecutionContext } from 'ava';
import type { Era } from '../matrix/matrix-client.ts';
import { BRIDGE_COMMAND, REPOSITORY, startBridge } from '../support/bridge.ts';
import { startServerProcess } from '../support/server-process.ts';
import { extensions } from './servers/commands.ts';
import { textOf } from './text-of.ts';

const SERVER = fileURLToPath(new URL('./servers/extensions.js', import.meta.url));
const UI = { mimeTypes: [RESOURCE_MIME_TYPE] };
const OWN = { 'com.example/host': { deep: [{ a: null }] } };
const CAPABILITIES = { extensions: { [EXTENSION_ID]: UI, ...OWN } };
const VIEW_META = { ui: { csp: { connectDomains: ['https://time.example.com'] }, prefersBorder: true } };
const SKILL = 'skill://acme/refunds/SKILL.md';
const MAIL = 'skill://acme/refunds/templates/mail.md';

type Fields = Readonly<Record<string, unknown>>;

/** Lets every result pass as it is. */
const ANYTHING = {
  '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) },
} as never;

/** What the clients of both SDKs have in common, and tests of extensions need. */
type SdkClient = Required<Pick<SkillsClient, 'request' | 'readResource' | 'getServerCapabilities'>> & {
  listTools(): Promise<{ readonly tools: readonly Fields[] }>;
  listResources(): Promise<{ readonly resources: readonly Fields[] }>;
  callTool(call: { readonly name: string }): Promise<Fields>;
  connect(transport: object): Promise<void>;
  close(): Promise<void>;
};

const CLIENTS = {
  legacy: { create: createLegacy, Stdio: LegacyStdio, Http: LegacyHttp },
  modern: { create: createModern, Stdio: ModernStdio, Http: ModernHttp },
} as const;

function createLegacy(): SdkClient {
  return new LegacySdk({ name: 'host', version: '1' }, { capabilities: CAPABILITIES }) as unknown as SdkClient;
}

function createModern(): SdkClient {
  const versionNegotiation = { mode: { pin: '2026-07-28' } } as const;
  const client = new ModernSdk({ name: 'host', version: '1' }, { capabilities: CAPABILITIES, versionNegotiation });
  return client as unknown as SdkClient;
}

/** How a client of one era gets to a server of another. */
const WAYS: Readonly<Record<string, (t: ExecutionContext, client: Era, server: Era) => Promise<SdkClient>>> = {
  'over stdio': async (t, client, server) => {
    const [command, ...args] = [...BRIDGE_COMMAND, 'connect', '--', ...extensions(server)];
    const { create, Stdio } = CLIENTS[client];
    return connected(t, create(), new Stdio({ command, args, cwd: REPOSITORY, stderr: 'ignore' }));
  },
  'over HTTP': async (t, client, server) => serve(t, client, await targetOf(t, server)),
  'over HTTP, shared': (t, client, server) => serve(t, client, ['--isolation', 'shared', '--', ...extensions(server)]),
};

async function targetOf(t: ExecutionContext, server: Era): Promise<readonly string[]> {
  if (server === 'legacy') return ['--', ...extensions(server)];
  const running = await startServerProcess(SERVER, ['modern', 'http']);
  t.teardown(() => running.stop());
  return [running.url.href];
}

async function serve(t: ExecutionContext, era: Era, target: readonly string[]): Promise<SdkClient> {
  const bridge = await startBridge(target);
  t.teardown(async () => void (await bridge.stop()));
  const { create, Http } = CLIENTS[era];
  return connected(t, create(), new Http(bridge.url));
}

async function connected(t: ExecutionContext, client: SdkClient, transport: object): Promise<SdkClient> {
  await client.connect(transport);
  t.teardown(() => client.close());
  return client;
}

for (const clientEra of ['legacy', 'modern'] as const) {
  for (const serverEra of ['legacy', 'modern'] as const) {
    for (const [way, connect] of Object.entries(WAYS)) {
      const title = `${clientEra} client → ${serverEra} server, ${way}`;

      test.serial(`${title}: skills and apps pass`, async (t) => {
        const client = await connect(t, clientEra, serverEra);
        t.deepEqual(client.getServerCapabilities()?.extensions, {
          'io.modelcontextprotocol/skills': { directoryRead: true },
          'com.example/own': { deep: [1, { b: null }] },
        } as object);
        await skillsPass(t, client);
        if (clientEra === 'modern') await hintsAreThere(t, client, serverEra);
        await appsPass(t, client);
        // One handshake is made for all clients of a shared legacy server, in the name of none of them.
        const isTold = !(way === 'over HTTP, shared' && serverEra === 'legacy');
        const told = isTold ? { ui: UI, extensions: CAPABILITIES.extensions } : { ui: null, extensions: {} };
        t.deepEqual(JSON.parse(textOf(await client.callTool({ name: 'host' }))), told);
      });
    }
  }
}

async function skillsPass(t: ExecutionContext, client: SdkClient): Promise<void> {
  t.true(serverSupportsDirectoryRead(client));
  const listed = await listSkills(client);
  t.deepEqual(
    listed.map(({ uri }) => uri),
    [SKILL],
  );
  const skill = await getSkill(client, SKILL);
  t.deepEqual(skill, listed[0]);
  t.deepEqual(skill.frontmatter.metadata, { version: '2.1.0' });
  // Both are compared with the digests that the server published.
  t.regex(await readSkill(client, skill), /naïve 日本語 🦊/);
  t.regex((await readSkillResource(client, skill, MAIL)).text ?? '', /^Dear customer,\n/);
  const { resources } = await readDirectory(client, 'skill://acme/refunds');
  t.deepEqual(resources.map(({ name }) => name).sort(), ['SKILL.md', 'templates']);
  await t.throwsAsync(getSkill(client, 'skill://nobody/SKILL.md'), { code: -32602 });
}

/** [SEP-2640] results of the modern era say how long they stay good. */
async function hintsAreThere(t: ExecutionContext, client: SdkClient, server: Era): Promise<void> {
  const hints = server === 'modern' ? { ttlMs: 60_000, cacheScope: 'public' } : { ttlMs: 0, cacheScope: 'private' };
  t.like(await client.request({ method: 'skills/list', params: {} }, ANYTHING), hints);
  // The package says so of lists only; what a modern server leaves out is not the bridge's to add.
  const got = await client.request({ method: 'skills/get', params: { uri: SKILL } }, ANYTHING);
  if (server === 'legacy') t.like(got, hints);
}

async function appsPass(t: ExecutionContext, client: SdkClient): Promise<void> {
  const { tools } = await client.listTools();
  const metaOf = (tool: string): unknown => tools.find(({ name }) => name === tool)?._meta;
  const resourceUri = 'ui://clock/view.html';
  t.deepEqual(metaOf('clock'), { ui: { resourceUri }, 'ui/resourceUri': resourceUri });
  t.deepEqual(metaOf('wind'), { ui: { resourceUri, visibility: ['app'] }, 'ui/resourceUri': resourceUri });
  const { resources } = await client.listResources();
  t.like(
    resources.find(({ uri }) => uri === resourceUri),
    { mimeType: RESOURCE_MIME_TYPE, _meta: VIEW_META },
  );
  const { contents } = await client.readResource({ uri: resourceUri });
  t.deepEqual(contents, [
    { uri: resourceUri, mimeType: RESOURCE_MIME_TYPE, text: '<!doctype html><p>12:00', _meta: VIEW_META },
  ] as object[] as typeof contents);
  const { structuredContent, _meta } = await client.callTool({ name: 'clock' });
  t.deepEqual(structuredContent, { hour: 12 });
  t.like(_meta, { 'com.example/zone': 'UTC' });
}
