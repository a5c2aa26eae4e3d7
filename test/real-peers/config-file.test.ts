// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts of files.
/** Servers of the configuration files that people have, with published servers and official clients of both eras. */
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import test from 'ava';
import { BRIDGE_COMMAND, REPOSITORY, startBridge } from '../support/bridge.ts';
import {
  ask,
  baseOf,
  ENVIRONMENT,
  EVERYTHING,
  FILESYSTEM,
  KIND_NAMES,
  legacyClient,
  NODE,
  openClient,
  serveFile,
  textOf,
} from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';

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
      mcp: { allowed: ['everything', 'files', 'away'] },
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
    const bridge = await serveFile(t, file, [], { PORTAGE_TEST_KEY: 'a-key' });
    t.is(bridge.children().length, 0, 'nothing runs before somebody comes');
    for (const [index, kind] of KIND_NAMES.entries()) {
      const everything = await openClient(t, baseOf(bridge, 'everything'), kind);
      const echo = await everything.callTool({ name: 'echo', arguments: { message: kind } });
      t.is(textOf(echo), `Echo: ${kind}`);
      if (index > 0) continue;
      const files = await openClient(t, baseOf(bridge, 'files'), kind);
      const listed = await files.callTool({ name: 'list_directory', arguments: { path: folder.path } });
      t.regex(textOf(listed), /seen\.txt/);
      t.is(await ask(await openClient(t, baseOf(bridge, 'away'), kind), 'KEY'), 'a-key', kind);
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
  const client = legacyClient();
  const [command, ...args] = [...BRIDGE_COMMAND, 'connect', '--config', file, 'b'];
  await client.connect(new StdioClientTransport({ command, args, cwd: REPOSITORY, stderr: 'ignore' }));
  t.teardown(() => client.close());
  t.is(await ask(client, 'GREETING'), 'hello');
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
  const bridge = await serveFile(t, file);
  for (const kind of ['SDK v1 over Streamable HTTP', 'SDK v2, modern']) {
    const namesOf = async (name: string) => {
      const { tools } = await (await openClient(t, baseOf(bridge, name), kind)).listTools();
      return tools.map((tool) => tool.name);
    };
    const gemini = await namesOf('gemini');
    t.true(gemini.includes('echo') && gemini.includes('get-sum'), gemini.join());
    t.true(gemini.every((name) => /^(echo|get-)/.test(name) && name !== 'get-env'));
    const cline = await namesOf('cline');
    t.true(cline.length > gemini.length);
    t.false(cline.includes('get-env'));
    t.deepEqual(await namesOf('ours'), ['echo']);
    const client = await openClient(t, baseOf(bridge, 'cline'), kind);
    await t.throwsAsync(client.callTool({ name: 'get-env', arguments: {} }), { message: /Unknown tool/ });
  }
});
