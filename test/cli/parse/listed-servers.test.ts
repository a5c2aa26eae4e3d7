import test from 'ava';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { type ParsedConfig, parseConfig } from '../../../src/cli/parse/config.ts';
import { BridgeError } from '../../../src/errors.ts';
import { read } from '../config-file/read-text.ts';

const ENV = { ALICE: 'a'.repeat(40), MCP_PORTAGE_BEARER_TOKEN: 'b'.repeat(40) };

async function parse(content: object, ...argv: string[]): Promise<ParsedConfig> {
  const command = parseCommandLine([...argv, '--config', 'mcp.json']);
  if (command.kind !== 'bridge') throw new Error(`got ${command.kind}`);
  const around = {
    env: ENV,
    cwd: '/home/me',
    platform: 'linux',
    stderrIsTerminal: false,
    readFile: () => {
      throw new Error('nothing is read');
    },
  } as const;
  return parseConfig(command, around, await read(content));
}

async function refusal(content: object, ...argv: string[]): Promise<string> {
  try {
    await parse(content, ...argv);
  } catch (thrown) {
    if (thrown instanceof BridgeError) return `${thrown.code} ${thrown.message}`;
    throw thrown;
  }
  return 'accepted';
}

const TWO = {
  mcpServers: {
    files: { command: 'a' },
    tickets: { url: 'https://t.example/mcp' },
    off: { command: 'c', disabled: true },
  },
};

test('all servers of a file are served, and on the command line some can be named', async (t) => {
  const names = async (...argv: string[]) =>
    (await parse(TWO, ...argv)).config.servers.map(({ listing }) => listing?.name);
  t.deepEqual(await names('serve'), ['files', 'tickets']);
  t.deepEqual(await names('serve', 'tickets'), ['tickets']);
  t.deepEqual(await names('probe', 'tickets', 'files'), ['tickets', 'files']);
  t.deepEqual(await names('connect', 'files'), ['files']);
});

const ONE_BAD = {
  mcpServers: {
    good: { command: 'a' },
    unset: { url: 'https://t.example/mcp', headers: { Authorization: 'Bearer $' + '{NOT_SET}' } },
    later: { command: 'b', portage: { maxSessions: 'many' } },
    also: { command: 'c' },
  },
};

test('servers whose entries are wrong are left out with the reason, and the others are served', async (t) => {
  const { config, leftOut, warnings } = await parse(ONE_BAD, 'serve');
  t.deepEqual(
    config.servers.map(({ listing }) => listing?.name),
    ['good', 'also'],
  );
  t.deepEqual(leftOut, ['unset', 'later']);
  t.regex(
    warnings[0] ?? '',
    /^The server "unset" is left out, since its entry is wrong: mcp\.json:1:\d+: .*NOT_SET is not set/,
  );
  t.regex(warnings[1] ?? '', /^The server "later" is left out, since its entry is wrong: .*portage\.maxSessions/);
});

test('a wrong entry is an error with --strict-config, in a probe of all, by its name, and where nothing else is left', async (t) => {
  const both = /^ERR_CONFIG_FILE mcp\.json:\S+ mcpServers\.unset.*NOT_SET.*\nmcp\.json:.*maxSessions/;
  t.regex(await refusal(ONE_BAD, 'serve', '--strict-config'), both);
  t.regex(await refusal(ONE_BAD, 'connect', 'good', '--strict-config'), /NOT_SET/);
  t.regex(await refusal(ONE_BAD, 'probe'), /^ERR_CONFIG_FILE .*NOT_SET/);
  t.regex(await refusal(ONE_BAD, 'serve', 'good', 'unset'), /^ERR_CONFIG_FILE .*NOT_SET/);
  t.regex(await refusal(ONE_BAD, 'serve', 'later'), /^ERR_CONFIG_OPTION .*maxSessions/);
  t.regex(await refusal({ mcpServers: { unset: ONE_BAD.mcpServers.unset } }, 'serve'), /^ERR_CONFIG_FILE .*NOT_SET/);
  for (const argv of [
    ['probe', 'good'],
    ['connect', 'good'],
  ])
    t.is(await refusal(ONE_BAD, ...argv), 'accepted');
  t.is(await refusal({ mcpServers: { a: { command: 'a' }, b: {} } }, 'connect'), 'accepted');
});

test('all options of an entry that cannot be used are told together', async (t) => {
  const portage = { maxSessions: 'many', requestTimeout: 'soon' };
  const message = await refusal({ mcpServers: { a: { command: 'a', portage } } });
  t.deepEqual(
    message.split('\n').map((line) => line.replace(/:.*\((.*)\):/, ' $1:')),
    [
      'ERR_CONFIG_OPTION mcp.json mcpServers.a.portage.maxSessions: expected a whole number, 1 or more; got something else.',
      'mcp.json mcpServers.a.portage.requestTimeout: expected a duration like 500ms, 30s, 5m or 2h (a bare number is seconds; at most 596h); got something else.',
    ],
  );
});

test('a mistake outside of the entries is an error, and so is one in the entry of a server that is required', async (t) => {
  t.regex(await refusal(TWO, 'serve', '--transport', 'fax'), /^ERR_CONFIG_OPTION --transport: expected/);
  const top = { ...TWO, portage: { transport: 'fax' } };
  t.regex(await refusal(top, 'serve'), /^ERR_CONFIG_OPTION mcp\.json:.*portage\.transport/);
  const required = { command: 'b', portage: { maxSessions: 'many', required: true } };
  t.regex(
    await refusal({ mcpServers: { good: { command: 'a' }, required } }, 'serve'),
    /^ERR_CONFIG_OPTION .*maxSessions/,
  );
});

test('a thousand wrong entries are not a thousand warnings', async (t) => {
  const bad = Object.fromEntries(Array.from({ length: 998 }, (_, index) => [`s${index}`, {}]));
  const { warnings } = await parse({ mcpServers: { good: { command: 'a' }, ...bad } }, 'serve');
  t.is(warnings.length, 21);
  t.regex(warnings.at(-1) ?? '', /^… and 978 more servers are left out/);
});

test('connect is for one server, which is named unless there is only one or several are made one', async (t) => {
  const alone = ['--aggregate=false'];
  t.regex(
    await refusal(TWO, 'connect', ...alone),
    /name one of those in .*mcp-portage connect --config \S+ files\n.*"files", "tickets"/s,
  );
  t.regex(
    await refusal(TWO, 'connect', 'files', 'tickets', ...alone),
    /connect puts one server on stdio, and --aggregate keeps it from making one of several/,
  );
  const { config } = await parse({ mcpServers: { only: { command: 'a' } } }, 'connect');
  t.is(config.listener.kind, 'pipes');
});

test('a name that is not there is refused with those that are; one that is switched off is told so', async (t) => {
  t.regex(
    await refusal(TWO, 'serve', 'tickts'),
    /no server "tickts"\. Did you mean tickets\? There are "files", "tickets"/,
  );
  t.regex(await refusal(TWO, 'serve', 'off'), /off is switched off in .*; switch it on there\./);
});

test('callers are names of tokens, and with subject: those of an issuer', async (t) => {
  const entry = { command: 'a', portage: { callers: ['alice', 'subject:u-7'] } };
  const issuer = ['--auth-issuer', 'https://id.example', '--base-url', 'https://tools.example'];
  const { config } = await parse({ mcpServers: { one: entry } }, '--auth-token', 'alice=env:ALICE', ...issuer);
  t.deepEqual(config.servers[0].listing?.callers, ['token:alice', 'https://id.example#u-7']);
});

const withTools = (tools: object, portage = {}) => ({
  mcpServers: { one: { command: 'a', portage: { tools, ...portage } } },
});

test('what an entry says of a tool is joined with the options, which override it', async (t) => {
  const tools = {
    a: { name: 'b', title: 'T', description: 'D', callers: ['alice', 'subject:u-7'] },
    c: { hidden: true },
  };
  const issuer = ['--auth-issuer', 'https://id.example', '--base-url', 'https://tools.example'];
  const { config } = await parse(withTools(tools, { describeTool: { a: 'E', d: 'F' } }), ...issuer);
  const none = { name: undefined, title: undefined, description: undefined, isHidden: false, callers: undefined };
  t.deepEqual(
    [...config.servers[0].tools.shapes],
    [
      ['a', { ...none, name: 'b', title: 'T', description: 'E', callers: ['token:alice', 'https://id.example#u-7'] }],
      ['c', { ...none, isHidden: true }],
      ['d', { ...none, description: 'F' }],
    ],
  );
  const connected = await parse(withTools({ a: { name: 'b' } }), 'connect', '--rename-tool', 'a=x');
  t.is(connected.config.servers[0].tools.shapes.get('a')?.name, 'x');
});

test('two tools with one name are a mistake, which names both and the place', async (t) => {
  const both = { a: { name: 'c' }, b: { name: 'c' } };
  t.regex(
    await refusal(withTools(both)),
    /^ERR_CONFIG_COMBINATION mcp\.json:1:\d+ \(mcpServers\.one\.portage\.tools\.b\): the tools "a" and "b" would both be called "c"/,
  );
  t.regex(
    await refusal(withTools({ a: { name: 'b' }, b: { title: 'B' } })),
    /tools "a" and "b" would both be called "b"/,
  );
  t.regex(
    await refusal(withTools({ b: { title: 'B' } }), 'connect', '--rename-tool', 'a=b'),
    /--rename-tool: the tools "b" and "a"/,
  );
  t.is(await refusal(withTools({ a: { name: 'b' }, b: { name: 'a' } })), 'accepted');
  t.is(await refusal(withTools({ a: { name: 'b' }, b: { hidden: true } })), 'accepted');
  const { leftOut, warnings } = await parse(
    { mcpServers: { ...withTools(both).mcpServers, two: { command: 'b' } } },
    'serve',
  );
  t.deepEqual(leftOut, ['one']);
  t.regex(warnings.join(), /"one" is left out, .* would both be called "c"/);
});

test('callers of a tool without a way to know who calls are a mistake', async (t) => {
  t.regex(
    await refusal(withTools({ a: { callers: ['alice'] } })),
    /^ERR_CONFIG_COMBINATION .*portage\.tools\.a\): callers says who may use this tool, but callers are not authenticated; .*--auth-token/,
  );
});

test('callers without a way to know who calls are a mistake', async (t) => {
  const entry = { command: 'a', portage: { callers: ['alice'] } };
  t.regex(
    await refusal({ mcpServers: { one: entry } }),
    /^ERR_CONFIG_COMBINATION .*callers are not authenticated; .*--auth-token/,
  );
});

test('what is about one server is not for all of a file, but for one that is chosen', async (t) => {
  t.regex(await refusal(TWO, '--header', 'X: 1'), /--header is about one server, and .* write it into the entry/);
  const { config } = await parse(TWO, 'connect', 'tickets', '--header', 'X: 1');
  t.deepEqual(
    [...config.servers[0].remote.headers],
    [
      ['x', '1'],
      ['authorization', `Bearer ${ENV.MCP_PORTAGE_BEARER_TOKEN}`],
    ],
  );
  const { config: all } = await parse(TWO);
  t.deepEqual(
    [...(all.servers[1]?.remote.headers ?? [])],
    [],
    'a token of the command line goes to no server of a file',
  );
});

test('the command line wins over an entry, and that over the top of the file', async (t) => {
  const file = {
    mcpServers: { a: { command: 'a', portage: { isolation: 'shared', maxSessions: 3 } }, b: { command: 'b' } },
    portage: { maxSessions: 5, prewarm: 1 },
  };
  const sessions = async (...argv: string[]) =>
    (await parse(file, ...argv)).config.servers.map(({ sessions: { isolation, maxSessions, prewarm } }) => [
      isolation,
      maxSessions,
      prewarm,
    ]);
  t.deepEqual(await sessions(), [
    ['shared', 3, 1],
    ['session', 5, 1],
  ]);
  t.deepEqual(await sessions('--max-sessions', '7', '--prewarm', '0'), [
    ['shared', 7, 0],
    ['session', 7, 0],
  ]);
});

test('files to watch are those of the entry, else those of the command line, else those at the top', async (t) => {
  const watched = async (content: object, ...argv: string[]) =>
    (await parse(content, ...argv)).config.servers.map(({ watch }) => watch.map(({ path }) => path).join());
  const file = {
    mcpServers: {
      a: { command: 'a', portage: { watch: ['a/src', 'a/**/*.json'] } },
      b: { command: 'b' },
      c: { url: 'https://c.example/mcp' },
    },
    portage: { watch: 'top' },
  };
  t.deepEqual(await watched(file), ['a/src,a/**/*.json', 'top', '']);
  t.deepEqual(await watched(file, '--watch', 'line'), ['a/src,a/**/*.json', 'line', '']);
});

test('files are watched for servers that are started, and a file without one is told so', async (t) => {
  const urls = { mcpServers: { a: { url: 'https://a.example/mcp' } } };
  const none =
    /^ERR_CONFIG_COMBINATION --watch restarts servers that are started as a command, and .*mcp\.json has none/;
  t.regex(await refusal(urls, '--watch', 'src'), none);
  t.regex(await refusal(TWO, 'connect', 'tickets', '--watch', 'src'), none);
  t.is(await refusal(TWO, 'connect', 'files', '--watch', 'src'), 'accepted');
  t.regex(await refusal(TWO, 'serve', '--watch', ''), /expected a path, or a pattern like src/);
});

test('an option for servers of another kind is a mistake in an entry, at the top it is for those it fits', async (t) => {
  const wrong = { mcpServers: { a: { url: 'https://a.example/mcp', portage: { pty: true } } } };
  t.regex(await refusal(wrong), /mcpServers\.a\.portage\.pty.*reached by its URL/);
  await t.notThrowsAsync(parse({ ...TWO, portage: { pty: false, keepAlive: '10s' } }));
});
