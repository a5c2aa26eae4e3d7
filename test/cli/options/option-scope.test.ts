import test from 'ava';
import { isApplicable, refuseInapplicable } from '../../../src/cli/options/applicable.ts';
import { OPTIONS, type OptionName, optionOf } from '../../../src/cli/options/option-table.ts';
import type { Target } from '../../../src/config/server.ts';
import { BridgeError } from '../../../src/errors.ts';

/** Where each option belongs, by `verb target`; pinned here because commands of users rely on it. */
const WITH_SERVER = ['serve', 'connect', 'probe'] as const;
const TARGETS = ['command', 'url', 'stream', 'grpc', 'mqtt', 'replay'] as const;
const EVERYWHERE = WITH_SERVER.flatMap((verb) => TARGETS.map((target) => `${verb} ${target}`));
const OF_COMMANDS = WITH_SERVER.map((verb) => `${verb} command`);
const OF_URLS = WITH_SERVER.map((verb) => `${verb} url`);
const OF_BROKERS = WITH_SERVER.map((verb) => `${verb} mqtt`);
const OF_CALLED = WITH_SERVER.flatMap((verb) => [`${verb} url`, `${verb} grpc`]);
const OF_RUNNING = WITH_SERVER.flatMap((verb) =>
  (['url', 'stream', 'grpc', 'mqtt'] as const).map((target) => `${verb} ${target}`),
);
const LISTENING = ['serve command', 'serve url', 'serve stream', 'serve grpc', 'serve mqtt', 'serve replay'];
const RUNNING = [
  ...LISTENING,
  'connect command',
  'connect url',
  'connect stream',
  'connect grpc',
  'connect mqtt',
  'connect replay',
];
const PINGED = ['serve url', 'connect url', 'serve stream', 'connect stream', 'serve grpc', 'connect grpc'];
const USED_LONG = [...PINGED, 'serve mqtt', 'connect mqtt'];
const SCOPES: Readonly<Record<OptionName, readonly string[]>> = {
  config: EVERYWHERE,
  allowWritableConfig: EVERYWHERE,
  strictConfig: EVERYWHERE,
  aggregate: EVERYWHERE,
  for: [],
  host: LISTENING,
  port: LISTENING,
  socket: LISTENING,
  socketMode: LISTENING,
  stream: LISTENING,
  grpc: LISTENING,
  tlsCert: LISTENING,
  tlsKey: LISTENING,
  path: LISTENING,
  sse: LISTENING,
  ssePath: LISTENING,
  messagePath: LISTENING,
  sunset: LISTENING,
  afterSunset: LISTENING,
  ws: LISTENING,
  wsPath: LISTENING,
  baseUrl: LISTENING,
  dial: LISTENING,
  dialHeader: LISTENING,
  dialToken: LISTENING,
  dialCa: LISTENING,
  allowHost: LISTENING,
  allowOrigin: LISTENING,
  allowAnonymous: LISTENING,
  authToken: LISTENING,
  authIssuer: LISTENING,
  authAudience: LISTENING,
  authJwks: LISTENING,
  authScope: LISTENING,
  store: LISTENING,
  advertise: LISTENING,
  clusterKey: LISTENING,
  storePrefix: LISTENING,
  storeCa: LISTENING,
  storeClientCert: LISTENING,
  storeClientKey: LISTENING,
  lease: LISTENING,
  clusterLimits: LISTENING,
  protocol: EVERYWHERE,
  includeTool: RUNNING,
  excludeTool: RUNNING,
  pinTools: RUNNING,
  renameTool: RUNNING,
  describeTool: RUNNING,
  mapHeader: ['serve command'],
  cwd: OF_COMMANDS,
  env: OF_COMMANDS,
  envFrom: OF_COMMANDS,
  inheritEnv: OF_COMMANDS,
  watch: ['serve command', 'connect command'],
  pty: OF_COMMANDS,
  replaySpeed: WITH_SERVER.map((verb) => `${verb} replay`),
  transport: OF_URLS,
  header: OF_CALLED,
  headerFile: OF_CALLED,
  bearerTokenFile: OF_CALLED,
  forwardHeader: ['serve url', 'serve grpc'],
  user: OF_BROKERS,
  password: OF_BROKERS,
  ca: OF_RUNNING,
  clientCert: OF_RUNNING,
  clientKey: OF_RUNNING,
  connectTimeout: USED_LONG,
  firstByteTimeout: ['serve url', 'connect url'],
  idleTimeout: ['serve url', 'connect url'],
  callTimeout: ['serve url', 'connect url'],
  keepAlive: PINGED,
  login: OF_URLS,
  exchangeToken: ['serve url'],
  oauthGrant: OF_URLS,
  oauthClientId: OF_URLS,
  oauthSecretFile: OF_URLS,
  oauthClientKey: OF_URLS,
  oauthAssertionFile: OF_URLS,
  oauthIdpIssuer: OF_URLS,
  oauthIdpClientId: OF_URLS,
  oauthIdpSecretFile: OF_URLS,
  oauthClientDocument: OF_URLS,
  oauthIssuer: OF_URLS,
  oauthTokenEndpoint: OF_URLS,
  oauthAuthMethod: OF_URLS,
  oauthAssumePkce: OF_URLS,
  oauthScope: OF_URLS,
  oauthResource: OF_URLS,
  oauthToken: OF_URLS,
  oauthParam: OF_URLS,
  oauthCallback: OF_URLS,
  oauthBrowser: OF_URLS,
  status: LISTENING,
  statusToken: LISTENING,
  metrics: LISTENING,
  usage: RUNNING,
  auditFile: RUNNING,
  auditRequired: RUNNING,
  record: RUNNING,
  recordSecrets: RUNNING,
  recordMaxMessage: RUNNING,
  recordMaxSize: RUNNING,
  inspect: LISTENING,
  stateDir: EVERYWHERE,
  accept: [],
  url: [],
  all: [],
  since: [],
  follow: [],
  errors: [],
  method: [],
  client: [],
  server: [],
  full: [],
  isolation: ['serve command', 'serve stream', 'serve grpc', 'serve mqtt'],
  prewarm: ['serve command'],
  sessionTimeout: LISTENING,
  sessionIdleTimeout: LISTENING,
  maxSessions: LISTENING,
  maxCallerSessions: LISTENING,
  poolSize: LISTENING,
  maxChildren: ['serve command'],
  pollAfter: LISTENING,
  maxMessageBytes: EVERYWHERE,
  maxResultBytes: RUNNING,
  maxJsonDepth: RUNNING,
  maxHeaderBytes: LISTENING,
  maxInFlight: LISTENING,
  maxSessionInFlight: LISTENING,
  maxSessionStreams: LISTENING,
  maxReplayBytes: LISTENING,
  maxParkedCalls: LISTENING,
  maxParkedBytes: LISTENING,
  requestTimeout: RUNNING,
  maxCallTime: RUNNING,
  hangTimeout: ['serve command'],
  shutdownGrace: RUNNING,
  json: TARGETS.map((target) => `probe ${target}`),
  timeout: TARGETS.map((target) => `probe ${target}`),
  logLevel: EVERYWHERE,
  logFormat: EVERYWHERE,
};

for (const option of OPTIONS) {
  test(`${option.flag} can be used where it has a meaning, and is refused elsewhere`, (t) => {
    const accepted = EVERYWHERE.filter((place) => {
      const [verb, target] = place.split(' ') as [(typeof WITH_SERVER)[number], Target['kind']];
      return isApplicable(option, { verb, target });
    });
    t.deepEqual([...accepted].sort(), [...SCOPES[option.name]].sort());
  });
}

const refuses = test.macro({
  title: (_, verb: string, target: string, name: OptionName) =>
    `${verb} of a ${target} refuses ${optionOf(name).flag}, with the way out`,
  exec(t, verb: 'serve' | 'connect' | 'probe', target: Target['kind'], name: OptionName, expected: string) {
    const error = t.throws(() => refuseInapplicable(new Map([[name, ['x']]]), { verb, target, spelling: 'flags' }), {
      instanceOf: BridgeError,
    });
    t.is(error?.code, 'ERR_CONFIG_COMBINATION');
    t.is(error?.message, expected);
  },
});

test(
  refuses,
  'connect',
  'url',
  'port',
  '--port is for `serve`; `connect` does not listen: it speaks on its own stdin and stdout, with one client. Leave it out.',
);
test(
  refuses,
  'serve',
  'url',
  'cwd',
  '--cwd is for a server that is started as a command; this one runs already and is reached by its URL. Leave it out.',
);
test(
  refuses,
  'serve',
  'command',
  'header',
  '--header is for a server that is reached by its URL or reached over gRPC; this one is started as a command. Leave it out, or hand the command what it needs by its own arguments or with --env.',
);
test(
  refuses,
  'serve',
  'command',
  'timeout',
  '--timeout is for `probe`; `serve` runs until it is stopped. Leave it out, or did you mean --session-timeout or --session-idle-timeout or --request-timeout or --hang-timeout?',
);
test(
  refuses,
  'probe',
  'url',
  'idleTimeout',
  '--idle-timeout is for `serve` and `connect`; `probe` only looks at the server, once. Leave it out.',
);

test('snippet takes what says where serve listens, and nothing of the servers there', (t) => {
  const takes = (name: OptionName): boolean => isApplicable(optionOf(name), { verb: 'snippet', target: 'any' });
  for (const name of ['for', 'config', 'port', 'path', 'baseUrl', 'authToken'] as const) t.true(takes(name), name);
  for (const name of ['json', 'timeout'] as const) t.false(takes(name), name);
});

test('report, top and view take what says where to look, and nothing about servers', (t) => {
  const takenBy = (verb: 'report' | 'top' | 'view') =>
    OPTIONS.filter((option) => isApplicable(option, { verb, target: 'any' })).map(({ name }) => name);
  t.deepEqual(takenBy('report'), ['stateDir', 'statusToken', 'json', 'url', 'all', 'since', 'logLevel', 'logFormat']);
  t.deepEqual(takenBy('top'), ['statusToken', 'all', 'logLevel', 'logFormat']);
  const filters = ['errors', 'method', 'client', 'server'];
  t.deepEqual(takenBy('view'), ['statusToken', 'json', 'follow', ...filters, 'full', 'logLevel', 'logFormat']);
});

for (const verb of ['snippet', 'report', 'top', 'view'] as const) {
  test(`what ${verb} has no use for is refused`, (t) => {
    const use = { verb, target: 'any', spelling: 'flags' } as const;
    const error = t.throws(() => refuseInapplicable(new Map([['isolation', ['shared']]]), use));
    t.regex(error?.message ?? '', /^--isolation is .* only .*Leave it out/);
    t.true(error?.message.includes(`\`${verb}\``));
  });
}

test(
  refuses,
  'connect',
  'stream',
  'header',
  '--header is for a server that is reached by its URL or reached over gRPC; this one is reached over a byte stream. Leave it out.',
);
test(
  refuses,
  'serve',
  'url',
  'isolation',
  '--isolation is for a server that is started as a command or reached over a byte stream or reached over gRPC or reached through a broker of MQTT; this one runs already and is reached by its URL. Leave it out.',
);
test(
  refuses,
  'connect',
  'command',
  'keepAlive',
  '--keep-alive is for a server that is reached by its URL or reached over a byte stream or reached over gRPC; this one is started as a command. Leave it out, or hand the command what it needs by its own arguments or with --env.',
);
test(
  refuses,
  'serve',
  'replay',
  'cwd',
  '--cwd is for a server that is started as a command; this one is replayed from a recording. Leave it out.',
);
