import { spawn } from 'node:child_process';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import test from 'ava';
import { renderBanner } from '../../src/cli/banner.ts';
import { VERSION } from '../../src/version.ts';
import { BRIDGE_COMMAND } from '../support/bridge.ts';
import { ENVIRONMENT, legacyClient, NODE } from '../support/config-bridge.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const ACCESS = { allowHosts: [], allowOrigins: [], auth: undefined };
const TOKENS = { tokens: [{ kind: 'file', principal: 'token:client', file: '/token' }], oauth: undefined } as const;
const one = {
  urls: [{ label: 'Streamable HTTP', url: 'https://tools.example/mcp' }],
  servers: [{ name: 'node my_server.js', url: 'https://tools.example/mcp' }],
  statusUrl: undefined,
};

test('says what is served, where, and what to paste', (t) => {
  t.deepEqual(renderBanner(one, { access: ACCESS, file: 'other' }), [
    `mcp-portage ${VERSION} serves node my_server.js`,
    '',
    '  Streamable HTTP  https://tools.example/mcp',
    '',
    '  To use it in Claude Code (mcp-portage snippet has other hosts):',
    '  claude mcp add --scope project --transport http my_server https://tools.example/mcp',
    '',
  ]);
});

test('where the servers of a project are served, what to paste does not write into their file', (t) => {
  const lines = renderBanner(one, { access: ACCESS, file: 'of-project' });
  t.true(lines.includes('  claude mcp add --scope local --transport http my_server https://tools.example/mcp'));
});

test('where all servers have one address, that is what to paste', (t) => {
  const servers = [
    { name: 'aggregate', url: 'https://tools.example/mcp' },
    { name: 'files', url: 'https://tools.example/files/mcp' },
  ];
  const lines = renderBanner({ ...one, servers }, { access: ACCESS, file: 'other' });
  t.true(lines.includes('  To use it in Claude Code (mcp-portage snippet has other hosts):'));
  t.true(lines.includes('  claude mcp add --scope project --transport http aggregate https://tools.example/mcp'));
});

test('what to paste has a header where callers need a token', (t) => {
  const lines = renderBanner(one, { access: { ...ACCESS, auth: TOKENS }, file: 'other' }).join('\n');
  t.regex(lines, /--header 'Authorization: Bearer \$\{MCP_TOKEN\}'/);
});

test('an address that stands for all of them becomes one that works', (t) => {
  const url = 'http://0.0.0.0:8000/mcp';
  const lines = renderBanner(
    {
      ...one,
      urls: [
        { label: 'a', url },
        { label: 'b', url: 'http://[::]:8000/b' },
      ],
      servers: [{ name: 'a', url }],
    },
    { access: ACCESS, file: 'other' },
  ).join('\n');
  t.notRegex(lines, /0\.0\.0\.0|\[::\]/);
  t.true(lines.includes('http://127.0.0.1:8000/b\n  … and by every other address of this machine'));
  t.true(lines.includes('http a http://127.0.0.1:8000/mcp'));
});

test('a server at a URL is called by its host', (t) => {
  const named = { ...one, servers: [{ name: 'https://api.example/mcp', url: 'http://h/mcp' }] };
  t.true(renderBanner(named, { access: ACCESS, file: 'other' }).join('\n').includes('http api-example http://h/mcp'));
});

test('a long list is cut', (t) => {
  const servers = Array.from({ length: 40 }, (_, index) => ({ name: `s${index}`, url: `http://h/s${index}/mcp` }));
  const lines = renderBanner(
    { urls: servers.map(({ name, url }) => ({ label: name, url })), servers, statusUrl: 'http://h/status' },
    { access: ACCESS, file: 'other' },
  );
  t.true(lines.length < 40);
  t.is(lines[0], `mcp-portage ${VERSION} serves 40 servers`);
  t.true(lines.includes('  and 15 more addresses; GET / lists them'));
  t.true(lines.some((line) => /^ {2}Status +http:\/\/h\/status$/.test(line)));
});

test('the built program knows the file of a project by its name', async (t) => {
  const folder = await createConfigFolder(t);
  const [node, bin] = BRIDGE_COMMAND;
  for (const [name, scope] of [
    ['.mcp.json', 'local'],
    ['servers.json', 'project'],
  ] as const) {
    const file = await folder.write(name, { mcpServers: { one: { command: NODE, args: [ENVIRONMENT] } } });
    const child = spawn(node, [bin, '--port', '0', '--log-format', 'pretty', '--config', file], {
      stdio: ['ignore', 'inherit', 'pipe'],
    });
    t.teardown(() => child.kill('SIGTERM'));
    let text = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    const command = await waitFor(() => /claude mcp add .*/.exec(text)?.[0], { message: () => text });
    t.regex(command, new RegExp(`^claude mcp add --scope ${scope} `));
  }
});

test('on a terminal the program says so at its start, marks the lines of its server, and stays short', async (t) => {
  const [node, bin] = BRIDGE_COMMAND;
  const args = [bin, '--port', '0', '--log-format', 'pretty', '--', NODE, ENVIRONMENT];
  const child = spawn(node, args, {
    stdio: ['ignore', 'inherit', 'pipe'],
    env: { ...process.env, NO_COLOR: '1' },
  });
  t.teardown(() => child.kill('SIGTERM'));
  let text = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const url = await waitFor(() => /^ {2}claude mcp add .* (http:\S+\/mcp)$/m.exec(text)?.[1]);
  t.regex(
    text,
    new RegExp(`^mcp-portage ${VERSION} serves node tells-environment\\.js\n\n {2}Streamable HTTP {2}${url}\n`),
  );
  t.regex(text, /^ {2}Status {11}http:\/\/127\.0\.0\.1:\d+\/status$/m);
  const client = legacyClient();
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  await client.close();
  await waitFor(() => / host 1 connected to /.test(text), { message: () => text });
  const [, ...lines] = text.slice(text.indexOf('claude mcp add')).trim().split('\n');
  for (const line of lines.filter((line) => line !== '')) {
    t.regex(line, /^\d\d:\d\d:\d\d /);
    t.notRegex(line, /[{}]/, 'no fields');
  }
});
