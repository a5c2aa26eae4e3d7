import { EventEmitter } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { pino } from 'pino';
import { LiveLine } from '../src/cli/terminal.ts';
import { V8Flags } from '../src/cli/v8-flags.ts';
import { type CliHost, runCli } from '../src/cli.ts';
import type { Config } from '../src/config.ts';
import { BridgeError } from '../src/errors.ts';
import type { LogOptions } from '../src/log.ts';
import type { ProbeRequest } from '../src/probe/probe-servers.ts';
import { VERSION } from '../src/version.ts';
import { createConfigFolder } from './support/config-folder.ts';
import { FakeClock } from './support/fake-clock.ts';

const ERASE = '\r\u001b[2K';

/** Plays the world around the command line; the bridge ends with the given failure as soon as it runs. */
async function run(argv: readonly string[], more: Partial<CliHost> = {}) {
  const seen = {
    stdout: '',
    stderr: '',
    exitCode: undefined as number | undefined,
    exited: undefined as number | undefined,
    config: undefined as Config | undefined,
    probe: undefined as ProbeRequest | undefined,
    logOptions: undefined as LogOptions | undefined,
    logged: [] as string[],
  };
  await runCli(argv, {
    env: {},
    cwd: process.cwd(),
    platform: 'linux',
    stdinIsTerminal: false,
    hasLostTerminal: () => false,
    stdout: { write: (text) => (seen.stdout += text) },
    stderr: { write: (text) => (seen.stderr += text) },
    events: new EventEmitter(),
    v8Flags: new V8Flags(),
    setExitCode: (code) => (seen.exitCode = code),
    exit: (code) => (seen.exited = code),
    ownCommand: async () => ['/bin/node', '/opt/mcp-portage.js'],
    createLog: async (options) => {
      seen.logOptions = options;
      return pino(
        { formatters: { level: (level) => ({ level }) } },
        { write: (line) => seen.logged.push(JSON.parse(line).msg) },
      );
    },
    createLiveLine: () => Promise.reject(new Error('stderr is no terminal')),
    runBridge: async (config) => {
      seen.config = config;
      throw new BridgeError('ERR_CONFIG_LISTEN', 'Port 8000 is in use.');
    },
    createReload: () => Promise.reject(new Error('there is no configuration file')),
    runProbe: async (request) => {
      seen.probe = request;
      return { report: 'speaks stdio\n', exitCode: 3 };
    },
    reportUsage: async () => ({ report: 'nobody\n', exitCode: 75 }),
    showTop: async () => undefined,
    showView: async () => undefined,
    showLogins: async () => '',
    changeLogins: async () => '',
    runPin: async () => '',
    showInfo: async () => '',
    onLine: () => () => {},
    ...more,
  });
  return seen;
}

test('--help, --version and completion go to stdout and run nothing', async (t) => {
  for (const [argv, expected] of [
    [['--help'], /^mcp-portage joins any MCP client to any MCP server/],
    [['connect', '--help'], /^mcp-portage connect: connects a stdio client to a server/],
    [['--version'], new RegExp(`^${VERSION}\n$`)],
    [['serve', '-v'], new RegExp(`^${VERSION}\n$`)],
    [['help', 'limits'], /^Limits of sizes, numbers and times\n/],
    [['completion', 'bash'], /complete -F _mcp_portage mcp-portage\n$/],
  ] as const) {
    const { stdout, stderr, exitCode, config } = await run(argv);
    t.regex(stdout, expected);
    t.is(stderr, '');
    t.is(exitCode, undefined);
    t.is(config, undefined);
  }
});

test('on a terminal, an error names the help on it, below what may be copied from its message', async (t) => {
  let seen = '';
  const stderr = { write: (text: string) => (seen += text), isTTY: true };
  await run(['npx', 'server'], { stderr });
  t.true(seen.endsWith('\n  mcp-portage -- npx server\n(mcp-portage help ERR_CONFIG_OPTION says more)\n'), seen);
});

test('where the log is asked for in JSON, a mistake at the start is a line of it', async (t) => {
  for (const [argv, env] of [
    [['--log-format', 'json', '--prot', '1', '--', 'x'], {}],
    [['--prot', '1', '--log-format=json', '--', 'x'], {}],
    [['--prot', '1', '--', 'x'], { MCP_PORTAGE_LOG_FORMAT: 'json' }],
    [['--log-format', 'json', '--cwd', '/does/not/exist', '--', 'x'], {}],
  ] as const) {
    const { stderr, logged, logOptions, exitCode } = await run(argv, { env });
    t.is(stderr, '');
    t.is(logged.length, 1);
    t.is(logOptions?.format, 'json');
    t.is(exitCode, 2);
  }
  for (const argv of [
    ['--prot', '1', '--', 'x', '--log-format', 'json'],
    ['--log-format', 'pretty', '--prot', '1', '--', 'x'],
  ]) {
    t.regex((await run(argv)).stderr, /^mcp-portage: ERR_CONFIG_OPTION: Unknown option --prot/);
  }
});

test('the help on an error is its section of the reference', async (t) => {
  const { stdout, exitCode } = await run(['help', 'ERR_SESSION_UNKNOWN']);
  t.regex(
    stdout,
    /^ERR_SESSION_UNKNOWN\n\nSeen as: JSON-RPC -32001 · HTTP 404\n\nThe session does not exist anymore: /,
  );
  t.is(exitCode, undefined);
  t.is((await run(['help', 'err_session_unknown'])).stdout, stdout);
  t.regex((await run(['help', 'ERR_SESION_UNKNOWN'])).stderr, /Did you mean ERR_SESSION_UNKNOWN\?/);
});

test('a mistake goes to stderr with its code, and the exit code is 2', async (t) => {
  const { stdout, stderr, exitCode, config } = await run(['--prot', '1', '--', 'x']);
  t.is(stderr, 'mcp-portage: ERR_CONFIG_OPTION: Unknown option --prot; did you mean --port?\n');
  t.is(stdout, '');
  t.is(exitCode, 2);
  t.is(config, undefined);
});

test('options that exclude each other exit with 2', async (t) => {
  const { stderr, exitCode } = await run(['--tls-key', 'x', '--', 'x']);
  t.regex(stderr, /^mcp-portage: ERR_CONFIG_COMBINATION: /);
  t.is(exitCode, 2);
});

test('a wrong path is told before anything starts', async (t) => {
  const { stderr, config } = await run(['--cwd', '/does/not/exist', '--', 'x']);
  t.regex(stderr, /--cwd: expected a directory/);
  t.is(config, undefined);
});

test('runs the bridge with what was asked for and exits with the code of its end', async (t) => {
  const { config, exited, logged, stderr } = await run(['--port', '0', '--', 'node', 'server.js'], {
    env: { MCP_PORTAGE_ISOLATION: 'shared' },
  });
  t.like(config, {
    listener: { kind: 'http', addresses: [{ kind: 'tcp', port: 0 }] },
    servers: [{ sessions: { isolation: 'shared' }, target: { command: 'node', args: ['server.js'] } }],
  });
  t.is(exited, 69);
  t.deepEqual(logged, ['Port 8000 is in use.']);
  t.is(stderr, '');
});

test('connect on a terminal says whom it waits for, and what to run by hand', async (t) => {
  const server = ['https://a.example/mcp'];
  const byHand = await run(['connect', ...server], { stdinIsTerminal: true });
  t.regex(byHand.logged[0] ?? '', /^connect waits for an MCP client .* mcp-portage probe .* --login on-demand/);
  const byClient = await run(['connect', ...server]);
  const served = await run(['serve', ...server], { stdinIsTerminal: true });
  for (const { logged } of [byClient, served]) t.deepEqual(logged, ['Port 8000 is in use.']);
});

test('what is worth a warning is logged before the start', async (t) => {
  const { logged } = await run(['--host', '0.0.0.0', '--allow-anonymous', '--', 'x']);
  t.regex(logged[0] ?? '', /^Listening on 0\.0\.0\.0 for everybody/);
});

test('what is worth a warning on the disk is logged, too', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const file = join(directory, 'token');
  await writeFile(file, 'hunter2', { mode: 0o644 });
  const { logged, config } = await run(['connect', '--bearer-token-file', file, 'https://example.com/mcp']);
  if (process.platform !== 'win32') t.regex(logged[0] ?? '', /^--bearer-token-file .*: every user of this machine/);
  t.false(logged.join('').includes('hunter2'));
  t.like(config, {
    listener: { kind: 'pipes' },
    servers: [{ target: { kind: 'url' }, remote: { bearerTokenFile: file } }],
  });
});

test('a probe prints its report to stdout and exits with its verdict', async (t) => {
  const { stdout, stderr, exitCode, probe, config } = await run(['probe', '--timeout', '3s', '--', 'x']);
  t.is(stdout, 'speaks stdio\n');
  t.is(stderr, '');
  t.is(exitCode, 3);
  t.is(config, undefined, 'no bridge is started');
  t.like(probe, {
    format: 'human',
    timeoutsMs: [3000],
    width: 100,
    color: false,
    config: { servers: [{ target: { command: 'x' } }] },
  });
});

test('a probe is told about the terminal its report is for', async (t) => {
  const stdout = { write: () => true, isTTY: true, columns: 132 };
  t.like((await run(['probe', '--', 'x'], { stdout })).probe, { width: 132, color: true });
  t.like((await run(['probe', '--', 'x'], { stdout, env: { NO_COLOR: '1' } })).probe, { color: false });
  t.like((await run(['probe', '--json', '--', 'x'])).probe, { format: 'json' });
});

test('a probe of the aggregate is a client of the command that connects to it', async (t) => {
  const folder = await createConfigFolder(t);
  const file = await folder.write('mcp.json', { mcpServers: { a: { command: 'a' }, b: { command: 'b' } } });
  const words = ['probe', '--config', file, '--strict-config', '--aggregate=search', '--timeout', '5s', 'a', 'b'];
  const { probe } = await run(words, { env: { KEY: 'x' }, cwd: '/work' });
  const options = [`--config=${file}`, '--strict-config=true', '--aggregate=search'];
  t.deepEqual(probe?.aggregate, {
    target: {
      kind: 'command',
      command: '/bin/node',
      args: ['/opt/mcp-portage.js', 'connect', '--log-level=warn', ...options, 'a', 'b'],
    },
    child: { cwd: '/work', env: { KEY: 'x' }, withheldEnv: [], pty: false },
    shown: `--config ${file} --aggregate=search a b`,
  });
  t.is((await run(['probe', '--config', file])).probe?.aggregate, undefined);
});

test('a probe that was interrupted exits with the code of the signal, after its report', async (t) => {
  const events = new EventEmitter();
  const runProbe: CliHost['runProbe'] = async ({ signal }) => {
    events.emit('SIGTERM');
    return { report: signal.aborted ? 'half\n' : 'whole\n', exitCode: 0 };
  };
  const { stdout, exitCode } = await run(['probe', '--', 'x'], { events, runProbe });
  t.is(stdout, 'half\n');
  t.is(exitCode, 143);
});

test('a probe that fails itself is told like any other failure', async (t) => {
  const runProbe = () => Promise.reject(new BridgeError('ERR_UPSTREAM_CONNECT', 'Cannot reach it.'));
  const { stderr, exitCode } = await run(['probe', 'https://example.com/mcp'], { runProbe });
  t.is(stderr, 'mcp-portage: ERR_UPSTREAM_CONNECT: Cannot reach it.\n');
  t.is(exitCode, 69);
});

test('logs with colors on a terminal, unless NO_COLOR is set', async (t) => {
  const terminal = { stderr: { write: () => true, isTTY: true } };
  t.like((await run(['--', 'x'], terminal)).logOptions, { format: 'pretty', colors: true });
  t.like((await run(['--', 'x'], { ...terminal, env: { NO_COLOR: '1' } })).logOptions, {
    format: 'pretty',
    colors: false,
  });
  t.like((await run(['--', 'x'])).logOptions, { format: 'json', colors: false });
});

test('a failure of our own shows its stack and exits with 70', async (t) => {
  const { stderr, exitCode } = await run(['--', 'x'], { createLog: () => Promise.reject(new TypeError('no log')) });
  t.regex(stderr, /^mcp-portage: ERR_INTERNAL: .*\nTypeError: no log\n {4}at /);
  t.is(exitCode, 70);
});

test('a probe on a terminal says there what it waits for, out of the way of the log and of the report', async (t) => {
  const clock = new FakeClock();
  let terminal = '';
  const output = { write: (text: string) => (terminal += text), isTTY: true };
  const live = new LiveLine(output, clock);
  const { stdout, logOptions } = await run(['probe', '--', 'x'], {
    stderr: output,
    createLiveLine: async () => live,
    runProbe: async ({ waiting }) => {
      waiting('x to answer');
      clock.advance(1000);
      return { report: 'speaks stdio\n', exitCode: 0 };
    },
  });
  t.is(terminal, `${ERASE}waiting for x to answer (1 s)${ERASE}`);
  t.is(stdout, 'speaks stdio\n');
  live.show('more');
  t.is(clock.pendingTimers, 0);
  t.is(typeof logOptions?.beforeLine, 'function');
});

test('nobody but a probe draws on the terminal', async (t) => {
  const output = { write: () => undefined, isTTY: true };
  t.is((await run(['--', 'x'], { stderr: output })).logOptions?.beforeLine, undefined);
});
