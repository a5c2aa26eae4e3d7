import { cpSync } from 'node:fs';
import test from 'ava';
import { startLoginWorld } from '../../support/login-world.ts';
import { waitFor } from '../../support/wait-for.ts';
import { createUser, temporaryFolder } from './logged-in.ts';

test('a token that the server does not take any more is refreshed without the user, and the refresh token rotated', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  for (const round of [2, 3]) {
    world.tokens.clear();
    const calls = await Promise.all([user.call(), user.call(), user.call()]);
    for (const call of calls) t.is(call.body, 'served');
    t.is(world.shown.at(-1), `Bearer access-${round}`);
    t.is(world.latest('/token').parameters.get('refresh_token'), `refresh-${round - 1}`);
    t.is(world.latest('/token').parameters.get('resource'), world.server);
  }
  t.is(world.count('/authorize'), 1);
  t.is(world.count('/token'), 3);
});

test('without a new refresh token the old one stays', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  world.answerToken = (_, { refresh_token: unused, ...body }) => ({ status: 200, body });
  for (const _ of [1, 2]) {
    world.tokens.clear();
    world.refreshTokens.add('refresh-1');
    t.is((await user.call()).body, 'served');
  }
  t.is(world.count('/authorize'), 1);
});

test('a token is refreshed before it expires, so that no call is refused for it', async (t) => {
  const world = await startLoginWorld(t);
  world.answerToken = (_, body) => ({ status: 200, body: { ...body, expires_in: 0 } });
  const user = createUser(t, world.url);
  await user.call();
  t.deepEqual(world.shown, [undefined, 'Bearer access-1']);
  world.answerToken = (_, body) => ({ status: 200, body: { ...body, expires_in: 3600 } });
  await Promise.all([user.call(), user.call()]);
  t.deepEqual(world.shown.slice(2), ['Bearer access-2', 'Bearer access-2']);
});

for (const [lifeS, aheadS] of [
  [100, 25],
  [3600, 30],
] as const) {
  test(`a token that lives ${lifeS} s is refreshed ${aheadS} s before it expires, and not earlier`, async (t) => {
    const world = await startLoginWorld(t);
    world.answerToken = (_, body) => ({ status: 200, body: { ...body, expires_in: lifeS } });
    let nowMs = 1_000_000;
    const user = createUser(t, world.url, { wallClock: () => nowMs });
    await user.call();
    nowMs += (lifeS - aheadS) * 1000 - 1;
    await user.call();
    t.is(world.shown.at(-1), 'Bearer access-1');
    nowMs += 1;
    await user.call();
    t.is(world.shown.at(-1), 'Bearer access-2');
  });
}

test('a token that cannot be refreshed ahead of time is used as long as the server takes it', async (t) => {
  const world = await startLoginWorld(t);
  world.answerToken = (_, body) => ({ status: 200, body: { ...body, expires_in: 0 } });
  const user = createUser(t, world.url);
  await user.call();
  world.refreshTokens.clear();
  t.is((await user.call()).body, 'served');
  t.is((await user.call()).body, 'served');
  t.is(world.count('/token'), 2, 'it is tried once');
});

test('a login that cannot be refreshed any more is made again', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  world.tokens.clear();
  world.refreshTokens.clear();
  t.is((await user.call()).body, 'served');
  t.is(world.count('/authorize'), 2);
});

test('an authorization server in trouble is no reason to send the user to it', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  world.tokens.clear();
  world.answerToken = () => ({ status: 503, body: 'later' });
  const { failure } = await user.call();
  t.is(failure?.code, 'ERR_UPSTREAM_AUTH');
  t.is(world.count('/authorize'), 1);
});

test('two processes do not spoil each other: what one has refreshed, the other uses', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  const one = createUser(t, world.url, { stateDirectory });
  await one.call();
  const other = createUser(t, world.url, { stateDirectory });
  await other.call();
  world.tokens.clear();
  t.is((await one.call()).body, 'served');
  t.is((await other.call()).body, 'served');
  t.is(world.shown.at(-1), 'Bearer access-2');
  t.is(world.count('/token'), 2);
  t.is(world.count('/authorize'), 1);
});

test('of processes that need a new token at the same moment one refreshes, and the others take what that one got', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  const processes = Array.from({ length: 5 }, () => createUser(t, world.url, { stateDirectory }));
  for (const one of processes) await one.call();
  world.tokens.clear();
  for (const call of await Promise.all(processes.map((one) => one.call()))) t.is(call.body, 'served');
  t.is(world.count('/token'), 2);
  t.is(world.count('/authorize'), 1);
  t.is(world.reuses, 0);
});

test('of processes that need a login at the same moment one opens a browser, and the others wait and say so', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  const asking = createUser(t, world.url, { stateDirectory, user: 'absent' });
  const calling = asking.call();
  const start = await asking.startAddress();
  const waiting = createUser(t, world.url, { stateDirectory });
  const waits = waiting.call();
  await waitFor(() => waiting.log().includes(`is logging in at ${world.server}; this one waits`));
  t.deepEqual(waiting.opened, []);
  await asking.browser.visit(start);
  t.is((await calling).body, 'served');
  t.is((await waits).body, 'served');
  t.is(world.count('/authorize'), 1);
  t.is(world.count('/register'), 1);
});

test('a login that is put in place by hand ends that of a process that waits for its user', async (t) => {
  const world = await startLoginWorld(t);
  const [stateDirectory, elsewhere] = [temporaryFolder(t), temporaryFolder(t)];
  const waiting = createUser(t, world.url, { stateDirectory, user: 'absent' });
  const calling = waiting.call();
  await waiting.startAddress();
  await createUser(t, world.url, { stateDirectory: elsewhere }).call();
  cpSync(elsewhere, stateDirectory, { recursive: true });
  t.is((await calling).body, 'served');
  t.is(world.count('/authorize'), 1);
});
