import test from 'ava';
import { isApplicable, refuseInapplicable } from '../../../src/cli/options/given-options.ts';
import { findOption, OPTIONS, type OptionName } from '../../../src/cli/options/option-table.ts';
import type { Target } from '../../../src/config/server.ts';
import { BridgeError } from '../../../src/errors.ts';

/** Where each option belongs, by `verb target`; pinned here because commands of users rely on it. */
const WITH_SERVER = ['serve', 'connect', 'probe'] as const;
const EVERYWHERE = WITH_SERVER.flatMap((verb) => [`${verb} command`, `${verb} url`, `${verb} stream`]);
const OF_COMMANDS = WITH_SERVER.map((verb) => `${verb} command`);
const OF_URLS = WITH_SERVER.map((verb) => `${verb} url`);
const OF_RUNNING = WITH_SERVER.flatMap((verb) => [`${verb} url`, `${verb} stream`]);
const LISTENING = ['serve command', 'serve url', 'serve stream'];
const RUNNING = [...LISTENING, 'connect command', 'connect url', 'connect stream'];
const USED_LONG = ['serve url', 'connect url', 'serve stream', 'connect stream'];
const SCOPES: Readonly<Record<OptionName, readonly string[]>> = {
  config: EVERYWHERE,
  'allow-writable-config': EVERYWHERE,
  'strict-config': EVERYWHERE,
  for: [],
  host: LISTENING,
  port: LISTENING,
  socket: LISTENING,
  'socket-mode': LISTENING,
  stream: LISTENING,
  'tls-cert': LISTENING,
  'tls-key': LISTENING,
  path: LISTENING,
  sse: LISTENING,
  'sse-path': LISTENING,
  'message-path': LISTENING,
  sunset: LISTENING,
  'after-sunset': LISTENING,
  ws: LISTENING,
  'ws-path': LISTENING,
  'base-url': LISTENING,
  dial: LISTENING,
  'dial-header': LISTENING,
  'dial-token': LISTENING,
  'dial-ca': LISTENING,
  'allow-host': LISTENING,
  'allow-origin': LISTENING,
  'allow-anonymous': LISTENING,
  'auth-token': LISTENING,
  'auth-issuer': LISTENING,
  'auth-audience': LISTENING,
  'auth-jwks': LISTENING,
  'auth-scope': LISTENING,
  store: LISTENING,
  advertise: LISTENING,
  'cluster-key': LISTENING,
  'store-prefix': LISTENING,
  'store-ca': LISTENING,
  'store-client-cert': LISTENING,
  'store-client-key': LISTENING,
  lease: LISTENING,
  'cluster-limits': LISTENING,
  protocol: EVERYWHERE,
  'include-tool': RUNNING,
  'exclude-tool': RUNNING,
  'map-header': ['serve command'],
  cwd: OF_COMMANDS,
  env: OF_COMMANDS,
  'env-from': OF_COMMANDS,
  'inherit-env': OF_COMMANDS,
  pty: OF_COMMANDS,
  transport: OF_URLS,
  header: OF_URLS,
  'header-file': OF_URLS,
  'bearer-token-file': OF_URLS,
  'forward-header': ['serve url'],
  ca: OF_RUNNING,
  'client-cert': OF_RUNNING,
  'client-key': OF_RUNNING,
  'connect-timeout': USED_LONG,
  'first-byte-timeout': ['serve url', 'connect url'],
  'idle-timeout': ['serve url', 'connect url'],
  'call-timeout': ['serve url', 'connect url'],
  'keep-alive': USED_LONG,
  login: OF_URLS,
  'exchange-token': ['serve url'],
  'oauth-grant': OF_URLS,
  'oauth-client-id': OF_URLS,
  'oauth-secret-file': OF_URLS,
  'oauth-client-key': OF_URLS,
  'oauth-assertion-file': OF_URLS,
  'oauth-idp-issuer': OF_URLS,
  'oauth-idp-client-id': OF_URLS,
  'oauth-idp-secret-file': OF_URLS,
  'oauth-client-document': OF_URLS,
  'oauth-issuer': OF_URLS,
  'oauth-token-endpoint': OF_URLS,
  'oauth-auth-method': OF_URLS,
  'oauth-assume-pkce': OF_URLS,
  'oauth-scope': OF_URLS,
  'oauth-resource': OF_URLS,
  'oauth-token': OF_URLS,
  'oauth-param': OF_URLS,
  'oauth-callback': OF_URLS,
  'oauth-browser': OF_URLS,
  status: LISTENING,
  'status-token': LISTENING,
  metrics: LISTENING,
  usage: RUNNING,
  'audit-file': RUNNING,
  'audit-required': RUNNING,
  'state-dir': EVERYWHERE,
  url: [],
  all: [],
  since: [],
  isolation: ['serve command', 'serve stream'],
  prewarm: ['serve command'],
  'session-timeout': LISTENING,
  'session-idle-timeout': LISTENING,
  'max-sessions': LISTENING,
  'max-caller-sessions': LISTENING,
  'pool-size': LISTENING,
  'max-children': ['serve command'],
  'poll-after': LISTENING,
  'max-message-bytes': EVERYWHERE,
  'max-json-depth': RUNNING,
  'max-header-bytes': LISTENING,
  'max-in-flight': LISTENING,
  'max-session-in-flight': LISTENING,
  'max-session-streams': LISTENING,
  'max-replay-bytes': LISTENING,
  'max-parked-calls': LISTENING,
  'max-parked-bytes': LISTENING,
  'request-timeout': RUNNING,
  'max-call-time': RUNNING,
  'hang-timeout': ['serve command'],
  'shutdown-grace': RUNNING,
  json: ['probe command', 'probe url', 'probe stream'],
  timeout: ['probe command', 'probe url', 'probe stream'],
  'log-level': EVERYWHERE,
  'log-format': EVERYWHERE,
};

for (const { name } of OPTIONS) {
  test(`--${name} can be used where it has a meaning, and is refused elsewhere`, (t) => {
    const option = findOption(name);
    if (option === undefined) return t.fail();
    const accepted = EVERYWHERE.filter((place) => {
      const [verb, target] = place.split(' ') as [(typeof WITH_SERVER)[number], Target['kind']];
      return isApplicable(option, { verb, target });
    });
    t.deepEqual([...accepted].sort(), [...SCOPES[name]].sort());
  });
}

const refuses = test.macro({
  title: (_, verb: string, target: string, name: OptionName) =>
    `${verb} of a ${target} refuses --${name}, with the way out`,
  exec(t, verb: 'serve' | 'connect' | 'probe', target: Target['kind'], name: OptionName, expected: string) {
    const error = t.throws(() => refuseInapplicable(new Map([[name, ['x']]]), { verb, target }), {
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
  '--header is for a server that is reached by its URL; this one is started as a command. Leave it out, or hand the command what it needs by its own arguments or with --env.',
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
  'idle-timeout',
  '--idle-timeout is for `serve` and `connect`; `probe` only looks at the server, once. Leave it out.',
);

test('snippet takes what says where serve listens, and nothing of the servers there', (t) => {
  const takes = (name: OptionName): boolean => {
    const option = findOption(name);
    return option !== undefined && isApplicable(option, { verb: 'snippet', target: 'any' });
  };
  for (const name of ['for', 'config', 'port', 'path', 'base-url', 'auth-token'] as const) t.true(takes(name), name);
  for (const name of ['json', 'timeout'] as const) t.false(takes(name), name);
});

test('report and top take what says where to look, and nothing about servers', (t) => {
  const takenBy = (verb: 'report' | 'top') =>
    OPTIONS.filter((option) => isApplicable(option, { verb, target: 'any' })).map(({ name }) => name);
  t.deepEqual(takenBy('report'), [
    'state-dir',
    'status-token',
    'url',
    'all',
    'since',
    'json',
    'log-level',
    'log-format',
  ]);
  t.deepEqual(takenBy('top'), ['status-token', 'all', 'log-level', 'log-format']);
});

for (const verb of ['snippet', 'report', 'top'] as const) {
  test(`what ${verb} has no use for is refused`, (t) => {
    const use = { verb, target: 'any' } as const;
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
  '--header is for a server that is reached by its URL; this one is reached over a byte stream. Leave it out.',
);
test(
  refuses,
  'serve',
  'url',
  'isolation',
  '--isolation is for a server that is started as a command or reached over a byte stream; this one runs already and is reached by its URL. Leave it out.',
);
test(
  refuses,
  'connect',
  'command',
  'keep-alive',
  '--keep-alive is for a server that is reached by its URL or reached over a byte stream; this one is started as a command. Leave it out, or hand the command what it needs by its own arguments or with --env.',
);
