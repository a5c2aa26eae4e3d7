/** Tokens that name keys nobody has seen, before a real issuer and by way of real sockets. */
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { createSystemDeps } from '../../../src/cli/system-deps.ts';
import { BearerAuthenticator } from '../../../src/http/auth/bearer-authenticator.ts';
import { createJwtVerifier, type JwtOutcome, type JwtVerifier } from '../../../src/http/auth/jwt-verifier.ts';
import { createKeySource } from '../../../src/http/auth/key-source.ts';
import { TokenTable } from '../../../src/http/auth/token-table.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import {
  createIssuerClient,
  createIssuerKey,
  type FakeIssuer,
  type IssuerKey,
  inSeconds,
  publish,
  startIssuer,
} from '../../support/fake-issuer.ts';
import { callHttp } from '../../support/http-call.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { initialize, POST_HEADERS } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';

const KEY = await createIssuerKey('one');
const FRESH = await createIssuerKey('two');
const log = pino({ level: 'silent' });

async function startVerifier(t: ExecutionContext) {
  const issuer = await startIssuer(t);
  publish(issuer, KEY);
  const clock = new FakeClock();
  const client = createIssuerClient(t, clock);
  const oauth = { issuer: issuer.url, audiences: ['tools'], scopes: [], keys: { kind: 'discovered' } } as const;
  const keys = await createKeySource(oauth, async () => client, { ...createSystemDeps(log), clock });
  await keys.current();
  return { issuer, clock, jwt: createJwtVerifier({ ...oauth, keys, clock }) };
}

const tokenOf = (issuer: FakeIssuer, key: IssuerKey, sub = 'alice'): Promise<string> =>
  key.sign({ iss: issuer.url, aud: 'tools', sub, exp: inSeconds(300) });

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Anybody can write such a token. */
const madeUp = (kid: string): string => `${encode({ alg: 'ES256', kid })}.${encode({ sub: 'eve' })}.${'A'.repeat(86)}`;

const fetchesOf = (issuer: FakeIssuer): number => issuer.asked.filter((path) => path === '/keys').length;

const verify = (jwt: JwtVerifier, token: string): Promise<JwtOutcome> =>
  new Promise((done) => jwt.verify(token, ['tools'], done));

test('a flood of keys that are made up neither refuses nor delays those whose keys are known', async (t) => {
  const { issuer, clock, jwt } = await startVerifier(t);
  let answer: () => void = () => undefined;
  const document = issuer.answers.get('/keys') ?? { status: 404 };
  const after = new Promise<void>((resolve) => {
    answer = resolve;
  });
  issuer.answers.set('/keys', { ...document, after });
  const outcomes: JwtOutcome[] = [];
  for (let count = 0; count < 3000; count += 1) {
    jwt.verify(madeUp(`made up ${count}`), ['tools'], (outcome) => outcomes.push(outcome));
  }
  await waitFor(() => fetchesOf(issuer) === 2);
  for (const sub of ['alice', 'bob', 'carol']) {
    const outcome = await verify(jwt, await tokenOf(issuer, KEY, sub));
    t.deepEqual(outcome, { kind: 'principal', principal: `${issuer.url}#${sub}` });
  }
  t.is(outcomes.length, 2000, 'the others wait, and no more than that');
  answer();
  await waitFor(() => outcomes.length === 3000);
  t.true(outcomes.every(({ kind }) => kind === 'invalid' || kind === 'unavailable'));
  t.is(fetchesOf(issuer), 2);
  clock.advance(29_000);
  t.is((await verify(jwt, madeUp('another'))).kind, 'unavailable');
  t.is(fetchesOf(issuer), 2, 'the issuer does not hear of all this');
});

test('a fresh key is 503 with the time to try again, never 401, until it could be fetched, flood or not', async (t) => {
  const { issuer, clock, jwt } = await startVerifier(t);
  const hintsFor = () => ({ resourceMetadata: undefined, scopes: [] });
  const authenticator = new BearerAuthenticator({
    tokens: new TokenTable([], log),
    jwt,
    audiences: ['tools'],
    hintsFor,
  });
  const { port } = await startHttpHarness(t, { authenticator });
  const post = (token: string) => {
    const headers = { ...POST_HEADERS, Authorization: `Bearer ${token}` };
    return callHttp({ port, method: 'POST', headers, body: JSON.stringify(initialize()) });
  };
  const statusOf = async (token: string): Promise<number> => (await post(token)).status;
  t.is(await statusOf(madeUp('first')), 401, 'the issuer was asked for it');
  publish(issuer, KEY, FRESH);
  for (let left = 30; left > 0; left -= 10) {
    const answer = await post(await tokenOf(issuer, FRESH));
    t.is(answer.status, 503);
    t.is(answer.headers['retry-after'], `${left}`);
    t.is(answer.headers['www-authenticate'], undefined, 'nobody shall throw the token away');
    t.is(await statusOf(madeUp(`at ${left}`)), 503);
    t.is(await statusOf(madeUp('first')), 401);
    t.is(await statusOf(await tokenOf(issuer, KEY)), 200);
    clock.advance(10_000);
  }
  t.is(await statusOf(madeUp('who comes first, after 30 s')), 401);
  t.is(await statusOf(await tokenOf(issuer, FRESH)), 200);
  for (const kid of ['first', 'at 30', 'at 10']) t.is(await statusOf(madeUp(kid)), 401, 'it is known by now');
  t.is(fetchesOf(issuer), 3);
});

test('while the issuer is away an unknown key is 503, a known one is served', async (t) => {
  const { issuer, clock, jwt } = await startVerifier(t);
  publish(issuer, KEY, FRESH);
  const document = issuer.answers.get('/keys') ?? { status: 404 };
  issuer.answers.set('/keys', { status: 500 });
  for (let count = 0; count < 3; count += 1) {
    t.is((await verify(jwt, await tokenOf(issuer, FRESH))).kind, 'unavailable');
    t.is((await verify(jwt, await tokenOf(issuer, KEY))).kind, 'principal');
  }
  t.is(fetchesOf(issuer), 2);
  issuer.answers.set('/keys', document);
  clock.advance(5000);
  t.is((await verify(jwt, await tokenOf(issuer, FRESH))).kind, 'principal');
});
