import test from 'ava';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { parseConfig } from '../../../src/cli/parse/config.ts';
import type { AccessConfig } from '../../../src/config/access.ts';
import { BridgeError } from '../../../src/errors.ts';

const TOKEN = 'a-long-token-of-alice';
const ENV = { ALICE: TOKEN, BOB: 'a-long-token-of-bob' };

function parse(argv: readonly string[], env: Readonly<Record<string, string>> = ENV) {
  const commandLine = parseCommandLine([...argv, ...(argv.includes('connect') ? [] : ['--', 'server'])]);
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  return parseConfig(commandLine, {
    env,
    cwd: '/work-dir',
    platform: 'linux',
    stderrIsTerminal: false,
    readFile: () => ({ text: '', isOpenToAll: false }),
  });
}

function accessOf(...argv: string[]): AccessConfig {
  const { listener } = parse(argv).config;
  if (listener.kind !== 'http') throw new Error('it listens nowhere');
  return listener.access;
}

const oauthOf = (...argv: string[]) => accessOf('--auth-issuer=https://auth.example', ...argv).auth?.oauth;

function refusal(argv: readonly string[], env = ENV): string {
  try {
    parse(argv, env);
  } catch (error) {
    if (error instanceof BridgeError) return `${error.code} ${error.audiences.exit} ${error.message}`;
    throw error;
  }
  return 'accepted';
}

for (const host of ['0.0.0.0', '::', '192.168.1.5', 'my-host']) {
  test(`listening on ${host} without asking who calls is refused, and the ways out are named`, (t) => {
    const message = refusal(['--host', host]);
    t.regex(message, /^ERR_CONFIG_COMBINATION 2 --host /);
    for (const wayOut of ['--auth-token', '--auth-issuer', '127.0.0.1', '--allow-anonymous']) {
      t.true(message.includes(wayOut), wayOut);
    }
  });

  test(`listening on ${host} is possible with authentication, or for everybody when that is said`, (t) => {
    t.deepEqual(parse(['--host', host, '--auth-token', 'env:ALICE', '--tls-cert', 'c', '--tls-key', 'k']).warnings, []);
    t.notThrows(() => parse(['--host', host, '--auth-issuer', 'https://auth.example', '--auth-audience', 'x']));
    const { warnings } = parse(['--host', host, '--allow-anonymous']);
    t.is(accessOf('--host', host, '--allow-anonymous').auth, undefined);
    t.is(warnings.length, 1);
    t.regex(warnings[0] ?? '', /for everybody \(--allow-anonymous\).*firewall/);
  });
}

test('where only this machine can call, nobody has to say who they are', (t) => {
  for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) t.deepEqual(parse(['--host', host]).warnings, []);
});

test('a name that other machines know is warned of where nothing authenticates them', (t) => {
  for (const [option, value] of [
    ['--base-url', 'https://tools.example/mcp'],
    ['--allow-host', 'tools.example'],
  ] as const) {
    const { warnings } = parse([option, value]);
    t.is(warnings.length, 1);
    t.regex(warnings[0] ?? '', new RegExp(`^${option} tools\\.example lets calls of other machines in.*--auth-token`));
    t.deepEqual(parse([option, value, '--allow-anonymous']).warnings, []);
    t.deepEqual(parse([option, value, '--auth-token', 'env:ALICE'], { ALICE: 'x'.repeat(40) }).warnings, []);
  }
  for (const local of ['http://localhost:8000', 'http://127.0.0.1:8000', 'http://[::1]:8000']) {
    t.deepEqual(parse(['--base-url', local]).warnings, []);
  }
});

test('the environment of a container admits nobody', (t) => {
  t.regex(refusal([], { ...ENV, MCP_PORTAGE_HOST: '0.0.0.0' } as typeof ENV), /MCP_PORTAGE_HOST 0\.0\.0\.0/);
  t.notThrows(() => parse([], { MCP_PORTAGE_HOST: '0.0.0.0', MCP_PORTAGE_ALLOW_ANONYMOUS: 'true' }));
});

test('who only connects listens nowhere and lets nobody in', (t) => {
  t.notThrows(() => parse(['connect', 'https://example.com/mcp'], { MCP_PORTAGE_HOST: '0.0.0.0' }));
});

test('everybody and only some cannot both be let in', (t) => {
  const message = refusal(['--allow-anonymous', '--auth-token', 'env:ALICE']);
  t.regex(message, /^ERR_CONFIG_COMBINATION 2 --allow-anonymous lets everybody in, --auth-token only some/);
});

test('tokens that go over the network in the clear are worth a warning', (t) => {
  const open = ['--host', '0.0.0.0', '--auth-token', 'env:ALICE'];
  t.regex(parse(open).warnings[0] ?? '', /without TLS.*--tls-cert/);
  t.deepEqual(parse([...open, '--base-url', 'https://tools.example']).warnings, []);
  t.is(parse([...open, '--base-url', 'http://tools.example']).warnings.length, 1);
});

test('a token has an owner and comes from a variable or a file', (t) => {
  const argv = ['alice=env:ALICE', 'bob=file:secrets/bob', 'env:BOB', 'file:/run/secrets/x'];
  t.deepEqual(accessOf(...argv.map((source) => `--auth-token=${source}`)).auth?.tokens, [
    { kind: 'value', principal: 'token:alice', token: TOKEN },
    { kind: 'file', principal: 'token:bob', file: '/work-dir/secrets/bob' },
    { kind: 'value', principal: 'token:client', token: 'a-long-token-of-bob' },
    { kind: 'file', principal: 'token:client', file: '/run/secrets/x' },
  ]);
});

test('a token on the command line is refused and not repeated', (t) => {
  for (const source of [
    'hunter2hunter2',
    'alice=hunter2hunter2',
    'alice:hunter2hunter2',
    '=env:ALICE',
    'env:',
    'a b=env:A',
  ]) {
    const message = refusal(['--auth-token', source]);
    t.regex(
      message,
      /^ERR_CONFIG_OPTION 2 --auth-token: write where the token is, env:NAME .*and write --auth-token env:MCP_TOKEN\.$/,
      source,
    );
    t.false(message.includes('hunter2'));
  }
  t.false(refusal([], { ...ENV, MCP_PORTAGE_AUTH_TOKEN: 'hunter2hunter2' } as typeof ENV).includes('hunter2'));
});

test('a variable without a usable token is refused, and what is in it not shown', (t) => {
  for (const ALICE of ['two words', 'Bearer hunter2', 'line\nbreak']) {
    const message = refusal(['--auth-token', 'env:ALICE'], { ...ENV, ALICE });
    t.regex(message, /^ERR_CONFIG_OPTION 2 --auth-token: expected a token in the variable ALICE/);
    t.false(/hunter2|words|break/.test(message));
  }
});

test('a variable that is not set is named, with what sets it', (t) => {
  const expected =
    'ERR_CONFIG_OPTION 2 --auth-token: the variable NOT_SET is not set; set it to the token first, as by export NOT_SET=….';
  t.is(refusal(['--auth-token', 'env:NOT_SET']), expected);
  for (const NOT_SET of ['', '  '])
    t.is(refusal(['--auth-token', 'env:NOT_SET'], { ...ENV, NOT_SET } as typeof ENV), expected);
  t.regex(refusal(['--status-token', 'env:NOT_SET']), /--status-token: the variable NOT_SET is not set/);
});

test('a list of tokens with nothing in it admits nobody', (t) => {
  t.regex(refusal([], { ...ENV, MCP_PORTAGE_AUTH_TOKEN: ' , ' } as typeof ENV), /expected at least one; got none/);
});

test('a token that can be guessed is worth a warning', (t) => {
  const { warnings } = parse(['--auth-token', 'alice=env:ALICE'], { ALICE: 'secret' });
  t.regex(warnings[0] ?? '', /token:alice is short/);
  t.false(warnings.join('').includes('secret'));
});

test('an issuer is kept as it is written: it is compared as text', (t) => {
  for (const issuer of [
    'https://auth.example',
    'https://auth.example/',
    'https://auth.example/t1',
    'http://localhost:9000',
  ]) {
    t.is(oauthOf(`--auth-issuer=${issuer}`, '--auth-audience=x')?.issuer, issuer);
  }
  for (const issuer of [
    'auth.example',
    'http://auth.example',
    'https://a.example/?x=1',
    'https://a.example/#x',
    'ftp://a.example',
  ]) {
    t.regex(
      refusal(['--auth-issuer', issuer, '--auth-audience', 'x']),
      /^ERR_CONFIG_OPTION 2 --auth-issuer: expected/,
      issuer,
    );
  }
});

test('tokens of an issuer must be made for this server: its URLs, unless another name is given', (t) => {
  t.regex(
    refusal(['--auth-issuer', 'https://auth.example']),
    /^ERR_CONFIG_COMBINATION 2 .*--auth-audience or --base-url/,
  );
  t.is(oauthOf('--base-url=https://tools.example/x')?.audiences, 'own-urls');
  t.deepEqual(oauthOf('--base-url=https://tools.example', '--auth-audience=tools')?.audiences, ['tools']);
});

test('the keys are discovered, behind a URL or in a file', (t) => {
  // As JSON: AVA takes any two URLs for equal.
  const keysOf = (...argv: string[]) => JSON.parse(JSON.stringify(oauthOf('--auth-audience=x', ...argv)?.keys));
  t.deepEqual(keysOf(), { kind: 'discovered' });
  t.deepEqual(keysOf('--auth-jwks=https://auth.example/k'), { kind: 'url', url: 'https://auth.example/k' });
  t.deepEqual(keysOf('--auth-jwks=http://[::1]:90/k'), { kind: 'url', url: 'http://[::1]:90/k' });
  t.deepEqual(keysOf('--auth-jwks=keys.json'), { kind: 'file', file: '/work-dir/keys.json' });
  const message = refusal([
    '--auth-issuer=https://auth.example',
    '--auth-audience=x',
    '--auth-jwks=http://auth.example/k',
  ]);
  t.regex(message, /^ERR_CONFIG_OPTION 2 --auth-jwks: expected a file, or an https URL/);
});

test('scopes are given one by one or as one text', (t) => {
  const scopes = oauthOf(
    '--auth-audience=x',
    '--auth-scope=read call',
    '--auth-scope=read',
    '--auth-scope=list',
  )?.scopes;
  t.deepEqual(scopes, ['read', 'call', 'list']);
  t.regex(
    refusal(['--auth-scope', 'a"b', '--auth-issuer=https://a.example', '--auth-audience=x']),
    /--auth-scope: expected/,
  );
});

test('what says more about an issuer needs one', (t) => {
  for (const option of ['--auth-audience=x', '--auth-jwks=x', '--auth-scope=x']) {
    t.regex(refusal([option]), /^ERR_CONFIG_COMBINATION 2 --auth-\w+ needs --auth-issuer/);
  }
});

test('the server does not get the tokens of callers, whatever else it gets', (t) => {
  const [server] = parse(['--inherit-env', '--auth-token=env:ALICE', '--auth-token=bob=file:x']).config.servers;
  t.deepEqual(server.child.env, { BOB: 'a-long-token-of-bob' });
});

test('the host of the base URL may be used by clients, where hosts are checked at all', (t) => {
  const hostsOf = (...argv: string[]) =>
    accessOf('--base-url=https://example.com', '--allow-anonymous', ...argv).allowHosts;
  t.deepEqual(hostsOf(), ['example.com']);
  t.deepEqual(hostsOf('--host=0.0.0.0'), []);
  t.deepEqual(hostsOf('--host=0.0.0.0', '--allow-host=bridge'), ['bridge', 'example.com']);
});

test('headers become variables of the processes of callers, and those variables come from nowhere else', (t) => {
  const { config } = parse(['--map-header', 'X-User=USER_ENV', '--map-header=X-Team=BOB', '--inherit-env']);
  const [server] = config.servers;
  t.deepEqual(server.mapHeaders, [
    { header: 'x-user', variable: 'USER_ENV' },
    { header: 'x-team', variable: 'BOB' },
  ]);
  t.deepEqual(server.child.env, { ALICE: TOKEN });
});

test('a header that is a credential, or a variable that decides which code runs, is not mapped', (t) => {
  for (const text of [
    'Authorization=A',
    'cookie=A',
    'Mcp-Session-Id=A',
    'Content-Type=A',
    'X User=A',
    'X-User',
    '=A',
    'X-User=1A',
  ]) {
    t.regex(refusal(['--map-header', text]), /^ERR_CONFIG_OPTION 2 --map-header: expected Name=VARIABLE|one of/, text);
  }
  for (const variable of [
    'PATH',
    'Path',
    'LD_PRELOAD',
    'DYLD_INSERT_LIBRARIES',
    'NODE_OPTIONS',
    'PYTHONPATH',
    'BASH_ENV',
    'npm_config_registry',
    'MCP_PORTAGE_HOST',
  ]) {
    t.regex(refusal(['--map-header', `X-User=${variable}`]), /which code runs/, variable);
  }
});

test("a process that is not one caller's own cannot be told about one", (t) => {
  const mapped = ['--map-header', 'X-User=USER_ENV'];
  t.regex(refusal([...mapped, '--isolation', 'shared']), /^ERR_CONFIG_COMBINATION 2 --map-header .*--isolation shared/);
  t.regex(refusal([...mapped, '--prewarm', '1']), /^ERR_CONFIG_COMBINATION 2 --map-header .*--prewarm starts/);
  t.regex(
    refusal([...mapped, '--env', 'USER_ENV=x']),
    /^ERR_CONFIG_COMBINATION 2 --env and --map-header both set USER_ENV/,
  );
  t.regex(refusal([...mapped, '--map-header', 'X-Other=USER_ENV']), /^ERR_CONFIG_COMBINATION 2 .* one header only/);
  const url = parseCommandLine(['serve', ...mapped, 'https://example.com/mcp']);
  if (url.kind !== 'bridge') return t.fail();
  const around = {
    env: {},
    cwd: '/',
    platform: 'linux',
    stderrIsTerminal: false,
    readFile: () => ({ text: '', isOpenToAll: false }),
  } as const;
  t.throws(() => parseConfig(url, around), {
    code: 'ERR_CONFIG_COMBINATION',
    message: /^--map-header is for a server that is started/,
  });
});
