// biome-ignore-all lint/suspicious/noTemplateCurlyInString: hosts replace these variables.
import { execFileSync } from 'node:child_process';
import test from 'ava';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { parseSnippet } from '../../src/cli/parse/servers/snippet.ts';
import { BridgeError } from '../../src/errors.ts';
import { HOSTS, type HostName, nameForHosts, renderSnippet, type Snippet } from '../../src/snippet.ts';
import { createConfigFolder } from '../support/config-folder.ts';
import { plain, read } from './config-file/read-text.ts';
import { EXECUTABLE } from './stdio-program.ts';

const URL_OF_ONE = 'http://127.0.0.1:8000/files/mcp';
const ENV = { TOKEN: 'x'.repeat(40), HOME: '/home/me' };

const SERVERS = {
  mcpServers: { files: { command: 'a' }, 'Git Hub!': { command: 'b' }, off: { command: 'c', disabled: true } },
};

/** What is printed for a command line; `file` is what `--config` names. */
async function snippet(argv: readonly string[], file?: object): Promise<Snippet> {
  const command = parseCommandLine(['snippet', ...argv, ...(file === undefined ? [] : ['--config', 'servers.json'])]);
  if (command.kind !== 'bridge') throw new Error(`got ${command.kind}`);
  const around = {
    env: ENV,
    cwd: '/home/me',
    platform: 'linux',
    readFile: () => {
      throw new Error('nothing is read');
    },
  } as const;
  const request = parseSnippet(command, around, file && (await read(file)));
  const [host, ...others] = request.hosts;
  if (host === undefined || others.length > 0) throw new Error(`got ${request.hosts}`);
  return renderSnippet(host, request.servers, request.file);
}

async function refusal(argv: readonly string[], file?: object): Promise<string> {
  try {
    await snippet(argv, file);
  } catch (thrown) {
    if (thrown instanceof BridgeError) return thrown.message;
    throw thrown;
  }
  return 'accepted';
}

/** What a host makes of it, as our own reader of its files understands it. */
async function understood(host: HostName, text: string) {
  const path = host === 'codex' ? '/home/me/config.toml' : '/home/me/host.json';
  const { servers } = await read(text, {
    path,
    env: { MCP_TOKEN: 'secret', MCP_PORTAGE_BEARER_TOKEN: 'secret' },
    around: {},
  });
  return Object.fromEntries(servers.map((server) => [server.name, plain(server)]));
}

for (const host of HOSTS) {
  const connects = host === 'claude-desktop';
  const target = (url: string) => (connects ? ['npx', '-y', 'mcp-portage', 'connect', url] : url);

  test(`the snippet for ${host} has the address, in the form that its files have`, async (t) => {
    const { text, place } = await snippet(['--for', host, URL_OF_ONE]);
    t.like(await understood(host, text), { files: { target: target(URL_OF_ONE) } });
    t.true(place.length > 10);
    t.false(/token/i.test(text));
  });

  test(`the snippet for ${host} has every server of a file that is served`, async (t) => {
    const { text } = await snippet(['--for', host, '--port', '9000'], SERVERS);
    const servers = await understood(host, text);
    t.deepEqual(Object.keys(servers), ['files', 'Git-Hub']);
    t.deepEqual(servers['Git-Hub']?.target, target('http://127.0.0.1:9000/Git-Hub/mcp'));
  });

  test(`the snippet for ${host} reaches the old transport where its address is given`, async (t) => {
    const url = 'http://127.0.0.1:8000/files/sse';
    const { text } = await snippet(['--for', host, url]);
    const commands = connects || host === 'codex';
    const { files } = await understood(host, text);
    t.deepEqual(files?.target, commands ? ['npx', '-y', 'mcp-portage', 'connect', url] : url);
  });
}

test('where the old transport is meant, a host that would try Streamable HTTP at any URL is told so', async (t) => {
  const url = 'http://127.0.0.1:8000/files/sse';
  const entry = async (host: HostName, key: string) =>
    JSON.parse((await snippet(['--for', host, url])).text)[key].files;
  t.deepEqual(await entry('gemini', 'mcpServers'), { type: 'sse', url });
  t.deepEqual(await entry('claude-code', 'mcpServers'), { type: 'sse', url });
  t.deepEqual(await entry('vscode', 'servers'), { type: 'sse', url });
  t.deepEqual(await entry('copilot-cli', 'mcpServers'), { type: 'sse', url, tools: ['*'] });
});

test('hosts that do not use a project at once get a note of what they wait for', async (t) => {
  for (const [host, word] of [
    ['claude-code', /approve/],
    ['gemini', /trust/],
  ] as const) {
    const { notes } = await snippet(['--for', host, URL_OF_ONE]);
    t.true(
      notes.some((note) => word.test(note)),
      host,
    );
  }
});

test('where callers need a token, each host takes it from where it keeps secrets, and no file holds it', async (t) => {
  const found = new Map<HostName, string>();
  for (const host of HOSTS) {
    const { text, instead, notes } = await snippet(['--for', host, '--auth-token', 'env:TOKEN', URL_OF_ONE]);
    t.false(
      [text, ...instead, ...notes].some((line) => line.includes(ENV.TOKEN)),
      host,
    );
    t.true(
      notes.some((note) => /token/.test(note)),
      host,
    );
    found.set(host, text);
  }
  const bearer = (written: string) => ({ Authorization: `Bearer ${written}` });
  const entry = (host: HostName, key: string) => JSON.parse(found.get(host) ?? '')[key].files;
  t.deepEqual(entry('claude-code', 'mcpServers').headers, bearer('${MCP_TOKEN}'));
  t.deepEqual(entry('cursor', 'mcpServers').headers, bearer('${env:MCP_TOKEN}'));
  t.deepEqual(entry('vscode', 'servers').headers, bearer('${input:mcp-token}'));
  t.like(JSON.parse(found.get('vscode') ?? ''), {
    inputs: [{ type: 'promptString', id: 'mcp-token', password: true }],
  });
  t.deepEqual(entry('windsurf', 'mcpServers').headers, bearer('${env:MCP_TOKEN}'));
  t.deepEqual(entry('gemini', 'mcpServers').headers, bearer('${MCP_TOKEN}'));
  t.deepEqual(entry('copilot-cli', 'mcpServers').headers, bearer('${MCP_TOKEN}'));
  t.deepEqual(entry('opencode', 'mcp').headers, bearer('{env:MCP_TOKEN}'));
  t.deepEqual(entry('claude-desktop', 'mcpServers').env, { MCP_PORTAGE_BEARER_TOKEN: '<token>' });
  t.deepEqual((await understood('codex', found.get('codex') ?? '')).files?.options, {
    header: ['authorization: Bearer secret'],
  });
});

test('hosts with a command for it get the command, which a shell takes as it is', async (t) => {
  const commands = async (host: HostName, ...argv: string[]) =>
    (await snippet(['--for', host, ...argv, URL_OF_ONE])).instead;
  const words = (line = '') =>
    execFileSync('sh', ['-c', `printf '%s\\n' ${line}`], { encoding: 'utf8' })
      .trim()
      .split('\n');
  const token = ['--auth-token', 'env:TOKEN'];
  t.deepEqual(words((await commands('claude-code', ...token))[0]), [
    ...['claude', 'mcp', 'add', '--scope', 'project', '--transport', 'http', 'files', URL_OF_ONE],
    ...['--header', 'Authorization: Bearer ${MCP_TOKEN}'],
  ]);
  t.deepEqual(words((await commands('gemini'))[0]), [
    'gemini',
    'mcp',
    'add',
    '--transport',
    'http',
    'files',
    URL_OF_ONE,
  ]);
  t.deepEqual(words((await commands('codex', ...token))[0]), [
    ...['codex', 'mcp', 'add', 'files', '--url', URL_OF_ONE, '--bearer-token-env-var', 'MCP_TOKEN'],
  ]);
  t.deepEqual(words((await commands('copilot-cli', ...token))[0]), [
    ...['copilot', 'mcp', 'add', '--transport', 'http', 'files', URL_OF_ONE],
    ...['--header', 'Authorization: Bearer ${MCP_TOKEN}'],
  ]);
  const [code, option, entry = ''] = words((await commands('vscode'))[0]);
  t.deepEqual([code, option], ['code', '--add-mcp']);
  t.deepEqual(JSON.parse(entry), { name: 'files', type: 'http', url: URL_OF_ONE });
  t.deepEqual(await commands('vscode', ...token), [], 'what it asks its user for stands in a file');
  const link = new URL((await commands('cursor'))[0] ?? '');
  t.is(link.searchParams.get('name'), 'files');
  t.deepEqual(JSON.parse(Buffer.from(link.searchParams.get('config') ?? '', 'base64').toString()), { url: URL_OF_ONE });
  for (const host of ['claude-desktop', 'windsurf', 'opencode'] as const) t.deepEqual(await commands(host), []);
});

test('the address is the one that clients use', async (t) => {
  const address = async (...argv: string[]) => {
    const { mcpServers } = JSON.parse((await snippet(['--for', 'cursor', ...argv])).text);
    return Object.entries(mcpServers);
  };
  t.deepEqual(await address(), [['mcp-portage', { url: 'http://127.0.0.1:8000/mcp' }]]);
  t.deepEqual(await address('--port', '1', '--path', '/x'), [['mcp-portage', { url: 'http://127.0.0.1:1/x' }]]);
  t.like(await address('--host', '0.0.0.0', '--allow-anonymous'), [
    ['mcp-portage', { url: 'http://127.0.0.1:8000/mcp' }],
  ]);
  t.like(await address('--host', '::1'), [['mcp-portage', { url: 'http://[::1]:8000/mcp' }]]);
  const https = ['--tls-cert', 'c', '--tls-key', 'k'];
  t.like(await address(...https), [['mcp-portage', { url: 'https://127.0.0.1:8000/mcp' }]]);
  t.like(await address('--base-url', 'https://mcp.example/a'), [['mcp-portage', { url: 'https://mcp.example/a/mcp' }]]);
});

test('what a file says of the listener counts, and single servers can be named', async (t) => {
  const file = { ...SERVERS, portage: { port: 7000, path: '/rpc' } };
  const { text } = await snippet(['--for', 'cursor', 'files'], file);
  t.deepEqual(JSON.parse(text), { mcpServers: { files: { url: 'http://127.0.0.1:7000/files/rpc' } } });
  t.regex(await refusal(['--for', 'cursor', 'fiels'], file), /Did you mean files\?/);
});

test('with --aggregate there is one entry, for the address of all servers', async (t) => {
  const all = { mcpServers: { aggregate: { url: 'http://127.0.0.1:8000/mcp' } } };
  const textOf = async (argv: readonly string[], file: object) =>
    JSON.parse((await snippet(['--for', 'cursor', ...argv], file)).text);
  t.deepEqual(await textOf(['--aggregate'], SERVERS), all);
  t.deepEqual(await textOf(['--aggregate=search', 'files'], SERVERS), all);
  t.deepEqual(await textOf([], { ...SERVERS, portage: { aggregate: true } }), all);
  t.regex(await refusal(['--for', 'cursor', '--aggregate']), /no file is given/);
  const same = { mcpServers: { a: { command: 'a' }, b: { command: 'b', portage: { prefix: 'a' } } } };
  t.regex(await refusal(['--for', 'cursor', '--aggregate'], same), /is that of "a" as well/);
});

test('what cannot be told is refused with the way out', async (t) => {
  t.regex(await refusal(['--for', 'emacs', URL_OF_ONE]), /--for: expected .*got "emacs"/);
  t.regex(await refusal(['--for', 'cursor', '--port', '0']), /--port 0/);
  t.regex(await refusal(['--for', 'cursor', '--', 'node', 'x']), /address where a server is served/);
  t.regex(await refusal(['--for', 'cursor', '--isolation', 'shared', URL_OF_ONE]), /--isolation/);
});

test('names that hosts would not tell apart get a number', (t) => {
  t.deepEqual(nameForHosts(['a.b', 'a~b', 'a-b', 'c']), ['a-b', 'a-b-2', 'a-b-3', 'c']);
});

test('the built program prints the snippet alone on stdout, and what to do with it on stderr', async (t) => {
  const folder = await createConfigFolder(t);
  const file = await folder.write('claude.json', SERVERS);
  const stdout = execFileSync(process.execPath, [EXECUTABLE, 'snippet', '--for', 'windsurf', '--config', file], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.deepEqual(JSON.parse(stdout), {
    mcpServers: {
      files: { serverUrl: 'http://127.0.0.1:8000/files/mcp' },
      'Git-Hub': { serverUrl: 'http://127.0.0.1:8000/Git-Hub/mcp' },
    },
  });
});

test('without a host, the built program prints the snippets of all on stdout', (t) => {
  const stdout = execFileSync(process.execPath, [EXECUTABLE, 'snippet', URL_OF_ONE], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const host of HOSTS) t.regex(stdout, new RegExp(`^# ${host}, for `, 'm'), host);
  t.is(stdout.split(URL_OF_ONE).length > HOSTS.length, true);
  t.true(stdout.includes('\nOr:\n  claude mcp add --scope project '));
});

test('where the file of a project is served, Claude Code gets a command that does not write into it, and Copilot CLI a note', async (t) => {
  const command = parseCommandLine(['snippet', '--for', 'claude-code', '--config', '.mcp.json']);
  if (command.kind !== 'bridge') throw new Error(`got ${command.kind}`);
  const around = { env: ENV, cwd: '/home/me', platform: 'linux', readFile: () => t.fail() } as const;
  const { servers, file } = parseSnippet(command, around, await read(SERVERS, { path: '/home/me/project/.mcp.json' }));
  const { instead, notes } = renderSnippet('claude-code', servers, file);
  t.regex(instead[0] ?? '', /^claude mcp add --scope local --transport http files /);
  t.true(notes.some((note) => note.includes('.mcp.json')));
  const copilot = renderSnippet('copilot-cli', servers, file);
  t.true(copilot.notes.some((note) => note.includes('.mcp.json')));
  t.false(renderSnippet('copilot-cli', servers).notes.some((note) => note.includes('.mcp.json')));
});

test('what is served at a socket VS Code reaches itself, the others by mcp-portage', async (t) => {
  const url = 'unix:///run/a.sock#/mcp';
  const argv = (host: HostName) => ['--for', host, '--socket', '/run/a.sock'];
  t.deepEqual(JSON.parse((await snippet(argv('vscode'))).text), {
    servers: { 'mcp-portage': { type: 'http', url } },
  });
  for (const host of HOSTS.filter((name) => name !== 'vscode')) {
    const { text } = await snippet(argv(host));
    t.true(text.includes('"connect"') && text.includes(url), host);
  }
  const copilot = await snippet([...argv('copilot-cli'), '--auth-token', 'env:TOKEN']);
  t.deepEqual(JSON.parse(copilot.text).mcpServers['mcp-portage'], {
    ...{ type: 'local', command: 'npx', args: ['-y', 'mcp-portage', 'connect', url] },
    ...{ env: { MCP_PORTAGE_BEARER_TOKEN: '${MCP_TOKEN}' }, tools: ['*'] },
  });
});
