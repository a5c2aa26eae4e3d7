import test from 'ava';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { OPTIONS } from '../../src/cli/options/option-table.ts';
import { BridgeError } from '../../src/errors.ts';

function parseBridge(...argv: string[]) {
  const parsed = parseCommandLine(argv);
  if (parsed.kind !== 'bridge') throw new Error(`got ${parsed.kind}`);
  return { verb: parsed.verb, options: Object.fromEntries(parsed.options), target: parsed.target };
}

const EXAMPLE = { kind: 'url', url: new URL('https://example.com/mcp?tenant=1'), socketPath: undefined } as const;

function refusal(...argv: string[]): string {
  try {
    parseCommandLine(argv);
  } catch (error) {
    if (error instanceof BridgeError && error.code === 'ERR_CONFIG_OPTION') return error.message;
    throw error;
  }
  return 'accepted';
}

test('the words after -- are the command, whatever they look like', (t) => {
  const { target, options } = parseBridge('serve', '--', 'npx', '-y', '--port', '1', '--', 'https://x', '');
  t.deepEqual(target, { kind: 'command', command: 'npx', args: ['-y', '--port', '1', '--', 'https://x', ''] });
  t.deepEqual(options, {});
});

test('without a verb serve is meant, and a verb may follow options', (t) => {
  t.deepEqual(parseBridge('--', 'a'), parseBridge('serve', '--', 'a'));
  t.deepEqual(parseBridge('--port', '1', 'serve', '--', 'a'), parseBridge('serve', '--port', '1', '--', 'a'));
});

test('values stay the text that was written', (t) => {
  const { options } = parseBridge(
    '--port',
    '0080',
    '--host=::1',
    '--session-timeout',
    '1e3',
    '--path',
    'true',
    '--',
    'a',
  );
  t.deepEqual(options, { port: ['0080'], host: ['::1'], sessionTimeout: ['1e3'], path: ['true'] });
});

test('an option given again is kept in order, for lists and for the last one to win', (t) => {
  const { options } = parseBridge('--env', 'A=1', '--port', '1', '--env=B=x,y', '--port', '2', '--', 'a');
  t.deepEqual(options, { env: ['A=1', 'B=x,y'], port: ['1', '2'] });
});

test('flags are on, off, or off by their no- form', (t) => {
  t.deepEqual(parseBridge('--inherit-env', '--no-pty', '--', 'a').options, { inheritEnv: ['true'], pty: ['false'] });
  t.deepEqual(parseBridge('--pty=false', '--', 'a').options, { pty: ['false'] });
});

test('a flag does not swallow the verb', (t) => {
  t.deepEqual(parseBridge('--pty', 'serve', '--', 'a').options, { pty: ['true'] });
});

test('help wins over everything else on the line, but not behind --', (t) => {
  for (const argv of [
    ['--help'],
    ['-h'],
    ['help'],
    ['help', 'help'],
    ['serve', '--help'],
    ['--prot', '-h'],
    ['completion', '--help'],
  ]) {
    t.is(parseCommandLine(argv).kind, 'help', argv.join(' '));
  }
  t.is(parseCommandLine(['--', 'a', '--help']).kind, 'bridge');
});

test('asks for the version, also beside a verb', (t) => {
  t.is(parseCommandLine(['--version']).kind, 'version');
  for (const word of ['-v', '-V', 'version']) t.is(parseCommandLine([word]).kind, 'version', word);
  t.is(parseCommandLine(['serve', '-v']).kind, 'version');
});

test('completion takes the name of a shell it knows', (t) => {
  t.deepEqual(parseCommandLine(['completion', 'zsh']), { kind: 'completion', shell: 'zsh' });
  t.regex(refusal('completion'), /expected bash, zsh or fish; got nothing/);
  t.regex(refusal('completion', 'ksh'), /expected bash, zsh or fish; got "ksh"/);
});

test('help is an overview, or about a command, a group of options or everything', (t) => {
  for (const argv of [['help'], ['--help'], ['help', 'completion'], ['completion', '--help']]) {
    t.deepEqual(parseCommandLine(argv), { kind: 'help', topic: { kind: 'overview' } }, argv.join(' '));
  }
  t.deepEqual(parseCommandLine(['help', 'all']), { kind: 'help', topic: { kind: 'all' } });
  t.deepEqual(parseCommandLine(['help', 'connect']), { kind: 'help', topic: { kind: 'verb', verb: 'connect' } });
  t.deepEqual(parseCommandLine(['probe', '--help']), { kind: 'help', topic: { kind: 'verb', verb: 'probe' } });
  t.deepEqual(parseCommandLine(['help', 'groups']), { kind: 'help', topic: { kind: 'groups' } });
  const topic = { kind: 'group', group: 'limits' } as const;
  t.deepEqual(parseCommandLine(['help', 'limits']), { kind: 'help', topic: { ...topic, verb: undefined } });
  t.deepEqual(parseCommandLine(['help', 'serve', 'limits']), { kind: 'help', topic: { ...topic, verb: 'serve' } });
});

test('help on what is no command says what there is help on', (t) => {
  t.is(
    refusal('help', 'nonsense'),
    'There is no help on "nonsense". Topics are the commands serve, connect, probe, snippet, report, top, view, login, logout, pin, info, the groups of options config, listen, endpoints, access, hubs, cluster, protocol, server, replay, remote, oauth, sessions, limits, observing, logging, the codes of errors, and groups and all.',
  );
  t.regex(refusal('help', 'conect'), /Did you mean connect\?/);
  t.regex(refusal('help', 'limit'), /Did you mean limits\?/);
});

for (const option of OPTIONS.filter(({ kind }) => kind === 'flag')) {
  const no = option.flag.replace('--', '--no-');
  test(`${option.flag} and ${no} leave a URL behind them alone`, (t) => {
    for (const [written, value] of [
      [option.flag, 'true'],
      [no, 'false'],
    ] as const) {
      const { options, target } = parseBridge('serve', written, EXAMPLE.url.href);
      t.deepEqual<unknown, unknown>(target, EXAMPLE);
      t.deepEqual(options, { [option.name]: [value] });
    }
  });
}

test('a missing server is answered with the simplest right commands', (t) => {
  const everything = '-- npx -y @modelcontextprotocol/server-everything';
  for (const argv of [[], ['serve'], ['serve', '--'], ['--port', '1']]) {
    t.is(
      refusal(...argv),
      `No server to serve: give its command after \`--\`, or its URL, as in\n  mcp-portage ${everything}\n  mcp-portage https://example.com/mcp`,
    );
  }
  t.is(
    refusal('connect'),
    `No server to connect to: give its command after \`--\`, or its URL, as in\n  mcp-portage connect https://example.com/mcp\n  mcp-portage connect ${everything}`,
  );
  t.regex(refusal('probe', '--json'), /^No server to probe: /);
  t.is(refusal('login'), 'No server to log in to: give its URL, as in\n  mcp-portage login https://example.com/mcp');
  t.regex(refusal('logout'), /^No server to log out from: give its URL, as in\n/);
});

test('an unknown option names the nearest right one', (t) => {
  t.is(refusal('--prot', '1', '--', 'a'), 'Unknown option --prot; did you mean --port?');
  t.is(refusal('--logLevel=debug', '--', 'a'), 'Unknown option --logLevel; did you mean --log-level?');
  t.is(
    refusal('--bytes', '5', '--', 'a'),
    'Unknown option --bytes; did you mean --max-message-bytes or --max-result-bytes or --max-header-bytes?',
  );
  t.is(refusal('--no-inherit-evn', '--', 'a'), 'Unknown option --no-inherit-evn; did you mean --inherit-env?');
  t.regex(refusal('--frobnicate', '--', 'a'), /^Unknown option --frobnicate; mcp-portage help all lists them\./);
  t.regex(refusal('-y', '--', 'a'), /^Unknown option -y; .* Options of the server go after `--`/);
});

test('a path whose ~ no shell has replaced, and a file on another machine, are refused', (t) => {
  t.is(
    refusal('--config=~/mcp.json'),
    '--config: expected a path in which the shell has replaced ~; got "~/mcp.json". Write --config ~/mcp.json with a space instead of "=", or the whole path.',
  );
  t.regex(refusal('--cwd', '~\\server', '--', 'a'), /^--cwd: expected a path in which the shell has replaced ~/);
  t.regex(refusal('--env', 'HERE=~/a', '--', 'a'), /^accepted$/, 'the server may replace it itself');
  t.regex(refusal('--config', 'https://a.example/mcp.json'), /^--config: expected a file on this machine; got a URL\./);
});

test('an option without its value, and the no- form of an option that takes one, say so', (t) => {
  t.is(refusal('--port', '--', 'a'), '--port needs a value: --port <port>; got none.');
  t.is(refusal('--port', '--host', '::1', '--', 'a'), '--port needs a value: --port <port>; got none.');
  t.is(refusal('--no-port', '--', 'a'), '--no-port does not exist: leave --port out.');
});

test('a command without -- is shown with it, options before it kept', (t) => {
  t.is(
    refusal('serve', 'npx', '-y', 'foo', '--port', '3'),
    'Unexpected "npx": the server\'s command goes after `--`, as in\n  mcp-portage serve -- npx -y foo --port 3',
  );
  t.is(
    refusal('--port', '9000', 'my server', "it's"),
    "Unexpected \"my server\": the server's command goes after `--`, as in\n  mcp-portage --port 9000 -- 'my server' 'it'\\''s'",
  );
});

test('a command that was quoted as one word is shown without its quotes, unless it is the path of a program', (t) => {
  t.true(
    refusal('--port', '9000', 'npx -y @scope/server').endsWith('\n  mcp-portage --port 9000 -- npx -y @scope/server'),
  );
  t.true(refusal('/my servers/one').endsWith("\n  mcp-portage -- '/my servers/one'"));
});

test('on Windows the -- is shown in quotes: PowerShell keeps a bare one for itself', (t) => {
  const error = t.throws(() => parseCommandLine(['--port', '9000', 'npx', '-y', 'foo'], 'win32'));
  t.is(
    error?.message,
    'Unexpected "npx": the server\'s command goes after `--` (in PowerShell with its quotes), as in\n  mcp-portage --port 9000 "--" npx -y foo',
  );
});

test('a misspelled verb names the right one', (t) => {
  t.is(refusal('sreve', '--', 'a'), 'Unknown command "sreve"; did you mean serve?');
  t.is(refusal('conect', 'https://example.com/mcp'), 'Unknown command "conect"; did you mean connect?');
});

test('a URL is a server that runs already, for every verb', (t) => {
  t.deepEqual(parseBridge(EXAMPLE.url.href), { verb: 'serve', options: {}, target: EXAMPLE });
  for (const verb of ['serve', 'connect', 'probe'] as const) {
    t.deepEqual(parseBridge(verb, EXAMPLE.url.href), { verb, options: {}, target: EXAMPLE });
    t.deepEqual(parseBridge(verb, '--', 'a'), {
      verb,
      options: {},
      target: { kind: 'command', command: 'a', args: [] },
    });
  }
});

test('options may stand before and after a URL', (t) => {
  const { options, target } = parseBridge('--log-level', 'warn', 'connect', EXAMPLE.url.href, '--header', 'A: b: c');
  t.deepEqual(options, { logLevel: ['warn'], header: ['A: b: c'] });
  t.deepEqual<unknown, unknown>(target, EXAMPLE);
  t.deepEqual(parseBridge('probe', '--json', EXAMPLE.url.href).options, { json: ['true'] });
});

test('a fragment is no part of the address', (t) => {
  t.deepEqual<unknown, unknown>(parseBridge(`${EXAMPLE.url.href}#top`).target, EXAMPLE);
});

test('there is one server: not two URLs, and not a URL and a command', (t) => {
  t.regex(
    refusal('https://a.example', 'https://b.example'),
    /^Give one URL, or the servers in a file with --config; got 2 URLs\.$/,
  );
  t.regex(refusal('https://a.example', '--', 'a'), /^A URL and a command were given/);
  t.regex(
    refusal('connect', '--', 'https://a.example'),
    /^A URL is not a command: leave out `--`, as in\n {2}mcp-portage connect https:\/\/a\.example$/,
  );
});

test('a word after the URL, such as a port of mcp-remote, is not a command', (t) => {
  t.is(
    refusal('connect', 'https://a.example?key=secret', '3334'),
    'Unexpected "3334": all that can stand beside the URL are options. For the port of a login: --oauth-callback http://localhost:3334/callback',
  );
  t.is(
    refusal('connect', 'https://a.example', 'word'),
    'Unexpected "word": all that can stand beside the URL are options.',
  );
});

test('the scheme of a URL says how it is reached; others are named', (t) => {
  t.regex(
    refusal('connect', 'file:///etc/passwd'),
    /^file:\/\/ is not supported; expected .* https:\/\/, http:\/\/, wss:\/\/, ws:\/\/, unix:\/\/, pipe:\/\/, tcp:\/\/, tls:\/\/, grpc:\/\/, grpcs:\/\/, mqtt:\/\/ or mqtts:\/\//,
  );
  t.regex(refusal('connect', 'https://'), /^The URL of the server cannot be read/);
});

test('a URL without its scheme is told from a command without --', (t) => {
  for (const word of [
    'localhost:8000/mcp',
    'localhost',
    'example.com',
    'example.com:8443',
    '127.0.0.1/mcp',
    'a.example.com/mcp',
  ]) {
    const scheme = /^(localhost|127)/.test(word) ? 'http' : 'https';
    t.is(
      refusal('connect', word),
      `Unexpected "${word}": a URL begins with http:// or https://, as in\n  mcp-portage connect ${scheme}://${word}`,
    );
  }
  for (const word of ['./server.js', 'server.js', '../bin/server', 'node_modules/.bin/server', '.venv/bin/server']) {
    t.regex(refusal('connect', word), /the server's command goes after `--`/);
  }
});

test('a user name or password in a URL is refused with the way out, and no URL is repeated in a message', (t) => {
  for (const url of ['https://user:secret@example.com/mcp', 'https://secret@example.com/mcp']) {
    const message = refusal('connect', url);
    t.regex(message, /--header 'Authorization: Basic \$\{CREDENTIAL\}'/);
    t.false(message.includes('secret'));
  }
  t.false(refusal('wss://user:secret@example.com/mcp?token=secret').includes('secret'));
  t.false(refusal('https://a.example?token=secret', '--', 'a').includes('secret'));
});

test('a command that other bridges take as one option is shown behind --', (t) => {
  t.is(
    refusal('--stdio', 'npx -y some-server', '--port', '8000'),
    'Unknown option --stdio: the command goes after `--`, unquoted: mcp-portage -- npx -y some-server',
  );
});

test('a time limit of another bridge, in milliseconds, is not taken for seconds', (t) => {
  t.is(
    refusal('--sessionTimeout', '60000', '--', 'a'),
    'Unknown option --sessionTimeout; did you mean --session-timeout? A bare number means seconds; milliseconds are written 60000ms.',
  );
  t.is(
    refusal('--sessionTimeout', '1m', '--', 'a'),
    'Unknown option --sessionTimeout; did you mean --session-timeout?',
  );
});

test('a credential is no option, and the message says why and what to do', (t) => {
  for (const flag of ['--bearer-token', '--oauth2Bearer', '--token']) {
    const message = refusal('connect', flag, 'secret', 'https://example.com/mcp');
    t.regex(message, /other users can read them: set MCP_PORTAGE_BEARER_TOKEN, or use --bearer-token-file/);
    t.false(message.includes('secret'));
  }
});

test('several unknown options are told together', (t) => {
  const [first = '', second = '', ...together] = refusal('--stateful', '--ssePath', '/s', '--', 'a').split('\n');
  t.regex(first, /^Unknown option --stateful: /);
  t.regex(second, /^Unknown option --ssePath; /);
  t.deepEqual(together, ['All together:', '  mcp-portage --sse-path /s -- a']);
});

test('names of Object.prototype are unknown options like any other', (t) => {
  for (const name of ['constructor', 'toString', 'hasOwnProperty'])
    t.regex(refusal(`--${name}`, 'x', '--', 'a'), /^Unknown option/);
});
