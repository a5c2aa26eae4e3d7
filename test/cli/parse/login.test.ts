import test from 'ava';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { parseConfig, type Surroundings } from '../../../src/cli/parse/config.ts';
import { BridgeError } from '../../../src/errors.ts';

interface World {
  readonly verb?: string;
  readonly env?: Surroundings['env'];
  readonly platform?: NodeJS.Platform;
  /** The text of every file. */
  readonly file?: string;
  readonly isOpenToAll?: boolean;
  readonly homeFolder?: () => string;
}

function parse(argv: readonly string[], world: World = {}) {
  const {
    verb = 'connect',
    env = { HOME: '/home/me' },
    platform = 'linux',
    file,
    isOpenToAll = false,
    homeFolder,
  } = world;
  const commandLine = parseCommandLine([verb, ...argv, 'https://example.com/mcp']);
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  const { config, warnings } = parseConfig(commandLine, {
    env,
    cwd: '/work-dir',
    platform,
    stderrIsTerminal: false,
    homeFolder,
    readFile: () => {
      if (file === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
      return { text: file, isOpenToAll };
    },
  });
  return { login: config.servers[0].remote.login, warnings };
}

function refusal(argv: readonly string[], world: World = {}): string {
  try {
    parse(argv, world);
    return 'accepted';
  } catch (error) {
    return error instanceof BridgeError ? `${error.code}: ${error.message}` : String(error);
  }
}

test('connect logs in unless it is told not to, or has a token; serve and probe only when they are told to', (t) => {
  const logsIn = (argv: readonly string[], world?: World) => parse(argv, world).login !== undefined;
  t.true(logsIn([]));
  t.false(logsIn(['--login', 'never']));
  t.false(logsIn(['--header', 'Authorization: Bearer x']));
  t.false(logsIn(['--bearer-token-file', 'token']));
  t.false(logsIn([], { env: { MCP_PORTAGE_BEARER_TOKEN: 'x' } }));
  t.false(logsIn([], { verb: 'serve' }));
  t.true(logsIn(['--login', 'on-demand'], { verb: 'serve' }));
  t.false(logsIn([], { verb: 'probe' }));
  t.true(logsIn(['--login', 'on-demand'], { verb: 'probe' }));
});

test('a token and a login exclude each other', (t) => {
  t.regex(
    refusal(['--login', 'on-demand', '--bearer-token-file', 'x']),
    /^ERR_CONFIG_COMBINATION: --login on-demand and/,
  );
  t.regex(
    refusal(['--oauth-scope', 'a', '--bearer-token-file', 'x']),
    /^ERR_CONFIG_COMBINATION: --oauth-scope is about a login/,
  );
});

test('options of a login that serve was not told to make are refused', (t) => {
  t.regex(
    refusal(['--oauth-client-id', 'me'], { verb: 'serve' }),
    /--oauth-client-id is about a login, but there is none here; serve logs in with --login on-demand only/,
  );
});

test('nobody acts in the name of a user for everybody: a login of a user excludes --allow-anonymous', (t) => {
  const open = ['--login', 'on-demand', '--host', '0.0.0.0', '--allow-anonymous'];
  t.regex(refusal(open, { verb: 'serve' }), /^ERR_CONFIG_COMBINATION: --login would let everybody act in the name/);
  t.regex(
    refusal([...open, '--oauth-grant', 'device-code'], { verb: 'serve' }),
    /^ERR_CONFIG_COMBINATION: --login would let everybody act in the name/,
  );
  const machine = [...open, '--oauth-grant', 'client-credentials', '--oauth-client-id', 'machine'];
  t.is(refusal(machine, { verb: 'serve', env: { MCP_PORTAGE_OAUTH_CLIENT_SECRET: 's' } }), 'accepted');
});

test('the secret of a client comes from the environment or from a file, never from both', (t) => {
  const env = { MCP_PORTAGE_OAUTH_CLIENT_SECRET: ' secret\n' };
  const client = { id: 'me', proof: { kind: 'secret', secret: 'secret' } };
  t.like(parse(['--oauth-client-id', 'me'], { env }).login, { client });
  const inFile = ['--oauth-client-id', 'me', '--oauth-secret-file', 's'];
  t.like(parse(inFile, { file: 'secret\n' }).login, { client });
  t.regex(parse(inFile, { file: 'secret', isOpenToAll: true }).warnings.join(), /every user of this machine can read/);
  t.regex(refusal(inFile, { file: 'secret', env }), /are both set; leave one of them out/);
  t.regex(refusal(inFile, { file: ' \n' }), /expected a secret; the file is empty/);
  t.regex(refusal(inFile), /this file does not exist/);
  t.false(refusal(inFile, { file: 'hunter2', env }).includes('hunter2'));
});

test('what proves who a client is needs the client, and a client that is its own user needs a proof', (t) => {
  const env = { MCP_PORTAGE_OAUTH_CLIENT_SECRET: 'secret' };
  t.regex(refusal([], { env }), /MCP_PORTAGE_OAUTH_CLIENT_SECRET needs --oauth-client-id/);
  t.regex(refusal(['--oauth-client-key', 'k']), /--oauth-client-key needs --oauth-client-id/);
  t.regex(refusal(['--oauth-client-id', 'me', '--oauth-client-key', 'k'], { env }), /prove the same; leave one/);
  const machine = ['--oauth-grant', 'client-credentials'];
  t.regex(refusal(machine), /--oauth-grant client-credentials needs --oauth-client-id/);
  t.regex(refusal([...machine, '--oauth-client-id', 'me']), /client-credentials needs --oauth-client-id, and a secret/);
});

const COMPANY = ['--oauth-idp-issuer', 'https://idp.example/tenant', '--oauth-idp-client-id', 'at-company'];

test('a workload has its assertion in a file, is its own user, and may serve callers who do not say who they are', (t) => {
  const workload = ['--oauth-grant', 'jwt-bearer', '--oauth-assertion-file', 'token'];
  t.like(parse(workload).login, {
    ...{ grant: 'jwt-bearer', client: undefined },
    assertion: { kind: 'file', file: '/work-dir/token' },
  });
  const open = ['--login', 'on-demand', '--host', '0.0.0.0', '--allow-anonymous'];
  t.is(refusal([...open, ...workload], { verb: 'serve' }), 'accepted');
  t.is(
    refusal(['--oauth-grant', 'jwt-bearer']),
    'ERR_CONFIG_COMBINATION: --oauth-grant jwt-bearer needs --oauth-assertion-file, the file with the JWT of this workload.',
  );
  for (const grant of [[], ['--oauth-grant', 'device-code']]) {
    t.is(
      refusal([...grant, '--oauth-assertion-file', 'token']),
      'ERR_CONFIG_COMBINATION: --oauth-assertion-file needs --oauth-grant jwt-bearer (a workload), or --oauth-idp-issuer (a user).',
    );
  }
  t.regex(
    refusal([...workload, '--oauth-token', 'id']),
    /--oauth-token id .* with --oauth-grant jwt-bearer there is none/,
  );
  t.regex(refusal([...workload, '--oauth-auth-method', 'client_secret_basic']), /needs a secret/);
  t.is(refusal([...workload, '--oauth-auth-method', 'none']), 'accepted');
  t.regex(
    refusal([...workload, '--oauth-param', 'assertion=x']),
    /set by the login itself; use --oauth-assertion-file/,
  );
});

test('a user of a company logs in at its identity provider, in the way that users log in, or has an ID token in a file', (t) => {
  const company = [...COMPANY, '--oauth-client-id', 'at-server'];
  const expected = {
    ...{ kind: 'identity-provider', issuer: 'https://idp.example/tenant' },
    client: { id: 'at-company', proof: { kind: 'none' } },
  };
  t.deepEqual(parse(company, { platform: 'darwin' }).login?.assertion as unknown, {
    ...expected,
    idToken: { kind: 'login', grant: 'authorization-code' },
  });
  t.like(parse([...company, '--oauth-grant', 'device-code']).login, {
    ...{ grant: 'jwt-bearer', assertion: { idToken: { kind: 'login', grant: 'device-code' } } },
    client: { id: 'at-server' },
  });
  t.like(parse([...company, '--oauth-assertion-file', '/run/id-token']).login, {
    assertion: { idToken: { kind: 'file', file: '/run/id-token' } },
  });
  const secret = parse([...company, '--oauth-idp-secret-file', 's'], { file: 'hunter2\n', isOpenToAll: true });
  t.like(secret.login, { assertion: { client: { proof: { kind: 'secret', secret: 'hunter2' } } } });
  t.regex(secret.warnings.join(), /--oauth-idp-secret-file .*every user of this machine can read/);
  t.like(parse([...COMPANY, '--oauth-client-document', 'https://me.example/client']).login, { client: undefined });
});

test('options about an identity provider that do not go together are named', (t) => {
  const company = [...COMPANY, '--oauth-client-id', 'at-server'];
  for (const [argv, problem] of [
    [COMPANY, /--oauth-idp-issuer needs --oauth-client-id, the client that the authorization server/],
    [['--oauth-client-id', 'me', ...COMPANY.slice(0, 2)], /--oauth-idp-issuer needs --oauth-idp-client-id/],
    [COMPANY.slice(2), /--oauth-idp-client-id needs --oauth-idp-issuer/],
    [['--oauth-idp-secret-file', 's'], /--oauth-idp-secret-file needs --oauth-idp-issuer/],
    [[...company, '--oauth-grant', 'jwt-bearer'], /--oauth-grant jwt-bearer and --oauth-idp-issuer exclude each other/],
    [
      [...company, '--oauth-grant', 'client-credentials'],
      /client-credentials and --oauth-idp-issuer exclude each other/,
    ],
    [
      [...company, '--oauth-grant', 'device-code', '--oauth-assertion-file', 'f'],
      /--oauth-grant device-code and --oauth-assertion-file exclude each other: .* nobody logs in at --oauth-idp-issuer/,
    ],
    [[...company, '--oauth-token', 'id'], /--oauth-token id .* with --oauth-idp-issuer there is none/],
    [[...company, '--oauth-param', 'audience=x'], /audience is set by the login itself; leave it out/],
    [[...company, '--oauth-param', 'subject_token=x'], /subject_token is set by the login itself/],
  ] as const) {
    t.regex(refusal(argv), problem);
  }
  t.regex(
    refusal(['--oauth-idp-issuer', 'http://idp.example', ...company.slice(2)]),
    /^ERR_CONFIG_OPTION: --oauth-idp-issuer: expected the https URL of an issuer/,
  );
  const open = ['--login', 'on-demand', '--host', '0.0.0.0', '--allow-anonymous'];
  for (const argv of [company, [...company, '--oauth-assertion-file', 'id-token']]) {
    t.regex(refusal([...open, ...argv], { verb: 'serve' }), /--login would let everybody act in the name of the user/);
  }
});

test('the way back leads to this machine', (t) => {
  for (const url of ['http://127.0.0.1:3334/callback', 'http://localhost:0/x', 'http://[::1]:1/']) {
    t.is(parse(['--oauth-callback', url]).login?.callback.href, url);
  }
  for (const url of [
    'https://127.0.0.1/',
    'http://example.com/callback',
    'http://u@localhost/',
    'http://localhost/?a=1',
    'http://localhost/a;b',
    '1',
  ]) {
    t.regex(
      refusal(['--oauth-callback', url]),
      /^ERR_CONFIG_OPTION: --oauth-callback: expected an http URL on this machine/,
    );
  }
});

test('a resource is a URI without a fragment, kept as it is written, or none', (t) => {
  const resource = (...argv: string[]) => parse(argv).login?.resource;
  t.deepEqual(resource(), { kind: 'server' });
  t.deepEqual(resource('--oauth-resource', 'none'), { kind: 'left-out' });
  for (const uri of ['https://a.example', 'https://a.example/', 'api://0f3c-11', 'urn:of:the:server']) {
    t.deepEqual(resource('--oauth-resource', uri), { kind: 'named', uri });
  }
  for (const text of ['nothing', '/mcp', 'https://a.example/#x', 'https://a.example/ x', '']) {
    t.regex(
      refusal(['--oauth-resource', text]),
      /^ERR_CONFIG_OPTION: --oauth-resource: expected the URI of a resource/,
    );
  }
});

test('a parameter of a login has a name and a value, and what the login sets itself is refused without its value', (t) => {
  const extra = (...argv: string[]) => [...(parse(argv).login?.extraParameters ?? [])];
  t.deepEqual(extra(), []);
  t.deepEqual(
    extra('--oauth-param', 'audience=https://a.example/?x=1', '--oauth-param', 'prompt=', '--oauth-param', 'x=ü, y'),
    [
      ['audience', 'https://a.example/?x=1'],
      ['prompt', ''],
      ['x', 'ü, y'],
    ],
  );
  const env = { HOME: '/home/me', MCP_PORTAGE_OAUTH_PARAM: 'a=1,2\nb=3' };
  t.deepEqual(
    [...(parse([], { env }).login?.extraParameters ?? [])],
    [
      ['a', '1,2'],
      ['b', '3'],
    ],
  );
  for (const text of ['hunter2', '=hunter2', 'a b=hunter2', 'a=hunter2\nx', 'ä=hunter2', '']) {
    const got = text === '' ? 'nothing' : 'something else';
    const message = `ERR_CONFIG_OPTION: --oauth-param: expected the name of a parameter, "=" and its value; got ${got}.`;
    t.is(refusal(['--oauth-param', text]), message);
  }
  for (const [name, wayOut] of [
    ['scope', 'use --oauth-scope'],
    ['resource', 'use --oauth-resource'],
    ['client_id', 'use --oauth-client-id'],
    ['redirect_uri', 'use --oauth-callback'],
    ['client_secret', 'use --oauth-secret-file'],
    ['Code_Challenge', 'leave it out'],
    ['state', 'leave it out'],
    ['response_type', 'leave it out'],
    ['request_uri', 'leave it out'],
  ] as const) {
    const message = `ERR_CONFIG_OPTION: --oauth-param: ${name} is set by the login itself; ${wayOut}.`;
    t.is(refusal(['--oauth-param', `${name}=hunter2`]), message);
  }
  const twice = ['--oauth-param', 'a=hunter2', '--oauth-param', 'a=hunter2'];
  t.is(refusal(twice), 'ERR_CONFIG_OPTION: --oauth-param: a is given twice; leave one of them out.');
});

test('a client authenticates in a way that fits what it has', (t) => {
  const env = { MCP_PORTAGE_OAUTH_CLIENT_SECRET: 'hunter2' };
  const method = (name: string, ...argv: string[]) => ['--oauth-auth-method', name, ...argv];
  const [me, key] = [
    ['--oauth-client-id', 'me'],
    ['--oauth-client-key', 'k'],
  ] as const;
  t.is(parse([]).login?.authMethod, undefined);
  for (const argv of [method('none'), method('none', ...me), method('client_secret_post')]) {
    t.is(parse(argv).login?.authMethod, argv[1] as never);
  }
  t.is(parse(method('private_key_jwt', ...me, ...key)).login?.authMethod, 'private_key_jwt');
  t.is(parse(method('client_secret_basic', ...me), { env }).login?.authMethod, 'client_secret_basic');
  const needs = (text: string) => `ERR_CONFIG_COMBINATION: --oauth-auth-method ${text}.`;
  t.is(refusal(method('none', ...me), { env }), needs('none needs no secret and no key; leave one of them out'));
  t.is(refusal(method('none', ...me, ...key)), needs('none needs no secret and no key; leave one of them out'));
  const secret = 'needs a secret (MCP_PORTAGE_OAUTH_CLIENT_SECRET, --oauth-secret-file), and no key';
  t.is(refusal(method('client_secret_post', ...me)), needs(`client_secret_post ${secret}`));
  t.is(refusal(method('client_secret_post', ...me, ...key)), needs(`client_secret_post ${secret}`));
  t.is(
    refusal(method('client_secret_post', '--oauth-client-document', 'https://me.example/c')),
    needs(`client_secret_post ${secret}, of --oauth-client-id`),
  );
  t.is(
    refusal(method('private_key_jwt', ...me), { env }),
    needs('private_key_jwt needs --oauth-client-id and --oauth-client-key'),
  );
  t.regex(refusal(method('tls_client_auth')), /^ERR_CONFIG_OPTION: --oauth-auth-method: expected/);
});

test('tokens are given over https, or on this machine', (t) => {
  const endpoint = (url: string) => parse(['--oauth-token-endpoint', url]).login?.tokenEndpoint?.href;
  for (const url of ['https://a.example/token?tenant=x', 'http://127.0.0.1:1/token']) t.is(endpoint(url), url);
  for (const url of ['http://a.example/token', 'https://u:hunter2@a.example/', 'https://a.example/#x', 'token']) {
    t.regex(
      refusal(['--oauth-token-endpoint', url]),
      /^ERR_CONFIG_OPTION: --oauth-token-endpoint: expected the https URL at which tokens are given(?!.*hunter2)/,
    );
  }
});

test('the token that is shown is the access token or the ID token, which a client without a user has not', (t) => {
  const token = (...argv: string[]) => parse(argv).login?.token;
  t.is(token(), 'access');
  t.is(token('--oauth-token', 'id'), 'id');
  t.regex(refusal(['--oauth-token', 'both']), /^ERR_CONFIG_OPTION: --oauth-token: expected/);
  const env = { MCP_PORTAGE_OAUTH_CLIENT_SECRET: 's' };
  const machine = ['--oauth-grant', 'client-credentials', '--oauth-client-id', 'me', '--oauth-token', 'id'];
  t.regex(refusal(machine, { env }), /^ERR_CONFIG_COMBINATION: --oauth-token id is for the login of a user/);
});

test('a document about the client has an https URL with a path', (t) => {
  t.is(parse(['--oauth-client-document', 'https://me.example/c']).login?.clientMetadataUrl, 'https://me.example/c');
  for (const url of ['http://me.example/c', 'https://me.example', 'https://me.example/c#x', 'c']) {
    t.regex(
      refusal(['--oauth-client-document', url]),
      /expected the https URL of a document that describes the client/,
    );
  }
});

test('without a browser here a code is the way if it is offered, and what the user says is done', (t) => {
  const grant = (env: Surroundings['env'], platform: NodeJS.Platform = 'linux', ...argv: string[]) =>
    parse(argv, { env, platform }).login?.grant;
  const codes = 'device-code-if-offered';
  t.is(grant({}), codes);
  t.is(grant({ DISPLAY: ':0' }), 'authorization-code');
  t.is(grant({ WAYLAND_DISPLAY: 'wayland-0' }), 'authorization-code');
  t.is(grant({}, 'darwin'), 'authorization-code');
  t.is(grant({}, 'win32'), 'authorization-code');
  t.is(grant({ SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' }, 'darwin'), codes);
  t.is(grant({ SSH_TTY: '/dev/pts/1', DISPLAY: 'localhost:10.0' }), codes);
  t.is(grant({ SSH_TTY: '/dev/pts/1', BROWSER: 'open-it' }), 'authorization-code', 'as some editors set it');
  t.is(grant({ DISPLAY: ':0', BROWSER: 'firefox' }, 'linux', '--no-oauth-browser'), codes);
  t.is(grant({}, 'linux', '--oauth-grant', 'authorization-code'), 'authorization-code');
  t.is(grant({ DISPLAY: ':0' }, 'linux', '--oauth-grant', 'device-code'), 'device-code');
});

test('the browser is that of the environment, else that of the system', (t) => {
  const browser = (env: Surroundings['env'], platform?: NodeJS.Platform, ...argv: string[]) =>
    parse(argv, { env, ...(platform && { platform }) }).login?.browser;
  t.deepEqual(browser({ BROWSER: 'firefox  --new-window' }), ['firefox', '--new-window', '%s']);
  t.deepEqual(browser({ BROWSER: 'open-it --url=%s' }), ['open-it', '--url=%s']);
  t.deepEqual(browser({}), ['xdg-open', '%s']);
  t.deepEqual(browser({}, 'darwin'), ['open', '%s']);
  t.is(browser({}, 'win32')?.[0], 'rundll32');
  t.is(browser({ BROWSER: 'firefox' }, 'linux', '--no-oauth-browser'), undefined);
});

test('logins are kept where the user says, else where the system keeps such things', (t) => {
  const folder = (env: Surroundings['env'], ...argv: string[]) => parse(argv, { env }).login?.stateDirectory;
  t.is(folder({ HOME: '/home/me' }), '/home/me/.mcp-portage');
  t.is(folder({ HOME: '/home/me', XDG_STATE_HOME: '/state' }), '/state/mcp-portage');
  t.is(folder({ HOME: '/home/me', MCP_PORTAGE_STATE_DIR: 'mine' }), '/work-dir/mine');
  t.is(folder({ HOME: '/home/me' }, '--state-dir', '/there'), '/there');
  if (process.platform !== 'win32') {
    const world = { env: { LOCALAPPDATA: '/local' }, platform: 'win32' } as const;
    t.is(parse([], world).login?.stateDirectory, '/local/mcp-portage');
  }
});

test('a user without a home folder, as in some containers, can log in, but not keep it', (t) => {
  const homeFolder = (): never => {
    throw new Error('uv_os_homedir returned ENOENT (no such file or directory)');
  };
  const stateDirectory = (...argv: string[]) => parse(argv, { env: {}, homeFolder }).login?.stateDirectory;
  t.is(stateDirectory(), undefined);
  t.is(stateDirectory('--state-dir', '/there'), '/there');
  t.is(parse([], { env: {}, homeFolder: () => '/home/system' }).login?.stateDirectory, '/home/system/.mcp-portage');
});
