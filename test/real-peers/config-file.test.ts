/** Servers of the configuration files that people have, with published servers and official clients of both eras. */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { StreamableHTTPClientTransport as ModernHttp, Client as ModernSdk } from '@modelcontextprotocol/client';
import { Client as LegacySdk } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import test, { type ExecutionContext } from 'ava';
import { BRIDGE_COMMAND, type Bridge, REPOSITORY, startBridge } from '../support/bridge.ts';
import { type ConfigFolder, createConfigFolder } from '../support/config-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const require = createRequire(import.meta.url);
const NODE = process.execPath;
const published = (name: string, file: string) => require.resolve(`@modelcontextprotocol/${name}/${file}`);
const EVERYTHING = published('server-everything', 'dist/index.js');
const FILESYSTEM = published('server-filesystem', 'dist/index.js');
const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/servers/${name}.js`, import.meta.url));
const ENVIRONMENT = fixture('tells-environment');

interface SdkClient {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  callTool(call: { readonly name: string; readonly arguments: object }): Promise<unknown>;
  connect(transport: object): Promise<void>;
  close(): Promise<void>;
}

const info = { name: 'host', version: '1' };
const legacy = () => new LegacySdk(info) as unknown as SdkClient;
const modern = () =>
  new ModernSdk(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } }) as unknown as SdkClient;
const CLIENTS: Readonly<Record<string, (base: URL) => readonly [SdkClient, object]>> = {
  'SDK v1 over Streamable HTTP': (base) => [legacy(), new LegacyHttp(new URL('mcp', base))],
  'SDK v1 over HTTP+SSE': (base) => [legacy(), new SSEClientTransport(new URL('sse', base))],
  'SDK v2, modern': (base) => [modern(), new ModernHttp(new URL('mcp', base))],
};

const baseOf = ({ url }: Bridge, name: string) => new URL(`/${name}/`, url);

async function open(t: ExecutionContext, base: URL, kind = 'SDK v1 over Streamable HTTP'): Promise<SdkClient> {
  const [client, transport] = CLIENTS[kind]?.(base) ?? t.fail(kind);
  await client.connect(transport);
  t.teardown(() => client.close());
  return client;
}

async function serve(t: ExecutionContext, file: string, options: readonly string[] = [], env = {}): Promise<Bridge> {
  const bridge = await startBridge(['--config', file, ...options], { env });
  t.teardown(async () => void (await bridge.stop()));
  return bridge;
}

const textOf = (result: unknown): string => (result as { content: { text: string }[] }).content[0]?.text ?? '';
const ask = async (client: SdkClient, variable: string): Promise<string> =>
  textOf(await client.callTool({ name: 'echo', arguments: { variable } }));

// ---- one file of each host

/** Each has `everything`, `files` that may see its folder, and `away`, a server at a URL. */
const FILES: Readonly<Record<string, { name: string; write: (away: URL, folder: string) => string | object }>> = {
  'Claude Code': {
    name: '.mcp.json',
    write: (away) => ({
      mcpServers: {
        everything: { type: 'stdio', command: NODE, args: [EVERYTHING], env: {} },
        files: { command: NODE, args: [FILESYSTEM, '${PORTAGE_TEST_FOLDER:-.}'] },
        away: { type: 'http', url: away.href, headers: { 'X-Key': '${PORTAGE_TEST_KEY}' } },
      },
    }),
  },
  'VS Code': {
    name: '.vscode/mcp.json',
    write: (away) => `{
      // asked for when a server starts
      "inputs": [{ "type": "promptString", "id": "portage-test-key", "password": true }],
      "servers": {
        "everything": { "type": "stdio", "command": ${JSON.stringify(NODE)}, "args": [${JSON.stringify(EVERYTHING)}] },
        "files": { "command": ${JSON.stringify(NODE)}, "args": [${JSON.stringify(FILESYSTEM)}, "\${workspaceFolder}"], },
        "away": { "type": "http", "url": "${away.href}", "headers": { "X-Key": "\${input:portage-test-key}" } },
      },
    }`,
  },
  'Gemini CLI': {
    name: '.gemini/settings.json',
    write: (away, folder) => ({
      mcp: { allowed: ['everything'] },
      mcpServers: {
        everything: { command: NODE, args: [EVERYTHING], timeout: 30_000, trust: true },
        files: { command: NODE, args: [FILESYSTEM, '.'], cwd: folder },
        away: { httpUrl: away.href, headers: { 'X-Key': '${PORTAGE_TEST_KEY}' } },
      },
    }),
  },
  Codex: {
    name: '.codex/config.toml',
    write: (away) => `model = "gpt"
      [mcp_servers.everything]
      command = '${NODE}'
      args = ['${EVERYTHING}']
      startup_timeout_sec = 20
      [mcp_servers.files]
      command = '${NODE}'
      args = ['${FILESYSTEM}', '.']
      [mcp_servers.away]
      url = "${away.href}"
      env_http_headers = { "X-Key" = "PORTAGE_TEST_KEY" }
    `,
  },
  opencode: {
    name: 'opencode.json',
    write: (away) => ({
      mcp: {
        everything: { type: 'local', command: [NODE, EVERYTHING], enabled: true, timeout: 5000 },
        files: { type: 'local', command: [NODE, FILESYSTEM, '.'] },
        away: { type: 'remote', url: away.href, headers: { 'X-Key': '{env:PORTAGE_TEST_KEY}' } },
      },
    }),
  },
};

for (const [host, { name, write }] of Object.entries(FILES)) {
  test.serial(`the file of ${host} is served as it is, to clients of every kind`, async (t) => {
    const folder = await createConfigFolder(t);
    await folder.write('seen.txt', 'here');
    // Told by another bridge, which has a server whose process is told what this one sends.
    const away = await startBridge(['--map-header', 'X-Key=KEY', '--', NODE, ENVIRONMENT]);
    t.teardown(async () => void (await away.stop()));
    const file = await folder.write(name, write(away.url, folder.path));
    const bridge = await serve(t, file, [], { PORTAGE_TEST_KEY: 'a-key' });
    t.is(bridge.children().length, 0, 'nothing runs before somebody comes');
    for (const kind of Object.keys(CLIENTS)) {
      const everything = await open(t, baseOf(bridge, 'everything'), kind);
      const echo = await everything.callTool({ name: 'echo', arguments: { message: kind } });
      t.is(textOf(echo), `Echo: ${kind}`);
      const files = await open(t, baseOf(bridge, 'files'), kind);
      const listed = await files.callTool({ name: 'list_directory', arguments: { path: folder.path } });
      t.regex(textOf(listed), /seen\.txt/);
      t.is(await ask(await open(t, baseOf(bridge, 'away'), kind), 'KEY'), 'a-key', kind);
    }
    t.false(JSON.stringify(bridge.logs).includes('a-key'));
  });
}

test.serial('connect puts one server of a file on stdio', async (t) => {
  const folder = await createConfigFolder(t);
  const env = { GREETING: 'hello' };
  const file = await folder.write('claude.json', {
    mcpServers: { a: { command: 'nobody' }, b: { command: NODE, args: [ENVIRONMENT], env } },
  });
  const client = legacy();
  const [command, ...args] = [...BRIDGE_COMMAND, 'connect', '--config', file, 'b'];
  await client.connect(new StdioClientTransport({ command, args, cwd: REPOSITORY, stderr: 'ignore' }));
  t.teardown(() => client.close());
  t.is(await ask(client, 'GREETING'), 'hello');
});

// ---- one bad server harms no other

const BAD: Readonly<Record<string, readonly string[]>> = {
  'is no program': ['no-such-program-anywhere'],
  'ends at once': [NODE, fixture('exits-before-initialize')],
  'never answers': [NODE, fixture('never-answers')],
  'floods its log': [NODE, fixture('floods-stderr')],
  'prints garbage': [NODE, fixture('prints-garbage')],
  'writes without end': [NODE, fixture('writes-huge-line')],
  'never ends': [NODE, fixture('ignores-sigterm')],
};

test.serial('servers that fail in every way change nothing for one that does not', async (t) => {
  const folder = await createConfigFolder(t);
  const bad = Object.entries(BAD).map(([how, [command, ...args]]) => [how, { command, args }]);
  const file = await folder.write('claude.json', {
    mcpServers: {
      ...Object.fromEntries(bad),
      good: { command: NODE, args: [ENVIRONMENT], portage: { required: true } },
      rich: { command: NODE, args: [ENVIRONMENT], portage: { maxSessions: 3, maxChildren: 3, poolSize: 1 } },
    },
  });
  const bridge = await serve(t, file, ['--request-timeout', '5s', '--shutdown-grace', '500ms', '--max-children', '40']);
  const good = await open(t, baseOf(bridge, 'good'));
  const pid = await ask(good, 'pid');
  const tries = Object.keys(BAD).flatMap((how) => {
    const base = baseOf(bridge, how.replaceAll(' ', '-'));
    return Object.keys(CLIENTS).map(async (kind) => {
      const [client, transport] = CLIENTS[kind]?.(base) ?? t.fail(kind);
      try {
        await client.connect(transport);
        await client.callTool({ name: 'echo', arguments: {} });
      } finally {
        await client.close();
      }
    });
  });
  const outcomes = Promise.allSettled(tries);
  let isOver = false;
  void outcomes.then(() => {
    isOver = true;
  });
  let calls = 0;
  while (!isOver) {
    t.is(await ask(good, 'pid'), pid);
    calls += 1;
  }
  t.true(calls > 50, `${calls} calls meanwhile`);
  t.true((await outcomes).filter(({ status }) => status === 'rejected').length >= Object.keys(BAD).length);
  const status = async (path: string) => (await fetch(new URL(path, bridge.url))).status;
  t.is(await status('/readyz'), 200);
  t.is(await status('/good/readyz'), 200);
  t.is(await status('/is-no-program/readyz'), 503);
  for (let count = 0; count < 3; count += 1) await open(t, baseOf(bridge, 'rich'));
  await t.throwsAsync(open(t, baseOf(bridge, 'rich')), { message: /server processes run|sessions are taken/ });
  t.is(await ask(await open(t, baseOf(bridge, 'good')), 'PORTAGE_NOTHING'), '(none)');
});

// ---- reading it again

const server = (env: Readonly<Record<string, string>>) => ({ command: NODE, args: [ENVIRONMENT], env });

/** Calls one server for as long as it is not stopped. Every call that fails is kept. */
function callWithoutEnd(client: SdkClient) {
  const failures: unknown[] = [];
  const answers = new Set<string>();
  let calls = 0;
  let isStopped = false;
  const run = async (): Promise<void> => {
    while (!isStopped) {
      await ask(client, 'pid').then(
        (pid) => answers.add(pid),
        (error: unknown) => failures.push(error),
      );
      calls += 1;
    }
  };
  const lanes = Promise.all([run(), run(), run(), run()]);
  return {
    failures,
    answers,
    get calls() {
      return calls;
    },
    async stop() {
      isStopped = true;
      await lanes;
    },
  };
}

const said = (bridge: Bridge, pattern: RegExp) => bridge.logs.filter(({ msg = '' }) => pattern.test(msg)).length;
const readAgain = (bridge: Bridge, times: number) =>
  waitFor(() => said(bridge, /was read again/) >= times, {
    message: () => `the file to be read ${times} times:\n${bridge.logs.map((line) => JSON.stringify(line)).join('\n')}`,
  });

async function statusOf(bridge: Bridge, name: string): Promise<number> {
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: info };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const answer = await fetch(new URL('mcp', baseOf(bridge, name)), { method: 'POST', headers, body });
  await answer.text();
  return answer.status;
}

test.serial(
  'the file is read again under load: no call is lost, and what has not changed keeps its processes',
  async (t) => {
    const folder: ConfigFolder = await createConfigFolder(t);
    const write = (more: object) => folder.write('claude.json', { mcpServers: { kept: server({ A: '1' }), ...more } });
    const file = await write({ changed: server({ A: 'old' }), gone: server({}) });
    const bridge = await serve(t, file);
    const kinds = ['SDK v1 over Streamable HTTP', 'SDK v1 over HTTP+SSE', 'SDK v2, modern'];
    const loads = await Promise.all(
      kinds.map(async (kind) => callWithoutEnd(await open(t, baseOf(bridge, 'kept'), kind))),
    );
    const before = await open(t, baseOf(bridge, 'changed'));
    t.is(await ask(before, 'A'), 'old');
    t.is(await statusOf(bridge, 'gone'), 200);

    await write({ changed: server({ A: 'new' }), fresh: server({ A: 'fresh' }) });
    await readAgain(bridge, 1);
    t.is(said(bridge, /1 added|added fresh, changed changed, removed gone, 1 unchanged/), 1);
    t.is(await ask(await open(t, baseOf(bridge, 'changed')), 'A'), 'new');
    t.is(await ask(await open(t, baseOf(bridge, 'fresh')), 'A'), 'fresh');
    t.is(await statusOf(bridge, 'gone'), 404);

    await folder.write('claude.json', '{ "mcpServers": { "kept": ');
    await waitFor(() => said(bridge, /changes nothing, for it is wrong: claude\.json:1:/) > 0);
    t.is(await ask(await open(t, baseOf(bridge, 'fresh')), 'A'), 'fresh');

    for (let round = 0; round < 3; round += 1) {
      await write({ changed: server({ A: `${round}` }) });
      bridge.kill('SIGHUP');
      await readAgain(bridge, 3 + round);
      t.is(await ask(await open(t, baseOf(bridge, 'changed')), 'A'), `${round}`);
    }
    for (const load of loads) {
      await load.stop();
      t.deepEqual(load.failures, []);
      t.is(load.answers.size, 1, 'one process, from first to last');
      t.true(load.calls > 100, `${load.calls}`);
    }
  },
);

test.serial('a variable in a file beside is as good as one in the file, and changing it is a change', async (t) => {
  const folder = await createConfigFolder(t);
  await folder.write('secrets.env', 'A=from-beside\n');
  const file = await folder.write('mcp.json', {
    servers: { one: { command: NODE, args: [ENVIRONMENT], envFile: '${workspaceFolder}/secrets.env' } },
  });
  const bridge = await serve(t, file);
  t.is(await ask(await open(t, baseOf(bridge, 'one')), 'A'), 'from-beside');
  await folder.write('secrets.env', 'A=renewed\n');
  await readAgain(bridge, 1);
  t.is(await ask(await open(t, baseOf(bridge, 'one')), 'A'), 'renewed');
  t.false(/from-beside|renewed/.test(JSON.stringify(bridge.logs)));
});

// ---- the filter, as the hosts write it

test.serial('tools that a file hides are hidden from clients of both eras', async (t) => {
  const folder = await createConfigFolder(t);
  const everything = { command: NODE, args: [EVERYTHING] };
  const file = await folder.write('settings.json', {
    mcpServers: {
      gemini: { ...everything, includeTools: ['echo', 'get-*'], excludeTools: ['get-env'] },
      cline: { ...everything, disabledTools: ['get-env'] },
      ours: { ...everything, portage: { includeTools: ['echo'], isolation: 'shared' } },
    },
  });
  const bridge = await serve(t, file);
  for (const kind of ['SDK v1 over Streamable HTTP', 'SDK v2, modern']) {
    const namesOf = async (name: string) => {
      const { tools } = await (await open(t, baseOf(bridge, name), kind)).listTools();
      return tools.map((tool) => tool.name);
    };
    const gemini = await namesOf('gemini');
    t.true(gemini.includes('echo') && gemini.includes('get-sum'), gemini.join());
    t.true(gemini.every((name) => /^(echo|get-)/.test(name) && name !== 'get-env'));
    const cline = await namesOf('cline');
    t.true(cline.length > gemini.length);
    t.false(cline.includes('get-env'));
    t.deepEqual(await namesOf('ours'), ['echo']);
    const client = await open(t, baseOf(bridge, 'cline'), kind);
    await t.throwsAsync(client.callTool({ name: 'get-env', arguments: {} }), { message: /Unknown tool/ });
  }
});
