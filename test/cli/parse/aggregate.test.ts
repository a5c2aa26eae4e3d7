import test from 'ava';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { type ParsedConfig, parseConfig } from '../../../src/cli/parse/config.ts';
import type { ServerConfig } from '../../../src/config/server.ts';
import { BridgeError } from '../../../src/errors.ts';
import { read } from '../config-file/read-text.ts';

type Env = Readonly<Record<string, string>>;

/** @param content the configuration file; undefined: none is given */
async function parse(content: object | undefined, argv: readonly string[], env: Env = {}): Promise<ParsedConfig> {
  const command = parseCommandLine(
    content === undefined ? argv : [...argv.slice(0, 1), '--config', 'mcp.json', ...argv.slice(1)],
  );
  if (command.kind !== 'bridge') throw new Error(`got ${command.kind}`);
  const around = {
    env,
    cwd: '/home/me',
    platform: 'linux',
    stderrIsTerminal: false,
    readFile: () => {
      throw new Error('nothing is read');
    },
  } as const;
  return parseConfig(command, around, content && (await read(content)));
}

async function refusal(content: object | undefined, argv: readonly string[], env: Env = {}): Promise<string> {
  try {
    await parse(content, argv, env);
  } catch (thrown) {
    if (thrown instanceof BridgeError) return `${thrown.code} ${thrown.message}`;
    throw thrown;
  }
  return 'accepted';
}

/** The servers in their order; the aggregate by what it shows. */
async function served(content: object, argv: readonly string[], env: Env = {}): Promise<readonly string[]> {
  const { config } = await parse(content, argv, env);
  return config.servers.map(({ listing, target }) =>
    target.kind === 'aggregate' ? `aggregate, shows ${target.shows}` : (listing?.name ?? 'unnamed'),
  );
}

const ONE = { mcpServers: { files: { command: 'a' } } };
const TWO = { mcpServers: { files: { command: 'a' }, tickets: { url: 'https://t.example/mcp' } } };
const ALL = 'aggregate, shows all';
const SEARCH = 'aggregate, shows search';

test('--aggregate serves all servers of a file as one, beside each at its own address', async (t) => {
  t.deepEqual(await served(TWO, ['serve', '--aggregate']), [ALL, 'files', 'tickets']);
  t.deepEqual(await served(TWO, ['serve', '--aggregate=true']), [ALL, 'files', 'tickets']);
  t.deepEqual(await served(TWO, ['serve', '--aggregate=search']), [SEARCH, 'files', 'tickets']);
  t.deepEqual(await served(TWO, ['serve', '--aggregate=false']), ['files', 'tickets']);
  t.deepEqual(await served(TWO, ['serve']), ['files', 'tickets']);
  t.deepEqual(await served(ONE, ['serve', '--aggregate']), [ALL, 'files']);
});

test('the variable and the top of the file say the same, and the command line wins', async (t) => {
  const top = { ...TWO, portage: { aggregate: true } };
  t.deepEqual(await served(TWO, ['serve'], { MCP_PORTAGE_AGGREGATE: 'true' }), [ALL, 'files', 'tickets']);
  t.deepEqual(await served(TWO, ['serve'], { MCP_PORTAGE_AGGREGATE: 'search' }), [SEARCH, 'files', 'tickets']);
  t.deepEqual(await served(top, ['serve']), [ALL, 'files', 'tickets']);
  t.deepEqual(await served({ ...TWO, portage: { aggregate: 'search' } }, ['serve']), [SEARCH, 'files', 'tickets']);
  t.deepEqual(await served(top, ['serve', '--aggregate=false']), ['files', 'tickets']);
  t.deepEqual(await served(top, ['serve'], { MCP_PORTAGE_AGGREGATE: 'search' }), [SEARCH, 'files', 'tickets']);
});

test('the option takes no word for its value: what follows is an option or the name of a server', async (t) => {
  t.deepEqual(await served(TWO, ['serve', '--aggregate', '--port', '1']), [ALL, 'files', 'tickets']);
  t.deepEqual(await served(TWO, ['serve', '--aggregate', 'files']), [ALL, 'files']);
  t.regex(
    await refusal(TWO, ['serve', '--aggregate', 'search']),
    /^ERR_CONFIG_OPTION .*has no server "search"\. Did you mean --aggregate=search\?/,
  );
  t.regex(
    await refusal(TWO, ['serve', '--aggregate=seach']),
    /^ERR_CONFIG_OPTION --aggregate: expected true, false or search; got "seach"\.$/,
  );
  t.regex(await refusal(TWO, ['serve', '--no-aggregate']), /--no-aggregate does not exist/);
});

test('connect makes one of several servers by itself', async (t) => {
  t.deepEqual(await served(TWO, ['connect']), [ALL, 'files', 'tickets']);
  t.deepEqual(await served(TWO, ['connect', '--aggregate=search']), [SEARCH, 'files', 'tickets']);
  t.deepEqual(await served(TWO, ['connect', 'files', 'tickets']), [ALL, 'files', 'tickets']);
  t.deepEqual(await served(TWO, ['connect'], { MCP_PORTAGE_AGGREGATE: 'search' }), [SEARCH, 'files', 'tickets']);
});

test('connect leaves one server as it is, unless it is told otherwise', async (t) => {
  t.deepEqual(await served(ONE, ['connect']), ['files']);
  t.deepEqual(await served(TWO, ['connect', 'files']), ['files']);
  t.deepEqual(await served(TWO, ['connect', 'files'], { MCP_PORTAGE_AGGREGATE: 'true' }), ['files']);
  t.deepEqual(await served({ ...TWO, portage: { aggregate: 'search' } }, ['connect', 'files']), ['files']);
  t.deepEqual(await served({ ...ONE, portage: { aggregate: 'search' } }, ['connect']), [SEARCH, 'files']);
  t.deepEqual(await served(ONE, ['connect', '--aggregate']), [ALL, 'files']);
  t.deepEqual(await served(TWO, ['connect', 'files', '--aggregate=search']), [SEARCH, 'files']);
});

test('a probe is about each server, or about all as one', async (t) => {
  const env = { MCP_PORTAGE_AGGREGATE: 'true' };
  t.deepEqual(await served(TWO, ['probe', '--aggregate=search']), [SEARCH]);
  t.deepEqual(await served({ ...TWO, portage: { aggregate: true } }, ['probe'], env), ['files', 'tickets']);
});

test('a server that is left out of the aggregate keeps its address, and connect does not have it', async (t) => {
  const content = {
    mcpServers: { ...TWO.mcpServers, alone: { command: 'b', portage: { aggregate: false } } },
  };
  t.deepEqual(await served(content, ['serve', '--aggregate']), [ALL, 'files', 'tickets', 'alone']);
  t.deepEqual(await served(content, ['connect']), [ALL, 'files', 'tickets']);
  t.regex(
    await refusal(content, ['connect', 'files', 'alone']),
    /^ERR_CONFIG_FILE mcp\.json:.*\(mcpServers\.alone\): .* or connect to "alone" alone\.$/,
  );
  t.deepEqual(await served(content, ['connect', 'alone']), ['alone']);
  const { config } = await parse(content, ['serve', '--aggregate']);
  t.deepEqual(
    config.servers.map(({ listing }) => listing?.membership?.prefix),
    [undefined, 'files', 'tickets', undefined],
  );
  t.regex(
    await refusal({ mcpServers: { alone: content.mcpServers.alone } }, ['serve', '--aggregate']),
    /^ERR_CONFIG_FILE No server of \S+ is part of the aggregate: "portage": \{"aggregate": false\}/,
  );
});

test('without a file there is nothing to make one of', async (t) => {
  const wayOut =
    /^ERR_CONFIG_COMBINATION --aggregate makes one server of those in a file.*--config mcp\.json --aggregate$/s;
  t.regex(await refusal(undefined, ['serve', '--aggregate']), wayOut);
  t.regex(await refusal(undefined, ['--aggregate=search']), wayOut);
  t.regex(await refusal(undefined, ['serve', '--aggregate', '--', 'server']), wayOut);
  t.regex(await refusal(undefined, ['connect', '--aggregate', 'https://a.example/mcp']), wayOut);
  t.is(await refusal(undefined, ['serve', '--', 'server'], { MCP_PORTAGE_AGGREGATE: 'true' }), 'accepted');
  t.regex(await refusal(undefined, ['probe', '--aggregate', '--', 'server']), wayOut);
  t.regex(await refusal(undefined, ['login', '--aggregate', 'https://a.example/mcp']), /--aggregate is about a server/);
});

test('a server of the command line and the aggregate would be at the same paths', async (t) => {
  t.regex(
    await refusal(TWO, ['serve', '--aggregate', '--', 'server']),
    /^ERR_CONFIG_COMBINATION --aggregate serves the servers of \S+ as one at the paths of this process, and the server of the command line/,
  );
  t.regex(
    await refusal({ ...TWO, portage: { aggregate: true } }, ['serve', '--', 'server']),
    /^ERR_CONFIG_COMBINATION mcp\.json:1:\d+ \(portage\.aggregate\) serves/,
  );
});

test('two servers with one prefix are named with both places', async (t) => {
  const content = `{
  "mcpServers": {
    "git hub": { "command": "a" },
    "other": { "command": "b", "portage": { "prefix": "git-hub" } }
  }
}`;
  const command = parseCommandLine(['serve', '--config', 'mcp.json', '--aggregate']);
  if (command.kind !== 'bridge') throw new Error(`got ${command.kind}`);
  const around = { env: {}, cwd: '/', platform: 'linux', stderrIsTerminal: false } as const;
  const file = await read(content);
  const readFile = () => ({ text: '', isOpenToAll: false });
  const error = t.throws<BridgeError>(() => parseConfig(command, { ...around, readFile }, file));
  t.is(error?.code, 'ERR_CONFIG_FILE');
  t.regex(
    error?.message ?? '',
    /^mcp\.json:4:\d+ \(mcpServers\.other\.portage\.prefix\): "git-hub" .* "git hub" as well \(mcp\.json:3:\d+ \(mcpServers\["git hub"\]\)\); give one of them another portage\.prefix\.$/,
  );
});

test('one prefix for two is no mistake if it is empty, or where there is no aggregate', async (t) => {
  const withPrefix = (prefix: string) => ({
    mcpServers: { a: { command: 'a', portage: { prefix } }, b: { command: 'b', portage: { prefix } } },
  });
  t.is(await refusal(withPrefix(''), ['serve', '--aggregate']), 'accepted');
  t.is(await refusal(withPrefix('x'), ['serve']), 'accepted');
  t.regex(await refusal(withPrefix('x'), ['connect']), /^ERR_CONFIG_FILE .*"x"/);
  t.is(await refusal(withPrefix('x'), ['connect', 'a']), 'accepted');
});

test('the name of the aggregate is for no other server', async (t) => {
  const content = { mcpServers: { aggregate: { command: 'a' }, b: { command: 'b' } } };
  t.is(await refusal(content, ['serve']), 'accepted');
  t.regex(await refusal(content, ['serve', '--aggregate']), /^ERR_CONFIG_FILE mcp\.json:.*give this one another name/);
});

async function aggregateOf(content: object, ...argv: string[]): Promise<ServerConfig> {
  const { config } = await parse(content, ['serve', '--aggregate', ...argv]);
  const [server] = config.servers;
  if (server.target.kind !== 'aggregate') throw new Error(`got ${server.target.kind}`);
  return server;
}

test('the aggregate has the limits of the command line and of the top, and the patterns of tools are for its members', async (t) => {
  const top = { ...TWO, portage: { maxParkedCalls: 7 } };
  const { limits, sessions, tools } = await aggregateOf(top, '--max-sessions', '5', '--include-tool', 'get_*');
  t.is(sessions.maxSessions, 5);
  t.is(limits.maxParkedCalls, 7);
  t.is(limits.maxChildren, 0);
  t.deepEqual(tools, { include: [], exclude: [], shapes: new Map() });
  const { config } = await parse(top, ['serve', '--aggregate', '--include-tool', 'get_*']);
  t.deepEqual(config.servers[1]?.tools.include, ['get_*']);
});

test('the aggregate is the server for a stream without a name, and may be offered at a hub', async (t) => {
  for (const stream of ['tcp://127.0.0.1:9000', 'aggregate=tcp://127.0.0.1:9000']) {
    const { config } = await parse(TWO, ['serve', '--aggregate', '--stream', stream]);
    t.deepEqual(config.listener.kind === 'http' && config.listener.streams.map(({ segment }) => segment), [undefined]);
  }
  t.regex(await refusal(TWO, ['serve', '--stream', 'aggregate=tcp://127.0.0.1:9000']), /no server "aggregate"/);
  const { hubs } = await aggregateOf(TWO, '--dial', 'wss://hub.example/mcp');
  t.deepEqual(
    hubs.map((hub) => hub.kind === 'websocket' && hub.url.href),
    ['wss://hub.example/mcp'],
  );
  t.regex(await refusal(TWO, ['serve', '--dial', 'wss://hub.example/mcp']), /--dial is about one server/);
  t.regex(await refusal(TWO, ['serve', '--aggregate', '--env', 'A=b']), /--env is about one server/);
});
