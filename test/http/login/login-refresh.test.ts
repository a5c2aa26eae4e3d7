import { cpSync } from 'node:fs';
import test from 'ava';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Answer, startLoginWorld } from '../../support/login-world.ts';
import { waitFor } from '../../support/wait-for.ts';
import type { RecordedCall } from '../recorded-call.ts';
import { createUser, temporaryFolder } from './logged-in.ts';

test('a token that the server does not take anymore is refreshed without the user, and the refresh token rotated', async (t) => {
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

test('a login that cannot be refreshed anymore is made again', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  world.tokens.clear();
  world.refreshTokens.clear();
  t.is((await user.call()).body, 'served');
  t.is(world.count('/authorize'), 2);
});

/** Lets time pass until a call has ended. */
async function passTime(clock: FakeClock, call: Promise<RecordedCall>): Promise<RecordedCall> {
  let ended: RecordedCall | undefined;
  void call.then((done) => {
    ended = done;
  });
  return await waitFor(() => {
    clock.advance(100);
    return ended;
  });
}

const TROUBLES: readonly [title: string, answer: Answer | 'reset'][] = [
  ['is busy', { status: 429 }],
  ['is out of order', { status: 503, body: 'later' }],
  ['says that it is unavailable', { status: 400, body: { error: 'temporarily_unavailable' } }],
  ['answers with something that is no JSON', { status: 200, text: '<html>' }],
  ['resets the connection', 'reset'],
];

for (const [title, answer] of TROUBLES) {
  test(`while an authorization server ${title}, calls wait, no user is asked, and no call fails once it is well again`, async (t) => {
    const world = await startLoginWorld(t);
    const clock = new FakeClock();
    const user = createUser(t, world.url, { clock });
    await user.call();
    world.tokens.clear();
    world.refuseTokens = [answer, answer];
    const [one, other] = [user.call(), user.call()];
    t.is((await passTime(clock, one)).body, 'served');
    t.is((await other).body, 'served');
    t.is(world.count('/authorize'), 1);
    t.is(world.count('/token'), 4);
    t.regex(user.log(), /The login is tried again in 1 s\./);
  });
}

test('a failure that lasts is told before clients give up, and the next call tries again at once', async (t) => {
  const world = await startLoginWorld(t);
  const clock = new FakeClock();
  const user = createUser(t, world.url, { clock });
  await user.call();
  world.tokens.clear();
  world.refuseTokens = new Array(100).fill({ status: 503 });
  const { failure } = await passTime(clock, user.call());
  t.is(failure?.code, 'ERR_UPSTREAM_AUTH');
  t.regex(failure?.message ?? '', /gives no token at the moment \(status 503\)\. Try again later\./);
  const tries = world.count('/token') - 1;
  t.true(tries > 1 && tries <= 8, `${tries} tries`);
  t.is(world.count('/authorize'), 1);
  world.refuseTokens = [];
  t.is((await user.call()).body, 'served');
  t.is(world.count('/authorize'), 1);
});

test('a time to wait that the server names is waited for, and one that is too long is told at once', async (t) => {
  const world = await startLoginWorld(t);
  const clock = new FakeClock();
  const user = createUser(t, world.url, { clock });
  await user.call();
  world.tokens.clear();
  world.refuseTokens = [{ status: 429, headers: { 'retry-after': '20' } }];
  const beganMs = clock.now();
  t.is((await passTime(clock, user.call())).body, 'served');
  t.true(clock.now() - beganMs >= 20_000);
  world.tokens.clear();
  world.refuseTokens = [{ status: 429, headers: { 'retry-after': '3600' } }];
  const asked = world.count('/token');
  t.is((await user.call()).failure?.code, 'ERR_UPSTREAM_AUTH');
  t.is((await user.call()).failure?.code, 'ERR_UPSTREAM_AUTH', 'it is not asked all the time either');
  t.is(world.count('/token'), asked + 1);
});

test('a refresh that is refused for its form asks no user, and says what to do', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  world.tokens.clear();
  world.refuseTokens = [{ status: 400, body: { error: 'invalid_request' } }];
  const { failure } = await user.call();
  t.regex(failure?.message ?? '', /refuses the request \(invalid_request\).*--login anew/);
  t.is(world.count('/authorize'), 1);
});

test('a code that is not exchanged at once is sent again, and its user is not asked again', async (t) => {
  const world = await startLoginWorld(t);
  const clock = new FakeClock();
  world.refuseTokens = [{ status: 503 }];
  const user = createUser(t, world.url, { clock });
  t.is((await passTime(clock, user.call())).body, 'served');
  t.is(world.count('/authorize'), 1);
});

test('a refresh names the scopes that were granted with the login', async (t) => {
  const world = await startLoginWorld(t);
  world.challenge = () => 'Bearer scope="read write"';
  const stateDirectory = temporaryFolder(t);
  const scopeOfRefresh = async () => {
    world.tokens.clear();
    t.is((await createUser(t, world.url, { stateDirectory }).call()).body, 'served');
    return world.latest('/token').parameters.get('scope');
  };
  await createUser(t, world.url, { stateDirectory }).call();
  t.is(await scopeOfRefresh(), 'read write');
  world.answerToken = (_, body) => ({ status: 200, body: { ...body, scope: 'read' } });
  await createUser(t, world.url, { stateDirectory, stored: 'forget' }).call();
  t.is(await scopeOfRefresh(), 'read');
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
  await waitFor(() => waiting.log().includes(`is logging in at ${world.server}; waiting for it`));
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
