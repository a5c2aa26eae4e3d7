import test from 'ava';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { isApplicable, type OptionUse } from '../../../src/cli/options/applicable.ts';
import { OPTIONS, type OptionName } from '../../../src/cli/options/option-table.ts';
import { parseConfig, type Surroundings } from '../../../src/cli/parse/config.ts';
import { BridgeError, type ErrorCode } from '../../../src/errors.ts';

const around: Surroundings = {
  env: {},
  cwd: '/work-dir',
  platform: 'linux',
  stderrIsTerminal: false,
  readFile: (path) => ({
    text: path.endsWith('.env') ? `# variables\nFILE=${path}\nB='of the file'\n` : `# headers\nX-From-File: ${path}\n`,
    isOpenToAll: false,
  }),
};

function parseLine(argv: readonly string[], env: Surroundings['env'] = {}, more: Partial<Surroundings> = {}) {
  const commandLine = parseCommandLine(argv);
  if (commandLine.kind !== 'bridge') throw new Error(`got ${commandLine.kind}`);
  return parseConfig(commandLine, { ...around, env, ...more });
}

function parse(argv: readonly string[], env: Surroundings['env'] = {}, more: Partial<Surroundings> = {}) {
  return parseLine([...argv, '--', 'server'], env, more);
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

const server = {
  listing: undefined,
  hubs: [],
  target: { kind: 'command', command: 'server', args: [] },
  protocol: 'auto',
  remote: {
    transport: 'auto',
    account: { user: undefined, password: undefined },
    headers: new Map(),
    bearerTokenFile: undefined,
    tls: { caFile: undefined, certFile: undefined, keyFile: undefined },
    forwardHeaders: [],
    exchange: undefined,
    timeouts: { connectMs: 10_000, firstByteMs: 0, idleMs: 0, callMs: 0 },
    login: undefined,
    keepAliveMs: 0,
    proxyEnv: {},
  },
  mapHeaders: [],
  watch: [],
  pinTools: undefined,
  replaySpeed: 0,
  tools: { include: [], exclude: [], shapes: new Map() },
  child: { cwd: undefined, env: {}, withheldEnv: [], pty: false },
  sessions: {
    isolation: 'session',
    prewarm: 0,
    sessionTimeoutMs: 1_800_000,
    idleTimeouts: { leftMs: 300_000, quietMs: 1_800_000 },
    maxSessions: 256,
    maxCallerSessions: 256,
    poolSize: 16,
    pollAfterMs: 0,
  },
  limits: {
    maxChildren: 528,
    maxMessageBytes: 16_777_216,
    maxLineBytes: undefined,
    maxJsonDepth: 1000,
    maxSessionInFlight: 1024,
    maxSessionStreams: 2048,
    maxReplayBytes: 5_242_880,
    maxResultBytes: 0,
    maxParkedCalls: 1024,
    maxParkedBytes: 67_108_864,
    requestTimeoutMs: 300_000,
    maxCallTimeMs: 86_400_000,
    hangTimeoutMs: 30_000,
  },
} as const;

const listener = {
  kind: 'http',
  addresses: [{ kind: 'tcp', host: '127.0.0.1', port: 8000 }],
  streams: [],
  grpc: [],
  tls: undefined,
  endpoints: {
    path: '/mcp',
    httpSse: 'served',
    ssePath: '/sse',
    messagePath: '/messages',
    sunset: undefined,
    webSocket: 'served',
    wsPath: '/ws',
    baseUrl: undefined,
  },
  access: { allowHosts: [], allowOrigins: [], auth: undefined },
  maxHeaderBytes: 16_384,
  spelling: 'flags',
  proxyEnv: {},
} as const;

const pipes = { kind: 'pipes' } as const;

const defaults = {
  listener,
  servers: [server],
  limits: { maxInFlight: 4096, maxChildren: 528, shutdownGraceMs: 4000 },
  observation: {
    status: 'served',
    statusToken: undefined,
    metrics: 'off',
    usage: undefined,
    audit: undefined,
    traces: undefined,
    recording: undefined,
  },
  cluster: undefined,
  log: { level: 'info', format: 'json' },
} as const;

test('the defaults are these', (t) => {
  const { given, ...meant } = parse([]);
  t.deepEqual(given.listener.isGiven('port'), false);
  t.deepEqual(meant, {
    config: defaults,
    probe: { timeoutsMs: [120_000], format: 'human' },
    leftOut: [],
    warnings: [],
  });
});

/** Of `connect`: a server that asks for a login gets one. */
const login = {
  // There is no screen.
  grant: 'device-code-if-offered',
  stored: 'use',
  client: undefined,
  clientMetadataUrl: undefined,
  assertion: undefined,
  issuer: undefined,
  tokenEndpoint: undefined,
  authMethod: undefined,
  assumesPkce: false,
  scopes: [],
  resource: { kind: 'server' },
  token: 'access',
  extraParameters: new Map(),
  callback: new URL('http://127.0.0.1:0/callback'),
  browser: ['xdg-open', '%s'],
  stateDirectory: '/home/me/.mcp-portage',
};

const unseen = { observation: { ...defaults.observation, status: 'off' } };

test('a server reached by URL has the same defaults', (t) => {
  const target = { kind: 'url', url: new URL('https://example.com/mcp'), socketPath: undefined } as const;
  const sessions = { ...server.sessions, poolSize: 256 };
  const limits = { ...defaults.limits, maxChildren: 768 };
  t.deepEqual<unknown, unknown>(parseLine(['https://example.com/mcp']).config, {
    ...defaults,
    servers: [{ ...server, sessions, target, limits: { ...server.limits, maxChildren: 768 } }],
    limits,
  });
  t.deepEqual<unknown, unknown>(parseLine(['connect', 'https://example.com/mcp'], { HOME: '/home/me' }).config, {
    ...defaults,
    ...unseen,
    listener: pipes,
    servers: [
      {
        ...server,
        remote: { ...server.remote, login },
        child: { ...server.child, env: { HOME: '/home/me' } },
        sessions,
        target,
        limits: { ...server.limits, maxChildren: 768 },
      },
    ],
    limits,
  });
});

test('a probe is a client that says little beside its report', (t) => {
  const { config } = parseLine(['probe', '--', 'server']);
  t.deepEqual<unknown, unknown>(config, {
    ...defaults,
    ...unseen,
    listener: pipes,
    log: { level: 'warn', format: 'json' },
  });
  t.is(parseLine(['probe', '--log-level', 'debug', '--', 'server']).config.log.level, 'debug');
});

/** One value other than the default for every option, in the form of the command line. */
const EVERY_OPTION: Readonly<Record<OptionName, readonly string[]>> = {
  config: ['claude.json'],
  allowWritableConfig: ['true'],
  strictConfig: ['true'],
  // Without a file there are no servers that could be served as one.
  aggregate: ['false'],
  for: ['cursor'],
  host: ['::1'],
  port: ['9000'],
  socket: ['mcp.sock', 'unix:///run/mcp.sock'],
  socketMode: ['0660'],
  stream: ['unix:///run/lines.sock'],
  grpc: ['127.0.0.1:50051'],
  tlsCert: ['cert.pem'],
  tlsKey: ['/etc/key.pem'],
  path: ['/a'],
  // With a date to end on, HTTP+SSE has to be served.
  sse: ['true'],
  ssePath: ['/b'],
  messagePath: ['/c'],
  sunset: ['2027-03-31'],
  afterSunset: ['serve'],
  ws: ['false'],
  wsPath: ['/d'],
  baseUrl: ['https://example.com/tools/'],
  dial: ['wss://hub.example/a?key=b', 'env:HUB'],
  dialHeader: [`X-Device: \${EXTRA}`],
  dialToken: ['env:LOOK'],
  dialCa: ['hub.pem'],
  allowHost: ['one.example', 'two.example:81'],
  allowOrigin: ['https://app.example.com'],
  // With it there would be nobody to authenticate.
  allowAnonymous: ['false'],
  authToken: ['alice=env:ALICE', 'file:token-of-client'],
  authIssuer: ['https://auth.example/'],
  authAudience: ['one', 'two'],
  authJwks: ['https://auth.example/keys'],
  authScope: ['read', 'call'],
  store: ['rediss://me:secret@store.example:7000/2'],
  advertise: ['http://10.0.0.5:9000'],
  clusterKey: ['env:CLUSTER'],
  storePrefix: ['mine:'],
  // Their contents are read at the start, and tried in cluster.test.ts.
  storeCa: [],
  storeClientCert: [],
  storeClientKey: [],
  lease: ['20s'],
  clusterLimits: ['true'],
  // Goes together with neither --isolation shared nor --prewarm.
  mapHeader: [],
  cwd: ['sub'],
  env: ['A=1', 'B=2'],
  envFrom: ['server.env'],
  inheritEnv: ['true'],
  watch: ['src/**/*.js'],
  pty: ['true'],
  transport: ['sse'],
  protocol: ['legacy'],
  includeTool: ['read_*', 'list_*'],
  excludeTool: ['*_all'],
  pinTools: ['pins.json'],
  replaySpeed: ['2'],
  renameTool: ['read_v2=read', 'a=b=c'],
  describeTool: ['read_v2=Reads, a=b'],
  header: ['X-One: a, b', `X-Two: \${EXTRA}`],
  headerFile: ['headers.txt'],
  // With it there would be nothing to log in for.
  bearerTokenFile: [],
  forwardHeader: ['X-Request-Id', 'Accept-Language'],
  // Only a broker is shown them.
  user: [],
  password: [],
  ca: ['ca.pem'],
  clientCert: ['client.pem'],
  clientKey: ['/etc/client-key.pem'],
  connectTimeout: ['1s'],
  firstByteTimeout: ['2s'],
  idleTimeout: ['3s'],
  callTimeout: ['4m'],
  keepAlive: ['30s'],
  login: ['anew'],
  // Goes together with no login.
  exchangeToken: ['false'],
  oauthGrant: ['client-credentials'],
  oauthClientId: ['me'],
  // The client has a key.
  oauthSecretFile: [],
  oauthClientKey: ['key.pem'],
  // The client is its own user.
  oauthAssertionFile: [],
  oauthIdpIssuer: [],
  oauthIdpClientId: [],
  oauthIdpSecretFile: [],
  oauthClientDocument: ['https://me.example/client.json'],
  oauthIssuer: ['https://auth.example'],
  oauthTokenEndpoint: ['https://auth.example/oauth/token'],
  oauthAuthMethod: ['private_key_jwt'],
  oauthAssumePkce: ['true'],
  oauthScope: ['read', 'call'],
  oauthResource: ['https://example.com/mcp'],
  oauthToken: ['access'],
  oauthParam: ['login_hint=me'],
  oauthCallback: ['http://localhost:3334/back'],
  oauthBrowser: ['false'],
  status: ['false'],
  statusToken: ['env:LOOK'],
  metrics: ['true'],
  usage: ['true'],
  auditFile: ['audit.jsonl'],
  auditRequired: ['true'],
  record: ['record.jsonl'],
  recordSecrets: ['true'],
  recordMaxMessage: ['1m'],
  recordMaxSize: ['10m'],
  inspect: ['false'],
  stateDir: ['state'],
  accept: ['pins.json'],
  url: ['http://127.0.0.1:8000'],
  all: ['true'],
  since: ['7d'],
  follow: ['true'],
  errors: ['true'],
  method: ['tools/*'],
  client: ['claude-*'],
  server: ['weather'],
  full: ['true'],
  isolation: ['shared'],
  prewarm: ['1'],
  sessionTimeout: ['1h'],
  sessionIdleTimeout: ['2m'],
  maxSessions: ['5'],
  maxCallerSessions: ['4'],
  poolSize: ['3'],
  maxChildren: ['7'],
  pollAfter: ['30s'],
  maxMessageBytes: ['1m'],
  maxResultBytes: ['20k'],
  maxJsonDepth: ['64'],
  maxHeaderBytes: ['32k'],
  maxInFlight: ['20'],
  maxSessionInFlight: ['10'],
  maxSessionStreams: ['12'],
  maxReplayBytes: ['64k'],
  maxParkedCalls: ['50'],
  maxParkedBytes: ['128k'],
  requestTimeout: ['0'],
  maxCallTime: ['2h'],
  hangTimeout: ['45s'],
  shutdownGrace: ['250ms'],
  json: ['true'],
  timeout: ['7s'],
  logLevel: ['debug'],
  logFormat: ['pretty'],
};

const SURROUNDING = {
  EXTRA: 'x',
  ALICE: 'a-long-token-of-alice',
  LOOK: 'a-long-token-to-look',
  HUB: 'ws://localhost:1/hub',
  CLUSTER: 'c'.repeat(32),
};

const listening = {
  kind: 'http',
  addresses: [
    { kind: 'tcp', host: '::1', port: 9000 },
    { kind: 'socket', path: '/work-dir/mcp.sock', mode: 0o660 },
    { kind: 'socket', path: '/run/mcp.sock', mode: 0o660 },
  ],
  streams: [{ address: { kind: 'socket', path: '/run/lines.sock', mode: 0o660 }, segment: undefined }],
  grpc: [{ address: { kind: 'tcp', host: '127.0.0.1', port: 50051 }, segment: undefined }],
  tls: { certFile: '/work-dir/cert.pem', keyFile: '/etc/key.pem' },
  endpoints: {
    path: '/a',
    httpSse: 'served',
    ssePath: '/b',
    messagePath: '/c',
    sunset: { date: '2027-03-31', atMs: Date.UTC(2027, 2, 31, 23, 59, 59), afterward: 'serve' },
    webSocket: 'off',
    wsPath: '/d',
    baseUrl: new URL('https://example.com/tools'),
  },
  access: {
    allowHosts: ['one.example', 'two.example:81', 'example.com'],
    allowOrigins: ['https://app.example.com'],
    auth: {
      tokens: [
        { kind: 'value', principal: 'token:alice', token: 'a-long-token-of-alice' },
        { kind: 'file', principal: 'token:client', file: '/work-dir/token-of-client' },
      ],
      oauth: {
        issuer: 'https://auth.example/',
        audiences: ['one', 'two'],
        keys: { kind: 'url', url: new URL('https://auth.example/keys') },
        scopes: ['read', 'call'],
      },
    },
  },
  maxHeaderBytes: 32_768,
  spelling: 'flags',
  proxyEnv: {},
};
const hubs = ['wss://hub.example/a?key=b', 'ws://localhost:1/hub'].map((url) => ({
  kind: 'websocket',
  url: new URL(url),
  headers: new Map([['x-device', 'x']]),
  token: { kind: 'value', principal: 'token:client', token: 'a-long-token-to-look' },
  caFile: '/work-dir/hub.pem',
  proxyEnv: {},
}));
const plainTool = {
  name: undefined,
  title: undefined,
  description: undefined,
  isHidden: false,
  callers: undefined,
};
const always = {
  protocol: 'legacy',
  pinTools: '/work-dir/pins.json',
  replaySpeed: 0,
  tools: {
    include: ['read_*', 'list_*'],
    exclude: ['*_all'],
    shapes: new Map([
      ['read_v2', { ...plainTool, name: 'read', description: 'Reads, a=b' }],
      ['a=b', { ...plainTool, name: 'c' }],
    ]),
  },
  limits: {
    maxMessageBytes: 1_048_576,
    maxLineBytes: 1_048_576,
    maxJsonDepth: 64,
    maxSessionInFlight: 10,
    maxSessionStreams: 12,
    maxReplayBytes: 65_536,
    maxResultBytes: 20_480,
    maxParkedCalls: 50,
    maxParkedBytes: 131_072,
    requestTimeoutMs: 0,
    maxCallTimeMs: 7_200_000,
    hangTimeoutMs: 30_000,
  },
};
const log = { level: 'debug', format: 'pretty' };
const observed = {
  status: 'off',
  statusToken: { kind: 'value', principal: 'token:client', token: 'a-long-token-to-look' },
  metrics: 'served',
  usage: { stateDirectory: '/work-dir/state' },
  audit: { file: '/work-dir/audit.jsonl', unwritable: 'refuses-calls' },
  traces: undefined,
  recording: {
    file: { path: '/work-dir/record.jsonl', secrets: 'kept', maxFileBytes: 10 * 2 ** 20 },
    feed: 'off',
    maxMessageBytes: 2 ** 20,
  },
};
const cluster = {
  store: {
    address: {
      topology: 'single',
      hosts: [{ host: 'store.example', port: 7000 }],
      masterName: undefined,
      user: 'me',
      password: 'secret',
      sentinelLogin: undefined,
      database: 2,
      tls: true,
    },
    tls: { ca: undefined, cert: undefined, key: undefined },
    prefix: 'mine:',
  },
  advertise: new URL('http://10.0.0.5:9000'),
  keys: ['c'.repeat(32)],
  leaseMs: 20_000,
  limits: 'of-all-replicas',
};
const timeouts = { connectMs: 1000, firstByteMs: 2000, idleMs: 3000, callMs: 240_000 };
const remote = {
  transport: 'sse',
  account: { user: undefined, password: undefined },
  headers: new Map([
    ['x-from-file', '/work-dir/headers.txt'],
    ['x-one', 'a, b'],
    ['x-two', 'x'],
  ]),
  bearerTokenFile: undefined,
  tls: { caFile: '/work-dir/ca.pem', certFile: '/work-dir/client.pem', keyFile: '/etc/client-key.pem' },
  forwardHeaders: [
    { name: 'x-request-id', sentAs: 'x-request-id' },
    { name: 'accept-language', sentAs: 'accept-language' },
  ],
  timeouts,
  exchange: undefined,
  login: {
    grant: 'client-credentials',
    stored: 'forget',
    client: { id: 'me', proof: { kind: 'key', file: '/work-dir/key.pem' } },
    clientMetadataUrl: 'https://me.example/client.json',
    assertion: undefined,
    issuer: 'https://auth.example',
    tokenEndpoint: new URL('https://auth.example/oauth/token'),
    authMethod: 'private_key_jwt',
    assumesPkce: true,
    resource: { kind: 'named', uri: 'https://example.com/mcp' },
    token: 'access',
    extraParameters: new Map([['login_hint', 'me']]),
    scopes: ['read', 'call'],
    callback: new URL('http://localhost:3334/back'),
    browser: undefined,
    stateDirectory: '/work-dir/state',
  },
  keepAliveMs: 30_000,
  proxyEnv: {},
};
const ofCommand = {
  cwd: '/work-dir/sub',
  env: { EXTRA: 'x', FILE: '/work-dir/server.env', A: '1', B: '2' },
  withheldEnv: [],
  pty: true,
};

/** What the options above come to, where they are in place. */
const everyOptionAsConfig = {
  'serve command': {
    listener: listening,
    observation: observed,
    cluster,
    limits: { maxInFlight: 20, maxChildren: 7, shutdownGraceMs: 250 },
    log,
    server: {
      ...always,
      limits: { ...always.limits, hangTimeoutMs: 45_000 },
      hubs,
      remote: server.remote,
      mapHeaders: [],
      watch: [{ path: 'src/**/*.js', folder: '/work-dir' }],
      child: ofCommand,
      sessions: {
        isolation: 'shared',
        prewarm: 1,
        sessionTimeoutMs: 3_600_000,
        idleTimeouts: { leftMs: 120_000, quietMs: 120_000 },
        maxSessions: 5,
        maxCallerSessions: 4,
        poolSize: 3,
        pollAfterMs: 30_000,
      },
    },
  },
  'serve url': {
    listener: listening,
    observation: observed,
    cluster,
    limits: { maxInFlight: 20, maxChildren: 13, shutdownGraceMs: 250 },
    log,
    server: {
      ...always,
      remote,
      hubs,
      mapHeaders: [],
      watch: [],
      child: { ...server.child, withheldEnv: ['EXTRA'] },
      sessions: {
        ...server.sessions,
        sessionTimeoutMs: 3_600_000,
        idleTimeouts: { leftMs: 120_000, quietMs: 120_000 },
        maxSessions: 5,
        maxCallerSessions: 4,
        poolSize: 3,
        pollAfterMs: 30_000,
      },
    },
  },
  'probe url': {
    listener: pipes,
    observation: { ...defaults.observation, status: 'off' },
    cluster: undefined,
    limits: { ...defaults.limits, maxChildren: 768 },
    log,
    server: {
      ...server,
      protocol: always.protocol,
      remote: { ...remote, forwardHeaders: [], timeouts: server.remote.timeouts, keepAliveMs: 0 },
      child: { ...server.child, withheldEnv: ['ALICE', 'CLUSTER', 'EXTRA', 'HUB', 'LOOK'] },
      sessions: { ...server.sessions, poolSize: 256 },
      limits: { ...server.limits, maxMessageBytes: 1_048_576, maxLineBytes: 1_048_576 },
    },
  },
} as const;

for (const [place, { server: expectedServer, ...rest }] of Object.entries(everyOptionAsConfig)) {
  const [verb, kind] = place.split(' ') as [OptionUse['verb'], OptionUse['target']];
  const written = kind === 'url' ? ['https://example.com/mcp'] : ['--', 'server'];
  const target =
    kind === 'url' ? { kind, url: new URL('https://example.com/mcp'), socketPath: undefined } : server.target;
  const { maxChildren } = rest.limits;
  const limits = { ...expectedServer.limits, maxChildren };
  const expected = { ...rest, servers: [{ ...expectedServer, listing: undefined, target, limits }] };
  const every = OPTIONS.map((option) => [option, EVERY_OPTION[option.name]] as const);
  const options = every.filter(([option]) => isApplicable(option, { verb, target: kind }));

  test(`every option is read from the command line (${place})`, (t) => {
    const argv = options.flatMap(([{ flag }, values]) => values.map((value) => `${flag}=${value}`));
    const { config } = parseLine([verb, ...argv, ...written], SURROUNDING);
    t.deepEqual<unknown, unknown>(config, expected);
  });

  test(`every option is read from the environment, those out of place are ignored there (${place})`, (t) => {
    const entries = every.map(([{ variable, type }, values]) => [variable, values.join(type.separator ?? ', ')]);
    const { config } = parseLine([verb, ...written], { ...SURROUNDING, ...Object.fromEntries(entries) });
    const { listener } = expected;
    // Beside sockets the environment asks for no port.
    const sockets = { ...listener, ...(listener.kind === 'http' && { addresses: listener.addresses.slice(1) }) };
    t.deepEqual<unknown, unknown>(config, { ...expected, listener: sockets });
  });
}

test('a probe of a command has time for a package to be fetched, one of a URL ends sooner', (t) => {
  t.deepEqual(parseLine(['probe', '--', 'npx', 'server']).probe.timeoutsMs, [120_000]);
  t.deepEqual(parseLine(['probe', 'https://example.com/mcp']).probe.timeoutsMs, [15_000]);
  const timeoutWith = (grant: string) => {
    const words = ['probe', '--login', 'on-demand', '--oauth-grant', grant, 'https://example.com/mcp'];
    return parseLine(words, { HOME: '/home/me' }).probe.timeoutsMs;
  };
  t.deepEqual(timeoutWith('authorization-code'), [300_000]);
  t.deepEqual(timeoutWith('device-code'), [960_000], 'as long as codes last');
});

test('the options of a probe are read', (t) => {
  t.deepEqual(parseLine(['probe', '--json', '--timeout', '7s', '--', 'server']).probe, {
    timeoutsMs: [7000],
    format: 'json',
  });
});

test('the command line wins over the environment, and its last value over earlier ones', (t) => {
  const { config } = parse(['--port', '1', '--port', '2', '--no-inherit-env'], {
    MCP_PORTAGE_PORT: '3',
    MCP_PORTAGE_INHERIT_ENV: 'true',
    MCP_PORTAGE_HOST: '::1',
    SECRET: 'x',
  });
  t.like(config.listener, { addresses: [{ kind: 'tcp', port: 2, host: '::1' }] });
  t.deepEqual(config.servers[0].child.env, {});
});

test('a duration that looks like milliseconds is taken for seconds, with a warning', (t) => {
  const { config, warnings } = parse(['--request-timeout', '30000'], { MCP_PORTAGE_SESSION_TIMEOUT: '60000' });
  t.is(config.servers[0].limits.requestTimeoutMs, 30_000_000);
  t.deepEqual(warnings, [
    '--request-timeout 30000: a bare number is seconds, so these are 8.3 hours; milliseconds are written 30000ms.',
    'MCP_PORTAGE_SESSION_TIMEOUT 60000: a bare number is seconds, so these are 16.7 hours; milliseconds are written 60000ms.',
  ]);
  for (const text of ['30000ms', '86400', '3000', '30s', '0'])
    t.deepEqual(parse(['--request-timeout', text]).warnings, [], text);
  t.deepEqual(parse(['--max-sessions', '5000']).warnings, []);
});

test('files of variables are read in order, and an open one gets a warning', (t) => {
  const texts: Record<string, string> = { '/work-dir/a': 'A=1\nB="two words"\n', '/etc/b': 'export A=3\nC=$A\n' };
  const readFile = (path: string) => ({ text: texts[path] ?? '\0', isOpenToAll: path === '/etc/b' });
  const { config, warnings } = parse(['--env-from', 'a', '--env-from', '/etc/b', '--env', 'D=4'], {}, { readFile });
  t.deepEqual(config.servers[0].child.env, { A: '3', B: 'two words', C: '$A', D: '4' });
  t.deepEqual(warnings, [
    '--env-from /etc/b: every user of this machine can read this file; chmod 600 keeps the credentials in it private.',
  ]);
  t.throws(() => parse(['--env-from', 'c'], {}, { readFile }), {
    code: 'ERR_CONFIG_OPTION',
    message: '--env-from /work-dir/c: this file is not a text file.',
  });
  const missing = () => {
    throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
  };
  t.throws(() => parse(['--env-from', 'd'], {}, { readFile: missing }), {
    message: '--env-from /work-dir/d: this file does not exist.',
  });
});

test('an empty variable counts as not set', (t) => {
  t.like(parse([], { MCP_PORTAGE_PORT: '' }).config.listener, { addresses: [{ port: 8000 }] });
});

test('what Kubernetes says of a service called mcp-portage is not taken for the port', (t) => {
  const { config, warnings } = parse([], {
    MCP_PORTAGE_PORT: 'tcp://10.0.0.11:8000',
    MCP_PORTAGE_SERVICE_HOST: '10.0.0.11',
    MCP_PORTAGE_PORT_8000_TCP_ADDR: '10.0.0.11',
  });
  t.like(config.listener, { addresses: [{ port: 8000 }] });
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

test('HTTP+SSE that is not served has no end', (t) => {
  const { code, message } = refusal(['--no-sse', '--sunset', '2027-03-31']);
  t.is(code, 'ERR_CONFIG_COMBINATION');
  t.is(message, '--sunset says when HTTP+SSE ends, but --no-sse does not serve it at all; leave one of them out.');
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
  t.deepEqual(parse(['--env', 'KEY'], { KEY: 'x' }).config.servers[0].child.env, { KEY: 'x' });
  const { code, message } = refusal(['--env', 'KEY']);
  t.is(code, 'ERR_CONFIG_OPTION');
  t.regex(message, /expected KEY to be set .*--env KEY=value\.$/);
});

test('the names the server does not get are kept for the hint', (t) => {
  t.deepEqual(parse([], { PATH: '/bin', TOKEN: 'x', A: 'y' }).config.servers[0].child.withheldEnv, ['A', 'TOKEN']);
  t.deepEqual(parse(['--inherit-env'], { PATH: '/bin', TOKEN: 'x' }).config.servers[0].child.withheldEnv, []);
});

const excludes = test.macro({
  title: (_, argv: string) => `these do not go together: ${argv}`,
  exec(t, argv: string, expected: RegExp) {
    const { code, message } = refusal(argv.split(' '));
    t.is(code, 'ERR_CONFIG_COMBINATION');
    t.regex(message, expected);
  },
});

test('an era without the transport is refused', (t) => {
  const argv = ['serve', '--transport', 'sse', '--protocol', 'modern', 'https://example.com/sse'];
  t.throws(() => parseLine(argv), { code: 'ERR_CONFIG_COMBINATION', message: /^--transport sse .* --protocol modern/ });
});

test(excludes, '--tls-cert a.pem', /^--tls-cert needs --tls-key/);
test(excludes, '--tls-key a.pem', /^--tls-key needs --tls-cert/);
test(excludes, '--path /x --sse-path /x', /^--sse-path: the path \/x is taken by --path/);
test(excludes, '--message-path /mcp/', /^--message-path: the path \/mcp is taken by --path/);
test(excludes, '--path /readyz', /taken by what the bridge tells of itself/);
test(excludes, '--prewarm 2 --isolation shared', /expected at most 1/);
test(excludes, '--prewarm 9 --max-sessions 8', /^--prewarm 9 .* --max-sessions allows/);
test(excludes, '--prewarm 9 --max-children 8', /^--prewarm 9 .* --max-children allows/);
test(
  excludes,
  '--rename-tool a=c --rename-tool b=c',
  /^--rename-tool: the tools "a" and "b" would both be called "c"; /,
);
test(
  excludes,
  '--rename-tool a=b --describe-tool b=x',
  /^--rename-tool: the tools "a" and "b" would both be called "b"; /,
);
test(excludes, '--rename-tool a=b --rename-tool a=c', /^--rename-tool names the tool "a" twice/);
test(excludes, '--describe-tool a=b --describe-tool a=c', /^--describe-tool names the tool "a" twice/);
test(excludes, '--header X:1', /^--header is for a server that is reached by its URL/);

test('where callers have several names, one of them gets half of the sessions unless told otherwise', (t) => {
  const tokens = { A: 'a-long-token-of-alice', B: 'b-long-token-of-bob' };
  const [alice, bob] = ['--auth-token=alice=env:A', '--auth-token=bob=env:B'];
  const limitOf = (...options: string[]) =>
    parseLine(['--max-sessions', '9', ...options, '--', 'x'], tokens).config.servers[0].sessions.maxCallerSessions;
  t.is(limitOf(), 9);
  t.is(limitOf(alice), 9);
  t.is(limitOf(alice, bob), 5);
  t.is(limitOf(alice, bob, '--max-caller-sessions', '7'), 7);
  t.is(limitOf('--auth-issuer', 'https://auth.example', '--auth-audience', 'x'), 5);
  t.is(limitOf(alice, '--map-header', 'X-User=USER_ENV'), 5);
});

test('a pool of processes is small, one of sessions on a shared or remote server is not', (t) => {
  const sizeOf = (line: string) => parseLine(line.split(' ')).config.servers[0].sessions.poolSize;
  t.is(sizeOf('-- x'), 16);
  t.is(sizeOf('--isolation shared -- x'), 256);
  t.is(sizeOf('https://example.com/mcp'), 256);
  t.is(sizeOf('--pool-size 20 -- x'), 20);
});

test('one process started ahead goes together with sharing it', (t) => {
  t.is(parse(['--prewarm', '1', '--isolation', 'shared']).config.servers[0].sessions.prewarm, 1);
});

test('logs are for people on a terminal and for programs elsewhere', (t) => {
  t.is(parse([], {}, { stderrIsTerminal: true }).config.log.format, 'pretty');
  t.is(parse([], {}, { stderrIsTerminal: false }).config.log.format, 'json');
  t.is(parse(['--log-format', 'json'], {}, { stderrIsTerminal: true }).config.log.format, 'json');
});

test('warns of a variable that looks like a misspelled setting', (t) => {
  t.deepEqual(parse([], { MCP_PORTAGE_MAX_SESSION: '3' }).warnings, [
    'MCP_PORTAGE_MAX_SESSION is not a setting of mcp-portage; did you mean MCP_PORTAGE_MAX_SESSIONS?',
  ]);
});

test('two tools may swap their names, and the name of a hidden one is free', (t) => {
  for (const argv of [
    ['--rename-tool', 'a=b', '--rename-tool', 'b=a'],
    ['--rename-tool', 'a=b', '--describe-tool', 'b=x', '--exclude-tool', 'b'],
    ['--rename-tool', 'a=b', '--describe-tool', 'b=x', '--include-tool', 'a'],
    ['--rename-tool', 'a=a'],
  ]) {
    t.is(parseLine([...argv, '--', 'x']).config.servers[0].tools.shapes.get('a')?.name, argv[1]?.slice(2));
  }
});
