/** Logins whose tokens are bound to a key, because the server or its authorization server wants that. [RFC 9449] */
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { decodeJwt } from 'jose';
import { type BoundWorld, refuse, startBoundWorld } from '../../support/bound-world.ts';
import { startLoginWorld } from '../../support/login-world.ts';
import { createUser, temporaryFolder } from './logged-in.ts';

function storedIn(folder: string) {
  const [name = ''] = readdirSync(join(folder, 'logins')).filter((file) => file.endsWith('.json'));
  const path = join(folder, 'logins', name);
  return { path, login: JSON.parse(readFileSync(path, 'utf8')) };
}

const noncesOf = ({ proofs }: BoundWorld['server']) => proofs.map(({ nonce }) => nonce);

test('a login for a server that wants it is bound to a key, and each request proves possession of that', async (t) => {
  const { world, keys, server, issuer, faults } = await startBoundWorld(t);
  const stateDirectory = temporaryFolder(t);
  const user = createUser(t, world.url, { stateDirectory });
  for (const _ of ['first', 'second']) t.is((await user.call()).body, 'served');
  t.is((await user.call({ method: 'GET', body: undefined })).body, 'served');
  t.is((await user.call({ method: 'DELETE', body: undefined })).body, 'served');
  t.deepEqual(faults, []);
  t.is(keys.size, 1);
  t.deepEqual([world.latest('/authorize').parameters.get('dpop_jkt')], [...keys]);
  t.deepEqual(
    server.proofs.map(({ method }) => method),
    ['POST', 'POST', 'GET', 'DELETE'],
  );
  t.is(issuer.proofs.length, 1);
  const { path, login } = storedIn(stateDirectory);
  t.is(login.tokens.key.alg, 'ES256');
  if (process.platform !== 'win32') t.is(statSync(path).mode & 0o777, 0o600);
  t.false(user.log().includes(login.tokens.key.d), 'the private key is in no log');
});

test('another process that shares the login uses and refreshes it with the same key', async (t) => {
  const { world, keys, issuer } = await startBoundWorld(t);
  const stateDirectory = temporaryFolder(t);
  const users = [0, 1].map(() => createUser(t, world.url, { stateDirectory }));
  const callAll = async () => {
    for (const call of await Promise.all(users.map((user) => user.call()))) t.is(call.body, 'served');
  };
  await callAll();
  for (const round of [2, 3]) {
    world.tokens.clear();
    await callAll();
    t.is(world.count('/token'), round);
  }
  const later = createUser(t, world.url, { stateDirectory });
  world.tokens.clear();
  t.is((await later.call()).body, 'served');
  t.is(keys.size, 1);
  t.is(issuer.proofs.length, 4);
  t.is(world.count('/authorize'), 1);
  t.is(world.reuses, 0);
});

test('nonces of the server and of the authorization server are kept apart, and cost one repetition each', async (t) => {
  const { world, nonces, server, issuer } = await startBoundWorld(t);
  Object.assign(nonces, { issuer: 'of-the-issuer', server: 'of-the-server' });
  const user = createUser(t, world.url);
  t.is((await user.call()).body, 'served');
  t.is((await user.call()).body, 'served');
  t.deepEqual(noncesOf(issuer), [undefined, 'of-the-issuer']);
  t.deepEqual(noncesOf(server), [undefined, 'of-the-server', 'of-the-server']);
  nonces.server = 'next';
  t.is((await user.call()).body, 'served');
  t.deepEqual(noncesOf(server).slice(3), ['of-the-server', 'next']);
  nonces.server = 'last';
  t.is((await user.call({ method: 'DELETE', body: undefined })).body, 'served', 'the end of a session as well');
  t.deepEqual(noncesOf(server).slice(5), ['next', 'last']);
  world.tokens.clear();
  t.is((await user.call()).body, 'served', 'a nonce outlives the token');
  t.is(world.count('/authorize'), 1);
  t.is(user.opened.length, 1);
});

test('a nonce that comes with an answer is in the next proof, so that nothing is repeated', async (t) => {
  const { world, nonces, server } = await startBoundWorld(t);
  let count = 0;
  world.serve = (_, response) => {
    nonces.server = `nonce-${count++}`;
    response.setHeader('dpop-nonce', nonces.server).end('served');
  };
  const user = createUser(t, world.url);
  for (const _ of [1, 2, 3]) t.is((await user.call()).body, 'served');
  t.deepEqual(noncesOf(server), [undefined, 'nonce-0', 'nonce-1']);
});

test('calls that are all refused for the same nonce are all repeated with it', async (t) => {
  const { world, nonces, server } = await startBoundWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  nonces.server = 'wanted';
  const calls = await Promise.all(Array.from({ length: 10 }, () => user.call()));
  for (const call of calls) t.is(call.body, 'served');
  t.true(server.proofs.length <= 21);
  t.is(world.count('/authorize') + world.count('/token'), 2, 'no token counts as refused');
});

test('a server that asks for another nonce without end costs one repetition and no login', async (t) => {
  const { world } = await startBoundWorld(t);
  const user = createUser(t, world.url);
  await user.call();
  let asked = 0;
  world.judge = () => refuse('use_dpop_nonce', `nonce-${asked++}`);
  const { failure } = await user.call();
  t.is(failure?.code, 'ERR_UPSTREAM_AUTH');
  t.regex(failure?.message ?? '', /asks for a nonce \(use_dpop_nonce\) after it was sent one/);
  t.is(asked, 2);
  t.is(world.count('/authorize') + world.count('/token'), 2);
});

for (const [what, nonce] of [
  ['absent', undefined],
  ['not a nonce', 'two words'],
  ['too long', 'x'.repeat(4000)],
] as const) {
  test(`a server whose nonce is ${what} is not asked again, and nobody logs in`, async (t) => {
    const { world, server } = await startBoundWorld(t);
    const user = createUser(t, world.url);
    await user.call();
    let asked = 0;
    world.judge = () => {
      asked += 1;
      return refuse('use_dpop_nonce', nonce);
    };
    t.regex((await user.call()).failure?.message ?? '', /or names none that can be sent/);
    t.is(asked, 1);
    t.deepEqual(noncesOf(server), [undefined]);
    t.is(world.count('/authorize') + world.count('/token'), 2);
  });
}

test('an authorization server that asks for another nonce without end is asked twice', async (t) => {
  const { world, nonces } = await startBoundWorld(t);
  const { judgeTokens } = world;
  world.judgeTokens = (asked) => {
    nonces.issuer = randomUUID();
    return judgeTokens(asked);
  };
  const { failure } = await createUser(t, world.url).call();
  t.regex(failure?.message ?? '', /The token endpoint of .* refuses the request \(use_dpop_nonce\)/);
  t.is(world.count('/token'), 2);
});

test('a request that is repeated for a nonce has another assertion of the client', async (t) => {
  const { world, nonces } = await startBoundWorld(t);
  nonces.issuer = 'wanted';
  const file = join(temporaryFolder(t), 'key.pem');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const client = { id: 'me', proof: { kind: 'key', file } } as const;
  const user = createUser(t, world.url, { client, grant: 'client-credentials' });
  t.is((await user.call()).body, 'served');
  const assertions = world.asked.flatMap(({ parameters }) => parameters.getAll('client_assertion'));
  t.is(new Set(assertions.map((assertion) => decodeJwt(assertion).jti)).size, 2);
});

test('a login with a code is bound to a key as well', async (t) => {
  const { world, nonces, keys, faults } = await startBoundWorld(t);
  nonces.issuer = 'wanted';
  world.metadata = { ...world.metadata, device_authorization_endpoint: `${world.issuer}/device` };
  const body = { device_code: 'd', user_code: 'AB-CD', verification_uri: `${world.issuer}/enter`, interval: 1 };
  world.answerDevice = () => ({ status: 200, body });
  t.is((await createUser(t, world.url, { grant: 'device-code' }).call()).body, 'served');
  t.is(keys.size, 1);
  t.is(world.count('/token'), 2);
  t.deepEqual(faults, []);
});

test('a redirect gets a proof for the URL that it leads to', async (t) => {
  const { world, server, faults } = await startBoundWorld(t);
  const { judge } = world;
  world.judge = async (token, request) => {
    const verdict = await judge(token, request);
    if (verdict !== undefined || request.url !== '/mcp') return verdict;
    return { status: 307, headers: { location: '/moved?a=b' } };
  };
  world.movedFrom = { '/token': [307, '/elsewhere'] };
  world.tokenPath = '/elsewhere';
  t.is((await createUser(t, world.url).call()).body, 'served');
  t.is(server.proofs.length, 2);
  t.deepEqual(faults, []);
});

test('a proof that the server refuses costs no login, and the error says so where the clock is wrong', async (t) => {
  const { world } = await startBoundWorld(t);
  const user = createUser(t, world.url, { wallClock: () => Date.now() - 10 * 60_000 });
  await user.call();
  world.judge = () => refuse('invalid_dpop_proof');
  t.regex(
    (await user.call()).failure?.message ?? '',
    /does not accept the proof that the key of its token is here \(invalid_dpop_proof\)\. The clock of this machine is 10 min behind/,
  );
  t.is(world.count('/authorize') + world.count('/token'), 2);
});

test('an authorization server that refuses the proof is told with the clock where that is wrong', async (t) => {
  const { world } = await startBoundWorld(t);
  world.judgeTokens = () => ({ status: 400, body: { error: 'invalid_dpop_proof', error_description: 'too old' } });
  const late = createUser(t, world.url, { wallClock: () => Date.now() - 3_600_000 });
  t.regex(
    (await late.call()).failure?.message ?? '',
    /refuses the request \(invalid_dpop_proof: too old\)\. The clock of this machine is 60 min behind/,
  );
});

test('a token that is refused just after it was given leads to no second login', async (t) => {
  const { world } = await startBoundWorld(t);
  world.judge = () => refuse('invalid_token');
  const user = createUser(t, world.url, { wallClock: () => Date.now() + 3_600_000 });
  t.regex((await user.call()).failure?.message ?? '', /does not accept the token of .* is 60 min ahead/);
  t.is(world.count('/authorize'), 1);
});

test('a bearer token is not used where the server wants a bound one, and is where it takes both', async (t) => {
  const { world } = await startBoundWorld(t);
  world.answerToken = (_, body) => ({ status: 200, body });
  const { failure } = await createUser(t, world.url).call();
  t.regex(failure?.message ?? '', /gave a token that is not bound to a key, .*Nothing of it is used/);
  const stateDirectory = temporaryFolder(t);
  world.challenge = () => 'Bearer, DPoP algs="ES256"';
  world.judge = () => undefined;
  t.is((await createUser(t, world.url, { stateDirectory }).call()).body, 'served');
  t.regex(world.shown.at(-1) ?? '', /^Bearer /);
  t.false('key' in storedIn(stateDirectory).login.tokens);
});

test('metadata of the server is enough to want bound tokens, and a type that is left out counts as the one wanted', async (t) => {
  const { world } = await startBoundWorld(t);
  world.challenge = () => 'Bearer';
  world.resource = { dpop_bound_access_tokens_required: true };
  world.answerToken = (_, { token_type: unused, ...body }) => ({ status: 200, body });
  t.is((await createUser(t, world.url).call()).failure?.code, 'ERR_UPSTREAM_AUTH', 'the token is bound to nothing');
  t.regex(world.shown.at(-1) ?? '', /^DPoP /);
});

for (const answer of [
  { error: 'invalid_dpop_proof', error_description: 'The DPoP proof JWT header is missing.' },
  { error: 'use_dpop_nonce' },
  { error: 'invalid_request', error_description: 'DPoP proof is missing' },
  { error: 'invalid_grant', error_description: 'DPoP proof JWT not provided' },
]) {
  test(`an authorization server may want proofs by itself: ${JSON.stringify(answer)}`, async (t) => {
    const { world, nonces, keys } = await startBoundWorld(t);
    world.challenge = () => 'Bearer';
    const { judgeTokens } = world;
    world.judgeTokens = (asked) => (asked.dpop === undefined ? { status: 400, body: answer } : judgeTokens(asked));
    nonces.issuer = 'wanted';
    t.is((await createUser(t, world.url).call()).body, 'served');
    t.is(world.count('/token'), 3);
    t.is(world.count('/authorize'), 1);
    t.false(world.latest('/authorize').parameters.has('dpop_jkt'));
    t.is(keys.size, 1);
  });
}

for (const error of ['invalid_dpop_proof', 'use_dpop_nonce', 'invalid_request']) {
  test(`a bearer login whose authorization server wants proofs from now on is made anew: ${error}`, async (t) => {
    const { world } = await startBoundWorld(t);
    const { challenge, judge, judgeTokens, answerToken } = world;
    Object.assign(world, { challenge: () => 'Bearer', judge: () => undefined, judgeTokens: () => undefined });
    world.answerToken = (_, body) => ({ status: 200, body });
    const user = createUser(t, world.url);
    t.is((await user.call()).body, 'served');
    t.regex(world.shown.at(-1) ?? '', /^Bearer /);
    Object.assign(world, { challenge, judge, answerToken });
    const refusal = { status: 400, body: { error, error_description: 'DPoP proof is missing' } };
    world.judgeTokens = (asked) => (asked.dpop === undefined ? refusal : judgeTokens(asked));
    t.is((await user.call()).body, 'served');
    t.regex(world.shown.at(-1) ?? '', /^DPoP /);
    t.is(world.count('/authorize'), 2);
  });
}

test('a login that nobody wants bound sends no proof', async (t) => {
  const world = await startLoginWorld(t);
  world.metadata = { dpop_signing_alg_values_supported: ['ES256'] };
  const shown: unknown[] = [];
  world.judge = (_, { headers }) => void shown.push(headers.dpop);
  const user = createUser(t, world.url);
  t.is((await user.call()).body, 'served');
  world.tokens.clear();
  t.is((await user.call()).body, 'served');
  t.deepEqual(shown, [undefined, undefined]);
  t.deepEqual([...new Set(world.asked.map(({ dpop }) => dpop))], [undefined]);
});

test('a stored token whose key is gone is not shown', async (t) => {
  const { world } = await startBoundWorld(t);
  const stateDirectory = temporaryFolder(t);
  await createUser(t, world.url, { stateDirectory }).call();
  const { path, login } = storedIn(stateDirectory);
  login.tokens.key = { alg: 'ES256' };
  writeFileSync(path, JSON.stringify(login));
  t.is((await createUser(t, world.url, { stateDirectory }).call()).body, 'served');
  t.is(world.count('/authorize'), 2);
});
