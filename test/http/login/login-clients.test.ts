import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { jwtVerify } from 'jose';
import { FAILURE_PAUSE_MS } from '../../../src/http/login/login.ts';
import { LOGIN_TIMEOUT_MS } from '../../../src/http/login/patience.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { startLoginWorld } from '../../support/login-world.ts';
import { waitFor } from '../../support/wait-for.ts';
import { createUser, temporaryFolder } from './logged-in.ts';

test('a client that the authorization server knows shows its secret the way it wants it', async (t) => {
  const ways: readonly [methods: readonly string[] | undefined, shown: string][] = [
    [undefined, 'header'],
    [['client_secret_basic', 'client_secret_post'], 'header'],
    [['client_secret_post'], 'body'],
  ];
  for (const [methods, shown] of ways) {
    const world = await startLoginWorld(t);
    world.metadata = { token_endpoint_auth_methods_supported: methods };
    const client = { id: 'my-client', proof: { kind: 'secret', secret: 's3cret +x' } } as const;
    const user = createUser(t, world.url, { client });
    t.is((await user.call()).body, 'served');
    t.is(world.count('/register'), 0);
    const { authorization, parameters } = world.latest('/token');
    const basic = `Basic ${Buffer.from('my-client:s3cret+%2Bx').toString('base64')}`;
    t.is(authorization, shown === 'header' ? basic : undefined);
    t.is(parameters.get('client_secret'), shown === 'header' ? null : 's3cret +x');
    t.false(user.log().includes('s3cret'));
  }
});

test('a secret is not shown to another authorization server than the one that knew the client', async (t) => {
  const [world, other] = [await startLoginWorld(t), await startLoginWorld(t)];
  const client = { id: 'my-client', proof: { kind: 'secret', secret: 'secret' } } as const;
  const user = createUser(t, world.url, { client });
  await user.call();
  world.tokens.clear();
  world.refreshTokens.clear();
  world.resource = { authorization_servers: [other.issuer] };
  const { failure } = await user.call();
  t.regex(failure?.message ?? '', /now names .* but the client my-client is known to .*--login anew/);
  t.is(other.count('/authorize') + other.count('/token'), 0);
});

test('with a new authorization server comes a new registration', async (t) => {
  const [world, other] = [await startLoginWorld(t), await startLoginWorld(t)];
  const user = createUser(t, world.url);
  await user.call();
  world.tokens.clear();
  world.refreshTokens.clear();
  world.resource = { authorization_servers: [other.issuer] };
  other.answerRegistration = () => ({ status: 201, body: { client_id: 'known-there' } });
  const call = await user.call();
  // The servers of this test share no tokens.
  t.is(call.failure?.code, 'ERR_UPSTREAM_AUTH');
  t.is(other.latest('/authorize').parameters.get('client_id'), 'known-there');
});

test('a document about the client is its id where that is supported', async (t) => {
  const clientMetadataUrl = 'https://me.example/client.json';
  const world = await startLoginWorld(t);
  world.metadata = { client_id_metadata_document_supported: true };
  await createUser(t, world.url, { clientMetadataUrl }).call();
  t.is(world.latest('/authorize').parameters.get('client_id'), clientMetadataUrl);
  t.is(world.count('/register'), 0);
  world.metadata = {};
  await createUser(t, world.url, { clientMetadataUrl }).call();
  t.is(world.latest('/authorize').parameters.get('client_id'), 'registered-client');
});

test('a registration that is not known anymore is made again with the next login', async (t) => {
  const world = await startLoginWorld(t);
  const clock = new FakeClock();
  world.answerToken = (_, { refresh_token: unused, ...body }) => ({ status: 200, body });
  const user = createUser(t, world.url, { clock });
  await user.call();
  world.tokens.clear();
  world.refuseTokens = [{ status: 401, body: { error: 'invalid_client' } }];
  t.is((await user.call()).body, 'served');
  t.is(world.count('/register'), 2);
  t.is(world.count('/authorize'), 3);
  world.tokens.clear();
  const refused = { status: 401, body: { error: 'invalid_client' } };
  world.refuseTokens = [refused, refused, refused];
  t.regex((await user.call()).failure?.message ?? '', /invalid_client/);
  t.is(world.count('/authorize'), 5, 'once more, and then it is told');
  clock.advance(FAILURE_PAUSE_MS);
  world.refuseTokens = [];
  t.is((await user.call()).body, 'served');
});

for (const title of ['the client has left', 'nobody came back'] as const) {
  test(`a registration is made again where ${title} while the browser was open: it may have shown that the client is unknown`, async (t) => {
    const world = await startLoginWorld(t);
    const stateDirectory = temporaryFolder(t);
    await createUser(t, world.url, { stateDirectory }).call();
    world.tokens.clear();
    world.refreshTokens.clear();
    world.comeBack = undefined;
    world.answerRegistration = () => ({ status: 201, body: { client_id: 'registered-again' } });
    const clock = new FakeClock();
    const user = createUser(t, world.url, { stateDirectory, clock });
    const calling = user.call();
    await waitFor(() => world.count('/authorize') === 2);
    if (title === 'nobody came back') clock.advance(LOGIN_TIMEOUT_MS);
    else user.login.close();
    await calling;
    world.comeBack = (parameters) => parameters;
    t.is((await createUser(t, world.url, { stateDirectory }).call()).body, 'served');
    t.is(world.latest('/authorize').parameters.get('client_id'), 'registered-again');
  });
}

test('a registration outlives a user who refuses', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  await createUser(t, world.url, { stateDirectory }).call();
  world.tokens.clear();
  world.refreshTokens.clear();
  world.comeBack = ({ state }) => ({ state, error: 'access_denied' });
  await createUser(t, world.url, { stateDirectory }).call();
  world.comeBack = (parameters) => parameters;
  t.is((await createUser(t, world.url, { stateDirectory }).call()).body, 'served');
  t.is(world.count('/register'), 1);
});

test('a registration that was forgotten is made again where nothing can be stored, too', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  writeFileSync(join(stateDirectory, 'logins'), 'not a folder');
  const user = createUser(t, world.url, { stateDirectory });
  await user.call();
  world.tokens.clear();
  world.answerRegistration = () => ({ status: 201, body: { client_id: 'registered-again' } });
  world.refuseTokens = [{ status: 401, body: { error: 'invalid_client' } }];
  t.is((await user.call()).body, 'served');
  t.is(world.latest('/authorize').parameters.get('client_id'), 'registered-again');
});

test('scopes that a registration was not granted are not asked for, with each login', async (t) => {
  const world = await startLoginWorld(t);
  world.challenge = () => 'Bearer scope="read admin"';
  world.metadata = { scopes_supported: ['read', 'admin', 'offline_access'] };
  world.answerRegistration = () => ({ status: 201, body: { client_id: 'mine', scope: 'read' } });
  const stateDirectory = temporaryFolder(t);
  for (const _ of ['first', 'next']) {
    t.is((await createUser(t, world.url, { stateDirectory }).call()).body, 'served');
    const asked = world.latest('/authorize').parameters;
    t.is(asked.get('scope'), 'read');
    t.false(asked.has('prompt'));
    world.tokens.clear();
    world.refreshTokens.clear();
  }
  t.is(world.latest('/register').json.scope, 'read admin offline_access');
  t.is(world.count('/register'), 1);
});

test('a registration that the authorization server has forgotten by the time of a refresh is made again at once', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  await createUser(t, world.url, { stateDirectory }).call();
  world.tokens.clear();
  world.answerRegistration = () => ({ status: 201, body: { client_id: 'registered-again' } });
  world.answerToken = (parameters, body) =>
    parameters.get('grant_type') === 'refresh_token'
      ? { status: 401, body: { error: 'invalid_client' } }
      : { status: 200, body };
  t.is((await createUser(t, world.url, { stateDirectory }).call()).body, 'served');
  t.is(world.count('/register'), 2);
  t.is(world.latest('/authorize').parameters.get('client_id'), 'registered-again');
});

test('the address for the way back is the registered one again if it is free, and that of the user if there is one', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  const backOf = () => world.latest('/authorize').parameters.get('redirect_uri');
  await createUser(t, world.url, { stateDirectory }).call();
  const first = backOf();
  world.tokens.clear();
  world.refreshTokens.clear();
  await createUser(t, world.url, { stateDirectory }).call();
  t.is(backOf(), first);
  const callback = new URL('http://localhost:0/oauth/back');
  await createUser(t, world.url, { callback }).call();
  t.regex(backOf() ?? '', /^http:\/\/localhost:\d+\/oauth\/back$/);
});

test('a machine logs in by itself, with its secret', async (t) => {
  const world = await startLoginWorld(t);
  world.metadata = { authorization_endpoint: undefined, code_challenge_methods_supported: undefined };
  world.challenge = () => 'Bearer scope="read"';
  world.answerToken = (_, { refresh_token: unused, ...body }) => ({ status: 200, body });
  const client = { id: 'machine', proof: { kind: 'secret', secret: 'secret' } } as const;
  const user = createUser(t, world.url, { client, grant: 'client-credentials' });
  t.is((await user.call()).body, 'served');
  const { parameters } = world.latest('/token');
  t.is(parameters.get('grant_type'), 'client_credentials');
  t.is(parameters.get('resource'), world.server);
  t.is(parameters.get('scope'), 'read');
  world.tokens.clear();
  t.is((await user.call()).body, 'served');
  t.is(world.count('/authorize'), 0);
});

test('a token about the user that is not quite right does not stop the login', async (t) => {
  const world = await startLoginWorld(t);
  world.answerToken = (_, body) => ({ status: 200, body: { ...body, id_token: 'nonsense' } });
  t.is((await createUser(t, world.url).call()).body, 'served');
});

test('a folder that cannot be written costs the next run a login, and this one nothing', async (t) => {
  const world = await startLoginWorld(t);
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'logins'), 'not a folder');
  const user = createUser(t, world.url, { stateDirectory: folder });
  t.is((await user.call()).body, 'served');
  t.regex(user.log(), /The login cannot be kept, so the next run has to log in: .*logins.*: E[A-Z]+/);
  world.tokens.clear();
  t.is((await user.call()).body, 'served');
  t.is(world.count('/authorize'), 1, 'it is refreshed all the same');
  t.is(readFileSync(join(folder, 'logins'), 'utf8'), 'not a folder');
});

test('a client with a private key signs that it is the one, for this authorization server alone', async (t) => {
  const keys = [
    generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    generateKeyPairSync('ec', { namedCurve: 'P-384' }),
    generateKeyPairSync('rsa', { modulusLength: 2048 }),
    generateKeyPairSync('ed25519'),
  ];
  for (const { publicKey, privateKey } of keys) {
    const world = await startLoginWorld(t);
    const stateDirectory = temporaryFolder(t);
    const file = join(stateDirectory, 'key.pem');
    writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const client = { id: 'machine', proof: { kind: 'key', file } } as const;
    const user = createUser(t, world.url, { client, grant: 'client-credentials', stateDirectory });
    t.is((await user.call()).body, 'served');
    const { parameters } = world.latest('/token');
    t.is(parameters.get('client_assertion_type'), 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer');
    const { payload } = await jwtVerify(parameters.get('client_assertion') ?? '', publicKey, {
      audience: world.issuer,
    });
    t.is(payload.iss, 'machine');
    t.is(payload.sub, 'machine');
  }
});

test('a file that holds no private key is an error that names the file and not what is in it', async (t) => {
  const world = await startLoginWorld(t);
  const stateDirectory = temporaryFolder(t);
  const file = join(stateDirectory, 'key.pem');
  writeFileSync(file, 'hunter2');
  const client = { id: 'machine', proof: { kind: 'key', file } } as const;
  const user = createUser(t, world.url, { client, grant: 'client-credentials', stateDirectory });
  const { failure } = await user.call();
  t.regex(failure?.message ?? '', /The private key .*key\.pem cannot be used/);
  t.false(user.log().includes('hunter2'));
  t.is(world.count('/token'), 0);
});

test('without a folder a login lasts as long as the run, and the log says what to do', async (t) => {
  const world = await startLoginWorld(t);
  const user = createUser(t, world.url, { stateDirectory: undefined, stored: 'forget' });
  t.is((await user.call()).body, 'served');
  t.regex(user.log(), /The login cannot be kept, .*: this user has no home folder \(--state-dir names one\)/);
  world.tokens.clear();
  t.is((await user.call()).body, 'served');
  t.is(world.count('/authorize'), 1, 'it is refreshed all the same');
});

test('a client with a key signs for no issuer that calls itself differently from the one that the user trusts', async (t) => {
  const world = await startLoginWorld(t);
  world.metadata = { issuer: 'https://other.example' };
  const client = { id: 'machine', proof: { kind: 'key', file: 'key.pem' } } as const;
  const user = createUser(t, world.url, { client, grant: 'client-credentials', issuer: world.issuer });
  t.regex((await user.call()).failure?.message ?? '', /calls itself https:\/\/other\.example, .*secret instead/);
  t.is(world.count('/token'), 0);
});
