import test from 'ava';
import { OPTIONS } from '../../../src/cli/options/option-table.ts';
import { mistakes, plain, read, readEntry } from './read-text.ts';

const cwd = ['/home/me/project'];
const refusals = async (portage: unknown, entry: object = { command: 'x' }): Promise<readonly string[]> =>
  (await mistakes({ mcpServers: { a: { ...entry, portage } } })).map((line) => line.replace(/^.*?portage\.?/, ''));
const topRefusals = async (portage: unknown): Promise<readonly string[]> =>
  (await mistakes({ mcpServers: {}, portage })).map((line) => line.replace(/^.*?portage\.?/, ''));

test('options are named as on the command line or in camel case, lists also in the plural', async (t) => {
  t.deepEqual(
    await readEntry({
      command: 'x',
      portage: {
        maxSessions: 4,
        'max-children': '8',
        sessionTimeout: '5m',
        hangTimeout: 30,
        isolation: 'session',
        pty: true,
        inheritEnv: false,
        mapHeaders: ['X-User=USER_NAME', 'X-Team=TEAM'],
        'exclude-tool': 'drop_*',
      },
    }),
    {
      target: ['x'],
      options: {
        cwd,
        maxSessions: [4],
        maxChildren: [8],
        sessionTimeout: [300_000],
        hangTimeout: [30_000],
        isolation: ['session'],
        pty: [true],
        inheritEnv: [false],
        mapHeader: [
          { header: 'x-user', variable: 'USER_NAME' },
          { header: 'x-team', variable: 'TEAM' },
        ],
        excludeTool: ['drop_*'],
      },
    },
  );
});

test('a login is a word, or an object, which means on demand and has the options of a login', async (t) => {
  const url = 'https://a.example';
  const optionsOf = async (login: unknown) => (await readEntry({ url, type: 'http', portage: { login } })).options;
  const transport = ['streamable-http'];
  t.deepEqual(await optionsOf('anew'), { login: ['anew'], transport });
  t.deepEqual(await optionsOf({}), { login: ['on-demand'], transport });
  t.deepEqual(
    await optionsOf({
      ...{ grant: 'authorization-code', resource: 'none', token: 'id', authMethod: 'none', assumePkce: true },
      params: { audience: 'https://api.example/?a=b', login_hint: 'me' },
      ...{ tokenEndpoint: 'https://a.example/token', scopes: ['a', 'b'], secretFile: '~/secret' },
    }),
    {
      ...{ login: ['on-demand'], transport, oauthGrant: ['authorization-code'], oauthResource: [{ kind: 'left-out' }] },
      ...{ oauthToken: ['id'], oauthAuthMethod: ['none'], oauthAssumePkce: [true] },
      oauthParam: [
        ['audience', 'https://api.example/?a=b'],
        ['login_hint', 'me'],
      ],
      ...{ oauthTokenEndpoint: ['https://a.example/token'], oauthScope: [['a'], ['b']] },
      oauthSecretFile: ['/home/me/secret'],
    },
  );
  t.deepEqual(
    await optionsOf({
      ...{ grant: 'jwt-bearer', assertionFile: '/run/token', idpIssuer: 'https://idp.example', idpClientId: 'me' },
      idpSecretFile: '~/of-the-provider',
    }),
    {
      ...{ login: ['on-demand'], transport, oauthGrant: ['jwt-bearer'], oauthAssertionFile: ['/run/token'] },
      ...{ oauthIdpIssuer: ['https://idp.example'], oauthIdpClientId: ['me'] },
      oauthIdpSecretFile: ['/home/me/of-the-provider'],
    },
  );
  t.deepEqual((await optionsOf({ params: ['a=b', 'c=d'] })).oauthParam, [
    ['a', 'b'],
    ['c', 'd'],
  ]);
});

test('an option of a login says where it stands', async (t) => {
  const file = '{"mcpServers": {"a": {"url": "https://a.example",\n "portage": {"login": {"token": "id"}}}}}';
  const options = (await read(file)).servers[0]?.options;
  t.is(options?.get('oauthToken')?.place.text, 'mcp.json:2:33 (mcpServers.a.portage.login.token)');
  t.is(options?.get('login')?.place.text, 'mcp.json:2:23 (mcpServers.a.portage.login)');
});

for (const [login, refusal] of [
  [{ resourse: 'none' }, 'login.resourse: a login has no option "resourse"; did you mean resource?'],
  [{ zzz: 1 }, 'login.zzz: a login has no option "zzz".'],
  [{ required: true }, 'login.required: a login has no option "required".'],
  [{ resource: null }, 'login.resource: expected a string or a number, got null.'],
  [{ params: { a: {} } }, 'login.params.a: expected a string or an array of strings, got an object.'],
  [{ scopes: {} }, 'login.scopes: expected a string or an array of strings, got an object.'],
  [['on-demand'], 'login: expected a string or a number, got an array.'],
] as const) {
  test(`for a login ${JSON.stringify(login)} is refused`, async (t) => {
    t.deepEqual(await refusals({ login }, { url: 'https://a.example' }), [refusal]);
  });
}

test('an option of a login that stands twice, for a command, or for all servers of a file is refused', async (t) => {
  t.deepEqual(await refusals({ oauthToken: 'id', login: { token: 'id' } }, { url: 'https://a.example' }), [
    'login.token: says again what another key says; leave one of them out.',
  ]);
  t.regex((await refusals({ login: {} })).join(), /^login: is for a server that is reached by its URL/);
  t.deepEqual(await topRefusals({ login: { token: 'id', resource: 'none' } }), [
    'login.resource: is a matter of one server; it belongs to the key portage in the entry of that server.',
  ]);
});

test('an option says where it stands', async (t) => {
  const file = '{"mcpServers": {"a": {"command": "x",\n "portage": {"isolation": "shared"}}}, "portage": {"port": 1}}';
  const { servers, options } = await read(file);
  t.is(servers[0]?.options.get('isolation')?.place.text, 'mcp.json:2:27 (mcpServers.a.portage.isolation)');
  t.deepEqual(
    [...options],
    [['port', { values: [{ ok: true, value: 1 }], place: { kind: 'file', text: 'mcp.json:2:60 (portage.port)' } }]],
  );
});

test('our own key has the last word over what hosts call otherwise; lists are joined', async (t) => {
  t.deepEqual(
    await readEntry({
      url: 'https://a.example',
      type: 'http',
      timeout: 5000,
      headers: { A: 'b' },
      excludeTools: ['x'],
      portage: { transport: 'sse', requestTimeout: '1m', header: ['C: d'], excludeTools: ['y'] },
    }),
    {
      target: 'https://a.example/',
      options: {
        header: ['a: b', 'c: d'],
        transport: ['sse'],
        requestTimeout: [60_000],
        excludeTool: ['x', 'y'],
      },
    },
  );
});

test('tools are described by the names that the server gives them', async (t) => {
  const tools = {
    find_v2: { name: 'find', title: 'Find', description: `Finds in \${TEAM}`, hidden: false, callers: ['alice'] },
    drop: { hidden: true },
  };
  const { servers } = await read(
    { mcpServers: { a: { command: 'x', portage: { tools } } } },
    { env: { TEAM: 'sales' } },
  );
  const none = { name: undefined, title: undefined, description: undefined, callers: undefined };
  const placed = [...(servers[0]?.tools ?? [])].map(([name, { place, ...rest }]) => [name, place.kind, rest]);
  t.deepEqual<unknown, unknown>(placed, [
    [
      'find_v2',
      'file',
      { name: 'find', title: 'Find', description: 'Finds in sales', isHidden: false, callers: ['alice'] },
    ],
    ['drop', 'file', { ...none, isHidden: true }],
  ]);
});

test('tools and new names belong to one server', async (t) => {
  const one = 'is a matter of one server; it belongs to the key portage in the entry of that server.';
  t.deepEqual(await topRefusals({ tools: {} }), [`tools: ${one}`]);
  t.deepEqual(await topRefusals({ renameTool: { a: 'b' } }), [`renameTool: ${one}`]);
  const { options } = await readEntry({ command: 'x', portage: { renameTools: { a: 'b' }, describeTool: ['a=b'] } });
  t.deepEqual(options, { cwd, renameTool: [['a', 'b']], describeTool: [['a', 'b']] });
});

test('required and callers are no options', async (t) => {
  const { servers } = await read({
    mcpServers: {
      a: { command: 'x', portage: { required: true, callers: ['alice', 'ci'] } },
      b: { command: 'x', portage: { callers: [] } },
      c: { command: 'x', required: true, portage: { required: false } },
    },
  });
  t.deepEqual(
    servers.map(({ isRequired, callers }) => [isRequired, callers]),
    [
      [true, ['alice', 'ci']],
      [false, []],
      [false, undefined],
    ],
  );
});

test('paths of files are those beside the workspace, or of the home folder', async (t) => {
  const entry = {
    url: 'https://a.example',
    portage: { ca: 'ca.pem', headerFile: '~/headers', clientCert: '/etc/cert.pem', stateDir: './state' },
  };
  t.deepEqual((await readEntry(entry, { path: '/home/me/project/.vscode/mcp.json' })).options, {
    ca: ['/home/me/project/ca.pem'],
    headerFile: ['/home/me/headers'],
    clientCert: ['/etc/cert.pem'],
    stateDir: ['/home/me/project/state'],
  });
  const { options } = await read({
    mcpServers: {},
    portage: {
      tlsCert: 'cert.pem',
      authJwks: 'https://issuer.example/keys',
      authTokens: ['alice=file:tokens/alice', 'bob=env:BOB', 'file:~/token'],
      statusToken: 'file:tokens/status',
      clusterKey: 'file:~/cluster-key',
    },
  });
  t.deepEqual(plain({ options, target: { kind: 'command', command: '', args: [] } } as never).options, {
    tlsCert: ['/home/me/project/cert.pem'],
    authJwks: [{ kind: 'url', url: new URL('https://issuer.example/keys') }],
    authToken: [
      { name: 'alice', kind: 'file', place: '/home/me/project/tokens/alice' },
      { name: 'bob', kind: 'env', place: 'BOB' },
      { name: 'client', kind: 'file', place: '/home/me/token' },
    ],
    statusToken: [{ name: 'client', kind: 'file', place: '/home/me/project/tokens/status' }],
    clusterKey: [{ kind: 'file', place: '/home/me/cluster-key' }],
  });
});

for (const [portage, refusal] of [
  [{ maxSesions: 1 }, 'maxSesions: mcp-portage has no option "maxSesions"; did you mean maxSessions?'],
  [{ zzz: 1 }, 'zzz: mcp-portage has no option "zzz".'],
  [{ port: 1 }, 'port: is no matter of one server; it belongs to the key portage at the top.'],
  [{ authToken: 'env:X' }, 'authToken: is no matter of one server; it belongs to the key portage at the top.'],
  [{ logLevel: 'debug' }, 'logLevel: is no matter of one server; it belongs to the key portage at the top.'],
  [{ shutdownGrace: 1 }, 'shutdownGrace: is no matter of one server; it belongs to the key portage at the top.'],
  [
    { ca: 'x' },
    'ca: is for a server that is reached by its URL or reached over a byte stream or reached over gRPC or reached through a broker of MQTT; this one is started as a command.',
  ],
  [{ pty: 1 }, 'pty: expected true or false, got a number.'],
  [{ isolation: null }, 'isolation: expected a string or a number, got null.'],
  [{ isolation: ['shared'] }, 'isolation: expected a string or a number, got an array.'],
  [{ mapHeaders: {} }, 'mapHeaders: expected a string or an array of strings, got an object.'],
  [{ mapHeaders: ['a', []] }, 'mapHeaders[1]: expected a string or an array of strings, got an array.'],
  [{ maxSessions: 1, 'max-sessions': 2 }, '["max-sessions"]: says again what another key says; leave one of them out.'],
  [{ required: 'yes' }, 'required: expected true or false, got a string.'],
  [{ callers: 'alice' }, 'callers: expected an array of names of callers, got a string.'],
  [{ callers: ['alice', 1] }, 'callers[1]: expected the name of a caller, got a number.'],
  [{ callers: [''] }, 'callers[0]: expected the name of a caller, got an empty text.'],
  [{ tools: ['a'] }, 'tools: expected an object, got an array.'],
  [{ tools: { a: 'b' } }, 'tools.a: expected an object, got a string.'],
  [
    { tools: { a: { descripton: 'x' } } },
    'tools.a.descripton: a tool has no setting "descripton"; did you mean description?',
  ],
  [{ tools: { a: { zzz: 1 } } }, 'tools.a.zzz: a tool has no setting "zzz".'],
  [{ tools: { a: { title: 1 } } }, 'tools.a.title: expected a string, got a number.'],
  [
    { tools: { 'a b': { name: 'c d' } } },
    'tools["a b"].name: expected the name of a tool, 1 to 128 letters, digits, "_", "-" and ".", got something else.',
  ],
  [{ tools: { a: { hidden: 'yes' } } }, 'tools.a.hidden: expected true or false, got a string.'],
  [{ tools: { a: { callers: 'alice' } } }, 'tools.a.callers: expected an array of names of callers, got a string.'],
  [[], ': expected an object, got an array.'],
] as const) {
  test(`in an entry ${JSON.stringify(portage)} is refused`, async (t) => {
    t.deepEqual(await refusals(portage), [refusal.replace('["max-sessions"]', 'max-sessions')]);
  });
}

test('in the entry of a server with a URL, what is about processes is refused', async (t) => {
  t.deepEqual(await refusals({ isolation: 'shared' }, { url: 'https://a.example' }), [
    'isolation: is for a server that is started as a command or reached over a byte stream or reached over gRPC or reached through a broker of MQTT; this one is reached by its URL.',
  ]);
});

for (const key of ['header', 'headerFile', 'env', 'cwd', 'bearerTokenFile', 'clientKey', 'oauthClientId', 'required']) {
  test(`at the top ${key} is refused: it is right for one server only`, async (t) => {
    t.deepEqual(await topRefusals({ [key]: 'x' }), [
      `${key}: is a matter of one server; it belongs to the key portage in the entry of that server.`,
    ]);
  });
}

test('a file of variables is named by the key that entries have for it', async (t) => {
  const problem = 'write envFile beside the command of the server it is for, without portage.';
  for (const key of ['envFrom', 'env-from', 'envFile']) {
    t.deepEqual(await refusals({ [key]: '.env' }), [`${key}: ${problem}`]);
    t.deepEqual(await topRefusals({ [key]: '.env' }), [`${key}: ${problem}`]);
  }
});

test('every option has its place', (t) => {
  const of = (scope: string): readonly string[] =>
    OPTIONS.filter((option) => option.scope === scope).map(({ name }) => name);
  for (const name of ['port', 'path', 'authToken', 'logLevel', 'maxInFlight', 'maxHeaderBytes']) {
    t.true(of('process').includes(name), name);
  }
  for (const name of ['isolation', 'maxChildren', 'login', 'requestTimeout', 'excludeTool', 'mapHeader']) {
    t.true(of('server').includes(name), name);
  }
  t.deepEqual(of('call'), [
    'config',
    'allowWritableConfig',
    'strictConfig',
    'json',
    'timeout',
    'url',
    'all',
    'since',
    'follow',
    'errors',
    'method',
    'client',
    'server',
    'full',
    'accept',
    'for',
  ]);
  t.deepEqual(of('entry'), ['envFrom']);
  const all = ['process', 'server', 'one-server', 'entry', 'call'].flatMap(of);
  t.is(all.length, OPTIONS.length);
});

test('every option can be written in camel case', async (t) => {
  for (const option of OPTIONS.filter((candidate) => ['process', 'server'].includes(candidate.scope))) {
    const { options } = await read({ mcpServers: {}, portage: { [option.name]: 'true' } });
    t.deepEqual([...options.keys()], [option.name]);
  }
});
