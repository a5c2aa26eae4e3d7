/** What users may say of the requests of a login. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { UnsecuredJWT } from 'jose';
import { type LoginWorld, startLoginWorld } from '../../support/login-world.ts';
import { createUser, temporaryFolder } from './logged-in.ts';

for (const [title, resource, sent] of [
  ['names another resource', { kind: 'named', uri: 'api://of-the-server' }, 'api://of-the-server'],
  ['leaves the resource out', { kind: 'left-out' }, null],
] as const) {
  test(`a user who ${title} has every request of the login and of a refresh follow, in later processes too`, async (t) => {
    const world = await startLoginWorld(t);
    const settings = { resource, stateDirectory: temporaryFolder(t) };
    t.is((await createUser(t, world.url, settings).call()).body, 'served');
    world.tokens.clear();
    t.is((await createUser(t, world.url, settings).call()).body, 'served');
    t.is(world.count('/authorize'), 1);
    t.is(world.latest('/token').parameters.get('grant_type'), 'refresh_token');
    for (const { path, parameters } of world.asked) {
      if (path === '/authorize' || path === '/token') t.is(parameters.get('resource'), sent, path);
    }
  });
}

test('a login in the name of a client itself leaves the resource out as well', async (t) => {
  const world = await startLoginWorld(t);
  const client = { id: 'machine', proof: { kind: 'secret', secret: 's' } } as const;
  const user = createUser(t, world.url, { client, grant: 'client-credentials', resource: { kind: 'left-out' } });
  t.is((await user.call()).body, 'served');
  t.false(world.latest('/token').parameters.has('resource'));
});

test('logins for different resources are kept apart', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  await createUser(t, world.url, { stateDirectory }).call();
  await createUser(t, world.url, { stateDirectory, resource: { kind: 'left-out' } }).call();
  await createUser(t, world.url, { stateDirectory, resource: { kind: 'named', uri: 'urn:a' } }).call();
  t.is(world.count('/authorize'), 3);
  await createUser(t, world.url, { stateDirectory, resource: { kind: 'left-out' } }).call();
  t.is(world.count('/authorize'), 3);
  t.is(world.shown.at(-1), 'Bearer access-2');
});

const EXTRA = new Map([
  ['audience', 'https://api.example'],
  ['login_hint', 'hunter2&state=forged'],
]);

test('parameters of the user are in the request that begins a login, in no other, and never in the log', async (t) => {
  const world = await startLoginWorld(t);
  const settings = { extraParameters: EXTRA, stateDirectory: temporaryFolder(t) };
  const user = createUser(t, world.url, settings);
  t.is((await user.call()).body, 'served');
  world.tokens.clear();
  t.is((await user.call()).body, 'served');
  const asked = world.latest('/authorize').parameters;
  for (const [name, value] of EXTRA) t.deepEqual(asked.getAll(name), [value]);
  t.is(asked.getAll('state').length, 1);
  for (const { path, parameters } of world.asked) {
    if (path === '/token')
      t.deepEqual(
        [...EXTRA.keys()].filter((name) => parameters.has(name)),
        [],
      );
  }
  t.false(user.log().includes('hunter2'));
  t.false(readdirSync(join(settings.stateDirectory, 'logins')).join().includes('hunter2'));
});

test('the only request of a login without a user has them as well', async (t) => {
  const world = await startLoginWorld(t);
  const client = { id: 'machine', proof: { kind: 'secret', secret: 's' } } as const;
  const settings = { client, grant: 'client-credentials', extraParameters: EXTRA } as const;
  t.is((await createUser(t, world.url, settings).call()).body, 'served');
  t.is(world.latest('/token').parameters.get('audience'), 'https://api.example');
});

test('how the user is asked is for the user to say, even where a refresh token is asked for', async (t) => {
  const world = await startLoginWorld(t);
  world.challenge = () => 'Bearer scope="read"';
  world.metadata = { scopes_supported: ['offline_access'] };
  t.is((await createUser(t, world.url).call()).body, 'served');
  t.is(world.latest('/authorize').parameters.get('prompt'), 'consent');
  const extraParameters = new Map([['prompt', 'select_account consent']]);
  t.is((await createUser(t, world.url, { extraParameters }).call()).body, 'served');
  t.deepEqual(world.latest('/authorize').parameters.getAll('prompt'), ['select_account consent']);
});

test('logins with different parameters are kept apart, as they may be those of different users', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  const loginAs = (...extra: [string, string][]) =>
    createUser(t, world.url, { stateDirectory, extraParameters: new Map(extra) }).call();
  await loginAs(['login_hint', 'me'], ['organization', 'a']);
  await loginAs(['organization', 'b'], ['login_hint', 'me']);
  await loginAs();
  t.is(world.count('/authorize'), 3);
  await loginAs(['organization', 'a'], ['login_hint', 'me']);
  t.is(world.count('/authorize'), 3, 'their order means nothing');
});

const REFUSALS: readonly [error: string, description: string][] = [
  ['invalid_target', 'no such resource'],
  ['invalid_target', 'AADSTS9010010: The resource parameter provided does not match with the requested scopes.'],
  ['invalid_request', "AADSTS901002: The 'resource' request parameter is not supported."],
  ['invalid_grant', 'AADSTS9010010: The resource parameter does not match.'],
];

for (const [error, error_description] of REFUSALS) {
  const said = `${error}: ${error_description}`;
  test(`a resource that is refused (${said}) is never left out silently: the error names the option`, async (t) => {
    const advice = (resource: string) =>
      `The token was asked for the resource ${resource}; give the one that it expects with --oauth-resource, or --oauth-resource none to leave it out.`;
    const atPage = await startLoginWorld(t);
    atPage.comeBack = ({ state }) => ({ state, error, error_description });
    const refused = await createUser(t, atPage.url).call();
    t.is(
      refused.failure?.message,
      `The login at ${atPage.issuer} was refused (${said.replace(/\.$/, '.')}). ${advice(atPage.server)}`,
    );
    t.is(atPage.count('/token'), 0);
    const atToken = await startLoginWorld(t);
    atToken.answerToken = () => ({ status: 400, body: { error, error_description } });
    const { failure } = await createUser(t, atToken.url).call();
    t.true(failure?.message.includes(`refuses the request (${said}`), failure?.message);
    t.true(failure?.message.includes(advice(atToken.server)), failure?.message);
    t.is(atToken.count('/authorize'), 1);
  });
}

test('a refresh whose resource is refused asks no user, and names the option', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  world.tokens.clear();
  world.refuseTokens = [{ status: 400, body: { error: 'invalid_target' } }];
  t.regex((await user.call()).failure?.message ?? '', /refuses the request \(invalid_target\).*--oauth-resource none/);
  t.is(world.count('/authorize'), 1);
});

test('an authorization server that insists on a resource is told from one that wants none', async (t) => {
  const world = await startLoginWorld(t);
  world.comeBack = ({ state }) => ({ state, error: 'invalid_target' });
  const { failure } = await createUser(t, world.url, { resource: { kind: 'left-out' } }).call();
  t.regex(failure?.message ?? '', /No resource was named; give the one that it expects with --oauth-resource\.$/);
});

test('tokens are asked for where the user says, though the metadata names another place or none', async (t) => {
  for (const named of ['/not-here', undefined]) {
    const world = await startLoginWorld(t);
    world.tokenPath = '/oauth/token';
    world.metadata = { token_endpoint: named && `${world.issuer}${named}` };
    const without = await createUser(t, world.url).call();
    t.is(without.failure?.code, 'ERR_UPSTREAM_AUTH');
    const settings = {
      tokenEndpoint: new URL(`${world.issuer}/oauth/token`),
      stateDirectory: temporaryFolder(t),
    };
    t.is((await createUser(t, world.url, settings).call()).body, 'served');
    world.tokens.clear();
    t.is((await createUser(t, world.url, settings).call()).body, 'served');
    t.is(world.latest('/oauth/token').parameters.get('grant_type'), 'refresh_token');
  }
});

for (const [authMethod, metadata, shown] of [
  ['client_secret_post', ['client_secret_basic'], 'body'],
  ['client_secret_basic', ['client_secret_post'], 'header'],
  ['client_secret_post', undefined, 'body'],
] as const) {
  test(`a secret is shown as ${authMethod} if the user says so, where the metadata says ${metadata ?? 'nothing'}`, async (t) => {
    const world = await startLoginWorld(t);
    world.metadata = { token_endpoint_auth_methods_supported: metadata };
    const client = { id: 'me', proof: { kind: 'secret', secret: 'hunter2' } } as const;
    const user = createUser(t, world.url, { client, authMethod });
    await user.call();
    world.tokens.clear();
    t.is((await user.call()).body, 'served');
    for (const { path, parameters, authorization } of world.asked) {
      if (path !== '/token') continue;
      t.is(parameters.get('client_secret'), shown === 'body' ? 'hunter2' : null);
      t.is(authorization !== undefined, shown === 'header');
    }
    t.false(user.log().includes('hunter2'));
  });
}

test('where a client of the user is refused, the error says how it can show its secret otherwise', async (t) => {
  const world = await startLoginWorld(t);
  world.answerToken = () => ({ status: 401, body: { error: 'invalid_client' } });
  const client = { id: 'me', proof: { kind: 'secret', secret: 'hunter2' } } as const;
  const { failure } = await createUser(t, world.url, { client }).call();
  t.regex(failure?.message ?? '', /gave no token \(invalid_client\)\. Check the id.*--oauth-auth-method/);
});

/** Gives ID tokens for the client that each world registers, and takes them in place of access tokens. */
function giveIdTokens(world: LoginWorld, takes: 'access' | 'id'): string[] {
  const given: string[] = [];
  world.answerToken = (_, usual) => {
    const claims = { iss: world.issuer, aud: 'registered-client', exp: Date.now() / 1000 + 3600, n: given.length };
    const token = new UnsecuredJWT(claims).encode();
    given.push(token);
    world.tokens.add(token);
    return { status: 200, body: { ...usual, expires_in: 3600, id_token: token } };
  };
  world.judge = (token) => (given.includes(token) === (takes === 'id') ? undefined : { status: 401 });
  return given;
}

test('a server that wants the ID token is shown that, which openid asks for, and a new one after a refresh', async (t) => {
  const world = await startLoginWorld(t);
  const given = giveIdTokens(world, 'id');
  world.challenge = () => 'Bearer scope="read"';
  const settings = { token: 'id', stateDirectory: temporaryFolder(t) } as const;
  t.is((await createUser(t, world.url, settings).call()).body, 'served');
  t.is(world.latest('/authorize').parameters.get('scope'), 'read openid');
  t.is(world.shown.at(-1), `Bearer ${given[0]}`);
  world.tokens.clear();
  t.is((await createUser(t, world.url, settings).call()).body, 'served');
  t.is(world.latest('/token').parameters.get('scope'), 'read openid');
  t.is(world.shown.at(-1), `Bearer ${given[1]}`);
  t.is(world.count('/authorize'), 1);
});

test('an ID token is renewed by its own time', async (t) => {
  const world = await startLoginWorld(t);
  giveIdTokens(world, 'id');
  let nowMs = Date.now();
  const user = createUser(t, world.url, { token: 'id', wallClock: () => nowMs });
  await user.call();
  nowMs += 3_500_000;
  await user.call();
  t.is(world.count('/token'), 1);
  nowMs += 80_000;
  await user.call();
  t.is(world.count('/token'), 2);
  t.is(world.shown.filter((authorization) => authorization === undefined).length, 1, 'no call was refused for it');
});

test('where no ID token comes, the error says so, and no access token is shown in its place', async (t) => {
  const world = await startLoginWorld(t);
  const { failure } = await createUser(t, world.url, { token: 'id' }).call();
  t.regex(
    failure?.message ?? '',
    /gave no token \(its answer has no ID token, which --oauth-token id and --oauth-idp-issuer ask for\)/,
  );
  t.deepEqual(world.shown, [undefined]);
});

test('a refresh without an ID token leads to a new login', async (t) => {
  const world = await startLoginWorld(t);
  giveIdTokens(world, 'id');
  const user = createUser(t, world.url, { token: 'id' });
  await user.call();
  world.tokens.clear();
  world.refuseTokens = [{ status: 200, body: { access_token: 'access', token_type: 'Bearer' } }];
  t.is((await user.call()).body, 'served');
  t.is(world.count('/authorize'), 2);
});

test('where a fresh access token is refused and there was an ID token, the error names the option', async (t) => {
  const world = await startLoginWorld(t);
  giveIdTokens(world, 'id');
  const { failure } = await createUser(t, world.url).call();
  t.is(
    failure?.message,
    `The server at ${world.server} does not accept the token of ${world.issuer}. It was given just now, so another login ` +
      'would not help. There was an ID token as well, which some servers want in its place: --oauth-token id.',
  );
  const other = await startLoginWorld(t);
  giveIdTokens(other, 'access');
  const { failure: refused } = await createUser(t, other.url, { token: 'id' }).call();
  t.regex(refused?.message ?? '', /another login would not help\. Tell the operators\.$/);
});

test('logins that show different tokens are kept apart', async (t) => {
  const world = await startLoginWorld(t);
  giveIdTokens(world, 'id');
  world.judge = () => undefined;
  const stateDirectory = temporaryFolder(t);
  await createUser(t, world.url, { stateDirectory }).call();
  await createUser(t, world.url, { stateDirectory, token: 'id' }).call();
  t.is(world.count('/authorize'), 2);
});
