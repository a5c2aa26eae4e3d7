import test from 'ava';
import { describeCallers } from '../../../src/bridge/caller-policy.ts';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import type { ConfigFile } from '../../../src/cli/config-file/config-file.ts';
import { parseConfig } from '../../../src/cli/parse/config.ts';
import type { StreamConfig } from '../../../src/config/listener.ts';
import { BridgeError } from '../../../src/errors.ts';
import { read } from '../config-file/read-text.ts';

function parse(argv: readonly string[], file?: ConfigFile) {
  const commandLine = parseCommandLine(file === undefined ? [...argv, '--', 'server'] : argv);
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  const { config, warnings } = parseConfig(
    commandLine,
    {
      env: { TOKEN: 'a-token-of-somebody-known' },
      cwd: '/',
      platform: 'linux',
      stderrIsTerminal: false,
      readFile: () => ({ text: '', isOpenToAll: false }),
    },
    file,
  );
  if (config.listener.kind !== 'http') throw new Error('it does not listen');
  return { config, warnings, listener: config.listener };
}

function streamsOf(argv: readonly string[], file?: ConfigFile): readonly StreamConfig[] {
  return parse(argv, file).listener.streams;
}

function refusal(argv: readonly string[], file?: ConfigFile): string {
  try {
    parse(argv, file);
  } catch (thrown) {
    if (thrown instanceof BridgeError) return thrown.message;
    throw thrown;
  }
  return 'it was taken';
}

const TWO = read({ mcpServers: { one: { command: 'a' }, 'The other': { command: 'b' } } });
const GUARDED = read({ mcpServers: { one: { command: 'a', portage: { callers: ['alice'] } } } });

test('a stream takes the place of the HTTP port, unless one is given, too', (t) => {
  const { listener } = parse(['--stream', 'tcp://127.0.0.1:9000', '--stream', 'unix:///run/mcp.sock']);
  t.deepEqual(listener.addresses, []);
  t.deepEqual(listener.streams, [
    { address: { kind: 'tcp', host: '127.0.0.1', port: 9000 }, segment: undefined },
    { address: { kind: 'socket', path: '/run/mcp.sock', mode: 0o600 }, segment: undefined },
  ]);
  t.is(parse(['--stream', 'tcp://[::1]:9000', '--port', '8000']).listener.addresses.length, 1);
});

test('what is no address of a stream is refused with what is expected', (t) => {
  for (const text of [
    'tcp://127.0.0.1',
    'tcp://:9000',
    'tcp://a:70000',
    'tcp://u@a:1',
    'tcp://a:1/path',
    'tls://a:1',
    '9000',
  ]) {
    t.regex(refusal(['--stream', text]), /^--stream: expected .*tcp:\/\//, text);
  }
  t.regex(refusal(['--stream', 'unix:///run/a#/mcp']), /HTTP has --socket/);
  t.regex(refusal(['--stream', 'unix://run/a']), /absolute path/);
  t.regex(refusal(['--stream', 'tcp://127.0.0.1:1', '--stream', 'tcp://127.0.0.1:1']), /twice/);
});

test('of several servers a stream says which it leads to', async (t) => {
  const file = await TWO;
  t.deepEqual(
    streamsOf(['--config', 'x', '--stream', 'one=tcp://127.0.0.1:1', '--stream', 'The other=unix:///run/b'], file).map(
      ({ segment }) => segment,
    ),
    file.servers.map(({ segment }) => segment),
  );
  t.regex(
    refusal(['--config', 'x', '--stream', 'tcp://127.0.0.1:1'], file),
    /there are several: say which.*one, The other/,
  );
  t.regex(
    refusal(['--config', 'x', '--stream', 'onee=tcp://127.0.0.1:1'], file),
    /no server "onee"\. Did you mean one\?/,
  );
  t.regex(refusal(['--stream', 'x=tcp://127.0.0.1:1']), /no server "x"/);
});

test('beyond this machine a port takes the open word, encrypted or not, and the log warns', (t) => {
  const exposed = ['--stream', 'tcp://0.0.0.0:9000'];
  t.regex(refusal(exposed), /^--stream tcp:\/\/0\.0\.0\.0:9000 lets other machines.*--allow-anonymous/);
  const encrypted = [...exposed, '--tls-cert', 'c', '--tls-key', 'k'];
  t.regex(refusal(encrypted), /^--stream tls:\/\/0\.0\.0\.0:9000 lets other machines/);
  t.regex(parse([...exposed, '--allow-anonymous']).warnings.join(), /from everybody.*can read what is said/);
  t.notRegex(parse([...encrypted, '--allow-anonymous']).warnings.join(), /can read what is said/);
});

test('where tokens are asked for, a port takes the open word on loopback, too, and a Unix socket does not', (t) => {
  const auth = ['--auth-token', 'env:TOKEN', '--port', '8000'];
  t.regex(
    refusal([...auth, '--stream', 'tcp://127.0.0.1:1']),
    /carries no token.*past --auth-token.*unix:.*--allow-anonymous/,
  );
  const { listener } = parse([...auth, '--stream', 'tcp://127.0.0.1:1', '--allow-anonymous']);
  t.not(listener.access.auth, undefined);
  t.is(streamsOf([...auth, '--stream', 'unix:///run/a']).length, 1);
  t.regex(refusal([...auth, '--allow-anonymous']), /leave one of them out/);
});

test('a server for named callers is not served where nobody has a name', async (t) => {
  const file = await GUARDED;
  t.regex(
    refusal(['--config', 'x', '--auth-token', 'alice=env:TOKEN', '--stream', 'unix:///run/a'], file),
    /only named callers may use/,
  );
});

test('who may come on a stream counts for whether callers are one user', (t) => {
  const kindOf = (...argv: string[]) => {
    const { config } = parse(argv);
    return describeCallers(config.listener, config.servers[0]).kind;
  };
  t.is(kindOf('--stream', 'tcp://127.0.0.1:1'), 'user');
  t.is(kindOf('--stream', 'unix:///run/a', '--socket-mode', '0660'), 'unidentified');
  t.is(kindOf('--stream', 'tcp://0.0.0.0:1', '--allow-anonymous', '--port', '1'), 'unidentified');
});
