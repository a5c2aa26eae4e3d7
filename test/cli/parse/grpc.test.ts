import test from 'ava';
import { describeCallers } from '../../../src/bridge/caller-policy.ts';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import type { ConfigFile } from '../../../src/cli/config-file/config-file.ts';
import { parseConfig } from '../../../src/cli/parse/config.ts';
import { BridgeError } from '../../../src/errors.ts';
import { read } from '../config-file/read-text.ts';

const WITHOUT_TARGET: readonly string[] = ['--', 'server'];

function parse(argv: readonly string[], file?: ConfigFile, target = WITHOUT_TARGET) {
  const commandLine = parseCommandLine(file === undefined ? [...argv, ...target] : argv);
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

function refusal(argv: readonly string[], file?: ConfigFile, target?: readonly string[]): string {
  try {
    parse(argv, file, target);
  } catch (thrown) {
    if (thrown instanceof BridgeError && thrown.audiences.exit === 2) return thrown.message;
    throw thrown;
  }
  return 'it was taken';
}

const TWO = read({
  mcpServers: { one: { command: 'a' }, 'The other': { url: 'grpcs://example.com:443', headers: { a: 'b' } } },
});

test('gRPC takes the place of the HTTP port, unless one is given, too', (t) => {
  const { listener } = parse(['--grpc', '127.0.0.1:50051', '--grpc', 'grpc://[::1]:50052']);
  t.deepEqual(listener.addresses, []);
  t.deepEqual(listener.grpc, [
    { address: { kind: 'tcp', host: '127.0.0.1', port: 50051 }, segment: undefined },
    { address: { kind: 'tcp', host: '::1', port: 50052 }, segment: undefined },
  ]);
  t.is(parse(['--grpc', '127.0.0.1:0', '--port', '8000']).listener.addresses.length, 1);
});

test('what is no address for gRPC is refused with what is expected', (t) => {
  for (const text of ['127.0.0.1', ':50051', 'a:70000', 'u@a:1', 'a:1/path', 'tcp://a:1', 'unix:///run/a', '50051']) {
    t.regex(refusal(['--grpc', text]), /^--grpc: expected host:port/, text);
  }
  t.regex(refusal(['--grpc', '127.0.0.1:1', '--grpc', '127.0.0.1:1']), /twice/);
});

test('of several servers a port says which it leads to', async (t) => {
  const file = await TWO;
  const argv = ['--config', 'x', '--grpc', 'one=127.0.0.1:1', '--grpc', 'The other=127.0.0.1:2'];
  t.deepEqual(
    parse(argv, file).listener.grpc.map(({ segment }) => segment),
    file.servers.map(({ segment }) => segment),
  );
  t.regex(refusal(['--config', 'x', '--grpc', '127.0.0.1:1'], file), /say which, as in --grpc one=127\.0\.0\.1:50051/);
  t.regex(refusal(['--config', 'x', '--grpc', 'onee=127.0.0.1:1'], file), /no server "onee"\. Did you mean one\?/);
});

test('beyond this machine a port takes tokens or the open word, and the log warns of what others can read', (t) => {
  const exposed = ['--grpc', '0.0.0.0:50051'];
  t.regex(refusal(exposed), /^--grpc 0\.0\.0\.0:50051 lets other machines.*--auth-token.*--allow-anonymous/);
  t.regex(refusal([...exposed, '--tls-cert', 'c', '--tls-key', 'k']), /lets other machines/);
  t.regex(parse([...exposed, '--allow-anonymous']).warnings.join(), /0\.0\.0\.0 for everybody/);
  t.regex(parse([...exposed, '--auth-token', 'env:TOKEN']).warnings.join(), /without TLS.*read the tokens/);
  t.deepEqual(parse([...exposed, '--auth-token', 'env:TOKEN', '--tls-cert', 'c', '--tls-key', 'k']).warnings, []);
  t.regex(
    refusal(['--grpc', '127.0.0.1:1', '--auth-token', 'env:TOKEN', '--allow-anonymous']),
    /leave one of them out/,
  );
});

test('who may come over gRPC counts for whether callers are one user', (t) => {
  const kindOf = (...argv: string[]) => {
    const { config } = parse(argv);
    return describeCallers(config.listener, config.servers[0]).kind;
  };
  t.is(kindOf('--grpc', '127.0.0.1:1'), 'user');
  t.is(kindOf('--grpc', '0.0.0.0:1', '--allow-anonymous', '--port', '1'), 'unidentified');
  t.is(kindOf('--grpc', '0.0.0.0:1', '--auth-token', 'env:TOKEN'), 'named');
});

test('a server is reached by its host and port, with headers and certificates, and nothing else', async (t) => {
  const { config } = parse(['--header', 'x-tenant: blue', '--ca', 'ca.pem'], undefined, ['grpcs://[::1]:443']);
  t.deepEqual(config.servers[0].target, { kind: 'grpc', host: '::1', port: 443, tls: 'on' });
  t.deepEqual([...config.servers[0].remote.headers], [['x-tenant', 'blue']]);
  t.is(config.servers[0].remote.tls.caFile, '/ca.pem');
  for (const url of ['grpc://a', 'grpc://a:0', 'grpc://a:1/mcp', 'grpc://user@a:1', 'grpc://a:1?x', 'grpc://a:1#x']) {
    t.regex(refusal([], undefined, [url]), /expected an address like grpc:\/\/127\.0\.0\.1:50051/, url);
  }
  t.regex(
    refusal(['--login', 'on-demand'], undefined, ['grpc://a:1']),
    /--login is for a server that is reached by its URL/,
  );
  t.regex(
    parse(['--header', 'authorization: Bearer x'], undefined, ['grpc://a.example:1']).warnings.join(),
    /goes over grpc without TLS/,
  );
  const { servers } = parse(['--config', 'x'], await TWO).config;
  t.deepEqual(servers[1]?.target, { kind: 'grpc', host: 'example.com', port: 443, tls: 'on' });
  t.deepEqual([...(servers[1]?.remote.headers ?? [])], [['a', 'b']]);
});
