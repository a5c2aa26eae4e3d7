import test from 'ava';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { envNameOf, type OPTIONS } from '../../src/cli/options.ts';
import { parseConfig, type Surroundings } from '../../src/cli/parse-config.ts';
import { BridgeError, type ErrorCode } from '../../src/errors.ts';

const around: Surroundings = { env: {}, cwd: '/work-dir', platform: 'linux', stderrIsTerminal: false };

function parse(argv: readonly string[], env: Surroundings['env'] = {}, more: Partial<Surroundings> = {}) {
  const commandLine = parseCommandLine([...argv, '--', 'server']);
  if (commandLine.kind !== 'serve') throw new Error(`got ${commandLine.kind}`);
  return parseConfig(commandLine.target, commandLine.options, { ...around, env, ...more });
}

function refusal(argv: readonly string[], env: Surroundings['env'] = {}): { code: ErrorCode; message: string } {
  try {
    parse(argv, env);
  } catch (error) {
    if (error instanceof BridgeError) return { code: error.code, message: error.message };
    throw error;
  }
  return { code: 'ERR_INTERNAL', message: 'accepted' };
}

test('the defaults are these', (t) => {
  t.deepEqual(parse([]), {
    config: {
      target: { kind: 'command', command: 'server', args: [] },
      listen: { host: '127.0.0.1', port: 8000, tls: undefined },
      endpoints: { path: '/mcp', ssePath: '/sse', messagePath: '/messages', baseUrl: undefined },
      access: { allowHosts: [], allowOrigins: [] },
      child: { cwd: undefined, env: {}, withheldEnv: [], pty: false },
      sessions: { isolation: 'session', prewarm: 0, sessionTimeoutMs: 1_800_000, maxSessions: 256 },
      limits: { maxMessageBytes: 16_777_216, requestTimeoutMs: 300_000, shutdownGraceMs: 5000 },
      log: { level: 'info', format: 'json' },
    },
    warnings: [],
  });
});

/** One value other than the default for every option, in the form of the command line. */
const EVERY_OPTION: Readonly<Record<(typeof OPTIONS)[number]['name'], readonly string[]>> = {
  host: ['::1'],
  port: ['9000'],
  'tls-cert': ['cert.pem'],
  'tls-key': ['/etc/key.pem'],
  path: ['/a'],
  'sse-path': ['/b'],
  'message-path': ['/c'],
  'base-url': ['https://example.com/tools/'],
  'allow-host': ['one.example', 'two.example:81'],
  'allow-origin': ['https://app.example.com'],
  cwd: ['sub'],
  env: ['A=1', 'B=2'],
  'inherit-env': ['true'],
  pty: ['true'],
  isolation: ['shared'],
  prewarm: ['1'],
  'session-timeout': ['1h'],
  'max-sessions': ['5'],
  'max-message-bytes': ['1m'],
  'request-timeout': ['0'],
  'shutdown-grace': ['250ms'],
  'log-level': ['debug'],
  'log-format': ['pretty'],
};

const everyOptionAsConfig = {
  target: { kind: 'command', command: 'server', args: [] },
  listen: { host: '::1', port: 9000, tls: { certFile: '/work-dir/cert.pem', keyFile: '/etc/key.pem' } },
  endpoints: { path: '/a', ssePath: '/b', messagePath: '/c', baseUrl: new URL('https://example.com/tools') },
  access: {
    allowHosts: ['one.example', 'two.example:81', 'example.com'],
    allowOrigins: ['https://app.example.com'],
  },
  child: { cwd: '/work-dir/sub', env: { EXTRA: 'x', A: '1', B: '2' }, withheldEnv: [], pty: true },
  sessions: { isolation: 'shared', prewarm: 1, sessionTimeoutMs: 3_600_000, maxSessions: 5 },
  limits: { maxMessageBytes: 1_048_576, requestTimeoutMs: 0, shutdownGraceMs: 250 },
  log: { level: 'debug', format: 'pretty' },
} as const;

test('every option is read from the command line', (t) => {
  const argv = Object.entries(EVERY_OPTION).flatMap(([name, values]) => values.map((value) => `--${name}=${value}`));
  t.deepEqual<unknown, unknown>(parse(argv, { EXTRA: 'x' }).config, everyOptionAsConfig);
});

test('every option is read from the environment, lists by commas', (t) => {
  const entries = Object.entries(EVERY_OPTION).map(([name, values]) => [envNameOf(name), values.join(', ')]);
  t.deepEqual<unknown, unknown>(parse([], { EXTRA: 'x', ...Object.fromEntries(entries) }).config, everyOptionAsConfig);
});

test('the command line wins over the environment, and its last value over earlier ones', (t) => {
  const { config } = parse(['--port', '1', '--port', '2', '--no-inherit-env'], {
    MCP_PORTAGE_PORT: '3',
    MCP_PORTAGE_INHERIT_ENV: 'true',
    MCP_PORTAGE_HOST: '::1',
    SECRET: 'x',
  });
  t.is(config.listen.port, 2);
  t.is(config.listen.host, '::1');
  t.deepEqual(config.child.env, {});
});

test('an empty variable counts as not set', (t) => {
  t.is(parse([], { MCP_PORTAGE_PORT: '' }).config.listen.port, 8000);
});

test('what Kubernetes says of a service called mcp-portage is not taken for the port', (t) => {
  const { config, warnings } = parse([], {
    MCP_PORTAGE_PORT: 'tcp://10.0.0.11:8000',
    MCP_PORTAGE_SERVICE_HOST: '10.0.0.11',
    MCP_PORTAGE_PORT_8000_TCP_ADDR: '10.0.0.11',
  });
  t.is(config.listen.port, 8000);
  t.deepEqual(warnings, []);
});

test('a wrong value names where it was set, what was expected and what was got', (t) => {
  t.deepEqual(refusal(['--port', 'http']), {
    code: 'ERR_CONFIG_OPTION',
    message: '--port: expected a port number from 0 to 65535; got "http".',
  });
  t.deepEqual(refusal([], { MCP_PORTAGE_ISOLATION: 'pooled' }), {
    code: 'ERR_CONFIG_OPTION',
    message: 'MCP_PORTAGE_ISOLATION: expected one of session, shared; got "pooled".',
  });
  t.regex(refusal(['--host=']).message, /; got nothing\.$/);
});

test('a value that may hold a credential is not repeated', (t) => {
  for (const argv of [
    ['--env', '=secret'],
    ['--base-url', 'https://me:secret@example.com'],
  ]) {
    const { code, message } = refusal(argv);
    t.is(code, 'ERR_CONFIG_OPTION');
    t.false(message.includes('secret'), message);
  }
});

test('a variable to copy that is not set here is an error', (t) => {
  t.deepEqual(parse(['--env', 'KEY'], { KEY: 'x' }).config.child.env, { KEY: 'x' });
  const { code, message } = refusal(['--env', 'KEY']);
  t.is(code, 'ERR_CONFIG_OPTION');
  t.regex(message, /expected KEY to be set .*--env KEY=value\.$/);
});

test('the names the server does not get are kept for the hint', (t) => {
  t.deepEqual(parse([], { PATH: '/bin', TOKEN: 'x', A: 'y' }).config.child.withheldEnv, ['A', 'TOKEN']);
  t.deepEqual(parse(['--inherit-env'], { PATH: '/bin', TOKEN: 'x' }).config.child.withheldEnv, []);
});

const excludes = test.macro({
  title: (_, argv: string) => `these do not go together: ${argv}`,
  exec(t, argv: string, expected: RegExp) {
    const { code, message } = refusal(argv.split(' '));
    t.is(code, 'ERR_CONFIG_COMBINATION');
    t.regex(message, expected);
  },
});

test(excludes, '--tls-cert a.pem', /^--tls-cert needs --tls-key/);
test(excludes, '--tls-key a.pem', /^--tls-key needs --tls-cert/);
test(excludes, '--path /x --sse-path /x', /^--sse-path: the path \/x is taken by --path/);
test(excludes, '--message-path /mcp/', /^--message-path: the path \/mcp is taken by --path/);
test(excludes, '--path /readyz', /taken by a health check/);
test(excludes, '--prewarm 2 --isolation shared', /expected at most 1/);
test(excludes, '--prewarm 9 --max-sessions 8', /^--prewarm 9 .* --max-sessions allows/);

test('one process started ahead goes together with sharing it', (t) => {
  t.is(parse(['--prewarm', '1', '--isolation', 'shared']).config.sessions.prewarm, 1);
});

test('the host of the base URL may be used by clients, where hosts are checked at all', (t) => {
  const hostsOf = (...argv: string[]) => parse(argv).config.access.allowHosts;
  const baseUrl = '--base-url=https://example.com';
  t.deepEqual(hostsOf(baseUrl), ['example.com']);
  t.deepEqual(hostsOf(baseUrl, '--host=0.0.0.0'), []);
  t.deepEqual(hostsOf(baseUrl, '--host=0.0.0.0', '--allow-host=bridge'), ['bridge', 'example.com']);
});

test('logs are for people on a terminal and for programs elsewhere', (t) => {
  t.is(parse([], {}, { stderrIsTerminal: true }).config.log.format, 'pretty');
  t.is(parse([], {}, { stderrIsTerminal: false }).config.log.format, 'json');
  t.is(parse(['--log-format', 'json'], {}, { stderrIsTerminal: true }).config.log.format, 'json');
});

test('warns when more than this machine can reach the port', (t) => {
  for (const host of ['0.0.0.0', '::', '192.168.1.5', 'my-host']) {
    const { warnings } = parse(['--host', host]);
    t.is(warnings.length, 1, host);
    t.regex(warnings[0] ?? '', /no authentication.*firewall.*127\.0\.0\.1/);
  }
  for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost'])
    t.deepEqual(parse(['--host', host]).warnings, [], host);
});

test('warns of a variable that looks like a misspelt setting', (t) => {
  t.deepEqual(parse([], { MCP_PORTAGE_MAX_SESSION: '3' }).warnings, [
    'MCP_PORTAGE_MAX_SESSION is not a setting of mcp-portage; did you mean MCP_PORTAGE_MAX_SESSIONS?',
  ]);
});
