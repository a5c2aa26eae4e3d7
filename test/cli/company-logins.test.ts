/** Logins of workloads, and of users of a company, by the built program; `npm test` builds it first. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import test, { type ExecutionContext } from 'ava';
import { UnsecuredJWT } from 'jose';
import { temporaryFolder } from '../http/login/logged-in.ts';
import { BROWSER } from '../support/browser-command.ts';
import { CLIENT_AT_PROVIDER, CLIENT_AT_SERVER, JWT_BEARER, startCompany, writeIdToken } from '../support/company.ts';
import { forwardTo, type LoginWorld, startLoginWorld } from '../support/login-world.ts';
import { connectClient } from '../support/sdk-client.ts';
import { startStreamable } from '../support/sdk-servers.ts';
import { EXECUTABLE } from './stdio-program.ts';

async function serveBehind(t: ExecutionContext, world: LoginWorld): Promise<void> {
  const server = await startStreamable();
  t.teardown(() => server.close());
  world.serve = forwardTo(server.url);
}

/** An official client of a process, and everything that the process has logged. */
async function connect(t: ExecutionContext, world: LoginWorld, options: readonly string[]) {
  const args = [EXECUTABLE, 'connect', '--log-level', 'debug', ...options, world.server];
  const env = { PATH: process.env.PATH ?? '', BROWSER, MCP_PORTAGE_OAUTH_CLIENT_SECRET: 'hunter2' };
  const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: 'pipe' });
  let log = '';
  transport.stderr?.on('data', (chunk) => {
    log += chunk;
  });
  const { client, close } = await connectClient(transport);
  t.teardown(close);
  return { client, log: () => log };
}

test('a process logs its user in at the identity provider, and the next one needs no user', async (t) => {
  const company = await startCompany(t);
  const { world, provider } = company;
  await serveBehind(t, world);
  const folder = temporaryFolder(t);
  const atProvider = ['--oauth-idp-issuer', provider.issuer, '--oauth-idp-client-id', CLIENT_AT_PROVIDER];
  const options = ['--state-dir', folder, '--oauth-client-id', CLIENT_AT_SERVER, ...atProvider];
  // There is a browser, as a variable names one.
  const first = await connect(t, world, options);
  t.true((await first.client.listTools()).tools.length > 0);
  world.tokens.clear();
  t.true((await first.client.listTools()).tools.length > 0);
  const second = await connect(t, world, options);
  t.true((await second.client.listTools()).tools.length > 0);
  t.is(provider.count('/authorize'), 1);
  t.is(company.exchanges, 2);
  const idToken = writeIdToken(folder, company.signIdToken());
  const third = await connect(t, world, [...options, '--oauth-assertion-file', idToken]);
  t.true((await third.client.listTools()).tools.length > 0);
  t.is(provider.count('/authorize'), 1);
  for (const { log } of [first, second, third]) t.notRegex(log(), /eyJ|hunter2|access-\d|refresh-\d/);
});

test('a process of a workload shows the JWT in its file, as it is at that moment', async (t) => {
  const world = await startLoginWorld(t);
  await serveBehind(t, world);
  const folder = temporaryFolder(t);
  const file = join(folder, 'token');
  const renew = (jti: string): string => {
    const assertion = new UnsecuredJWT({ sub: 'agent', aud: world.issuer, jti }).encode();
    writeFileSync(file, assertion);
    return assertion;
  };
  const options = ['--state-dir', folder, '--oauth-client-id', 'agent'];
  renew('first');
  const grant = ['--oauth-grant', 'jwt-bearer', '--oauth-assertion-file', file];
  const { client, log } = await connect(t, world, [...options, ...grant]);
  await client.listTools();
  const second = renew('second');
  world.tokens.clear();
  world.refreshTokens.clear();
  t.true((await client.listTools()).tools.length > 0);
  const { parameters } = world.latest('/token');
  t.like(Object.fromEntries(parameters), { grant_type: JWT_BEARER, assertion: second, resource: world.server });
  t.is(world.count('/authorize') + world.count('/register'), 0);
  t.notRegex(log(), /eyJ|hunter2|access-\d/);
});
