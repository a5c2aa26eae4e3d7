import { readFileSync } from 'node:fs';
import test from 'ava';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { parseConfig, type Surroundings } from '../../../src/cli/parse/config.ts';

const KEY = 'a-key-of-at-least-thirty-two-characters';
const CA = readFileSync(new URL('../../fixtures/tls/ca.pem', import.meta.url), 'utf8');
const around: Surroundings = {
  env: { KEY, SHORT: 'short', ONE_SHORT: `${KEY},short-secret`, BLANK: ' \n' },
  cwd: '/work-dir',
  platform: 'linux',
  stderrIsTerminal: false,
  readFile: (path) => {
    if (path === '/run/ca.pem') return { text: CA, isOpenToAll: false };
    if (path === '/run/key') return { text: `${KEY}\nanother-${KEY}\n`, isOpenToAll: false };
    throw Object.assign(new Error('not there'), { code: 'ENOENT' });
  },
};
const STORE = ['--store', 'redis://store.example'];
const ADVERTISE = ['--advertise', 'http://10.0.0.5:8000'];
const WITH_KEY = ['--cluster-key', 'env:KEY'];

function parse(...argv: readonly string[]) {
  const command = parseCommandLine(['serve', ...argv, '--', 'server']);
  if (command.kind !== 'bridge') throw new Error(`got ${command.kind}`);
  return parseConfig(command, around);
}

test('without a store there is no cluster', (t) => {
  t.is(parse().config.cluster, undefined);
});

test('a replica has a store, an address and a key', (t) => {
  const { cluster } = parse(...STORE, ...ADVERTISE, ...WITH_KEY).config;
  t.is(cluster?.store.address.hosts[0].host, 'store.example');
  t.is(cluster?.store.prefix, 'mcp-portage:');
  t.is(cluster?.advertise.origin, 'http://10.0.0.5:8000');
  t.deepEqual(cluster?.keys, [KEY]);
  t.is(cluster?.leaseMs, 15_000);
  t.deepEqual(parse(...STORE, ...ADVERTISE, ...WITH_KEY).warnings, []);
});

test('keys may be in a file', (t) => {
  const { cluster } = parse(...STORE, ...ADVERTISE, '--cluster-key', 'file:/run/key').config;
  t.deepEqual(cluster?.keys, [KEY, `another-${KEY}`]);
});

test('an address of this machine alone is warned of', (t) => {
  const { warnings } = parse(...STORE, '--advertise', 'http://127.0.0.1:8000', ...WITH_KEY);
  t.regex(warnings[0] ?? '', /replicas on other machines cannot reach/);
});

test('the variable with the key is kept from the server', (t) => {
  const { servers } = parse(...STORE, ...ADVERTISE, ...WITH_KEY, '--inherit-env').config;
  t.deepEqual(Object.keys(servers[0].child.env), ['SHORT', 'ONE_SHORT', 'BLANK']);
});

test('limits hold for each replica unless they are to hold for all', (t) => {
  t.is(parse(...STORE, ...ADVERTISE, ...WITH_KEY).config.cluster?.limits, 'of-each-replica');
  t.is(parse(...STORE, ...ADVERTISE, ...WITH_KEY, '--cluster-limits').config.cluster?.limits, 'of-all-replicas');
});

test('files for Redis over TLS are read at the start', (t) => {
  const argv = ['--store', 'rediss://store.example', ...ADVERTISE, ...WITH_KEY, '--store-ca', '/run/ca.pem'];
  t.deepEqual(parse(...argv).config.cluster?.store.tls, { ca: CA, cert: undefined, key: undefined });
});

const REFUSALS: readonly (readonly [string, readonly string[], string, RegExp])[] = [
  ['a store alone', STORE, 'ERR_CONFIG_COMBINATION', /--store needs --advertise/],
  ['a store without a key', [...STORE, ...ADVERTISE], 'ERR_CONFIG_COMBINATION', /--store needs --cluster-key/],
  ['an address without a store', ADVERTISE, 'ERR_CONFIG_COMBINATION', /--advertise .* needs --store/],
  ['a key without a store', WITH_KEY, 'ERR_CONFIG_COMBINATION', /--cluster-key .* needs --store/],
  ['limits without a store', ['--cluster-limits'], 'ERR_CONFIG_COMBINATION', /--cluster-limits .* needs --store/],
  ['the key itself', [...STORE, ...ADVERTISE, '--cluster-key', KEY], 'ERR_CONFIG_OPTION', /where the key is found/],
  ['a short key', [...STORE, ...ADVERTISE, '--cluster-key', 'env:SHORT'], 'ERR_CONFIG_OPTION', /at least 32/],
  ['no key at all', [...STORE, ...ADVERTISE, '--cluster-key', 'env:BLANK'], 'ERR_CONFIG_OPTION', /a key; got nothing/],
  [
    'a short key beside a good one',
    [...STORE, ...ADVERTISE, '--cluster-key', 'env:ONE_SHORT'],
    'ERR_CONFIG_OPTION',
    /^(?!.*short-secret).*one is shorter/,
  ],
  [
    'a key in a variable that is not set',
    [...STORE, ...ADVERTISE, '--cluster-key', 'env:NOWHERE'],
    'ERR_CONFIG_OPTION',
    /variable NOWHERE; got nothing\. Set it, or correct its name/,
  ],
  [
    'a key that is nowhere',
    [...STORE, ...ADVERTISE, '--cluster-key', 'file:/x'],
    'ERR_CONFIG_OPTION',
    /this file does not exist/,
  ],
  ['a path in the address', [...STORE, '--advertise', 'http://a/b', ...WITH_KEY], 'ERR_CONFIG_OPTION', /without path/],
  [
    'an authority without TLS',
    [...STORE, ...ADVERTISE, ...WITH_KEY, '--store-ca', '/run/ca.pem'],
    'ERR_CONFIG_COMBINATION',
    /needs --store rediss/,
  ],
  [
    'a certificate without its key',
    ['--store', 'rediss://a', ...ADVERTISE, ...WITH_KEY, '--store-client-cert', '/run/ca.pem'],
    'ERR_CONFIG_COMBINATION',
    /go together/,
  ],
  [
    'an authority that is none',
    ['--store', 'rediss://a', ...ADVERTISE, ...WITH_KEY, '--store-ca', '/run/key'],
    'ERR_CONFIG_OPTION',
    /no usable TLS/,
  ],
  [
    'a lease that is too short',
    [...STORE, ...ADVERTISE, ...WITH_KEY, '--lease', '1ms'],
    'ERR_CONFIG_OPTION',
    /at least 1s/,
  ],
];

for (const [what, argv, code, message] of REFUSALS) {
  test(`refuses ${what}`, (t) => {
    const error = t.throws(() => parse(...argv), { code, message });
    t.false(error?.message.includes(KEY));
  });
}
