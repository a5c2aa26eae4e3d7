/** The verbs `login` and `logout` with the built program; `npm test` builds it first. */

import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { temporaryFolder } from '../http/login/logged-in.ts';
import { Browser } from '../support/browser.js';
import { BROWSER } from '../support/browser-command.ts';
import { type LoginWorld, startLoginWorld } from '../support/login-world.ts';
import { waitFor } from '../support/wait-for.ts';
import { EXECUTABLE } from './stdio-program.ts';

/** A run of the program, with what it has written so far. */
function start(t: ExecutionContext, args: readonly string[], env: Readonly<Record<string, string>> = { BROWSER }) {
  const child = spawn(process.execPath, [EXECUTABLE, ...args], { env: { PATH: process.env.PATH ?? '', ...env } });
  t.teardown(() => child.kill());
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      written[name] += text;
    });
  }
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  return { written, ended, enter: (line: string) => child.stdin.write(`${line}\n`) };
}

async function run(t: ExecutionContext, ...args: readonly string[]) {
  const { written, ended } = start(t, args);
  return { exitCode: await ended, ...written };
}

/** Several commands with one folder of logins. */
async function setUp(t: ExecutionContext): Promise<{ world: LoginWorld; folder: string; options: readonly string[] }> {
  const world = await startLoginWorld(t);
  const folder = temporaryFolder(t);
  return { world, folder, options: ['--state-dir', folder] };
}

test('login logs in ahead of time, once; --status lists the login without secrets; logout forgets and revokes it', async (t) => {
  const { world, folder, options } = await setUp(t);
  world.metadata = { revocation_endpoint: `${world.issuer}/revoke` };
  world.resource = { scopes_supported: ['read'] };
  const revoked: (string | null)[] = [];
  world.answerRevocation = (asked) => {
    revoked.push(asked.get('token'));
    return { status: 200 };
  };
  for (const _ of ['first', 'again']) {
    t.like(await run(t, 'login', ...options, world.server), { exitCode: 0, stdout: `Logged in to ${world.server}.\n` });
  }
  t.is(world.count('/authorize'), 1);
  const status = await run(t, 'login', '--status', ...options);
  t.is(status.exitCode, 0);
  for (const shown of [world.server, world.issuer, 'registered-client (registered)', 'read', folder]) {
    t.true(status.stdout.includes(shown), shown);
  }
  for (const secret of ['access-', 'refresh-']) t.false(status.stdout.includes(secret), secret);
  const out = await run(t, 'logout', ...options, world.server);
  t.is(out.stdout, `Logged out of ${world.server}; ${world.issuer} has revoked the tokens.\n`);
  t.deepEqual(revoked, ['refresh-1', 'access-1']);
  t.is(world.latest('/revoke').parameters.get('client_id'), 'registered-client');
  t.deepEqual(readdirSync(join(folder, 'logins')), []);
  t.is((await run(t, 'logout', ...options, world.server)).stdout, `There is no login for ${world.server}.\n`);
  t.is((await run(t, 'login', '--status', ...options)).stdout, `There are no logins in ${join(folder, 'logins')}.\n`);
});

test('a logout that the authorization server cannot be told of forgets the login and says so', async (t) => {
  const { world, folder, options } = await setUp(t);
  await run(t, 'login', ...options, world.server);
  const { stdout } = await run(t, 'logout', ...options, world.server);
  t.is(stdout, `Logged out of ${world.server}. ${world.issuer} was not told: no place for that is known.\n`);
  world.metadata = { revocation_endpoint: `${world.issuer}/revoke` };
  world.answerRevocation = () => ({ status: 503 });
  await run(t, 'login', ...options, world.server);
  t.regex((await run(t, 'logout', ...options, world.server)).stdout, /has not revoked the tokens, which last until/);
  t.deepEqual(readdirSync(join(folder, 'logins')), []);
});

test('without a browser here the address at which another browser ends is pasted back', async (t) => {
  const { world, folder, options } = await setUp(t);
  const { written, ended, enter } = start(t, ['login', ...options, world.server], {});
  const page = await waitFor(() => /^http:\S+\/authorize\?\S+$/m.exec(written.stderr)?.[0], { message: 'a page' });
  // The browser of another machine cannot load where it ends.
  const answer = await new Browser().open(page);
  const end = answer.headers.get('location') ?? '';
  const foreign = new URL(end);
  foreign.searchParams.set('state', 'another');
  for (const wrong of ['what?', 'http://example.com/callback?code=1', foreign.href]) enter(wrong);
  const complaint = /This is not the address at which this login ends/g;
  await waitFor(() => written.stderr.match(complaint)?.length === 3, { message: 'three complaints' });
  enter(`  ${end.replace('http://', '')} `);
  t.is(await ended, 0);
  t.is(written.stdout, `Logged in to ${world.server}.\n`);
  t.true(existsSync(join(folder, 'logins')));
});

test('login enters a code in a browser of any machine where that is offered', async (t) => {
  const { world, options } = await setUp(t);
  world.metadata = { device_authorization_endpoint: `${world.issuer}/device` };
  const code = { device_code: 'd', user_code: 'WDJB-MJHT', verification_uri: `${world.issuer}/enter`, interval: 1 };
  world.answerDevice = () => ({ status: 200, body: code });
  world.refuseTokens = [{ status: 400, body: { error: 'authorization_pending' } }];
  const { written, ended } = start(t, ['login', ...options, world.server], {});
  t.is(await ended, 0);
  t.is(written.stdout, `Logged in to ${world.server}.\n`);
  t.regex(written.stderr, /enter the code WDJB-MJHT/);
});

test('a server that asks for no login, and one that cannot be logged in to, are told of', async (t) => {
  const { world, options } = await setUp(t);
  const failed = await run(t, 'login', ...options, '--oauth-issuer', 'https://other.example', world.server);
  t.is(failed.exitCode, 77);
  t.regex(failed.stderr, /ERR_UPSTREAM_AUTH: .*expected https:\/\/other\.example/);
  const token = await run(t, 'login', ...options, '--header', 'Authorization: Bearer x', world.server);
  t.is(token.exitCode, 2);
  t.regex(token.stderr, /login is for a server at a URL that users log in to/);
  const command = await run(t, 'login', ...options, '--', 'node', 'server.js');
  t.is(command.exitCode, 2);
});
