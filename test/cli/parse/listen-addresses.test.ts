import test from 'ava';
import { describeCallers } from '../../../src/bridge/caller-policy.ts';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { type ParsedConfig, parseConfig } from '../../../src/cli/parse/config.ts';
import type { HttpListenerConfig } from '../../../src/config/listener.ts';
import { BridgeError } from '../../../src/errors.ts';

function parse(argv: readonly string[], env: Readonly<Record<string, string>> = {}): ParsedConfig {
  const command = parseCommandLine([...argv, '--', 'server']);
  if (command.kind !== 'bridge') throw new Error(`got ${command.kind}`);
  const readFile = () => ({ text: '', isOpenToAll: false });
  return parseConfig(command, { env, cwd: '/srv', platform: 'linux', stderrIsTerminal: false, readFile });
}

function listenerOf(argv: readonly string[], env: Readonly<Record<string, string>> = {}): HttpListenerConfig {
  const { listener } = parse(argv, env).config;
  if (listener.kind !== 'http') throw new Error('serve listens for HTTP');
  return listener;
}

function refusal(argv: readonly string[]): string {
  try {
    parse(argv);
  } catch (thrown) {
    if (thrown instanceof BridgeError) return thrown.message;
    throw thrown;
  }
  throw new Error('it was taken');
}

const SOCKET = { kind: 'socket', path: '/srv/a.sock', mode: 0o600 } as const;
const PORT = { kind: 'tcp', host: '127.0.0.1', port: 8000 } as const;

test('a socket stands in place of the port, unless a port is asked for', (t) => {
  t.deepEqual(listenerOf([]).addresses, [PORT]);
  t.deepEqual(listenerOf(['--socket', 'a.sock']).addresses, [SOCKET]);
  t.deepEqual(listenerOf(['--socket', 'a.sock', '--port', '9000']).addresses, [{ ...PORT, port: 9000 }, SOCKET]);
  t.deepEqual(listenerOf(['--socket', 'a.sock', '--host', '::1']).addresses, [{ ...PORT, host: '::1' }, SOCKET]);
  t.deepEqual(
    listenerOf(['--socket', 'a.sock', '--socket', 'unix:///run/b%20c.sock', '--socket-mode', '660']).addresses,
    [
      { ...SOCKET, mode: 0o660 },
      { kind: 'socket', path: '/run/b c.sock', mode: 0o660 },
    ],
  );
});

test('the port that the environment of a container names is none beside a socket', (t) => {
  const image = { MCP_PORTAGE_HOST: '0.0.0.0', MCP_PORTAGE_PORT: '8000' };
  t.deepEqual(listenerOf(['--socket', 'a.sock'], image).addresses, [SOCKET]);
  t.deepEqual(listenerOf([], { MCP_PORTAGE_SOCKET: '/srv/a.sock' }).addresses, [SOCKET]);
});

test('what says something of a socket that is not there, or of a port, is refused', (t) => {
  t.regex(refusal(['--socket-mode', '0660']), /--socket-mode needs --socket/);
  t.regex(refusal(['--socket', 'a.sock', '--socket', './a.sock']), /--socket names \/srv\/a\.sock twice/);
  t.regex(refusal(['--socket', 'a.sock', '--socket-mode', '0999']), /expected the mode of a file in octal digits/);
  t.regex(refusal(['--socket', 'pipe:///mcp']), /named pipes are for Windows/);
  t.regex(refusal(['--socket', '/run/']), /expected the path of a socket/);
  t.regex(refusal(['--socket', 'a.sock', '--tls-cert', 'c.pem', '--tls-key', 'k.pem']), /--tls-cert is for a port/);
});

test('who can connect by the mode of a socket decides whether callers are one user', (t) => {
  const kindOf = (...argv: readonly string[]) => {
    const { config } = parse(['--socket', 'a.sock', ...argv]);
    return describeCallers(config.listener, config.servers[0]).kind;
  };
  t.is(kindOf(), 'user');
  t.is(kindOf('--socket-mode', '0644'), 'user', 'to connect takes the right to write');
  t.is(kindOf('--socket-mode', '0660'), 'unidentified');
  t.is(kindOf('--socket-mode', '0666'), 'unidentified');
  t.is(kindOf('--port', '8000'), 'user');
  t.is(kindOf('--port', '8000', '--host', '0.0.0.0', '--allow-anonymous'), 'unidentified');
  t.is(kindOf('--base-url', 'https://tools.example'), 'unidentified', 'behind a reverse proxy');
});

test('what is open to every user is warned of, and its status is shown to nobody', (t) => {
  const all = parse(['--socket', 'a.sock', '--socket-mode', '0666']);
  t.regex(all.warnings.join('\n'), /Every user of this machine may connect to the socket \/srv\/a\.sock/);
  t.is(all.config.observation.status, 'off');
  const own = parse(['--socket', 'a.sock']);
  t.deepEqual(own.warnings, []);
  t.is(own.config.observation.status, 'served');
});
