import { chmod, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { LoginConfig } from '../../../src/config.ts';
import { LoginStore } from '../../../src/http/login/login-store.ts';
import type { StoredLogin } from '../../../src/http/login/stored-login.ts';

const LOGIN: StoredLogin = {
  issuer: 'https://auth.example',
  tokenEndpoint: 'https://auth.example/token',
  resource: 'https://mcp.example/mcp',
  client: { id: 'c', origin: 'registered', secret: undefined, method: 'none', callback: 'http://127.0.0.1:1/callback' },
  scopes: ['read'],
  tokens: { accessToken: 'a', refreshToken: 'r', renewAtMs: 1 },
};

async function createStore(t: ExecutionContext) {
  const stateDirectory = await mkdtemp(join(tmpdir(), 'logins-'));
  t.teardown(() => rm(stateDirectory, { recursive: true }));
  const config = { stateDirectory, grant: 'authorization-code' } as LoginConfig; // all that names the file
  const storeOf = (server: string): LoginStore => new LoginStore(new URL(server), config, () => 'aside');
  return { stateDirectory, storeOf };
}

const testOnPosix = process.platform === 'win32' ? test.skip : test;

testOnPosix('others can read neither a login nor the names of the servers', async (t) => {
  const { stateDirectory, storeOf } = await createStore(t);
  const store = storeOf('https://mcp.example/mcp');
  // Made by somebody less careful.
  await mkdir(join(stateDirectory, 'logins'), { mode: 0o755 });
  await chmod(join(stateDirectory, 'logins'), 0o755);
  store.save(LOGIN);
  t.is((await stat(store.path)).mode & 0o777, 0o600);
  t.is((await stat(dirname(store.path))).mode & 0o777, 0o700);
});

test('a login is one file for each server, found again and forgotten', async (t) => {
  const { storeOf } = await createStore(t);
  const store = storeOf('https://mcp.example/mcp');
  t.is(store.load(), undefined);
  store.save(LOGIN);
  t.deepEqual(store.load(), LOGIN);
  t.is(storeOf('https://mcp.example/other').load(), undefined);
  t.is((await readdir(dirname(store.path))).length, 1);
  store.forget();
  t.is(store.load(), undefined);
});
