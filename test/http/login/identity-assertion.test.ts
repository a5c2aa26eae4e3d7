/** Users of a company log in at its identity provider, which vouches for them at the authorization server. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { systemClock } from '../../../src/cli/system-deps.ts';
import type { IdentityProvider, LoginConfig, RegisteredClient } from '../../../src/config/remote.ts';
import { AddressGuard } from '../../../src/http/login/address-guard.ts';
import { listLogins } from '../../../src/http/login/list-logins.ts';
import { logOut } from '../../../src/http/login/log-out.ts';
import { createLoginFetch, type LoginFetch } from '../../../src/http/login/login-fetch.ts';
import { LoginFlow, type LoginFlowOptions } from '../../../src/http/login/login-flow.ts';
import { Browser } from '../../support/browser.js';
import {
  CLIENT_AT_PROVIDER,
  CLIENT_AT_SERVER,
  type Company,
  ID_JAG,
  JWT_BEARER,
  startCompany,
  TOKEN_EXCHANGE,
  writeIdToken,
} from '../../support/company.ts';
import { closeAfter, createClient } from '../recorded-call.ts';
import { createUser, type LoginSettings, temporaryFolder } from './logged-in.ts';
import { NO_OPTIONS } from './login-config.ts';

const DEPS = { log: pino({ level: 'silent' }), clock: systemClock, wallClock: Date.now, randomId: () => 'id' };
const CLIENT: RegisteredClient = { id: CLIENT_AT_SERVER, proof: { kind: 'secret', secret: 'hunter2' } };

function throughProvider(company: Company, changes: Partial<IdentityProvider> = {}): Partial<LoginConfig> {
  const assertion: IdentityProvider = {
    kind: 'identity-provider',
    issuer: company.provider.issuer,
    client: { id: CLIENT_AT_PROVIDER, proof: { kind: 'none' } },
    idToken: { kind: 'login', grant: 'authorization-code' },
    ...changes,
  };
  return { grant: 'jwt-bearer', client: CLIENT, assertion };
}

async function setUp(t: ExecutionContext) {
  const company = await startCompany(t);
  const stateDirectory = temporaryFolder(t);
  const create = (settings: LoginSettings = {}, changes: Partial<IdentityProvider> = {}) =>
    createUser(t, company.world.url, { stateDirectory, ...throughProvider(company, changes), ...settings });
  return { ...{ company, stateDirectory, create }, world: company.world, provider: company.provider };
}

test('a user logs in at the identity provider, whose assertion for this server is exchanged for a token', async (t) => {
  const { company, world, provider, create } = await setUp(t);
  world.resource = { scopes_supported: ['read', 'write'] };
  world.metadata = { ...world.metadata, token_endpoint_auth_methods_supported: ['client_secret_basic'] };
  const user = create({ extraParameters: new Map([['login_hint', 'me@company.example']]) });
  t.is((await user.call()).body, 'served');
  const page = Object.fromEntries(provider.latest('/authorize').parameters);
  t.like(page, { client_id: CLIENT_AT_PROVIDER, scope: 'openid offline_access', login_hint: 'me@company.example' });
  t.false('resource' in page);
  const [, exchange] = provider.asked.filter(({ path }) => path === '/token');
  const { subject_token: idToken, ...asked } = Object.fromEntries(exchange?.parameters ?? []);
  t.deepEqual(asked, {
    grant_type: TOKEN_EXCHANGE,
    requested_token_type: ID_JAG,
    subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
    audience: world.issuer,
    resource: world.server,
    scope: 'read write',
    client_id: CLIENT_AT_PROVIDER,
  });
  const { parameters, authorization } = world.latest('/token');
  t.is(parameters.get('grant_type'), JWT_BEARER);
  t.false(parameters.has('login_hint'), 'only the first request has parameters of the user');
  t.is(authorization, `Basic ${Buffer.from(`${CLIENT_AT_SERVER}:hunter2`).toString('base64')}`);
  t.is(world.count('/authorize'), 0);
  for (const secret of [idToken, parameters.get('assertion'), 'hunter2', 'refresh-1', 'access-1', 'login_hint']) {
    t.false(user.log().includes(secret ?? ''), secret ?? '');
  }
  t.is(company.exchanges, 1);
});

test('later tokens need no user, in later processes too: the ID token is used while it lasts, and refreshed then', async (t) => {
  const { company, world, provider, create } = await setUp(t);
  t.is((await create().call()).body, 'served');
  t.is((await create().call()).body, 'served');
  t.is(company.exchanges, 1);
  world.tokens.clear();
  t.is((await create().call()).body, 'served');
  t.is(provider.count('/token'), 1 + company.exchanges, 'the ID token lasts');
  world.tokens.clear();
  t.is((await create({ wallClock: () => Date.now() + 3_590_000 }).call()).body, 'served');
  const [, , , refresh] = provider.asked.filter(({ path }) => path === '/token');
  t.like(Object.fromEntries(refresh?.parameters ?? []), {
    ...{ grant_type: 'refresh_token', refresh_token: 'refresh-1', client_id: CLIENT_AT_PROVIDER },
    scope: 'openid offline_access',
  });
  t.false(refresh?.parameters.has('resource'));
  t.is(company.exchanges, 3);
  company.idTokenLife = 10_000;
  for (const passedMs of [3_600_000, 9_980_000]) {
    world.tokens.clear();
    t.is((await create({ wallClock: () => Date.now() + passedMs }).call()).body, 'served');
  }
  t.is(provider.reuses, 0, 'each refresh token is used once');
  t.is(provider.count('/authorize'), 1);
});

test('a refresh token that the identity provider takes no longer has the user asked again, once', async (t) => {
  const { company, world, provider, create } = await setUp(t);
  await create().call();
  provider.refreshTokens.clear();
  world.tokens.clear();
  t.is((await create({ wallClock: () => Date.now() + 3_590_000 }).call()).body, 'served');
  t.is(provider.count('/authorize'), 2);
  t.is(company.exchanges, 2);
});

test('what a token does not allow is asked for with another assertion, and no user', async (t) => {
  const { company, world, provider, create } = await setUp(t);
  world.resource = { scopes_supported: ['read'] };
  const user = create();
  t.is((await user.call()).body, 'served');
  world.judge = (token) =>
    token === 'access-1'
      ? { status: 403, headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="write"' } }
      : undefined;
  t.is((await user.call()).body, 'served');
  t.is(provider.latest('/token').parameters.get('scope'), 'read write');
  t.is(provider.count('/authorize'), 1);
  t.is(company.exchanges, 2);
});

test('an identity provider that grants fewer scopes has those asked for only', async (t) => {
  const { company, world, create } = await setUp(t);
  world.resource = { scopes_supported: ['read', 'write'] };
  company.answerExchange = (_, body) => ({ status: 200, body: { ...body, scope: 'read' } });
  await create().call();
  t.is(world.latest('/token').parameters.get('scope'), 'read');
});

test('a user without a browser logs in at the identity provider with a code', async (t) => {
  const { company, provider, create } = await setUp(t);
  provider.metadata = { ...provider.metadata, device_authorization_endpoint: `${provider.issuer}/device` };
  provider.answerDevice = () => ({
    status: 200,
    body: { device_code: 'device-1', user_code: 'ABCD', verification_uri: `${provider.issuer}/enter`, interval: 1 },
  });
  const user = create({}, { idToken: { kind: 'login', grant: 'device-code-if-offered' } });
  t.is((await user.call()).body, 'served');
  t.regex(user.log(), /open http:\S+\/enter in any browser and enter the code ABCD/);
  t.is(provider.latest('/device').parameters.get('scope'), 'openid offline_access');
  t.is(company.exchanges, 1);
});

test('with an ID token in a file nobody logs in, and the file is read for each assertion', async (t) => {
  const { company, world, provider, stateDirectory, create } = await setUp(t);
  const secret = { id: CLIENT_AT_PROVIDER, proof: { kind: 'secret', secret: 'of-the-provider' } } as const;
  const [first, second] = [company.signIdToken(), company.signIdToken()];
  const file = writeIdToken(stateDirectory, first);
  const user = create(
    { extraParameters: new Map([['tenant', 'a']]) },
    { client: secret, idToken: { kind: 'file', file } },
  );
  t.is((await user.call()).body, 'served');
  t.is(provider.latest('/token').parameters.get('subject_token'), first);
  t.is(provider.latest('/token').parameters.get('tenant'), 'a');
  t.false(world.latest('/token').parameters.has('tenant'));
  const basic = Buffer.from(`${CLIENT_AT_PROVIDER}:of-the-provider`).toString('base64');
  t.is(provider.latest('/token').authorization, `Basic ${basic}`);
  writeIdToken(stateDirectory, second);
  world.tokens.clear();
  t.is((await user.call()).body, 'served');
  t.is(provider.latest('/token').parameters.get('subject_token'), second);
  t.is(provider.count('/authorize'), 0);
  t.is(provider.count('/token'), 2);
});

test('an ID token in a file is sent to its own issuer only, for its own client, while it lasts', async (t) => {
  const { company, provider, stateDirectory, create } = await setUp(t);
  for (const [changes, fault] of [
    [{ iss: 'https://other.example' }, 'is not of that issuer'],
    [{ aud: 'another client' }, 'is for another client'],
    [{ exp: 1 }, 'has expired, by the clock of this machine'],
  ] as const) {
    const idToken = company.signIdToken(changes);
    const file = writeIdToken(stateDirectory, idToken);
    const user = create({}, { idToken: { kind: 'file', file } });
    const { message = '' } = (await user.call()).failure ?? {};
    t.true(message.includes(`The ID token for ${provider.issuer} in ${file} ${fault}`), message);
    t.false(user.log().includes(idToken));
  }
  t.is(provider.count('/token'), 0);
});

test('a user whom the identity provider does not allow this server is asked to log in once, not again and again', async (t) => {
  const { company, world, provider, create } = await setUp(t);
  company.answerExchange = () => ({ status: 400, body: { error: 'invalid_grant', error_description: 'not for you' } });
  for (const _ of ['first', 'second', 'third']) {
    const { failure } = await create().call();
    t.true(
      failure?.message.endsWith(
        `${provider.issuer} gave no assertion for the server (invalid_grant: not for you). Whoever runs the identity provider decides who may use the server; --login anew logs you in there again.`,
      ),
      failure?.message,
    );
  }
  t.is(provider.count('/authorize'), 1);
  t.is(world.count('/token'), 0);
  await create({ stored: 'forget' }).call();
  t.is(provider.count('/authorize'), 2);
});

test('without a refresh token a refused ID token is the end, too, and an expired one has the user asked', async (t) => {
  const { company, provider, create } = await setUp(t);
  const { answerToken } = provider;
  provider.answerToken = (asked, { refresh_token: _, ...usual }) => answerToken(asked, usual);
  t.is((await create().call()).body, 'served');
  company.world.tokens.clear();
  company.answerExchange = () => ({ status: 400, body: { error: 'invalid_grant' } });
  t.regex((await create().call()).failure?.message ?? '', /gave no assertion for the server \(invalid_grant\)/);
  t.is(provider.count('/authorize'), 1);
  company.answerExchange = (_, body) => ({ status: 200, body });
  t.is((await create({ wallClock: () => Date.now() + 3_590_000 }).call()).body, 'served');
  t.is(provider.count('/authorize'), 2);
});

test('a step that fails after the login at the identity provider is tried again without asking the user', async (t) => {
  const { world, provider, create } = await setUp(t);
  world.refuseTokens = [{ status: 503 }, 'reset'];
  for (const settings of [{}, { stateDirectory: undefined, stored: 'forget' as const }]) {
    const before = provider.count('/authorize');
    t.is((await create(settings).call()).body, 'served');
    t.is(provider.count('/authorize'), before + 1);
    world.refuseTokens = [{ status: 503 }];
  }
});

test('an authorization server that does not trust the identity provider is named, with both ends of the trust', async (t) => {
  const { company, provider, world, stateDirectory, create } = await setUp(t);
  company.assertion = { resource: 'https://other.example' };
  const { failure } = await create().call();
  t.regex(listLogins(stateDirectory), /^ {2}token +none so far$/m);
  t.true(
    failure?.message.endsWith(
      `${world.issuer} gave no token (invalid_grant: the assertion is not good). It was shown an assertion of ${provider.issuer}; both have to allow the client and the user.`,
    ),
    failure?.message,
  );
});

const BAD_ANSWERS: readonly [title: string, change: (company: Company) => void, fault: RegExp][] = [
  [
    'of another type',
    (company) => {
      company.answerExchange = (_, body) => ({
        status: 200,
        body: { ...body, issued_token_type: 'urn:ietf:params:oauth:token-type:access_token', token_type: 'Bearer' },
      });
    },
    /is of the type urn:ietf:params:oauth:token-type:access_token, expected urn:ietf:params:oauth:token-type:id-jag/,
  ],
  [
    'of no type',
    (company) => {
      company.answerExchange = (_, body) => ({ status: 200, body: { ...body, issued_token_type: null } });
    },
    /is of the type nothing/,
  ],
  [
    'for another authorization server',
    (company) => {
      company.assertion = { aud: 'https://evil.example\u001b[2J' };
    },
    /is for https:\/\/evil\.example \[2J, expected http/,
  ],
  [
    'for nobody',
    (company) => {
      company.assertion = { aud: [] };
    },
    /is for nobody in particular/,
  ],
  [
    'without end',
    (company) => {
      company.assertion = { filler: 'hunter2'.repeat(3000) };
    },
    /has \d+ characters, expected at most 16384/,
  ],
  [
    'that is no JWT',
    (company) => {
      company.answerExchange = (_, body) => ({ status: 200, body: { ...body, access_token: 'hunter2' } });
    },
    /is no JWT/,
  ],
];

for (const [title, change, fault] of BAD_ANSWERS) {
  test(`an assertion ${title} is sent to nobody`, async (t) => {
    const { company, world, create } = await setUp(t);
    change(company);
    const user = create();
    const { message = '' } = (await user.call()).failure ?? {};
    t.regex(message, fault);
    t.regex(message, /It is sent to nobody; tell whoever runs the identity provider\.$/);
    t.false(`${message}${user.log()}`.includes('hunter2'));
    t.is(world.count('/token'), 0);
  });
}

test('an identity provider is taken under the name that the user has given, and needs metadata', async (t) => {
  const { provider, create } = await setUp(t);
  const { metadata } = provider;
  provider.metadata = { ...metadata, issuer: 'https://other.example' };
  const foreign = (await create().call()).failure?.message ?? '';
  t.regex(foreign, /its issuer is https:\/\/other\.example, expected http\S+\. Check --oauth-idp-issuer\.$/);
  provider.metadataPath = '/nowhere';
  const without = (await create().call()).failure?.message ?? '';
  t.true(without.endsWith(`The identity provider at ${provider.issuer} has no metadata. Check --oauth-idp-issuer.`));
  t.is(provider.count('/token') + provider.count('/authorize'), 0);
});

/** One login, whose requests go where `reachFrom` lets them. */
function logInBy(server: URL, changes: Partial<LoginConfig>, reachFrom: LoginFlowOptions['reachFrom']) {
  const browser = new Browser();
  const flow = new LoginFlow({
    ...{ server, config: { ...NO_OPTIONS, stateDirectory: undefined, ...changes }, ...reachFrom(server), reachFrom },
    ...{ askToPaste: undefined, showCode: () => {}, registered: () => {}, deps: DEPS },
    openBrowser: (page) => void browser.visit(page).catch(() => {}),
    signal: new AbortController().signal,
  });
  const challenge = { scheme: 'Bearer', resourceMetadata: undefined, error: undefined, scopes: [], dpop: undefined };
  return flow.login({
    ...{ status: 401, challenge, previous: undefined, findNewerLogin: () => undefined },
    ...{ registrationFailed: () => {}, keep: async () => {} },
  });
}

test('the places that the identity provider names are judged by where it is, and those of the server by where that is', async (t) => {
  const { company, world, provider } = await setUp(t);
  const http = createClient({ clock: systemClock });
  closeAfter(t, http);
  const asked: string[] = [];
  const reachFrom = (named: URL) => {
    const guard = new AddressGuard(named);
    const fetch = createLoginFetch(http, guard);
    const recorded: LoginFetch = (url, request) => {
      asked.push(`${named.origin} → ${url.origin}`);
      return fetch(url, request);
    };
    return { guard, fetch: recorded };
  };
  const login = await logInBy(world.url, throughProvider(company), reachFrom);
  t.is(login?.identity?.issuer, provider.issuer);
  const ways = [`${world.origin} → ${world.origin}`, `${world.origin} → ${world.issuer}`];
  t.deepEqual([...new Set(asked)].sort(), [...ways, `${provider.issuer} → ${provider.issuer}`].sort());
});

test('an identity provider on the Internet leads to no machine near us, even for a server that is near', async (t) => {
  const company = await startCompany(t);
  const { world } = company;
  const issuer = 'https://idp.example';
  const documents: LoginFetch = async () =>
    new Response(JSON.stringify({ issuer, token_endpoint: 'https://10.0.0.1/token' }));
  const http = createClient({ clock: systemClock });
  closeAfter(t, http);
  const named: string[] = [];
  const reachFrom = (place: URL) => {
    const guard = new AddressGuard(place);
    const reach = createLoginFetch(http, guard);
    named.push(place.origin);
    const fetch: LoginFetch = (url, request) => (url.origin === issuer ? documents : reach)(url, request);
    return { guard, fetch };
  };
  const file = writeIdToken(temporaryFolder(t), company.signIdToken({ iss: issuer }));
  const provider = throughProvider(company, { issuer, idToken: { kind: 'file', file } });
  const login = logInBy(world.url, provider, reachFrom);
  await t.throwsAsync(login, { message: /https:\/\/10\.0\.0\.1\/token .*lies where the Internet does not lead to/ });
  t.deepEqual(named, [world.origin, issuer]);
});

test('no assertion is asked for that an authorization server of another name could use', async (t) => {
  const { company, world, create } = await setUp(t);
  world.metadata = { ...world.metadata, issuer: 'https://good.example' };
  const { failure } = await create({ issuer: world.issuer }).call();
  t.regex(
    failure?.message ?? '',
    /calls itself https:\/\/good\.example, which the assertion that it is given would be/,
  );
  t.is(company.exchanges, 0);
  t.is(company.provider.count('/authorize'), 0);
});

test('the login at the identity provider is kept with that of the server, is listed, and ends with it', async (t) => {
  const { company, world, provider, stateDirectory, create } = await setUp(t);
  provider.metadata = { ...provider.metadata, revocation_endpoint: `${provider.issuer}/revoke` };
  world.metadata = { ...world.metadata, revocation_endpoint: `${world.issuer}/revoke` };
  for (const each of [provider, world]) each.answerRevocation = () => ({ status: 200 });
  await create().call();
  const folder = join(stateDirectory, 'logins');
  const kept = readFileSync(join(folder, readdirSync(folder)[0] ?? ''), 'utf8');
  t.false(kept.includes('hunter2'), 'secrets of clients are not kept');
  const listed = listLogins(stateDirectory);
  t.true(listed.includes(`  user of ${provider.issuer}\n`), listed);
  t.false(/refresh-1|access-1|eyJ/.test(listed));
  const http = createClient({ clock: systemClock });
  closeAfter(t, http);
  const config: LoginConfig = { ...NO_OPTIONS, stateDirectory, ...throughProvider(company) };
  const { signal } = new AbortController();
  t.like(await logOut({ server: world.url, config, http, deps: DEPS, signal }), { kind: 'revoked' });
  t.is(provider.latest('/revoke').parameters.get('token'), 'refresh-1');
  t.is(provider.latest('/revoke').parameters.get('client_id'), CLIENT_AT_PROVIDER);
  t.is(provider.count('/revoke'), 1, 'ID tokens are not revoked');
  t.is(world.latest('/revoke').parameters.get('token'), 'access-1');
  t.deepEqual(readdirSync(folder), []);
});

test('several calls wait for one login at the identity provider', async (t) => {
  const { company, provider, create } = await setUp(t);
  const users = Array.from({ length: 5 }, () => create());
  for (const { body } of await Promise.all(users.map((user) => user.call()))) t.is(body, 'served');
  t.is(provider.count('/authorize'), 1);
  t.is(company.exchanges, 1);
});
