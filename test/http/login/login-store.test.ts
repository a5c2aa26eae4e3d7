import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { LoginConfig } from '../../../src/config/remote.ts';
import { LoginStore, type StoredLogin } from '../../../src/http/login/login-store.ts';
import { temporaryFolder } from './logged-in.ts';
import { NO_OPTIONS } from './login-config.ts';

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
  },
  scopes: ['read'],
  tokens: { accessToken: 'a', refreshToken: 'r', renewAtMs: 1 },
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
    store.save({ ...LOGIN, tokens: { accessToken, refreshToken: undefined, renewAtMs: undefined } });
    t.is(store.load()?.tokens, undefined);
  }
});
