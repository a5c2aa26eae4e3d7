/** A workload logs in with the assertion that its platform writes into a file. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { SignJWT } from 'jose';
import { type LoginWorld, startLoginWorld } from '../../support/login-world.ts';
import { createUser, type LoginSettings, temporaryFolder } from './logged-in.ts';

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** Signed with a key that nobody knows: clients look at none of the signature. */
function sign(claims: Record<string, unknown>, life = '5m'): Promise<string> {
  const token = new SignJWT({ sub: 'system:serviceaccount:tools:agent', ...claims }).setExpirationTime(life);
  return token.setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32));
}

interface Workload {
  readonly world: LoginWorld;
  readonly file: string;
  readonly stateDirectory: string;
  readonly create: (settings?: LoginSettings) => ReturnType<typeof createUser>;
}

async function startWorkload(t: ExecutionContext): Promise<Workload> {
  const world = await startLoginWorld(t);
  world.answerToken = (_, { access_token, token_type }) => ({ status: 200, body: { access_token, token_type } });
  const stateDirectory = temporaryFolder(t);
  const file = join(stateDirectory, 'assertion');
  const settings = { grant: 'jwt-bearer', assertion: { kind: 'file', file }, stateDirectory } as const;
  return { world, file, stateDirectory, create: (more) => createUser(t, world.url, { ...settings, ...more }) };
}

test('a workload gets a token for the JWT in its file, read again each time, without a user and without an id', async (t) => {
  const { world, file, create } = await startWorkload(t);
  world.resource = { scopes_supported: ['read'] };
  world.metadata = { scopes_supported: ['read', 'offline_access'] };
  const first = await sign({ aud: world.issuer, jti: 'first' });
  writeFileSync(file, `${first}\n`);
  const workload = create();
  t.is((await workload.call()).body, 'served');
  const { parameters, authorization } = world.latest('/token');
  t.deepEqual(Object.fromEntries(parameters), {
    ...{ grant_type: JWT_BEARER, assertion: first, resource: world.server, scope: 'read' },
  });
  t.is(authorization, undefined);
  const renewed = await sign({ aud: [`${world.issuer}/`, 'another'], jti: 'renewed' });
  writeFileSync(file, renewed);
  world.tokens.clear();
  t.is((await workload.call()).body, 'served');
  t.is(world.latest('/token').parameters.get('assertion'), renewed);
  t.is(world.count('/token'), 2);
  t.is(world.count('/authorize') + world.count('/register'), 0);
});

test('a workload that is registered shows its id, its secret and the parameters that it is told to', async (t) => {
  const { world, file, create } = await startWorkload(t);
  world.metadata = { token_endpoint_auth_methods_supported: ['client_secret_basic'] };
  writeFileSync(file, await sign({ aud: `${world.issuer}/token` }));
  const secret = { id: 'agent', proof: { kind: 'secret', secret: 'hunter2' } } as const;
  t.is((await create({ client: secret, extraParameters: new Map([['tenant', 'a']]) }).call()).body, 'served');
  const basic = Buffer.from('agent:hunter2').toString('base64');
  t.is(world.latest('/token').authorization, `Basic ${basic}`);
  t.is(world.latest('/token').parameters.get('tenant'), 'a');
  t.is((await create({ client: { id: 'agent', proof: { kind: 'none' } } }).call()).body, 'served');
  t.is(world.latest('/token').parameters.get('client_id'), 'agent');
});

test('the token outlives the process, and that of another file is another login', async (t) => {
  const { world, file, stateDirectory, create } = await startWorkload(t);
  const assertion = await sign({ aud: world.issuer });
  writeFileSync(file, assertion);
  await create().call();
  t.is((await create().call()).body, 'served');
  t.is(world.count('/token'), 1);
  const other = join(stateDirectory, 'other');
  writeFileSync(other, await sign({ aud: world.issuer, sub: 'another' }));
  t.is((await create({ assertion: { kind: 'file', file: other } }).call()).body, 'served');
  t.is(world.count('/token'), 2);
  const kept = readdirSync(join(stateDirectory, 'logins')).map((name) =>
    readFileSync(join(stateDirectory, 'logins', name), 'utf8'),
  );
  t.is(kept.length, 2);
  for (const text of kept) t.false(text.includes(assertion), 'the assertion is not kept');
});

test('an assertion is sent to no authorization server but the one that it is for', async (t) => {
  const { world, file, create } = await startWorkload(t);
  for (const aud of ['https://good.example', ['https://good.example', `${world.issuer}.example`], undefined]) {
    const assertion = await sign({ aud });
    writeFileSync(file, assertion);
    const workload = create();
    const { message = '' } = (await workload.call()).failure ?? {};
    t.regex(message, /is for (?:https:\/\/good\.example|nobody in particular).*, and the authorization server is /);
    t.true(message.endsWith(`if you trust that server with it, give --oauth-issuer ${world.issuer}.`), message);
    t.false(`${message}${workload.log()}`.includes(assertion.slice(0, 20)));
  }
  t.is(world.count('/token'), 0);
});

test('a user who names the authorization server says whom the assertion is for, and only under its own name', async (t) => {
  const { world, file, create } = await startWorkload(t);
  writeFileSync(file, await sign({ aud: 'api://agents' }));
  t.is((await create({ issuer: world.issuer }).call()).body, 'served');
  const other = await startWorkload(t);
  other.world.metadata = { issuer: 'https://good.example' };
  writeFileSync(other.file, await sign({ aud: 'https://good.example' }));
  const { failure } = await other.create({ issuer: other.world.issuer }).call();
  t.regex(
    failure?.message ?? '',
    /calls itself https:\/\/good\.example, which the assertion that it is given would be/,
  );
  t.is(other.world.count('/token'), 0);
});

test('a file without an assertion is an error that names the file, and nothing that is in it', async (t) => {
  const { world, file, stateDirectory, create } = await startWorkload(t);
  const long = `${'hunter2'.repeat(3000)}.e30.x`;
  for (const [content, fault] of [
    ['', /is empty/],
    ['hunter2', /holds no JWT/],
    ['a.hunter2\r\nx-header.c', /holds no JWT/],
    [long, /has 21006 characters. Expected one JWT of at most 16384 characters and nothing else/],
    ['e30.hunter2.x', /is no JWT/],
  ] as const) {
    writeFileSync(file, content);
    const workload = create();
    const { message = '' } = (await workload.call()).failure ?? {};
    t.regex(message, fault);
    t.true(message.includes(file));
    t.false(`${message}${workload.log()}`.includes('hunter2'));
  }
  const folder = join(stateDirectory, 'folder');
  mkdirSync(folder);
  for (const [path, code] of [
    [join(stateDirectory, 'none'), 'ENOENT'],
    [folder, 'ERR_NOT_A_FILE'],
  ] as const) {
    const { failure } = await create({ assertion: { kind: 'file', file: path } }).call();
    t.true(failure?.message.includes(`Cannot read the assertion file ${path} (${code})`), failure?.message);
  }
  t.is(world.count('/token'), 0);
});

const testOfPipes = process.platform === 'win32' ? test.skip : test;
testOfPipes('a pipe that nobody writes into is not waited for', async (t) => {
  const { stateDirectory, create } = await startWorkload(t);
  const pipe = join(stateDirectory, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const { failure } = await create({ assertion: { kind: 'file', file: pipe } }).call();
  t.regex(failure?.message ?? '', /Cannot read the assertion file .*pipe \(ERR_NOT_A_FILE\)/);
});

test('an assertion that is refused is not sent again by itself, and the error says whether it has expired', async (t) => {
  const { world, file, create } = await startWorkload(t);
  world.answerToken = () => ({ status: 400, body: { error: 'invalid_grant', error_description: 'no\nthanks' } });
  for (const [life, advice] of [
    ['5m', `The assertion is that in ${file}; does the authorization server trust its issuer?`],
    [
      '-1m',
      `The assertion in ${file} has expired, by the clock of this machine; the file is read again for the next call.`,
    ],
  ] as const) {
    writeFileSync(file, await sign({ aud: world.issuer }, life));
    const workload = create();
    const before = world.count('/token');
    const { failure } = await workload.call();
    t.true(failure?.message.endsWith(`gave no token (invalid_grant: no thanks). ${advice}`), failure?.message);
    await workload.call();
    t.is(world.count('/token'), before + 1);
  }
});

test('an authorization server that wants to know the client leads to the option that names it', async (t) => {
  const { world, file, create } = await startWorkload(t);
  world.answerToken = () => ({ status: 401, body: { error: 'invalid_client' } });
  writeFileSync(file, await sign({ aud: world.issuer }));
  const { failure } = await create().call();
  t.regex(
    failure?.message ?? '',
    /gave no token \(invalid_client\)\. It may want to know the client: --oauth-client-id\.$/,
  );
});

test('a token endpoint that is reached without encryption gets no assertion', async (t) => {
  const { world, file, create } = await startWorkload(t);
  world.metadata = { token_endpoint: 'http://10.0.0.1/token' };
  writeFileSync(file, await sign({ aud: world.issuer }));
  const { failure } = await create().call();
  t.regex(failure?.message ?? '', /http:\/\/10\.0\.0\.1\/token is to be asked in a login, but not over https/);
});
