import test from 'ava';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { BridgeError } from '../../src/errors.ts';

function parseServe(...argv: string[]) {
  const parsed = parseCommandLine(argv);
  if (parsed.kind !== 'serve') throw new Error(`got ${parsed.kind}`);
  return { options: Object.fromEntries(parsed.options), target: parsed.target };
}

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
  const { target, options } = parseServe('serve', '--', 'npx', '-y', '--port', '1', '--', 'https://x', '');
  t.deepEqual(target, { kind: 'command', command: 'npx', args: ['-y', '--port', '1', '--', 'https://x', ''] });
  t.deepEqual(options, {});
});

test('without a verb serve is meant, and a verb may follow options', (t) => {
  t.deepEqual(parseServe('--', 'a'), parseServe('serve', '--', 'a'));
  t.deepEqual(parseServe('--port', '1', 'serve', '--', 'a'), parseServe('serve', '--port', '1', '--', 'a'));
});

test('values stay the text that was written', (t) => {
  const { options } = parseServe(
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
  t.deepEqual(options, { port: ['0080'], host: ['::1'], 'session-timeout': ['1e3'], path: ['true'] });
});

test('an option given again is kept in order, for lists and for the last one to win', (t) => {
  const { options } = parseServe('--env', 'A=1', '--port', '1', '--env=B=x,y', '--port', '2', '--', 'a');
  t.deepEqual(options, { env: ['A=1', 'B=x,y'], port: ['1', '2'] });
});

test('flags are on, off, or off by their no- form', (t) => {
  t.deepEqual(parseServe('--inherit-env', '--no-pty', '--', 'a').options, { 'inherit-env': ['true'], pty: ['false'] });
  t.deepEqual(parseServe('--pty=false', '--', 'a').options, { pty: ['false'] });
});

test('a flag does not swallow the verb', (t) => {
  t.deepEqual(parseServe('--pty', 'serve', '--', 'a').options, { pty: ['true'] });
});

test('help wins over everything else on the line, but not behind --', (t) => {
  for (const argv of [['--help'], ['-h'], ['help'], ['serve', '--help'], ['--prot', '-h'], ['completion', '--help']]) {
    t.is(parseCommandLine(argv).kind, 'help', argv.join(' '));
  }
  t.is(parseCommandLine(['--', 'a', '--help']).kind, 'serve');
});

test('asks for the version, also beside a verb', (t) => {
  t.is(parseCommandLine(['--version']).kind, 'version');
  t.is(parseCommandLine(['serve', '-v']).kind, 'version');
});

test('completion takes the name of a shell it knows', (t) => {
  t.deepEqual(parseCommandLine(['completion', 'zsh']), { kind: 'completion', shell: 'zsh' });
  t.regex(refusal('completion'), /expected bash or zsh; got nothing/);
  t.regex(refusal('completion', 'fish'), /expected bash or zsh; got "fish"/);
});

test('a missing command is answered with the simplest right one', (t) => {
  for (const argv of [[], ['serve'], ['serve', '--'], ['--port', '1']]) {
    t.is(
      refusal(...argv),
      'No server to serve: its command goes after `--`, as in\n  mcp-portage -- npx -y @modelcontextprotocol/server-everything',
    );
  }
});

test('an unknown option names the nearest right one', (t) => {
  t.is(refusal('--prot', '1', '--', 'a'), 'Unknown option --prot; did you mean --port?');
  t.is(refusal('--logLevel=debug', '--', 'a'), 'Unknown option --logLevel; did you mean --log-level?');
  t.is(
    refusal('--timeout', '5', '--', 'a'),
    'Unknown option --timeout; did you mean --session-timeout or --request-timeout?',
  );
  t.is(refusal('--no-inherit-evn', '--', 'a'), 'Unknown option --no-inherit-evn; did you mean --inherit-env?');
  t.regex(refusal('--frobnicate', '--', 'a'), /^Unknown option --frobnicate; mcp-portage --help lists them all\./);
  t.regex(refusal('-y', '--', 'a'), /^Unknown option -y; .* Options of the server go after `--`/);
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

test('a misspelt verb names the right one', (t) => {
  t.is(refusal('sreve', '--', 'a'), 'Unknown command "sreve"; did you mean serve?');
});

test('a URL and connect are refused as not part of this version', (t) => {
  for (const argv of [['https://example.com/mcp'], ['serve', 'http://x/sse'], ['--', 'https://example.com/mcp']]) {
    t.regex(refusal(...argv), /^This version serves commands only/);
  }
  t.regex(refusal('connect', '--', 'a'), /^There is no `connect` yet\. This version serves commands only/);
});

test('a URL is not repeated in the message, since it may hold a credential', (t) => {
  t.false(refusal('https://user:secret@example.com/mcp?token=secret').includes('secret'));
});

test('flags of other bridges are answered with ours', (t) => {
  t.is(
    refusal('--stdio', 'npx -y some-server', '--port', '8000'),
    'Unknown option --stdio: the command goes after `--`, unquoted: mcp-portage -- npx -y some-server',
  );
  t.regex(refusal('--outputTransport', 'streamableHttp', '--', 'a'), /^Unknown option --outputTransport: leave it out/);
  t.regex(refusal('--server', 'stream', 'tsx', 'server.js'), /^Unknown option --server: leave it out/);
  t.regex(refusal('--shell', '--', 'a'), /^Unknown option --shell: leave it out/);
  t.regex(refusal('--pass-environment', '--', 'a'), /use --inherit-env\.$/);
  t.regex(refusal('--healthEndpoint', '/h', '--', 'a'), /\/healthz and \/readyz/);
  t.regex(refusal('--sse', 'https://example.com/sse'), /cannot reach a server by URL/);
});

test('several unknown options are told together', (t) => {
  t.is(refusal('--stateful', '--ssePath', '/s', '--', 'a').split('\n').length, 2);
});

test('names of Object.prototype are unknown options like any other', (t) => {
  for (const name of ['constructor', 'toString', 'hasOwnProperty'])
    t.regex(refusal(`--${name}`, 'x', '--', 'a'), /^Unknown option/);
});
