import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { FakeClock } from '../../support/fake-clock.ts';
import { startLoginWorld } from '../../support/login-world.ts';
import { createUser, temporaryFolder } from './logged-in.ts';

test('a server that wants a token gets one, and whoever called notices nothing but a delay', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  const call = await user.call();
  t.is(call.body, 'served');
  t.deepEqual(call.order, ['sent', 'sent', 'response', 'data', 'end']);
  t.deepEqual(world.shown, [undefined, 'Bearer access-1']);
  t.is((await user.call()).body, 'served');
  t.deepEqual(world.shown.slice(2), ['Bearer access-1'], 'the token is used from then on');
  const asked = world.latest('/authorize').parameters;
  t.is(asked.get('response_type'), 'code');
  t.is(asked.get('client_id'), 'registered-client');
  t.is(asked.get('code_challenge_method'), 'S256');
  t.is(asked.get('resource'), world.server);
  t.false(asked.has('scope'));
  const { parameters } = world.latest('/token');
  t.is(parameters.get('resource'), world.server);
  t.is(parameters.get('client_id'), 'registered-client');
  t.is(parameters.get('redirect_uri'), asked.get('redirect_uri'));
  t.deepEqual(world.latest('/register').json, {
    client_name: 'mcp-portage',
    redirect_uris: [asked.get('redirect_uri')],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  });
});

test('neither token nor code nor verifier is in the log, nor the address of the page to log in at', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  const { parameters } = world.latest('/token');
  const log = user.log();
  t.regex(log, /if no browser opens, open http:\/\/127\.0\.0\.1:\d+\/callback\/start\/[\w-]{43}"/);
  const asked = world.latest('/authorize').parameters;
  const ofThePage = [asked.get('state') ?? '', asked.get('code_challenge') ?? '', '/authorize'];
  for (const secret of [...ofThePage, 'access-1', 'refresh-1', 'code-1', parameters.get('code_verifier') ?? '']) {
    t.false(log.includes(secret), secret);
  }
});

test('calls that come together wait for one login', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  const calls = await Promise.all(Array.from({ length: 20 }, () => user.call()));
  t.deepEqual(new Set(calls.map(({ body }) => body)), new Set(['served']));
  t.is(world.count('/authorize'), 1);
  t.is(world.count('/register'), 1);
});

test('the next run finds the token and the registration of the one before', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  const first = createUser(t, world.url, { stateDirectory });
  await first.call();
  t.is(first.registrations(), 1, 'who wants to know is told');
  const next = createUser(t, world.url, { stateDirectory });
  t.is((await next.call()).body, 'served');
  t.is(world.count('/authorize'), 1);
  world.tokens.clear();
  world.refreshTokens.clear();
  t.is((await next.call()).body, 'served');
  t.is(world.count('/authorize'), 2);
  t.is(world.count('/register'), 1, 'it is still registered');
  t.is(next.registrations(), 0);
});

test('a login that is made anew forgets the one before, as does one whose file is gone', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  await createUser(t, world.url, { stateDirectory }).call();
  await createUser(t, world.url, { stateDirectory, stored: 'forget' }).call();
  t.is(world.count('/authorize'), 2);
  t.is(world.count('/register'), 2);
  rmSync(join(stateDirectory, 'logins'), { recursive: true });
  await createUser(t, world.url, { stateDirectory }).call();
  t.is(world.count('/register'), 3);
});

test('a file that is damaged is as good as none', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  await createUser(t, world.url, { stateDirectory }).call();
  const [name = ''] = readdirSync(join(stateDirectory, 'logins'));
  for (const text of ['', '{"issuer": 1', '{"issuer":"x","client":{"id":1}}', '[]']) {
    writeFileSync(join(stateDirectory, 'logins', name), text);
    t.is((await createUser(t, world.url, { stateDirectory }).call()).body, 'served', text);
  }
});

test('a time limit for the server does not run while a user logs in, and begins anew afterward', async (t) => {
  const world = await startLoginWorld(t);
  const clock = new FakeClock();
  const user = createUser(t, world.url, { clock, user: 'absent' });
  const calling = user.call();
  const start = await user.startAddress();
  let hasStruck = false;
  const limit = (): void => {
    hasStruck = true;
  };
  user.http.afterLimit(60_000, limit);
  const cancel = user.http.afterLimit(60_000, () => t.fail('it was canceled'));
  clock.advance(150_000);
  t.false(hasStruck);
  await user.browser.visit(start);
  t.is((await calling).body, 'served');
  cancel();
  clock.advance(59_999);
  t.false(hasStruck, 'the server has the whole time');
  clock.advance(1);
  t.true(hasStruck);
});
