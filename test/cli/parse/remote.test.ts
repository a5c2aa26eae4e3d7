import test from 'ava';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { parseConfig, type Surroundings } from '../../../src/cli/parse/config.ts';
import { BridgeError } from '../../../src/errors.ts';

interface World {
  readonly env?: Surroundings['env'];
  /** The text of the file of headers. */
  readonly file?: string;
  readonly isOpenToAll?: boolean;
  readonly url?: string;
}

function parse(argv: readonly string[], { env = {}, file, isOpenToAll = false, url }: World = {}) {
  const commandLine = parseCommandLine(['serve', url ?? 'https://example.com/mcp', ...argv]);
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  const { config, warnings } = parseConfig(commandLine, {
    env,
    cwd: '/work-dir',
    platform: 'linux',
    stderrIsTerminal: false,
    readFile: () => {
      if (file === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
      return { text: file, isOpenToAll };
    },
  });
  const [{ remote }] = config.servers;
  return { ...remote, headers: Object.fromEntries(remote.headers), warnings };
}

function refusal(argv: readonly string[], world: World = {}): string {
  try {
    parse(argv, world);
    return 'accepted';
  } catch (error) {
    return error instanceof BridgeError ? `${error.code}: ${error.message}` : String(error);
  }
}

test('headers of the command line win over those of the file', (t) => {
  const file = '# who we are\r\nX-Team: tools\r\n\r\n  X-Key: of-the-file\n#X-Off: 1\n';
  t.deepEqual(parse(['--header-file', 'h', '--header', 'x-key: of-the-line'], { file }).headers, {
    'x-team': 'tools',
    'x-key': 'of-the-line',
  });
});

test('headers from the environment stand on lines of their own, since values have commas', (t) => {
  t.deepEqual(parse([], { env: { MCP_PORTAGE_HEADER: 'A: 1, 2\nB: 3\n' } }).headers, { a: '1, 2', b: '3' });
});

test('a fault in a header tells where it stands and never shows the value', (t) => {
  t.is(
    refusal(['--header', `Authorization: Bearer \${NONE} hunter2`]),
    'ERR_CONFIG_OPTION: --header: the value of Authorization names the variable NONE, which is not set here; set it, or correct its name.',
  );
  t.is(
    refusal([], { env: { MCP_PORTAGE_HEADER: 'hunter2' } }),
    "ERR_CONFIG_OPTION: MCP_PORTAGE_HEADER: expected 'Name: value'; got something else.",
  );
  t.is(
    refusal(['--header-file', 'h'], { file: '# one\nA: 1\nhunter2\n' }),
    "ERR_CONFIG_OPTION: --header-file /work-dir/h, line 3: expected 'Name: value'; got something else.",
  );
});

test('a header given twice in one place is a mistake', (t) => {
  const expected = /^ERR_CONFIG_OPTION: --header: the header x-a is given twice/;
  t.regex(refusal(['--header', 'X-A: 1', '--header', 'x-a: 2']), expected);
  t.regex(refusal(['--header-file', 'h'], { file: 'A: 1\nA: 2' }), /line 2: the header a is given twice/);
});

test('a file of headers that cannot be read is told by its path', (t) => {
  t.is(refusal(['--header-file', 'h']), 'ERR_CONFIG_OPTION: --header-file /work-dir/h: this file does not exist.');
});

test('warns of a file of headers that everybody can read', (t) => {
  t.deepEqual(parse(['--header-file', 'h'], { file: 'A: 1' }).warnings, []);
  t.deepEqual(parse(['--header-file', 'h'], { file: 'A: 1', isOpenToAll: true }).warnings, [
    '--header-file /work-dir/h: every user of this machine can read this file; chmod 600 keeps the credentials in it private.',
  ]);
});

test('a token from the environment becomes a header, and its variable is known', (t) => {
  const { headers, warnings } = parse([], { env: { MCP_PORTAGE_BEARER_TOKEN: ' abc.def~123==\n' } });
  t.deepEqual(headers, { authorization: 'Bearer abc.def~123==' });
  t.deepEqual(warnings, []);
});

test('a token that is none is refused without being shown', (t) => {
  for (const token of ['Bearer hunter2', 'hunter2\nX: y']) {
    const message = refusal([], { env: { MCP_PORTAGE_BEARER_TOKEN: token } });
    t.regex(message, /^ERR_CONFIG_OPTION: MCP_PORTAGE_BEARER_TOKEN: expected the token alone, without "Bearer"/);
    t.notRegex(message, /hunter2/);
  }
});

test('two credentials for one server are refused, from wherever they come', (t) => {
  const env = { MCP_PORTAGE_BEARER_TOKEN: 'hunter2' };
  t.is(
    refusal(['--bearer-token-file', 't'], { env }),
    'ERR_CONFIG_COMBINATION: MCP_PORTAGE_BEARER_TOKEN and --bearer-token-file are set, but the server can be shown one credential only; leave one of them.',
  );
  t.regex(refusal(['--header', 'Authorization: Basic x'], { env }), /^ERR_CONFIG_COMBINATION: .* and a header Auth/);
  t.regex(
    refusal(['--bearer-token-file', 't', '--header-file', 'h'], { file: 'authorization: Basic x' }),
    /^ERR_CONFIG_COMBINATION: --bearer-token-file and a header Authorization/,
  );
});

test('a certificate of the client needs its key, and the other way round', (t) => {
  t.regex(refusal(['--client-cert', 'c']), /^ERR_CONFIG_COMBINATION: --client-cert needs --client-key/);
  t.regex(refusal(['--client-key', 'k']), /^ERR_CONFIG_COMBINATION: --client-key needs --client-cert/);
});

test('a header of clients may pass once it is named, unless it is a credential', (t) => {
  const { forwardHeaders, warnings } = parse(['--forward-header', 'X-Request-Id', '--forward-header', 'x-request-id']);
  t.deepEqual(forwardHeaders, [{ name: 'x-request-id', sentAs: 'x-request-id' }]);
  t.deepEqual(warnings, []);
  for (const name of ['Authorization', 'cookie']) {
    t.regex(
      refusal(['--forward-header', name]),
      /^ERR_CONFIG_OPTION: --forward-header: expected a header that is no credential/,
    );
  }
  t.regex(refusal(['--forward-header', 'Mcp-Session-Id']), /^ERR_CONFIG_OPTION: --forward-header: expected the name/);
});

test('a header of clients may become another one, with a warning where it is a credential', (t) => {
  const args = ['--forward-header', 'X-User:X-Caller', '--forward-header', 'x-api-key: Authorization'];
  const { forwardHeaders, warnings } = parse([...args, '--forward-header', 'X-Api-Key:authorization']);
  t.deepEqual(forwardHeaders, [
    { name: 'x-user', sentAs: 'x-caller' },
    { name: 'x-api-key', sentAs: 'authorization' },
  ]);
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /^--forward-header x-api-key: authorization shows example\.com what callers send/);

  const own = parse(['--forward-header', 'Authorization: X-Upstream-Auth']);
  t.deepEqual(own.forwardHeaders, [{ name: 'authorization', sentAs: 'x-upstream-auth' }]);
  t.regex(own.warnings.join(), /hands example\.com the tokens that callers show to mcp-portage.*--exchange-token/);

  const plain = parse(args, { url: 'http://far.example/mcp' });
  t.regex(plain.warnings.join(), /The credential for far\.example goes over http/);
});

test('a header of clients becomes none that belongs to HTTP or MCP, and none that two would become', (t) => {
  const wrong = [
    'X-A: Host',
    'X-A: Cookie',
    'Cookie: X-A',
    'X-A: Mcp-Session-Id',
    'Mcp-Method: X-A',
    'X-A: Connection',
  ];
  const others = ['X-A: Content-Type', 'X-A:', ': X-A', 'X-A: X-B: X-C', 'X-A: X B', 'Authorization: Authorization'];
  for (const header of [...wrong, ...others]) {
    t.regex(refusal(['--forward-header', header]), /^ERR_CONFIG_OPTION: --forward-header: expected /, header);
  }
  t.is(
    refusal(['--forward-header', 'X-A: X-C', '--forward-header', 'X-B: x-c']),
    'ERR_CONFIG_COMBINATION: --forward-header: x-a and x-b would both become the header x-c, which can have one value only; leave one of them out.',
  );
  t.regex(refusal(['--forward-header', 'X-A: X-B', '--forward-header', 'X-B']), /x-a and x-b would both become/);
});

test('what callers send becomes the Authorization of their requests only where nothing else does', (t) => {
  const args = ['--forward-header', 'X-Api-Key: Authorization'];
  const expected =
    /^ERR_CONFIG_COMBINATION: --forward-header makes a header .* the server can be shown one credential only/;
  t.regex(refusal(args, { env: { MCP_PORTAGE_BEARER_TOKEN: 'hunter2' } }), expected);
  t.regex(refusal([...args, '--bearer-token-file', 't']), expected);
  t.regex(refusal([...args, '--header', 'Authorization: Basic x']), expected);
  t.regex(refusal([...args, '--login', 'on-demand']), expected);
  t.is(refusal([...args, '--login', 'never']), 'accepted');
});

test('the proxy of the environment is taken along in both spellings', (t) => {
  const env = {
    HTTPS_PROXY: 'http://proxy:1',
    https_proxy: 'http://other:2',
    NO_PROXY: 'a',
    no_proxy: 'b',
    PATH: '/bin',
  };
  t.deepEqual(parse([], { env }).proxyEnv, {
    HTTPS_PROXY: 'http://proxy:1',
    https_proxy: 'http://other:2',
    NO_PROXY: 'a',
    no_proxy: 'b',
  });
});

test('a proxy that cannot be used is told at the start, without its password', (t) => {
  const message = refusal([], { env: { HTTPS_PROXY: 'socks5://me:hunter2@proxy:1' } });
  t.regex(message, /^ERR_CONFIG_OPTION: The environment names a proxy for https that cannot be used/);
  t.notRegex(message, /hunter2/);
});

test('warns of a credential that goes over plain http to another machine', (t) => {
  const env = { CREDENTIAL: 'Basic hunter2' };
  const warningsOf = (url: string, ...argv: string[]) => parse(argv, { url, env }).warnings;
  const header = ['--header', 'Authorization: $' + '{CREDENTIAL}'];
  t.deepEqual(warningsOf('http://example.com/mcp?key=hunter2', ...header), [
    'The credential for example.com goes over http, where anybody on the network path can read it; use https if the server has it.',
  ]);
  t.is(warningsOf('http://example.com/mcp', '--bearer-token-file', 't').length, 1);
  for (const url of [
    'http://127.0.0.1:8000/mcp',
    'http://[::1]:8000/mcp',
    'http://localhost/mcp',
    'https://a.example',
  ]) {
    t.deepEqual(warningsOf(url, ...header), [], url);
  }
  t.deepEqual(warningsOf('http://example.com/mcp', '--header', 'X-Team: tools'), []);
});

test('warns of a credential in a header on the command line, which the list of processes shows', (t) => {
  const warningsOf = (...argv: string[]) => parse(argv, { env: { KEY: 'hunter2' } }).warnings;
  t.deepEqual(warningsOf('--header', 'X-Api-Key: hunter2', '--header', 'X-Team: tools'), [
    "--header: other users of this machine can read the value of X-Api-Key in the list of processes; put it into a variable, and write --header 'X-Api-Key: $" +
      "{NAME}' in single quotes.",
  ]);
  t.is(warningsOf('--header', 'Authorization: Bearer hunter2').length, 1);
  t.deepEqual(warningsOf('--header', 'X-Api-Key: $' + '{KEY}', '--header', 'X-Team: tools'), []);
  t.deepEqual(parse([], { env: { MCP_PORTAGE_HEADER: 'X-Api-Key: hunter2' } }).warnings, []);
});

/** A server that tokens of callers are exchanged for, as far as that is given. */
const EXCHANGED = ['--exchange-token', '--oauth-client-id', 'bridge'];
const ISSUER = ['--auth-issuer', 'https://auth.example', '--auth-audience', 'tools'];
const SECRET = { env: { MCP_PORTAGE_OAUTH_CLIENT_SECRET: 'hunter2' } };

test('tokens of callers are exchanged at their issuer, in the name of a client with a secret or a key', (t) => {
  const more = ['--oauth-scope', 'a b', '--oauth-resource', 'none', '--oauth-param', 'audience=api'];
  const { exchange, login } = parse([...EXCHANGED, ...ISSUER, ...more], SECRET);
  t.is(login, undefined);
  t.deepEqual(exchange, {
    issuer: 'https://auth.example',
    client: { id: 'bridge', proof: { kind: 'secret', secret: 'hunter2' } },
    tokenEndpoint: undefined,
    authMethod: undefined,
    scopes: ['a', 'b'],
    resource: { kind: 'left-out' },
    extraParameters: new Map([['audience', 'api']]),
  });
  const withKey = parse([...EXCHANGED, ...ISSUER, '--oauth-client-key', 'key.pem']);
  t.deepEqual(withKey.exchange?.client.proof, { kind: 'key', file: '/work-dir/key.pem' });
  t.is(parse([]).exchange, undefined);
  t.regex(
    parse([...EXCHANGED, ...ISSUER], { ...SECRET, url: 'http://far.example/mcp' }).warnings.join(),
    /The credential for far\.example goes over http/,
  );
});

test('an exchange is refused where callers have no token, or the server is shown another one', (t) => {
  const wrong: readonly (readonly [args: readonly string[], told: RegExp, world?: World])[] = [
    [EXCHANGED, /needs --auth-issuer/],
    [[...EXCHANGED, '--allow-anonymous'], /--allow-anonymous lets callers in that have none/],
    [[...EXCHANGED, ...ISSUER], /needs --oauth-client-id, .* and its secret/, {}],
    [['--exchange-token', ...ISSUER], /needs --oauth-client-id/, {}],
    [[...EXCHANGED, ...ISSUER, '--dial', 'wss://hub.example/'], /through a hub \(--dial\) have none/],
    [[...EXCHANGED, ...ISSUER, '--header', 'Authorization: Basic x'], /a token of yours exclude each other/],
    [[...EXCHANGED, ...ISSUER, '--bearer-token-file', 't'], /a token of yours exclude each other/],
    [[...EXCHANGED, ...ISSUER, '--login', 'on-demand'], /--login on-demand exclude each other/],
    [
      [...EXCHANGED, ...ISSUER, '--forward-header', 'X-Key: Authorization'],
      /becomes Authorization \(--forward-header\)/,
    ],
    [
      [...EXCHANGED, ...ISSUER, '--oauth-callback', 'http://127.0.0.1:1/'],
      /--oauth-callback is about the login of a user/,
    ],
  ];
  for (const [args, told, world = SECRET] of wrong) {
    const message = refusal(args, world);
    t.regex(message, /^ERR_CONFIG_COMBINATION: /);
    t.regex(message, told);
    t.notRegex(message, /hunter2/);
  }
  t.regex(
    refusal([...EXCHANGED, ...ISSUER, '--oauth-param', 'Subject_Token=x'], SECRET),
    /^ERR_CONFIG_OPTION: --oauth-param: Subject_Token is set by the login itself/,
  );
});
