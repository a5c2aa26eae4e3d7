import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { LoginConfig } from '../../../src/config/remote.ts';
import { LoginFile, SharedLogin } from '../../../src/http/login/login-storage.ts';
import { LoginStore, parseStoredLogin, type StoredLogin } from '../../../src/http/login/login-store.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { temporaryFolder } from './logged-in.ts';
import { NO_OPTIONS } from './login-config.ts';

const TOKENS = {
  accessToken: 'a',
  hasIdToken: true,
  refreshToken: 'r',
  renewAtMs: 1,
  scopes: ['read'],
  key: undefined,
};
const LOGIN: StoredLogin = {
  issuer: 'https://auth.example',
  tokenEndpoint: 'https://auth.example/token',
  resource: 'https://example.com/mcp',
  client: {
    id: 'me',
    origin: 'registered',
    secret: 's',
    method: 'client_secret_basic',
    callback: 'http://127.0.0.1:1/',
    scopes: { asked: ['read', 'write'], granted: ['read'] },
    areTokensBound: true,
  },
  scopes: ['read'],
  tokens: TOKENS,
};

function createStore(stateDirectory: string, server = 'https://example.com/mcp', changes: Partial<LoginConfig> = {}) {
  let ids = 0;
  const config: LoginConfig = {
    ...NO_OPTIONS,
    stateDirectory,
    ...changes,
  };
  return new LoginStore(new URL(server), config, () => `id-${ids++}`);
}

const pathOf = ({ path }: LoginStore): string => path ?? 'nowhere';

test('a login is read as it was written, and gone when it is forgotten', (t) => {
  const folder = temporaryFolder(t);
  const store = createStore(folder);
  t.is(store.load(), undefined);
  store.save(LOGIN);
  t.deepEqual(store.load(), LOGIN);
  const { tokens: unused, ...registered } = LOGIN;
  store.save({ ...registered, tokens: undefined });
  t.is(store.load()?.tokens, undefined);
  store.forget();
  store.forget();
  t.is(store.load(), undefined);
  t.deepEqual(readdirSync(join(folder, 'logins')), [], 'nothing stays beside it');
});

/** Windows has no permission bits. */
const testModes = process.platform === 'win32' ? test.skip : test;

testModes('nobody else can read a login, whatever the folder was like before', (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'logins'));
  chmodSync(join(folder, 'logins'), 0o777);
  const store = createStore(folder);
  store.save(LOGIN);
  t.is(statSync(join(folder, 'logins')).mode & 0o777, 0o700);
  t.is(statSync(pathOf(store)).mode & 0o777, 0o600);
  chmodSync(pathOf(store), 0o666);
  store.save(LOGIN);
  t.is(statSync(pathOf(store)).mode & 0o777, 0o600);
});

test('servers, and clients of one server, have files of their own', (t) => {
  const folder = temporaryFolder(t);
  const client = { id: 'other', proof: { kind: 'none' } } as const;
  const paths = [
    createStore(folder),
    createStore(folder, 'https://example.com/other'),
    createStore(folder, 'https://example.com:8443/mcp'),
    createStore(folder, 'https://example.com/mcp', { client }),
    createStore(folder, 'https://example.com/mcp', { issuer: 'https://auth.example' }),
    createStore(folder, 'https://example.com/mcp', { grant: 'client-credentials' }),
  ].map(pathOf);
  const withCode = createStore(folder, 'https://example.com/mcp', { grant: 'device-code' });
  t.true(pathOf(withCode) === paths[0], "a user's login is one");
  t.is(new Set(paths).size, paths.length);
  for (const path of paths) t.regex(path, /logins[\\/]example\.com(_8443)?-[0-9a-f]{16}\.json$/);
});

test('a file that cannot be replaced leaves the old login in place, and nothing beside it', (t) => {
  const folder = temporaryFolder(t);
  const store = createStore(folder);
  mkdirSync(pathOf(store), { recursive: true });
  writeFileSync(join(pathOf(store), 'in-the-way'), '');
  t.throws(() => store.save(LOGIN));
  t.deepEqual(readdirSync(join(folder, 'logins')).length, 1);
});

test('a token that could not be sent is not used, whoever wrote it into the file', (t) => {
  const store = createStore(temporaryFolder(t));
  for (const accessToken of ['x'.repeat(900_000), 'a\r\nX-Evil: 1']) {
    store.save({ ...LOGIN, tokens: { ...TOKENS, accessToken } });
    t.is(store.load()?.tokens, undefined);
  }
});

test('a file that does not say what a login needs is no login', (t) => {
  const { client } = LOGIN;
  for (const [title, document] of Object.entries({
    'no object': 'text',
    'no value': null,
    'no issuer': { ...LOGIN, issuer: undefined },
    'an empty issuer': { ...LOGIN, issuer: '' },
    'no token endpoint': { ...LOGIN, tokenEndpoint: 5 },
    'a resource that is no text': { ...LOGIN, resource: 7 },
    'no client': { ...LOGIN, client: null },
    'a client without an id': { ...LOGIN, client: { ...client, id: undefined } },
    'a client with an unknown method': { ...LOGIN, client: { ...client, method: 'tls_client_auth' } },
    'a client from nowhere': { ...LOGIN, client: { ...client, origin: 'found' } },
  })) {
    t.is(parseStoredLogin(JSON.stringify(document)), undefined, title);
  }
  t.is(parseStoredLogin('{"issuer":'), undefined);
});

test('what a login can do without is left out where the file has something else', (t) => {
  const { client, tokens } = LOGIN;
  const parse = (changes: object) => parseStoredLogin(JSON.stringify({ ...LOGIN, ...changes }));
  t.deepEqual(parse({ scopes: ['read', 5, ''] })?.scopes, ['read']);
  t.deepEqual(parse({ scopes: 'read' })?.scopes, []);
  t.deepEqual(
    parse({ client: { ...client, secret: 5, callback: '', scopes: { asked: ['a'] }, areTokensBound: 1 } })?.client,
    {
      ...client,
      secret: undefined,
      callback: undefined,
      scopes: undefined,
      areTokensBound: false,
    },
  );
  t.deepEqual(
    parse({ tokens: { ...tokens, hasIdToken: 1, refreshToken: '', renewAtMs: 'soon', scopes: 'read' } })?.tokens,
    {
      accessToken: 'a',
      hasIdToken: false,
      refreshToken: undefined,
      renewAtMs: undefined,
      scopes: undefined,
      key: undefined,
    },
  );
  for (const none of [undefined, null, 'a', { refreshToken: 'r' }]) t.is(parse({ tokens: none })?.tokens, undefined);
});

test('of a client that was not registered by us neither a secret nor an address is kept', (t) => {
  for (const origin of ['configured', 'document'] as const) {
    for (const method of ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const) {
      const login = { ...LOGIN, client: { origin, id: 'me', method, secret: 's', callback: 'http://127.0.0.1:1/' } };
      t.deepEqual(parseStoredLogin(JSON.stringify(login))?.client, { origin, id: 'me', method });
    }
  }
});

test('without a folder no login is there, and none can be kept', (t) => {
  const store = new LoginStore(
    new URL('https://example.com/mcp'),
    { ...NO_OPTIONS, stateDirectory: undefined },
    () => '',
  );
  t.is(store.path, undefined);
  t.is(store.load(), undefined);
  t.notThrows(() => store.forget());
  t.throws(() => store.save(LOGIN), { message: 'there is no folder for logins' });
});

test('a file is named for the host as far as a file can be', (t) => {
  const folder = temporaryFolder(t);
  t.regex(pathOf(createStore(folder, 'https://[2001:db8::1]:8443/mcp')), /[\\/]_2001_db8__1__8443-[0-9a-f]{16}\.json$/);
  const long = `https://${'a'.repeat(50)}.${'b'.repeat(50)}/mcp`;
  t.regex(pathOf(createStore(folder, long)), /[\\/]a{50}\.b{9}-[0-9a-f]{16}\.json$/);
});

test('the login of the last run is used or forgotten, as the user says', (t) => {
  const stateDirectory = temporaryFolder(t);
  const server = new URL('https://example.com/mcp');
  const open = (stored: LoginConfig['stored']) =>
    new LoginFile(server, { ...NO_OPTIONS, stored, stateDirectory }, { ...createTestDeps().deps, randomId: () => 'x' });
  createStore(stateDirectory).save(LOGIN);
  t.deepEqual(open('use').load(), LOGIN);
  t.is(open('forget').load(), undefined);
  const { place = '' } = open('use');
  mkdirSync(place);
  const error = t.throws(() => open('forget'), { code: 'ERR_CONFIG_OPTION' });
  t.regex(error?.message ?? '', /^Cannot forget the login in .*\.json \(ERR_\w+\)\.$/);
});

test('what replicas share of a login has a name of its own for each server, and can be forgotten', async (t) => {
  const values = new Map<string, string | undefined>();
  const open = (server: string) =>
    SharedLogin.open(new URL(server), { ...NO_OPTIONS, stateDirectory: undefined }, (name) => ({
      get value() {
        return values.get(name);
      },
      look: async () => {},
      set: async (value) => void values.set(name, value),
      exclusively: (work) => work(),
    }));
  const [one, other] = [await open('https://example.com/mcp'), await open('https://example.com/other')];
  await one.save(LOGIN);
  t.deepEqual(one.load(), LOGIN);
  t.is(other.load(), undefined);
  await one.forget();
  t.is(one.load(), undefined);
});
