import { createHmac, createPublicKey, generateKeyPairSync } from 'node:crypto';
import test from 'ava';
import { createLocalJWKSet, importJWK, type JWK, SignJWT } from 'jose';
import { BridgeError } from '../../../src/errors.ts';
import type { JwtOutcome, JwtVerifier } from '../../../src/http/auth/jwt-verifier.ts';
import { createJwtVerifier } from '../../../src/http/auth/jwt-verifier.ts';
import type { KeySet, KeySource } from '../../../src/http/auth/key-source.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Claims, createIssuerKey, inSeconds } from '../../support/fake-issuer.ts';
import { waitFor } from '../../support/wait-for.ts';

const ISSUER = 'https://auth.example';
const AUDIENCE = 'https://tools.example/mcp';
const KEY = await createIssuerKey('one');
const RSA = await createIssuerKey('rsa', 'RS256');

/** Keys that change when a test says so; counts who asks for newer ones. */
class FakeKeys implements KeySource {
  #set: ReturnType<typeof createLocalJWKSet>;
  upcoming: readonly JWK[] | undefined;
  isDown = false;
  asked = 0;
  looks = 0;

  constructor(...keys: readonly JWK[]) {
    this.#set = createLocalJWKSet({ keys: [...keys] });
  }

  known() {
    this.looks += 1;
    return this.isDown ? undefined : this.#set;
  }

  async current(): Promise<KeySet> {
    throw new BridgeError('ERR_AUTH_UNAVAILABLE', 'down');
  }

  async newer() {
    this.asked += 1;
    if (this.upcoming === undefined) return undefined;
    this.#set = createLocalJWKSet({ keys: [...this.upcoming] });
    this.upcoming = undefined;
    return this.#set;
  }
}

function verifier(
  keys: KeySource = new FakeKeys(KEY.jwk, RSA.jwk),
  scopes: readonly string[] = [],
  clock = new FakeClock(),
) {
  return createJwtVerifier({ issuer: ISSUER, scopes, keys, clock });
}

const AUDIENCES = [AUDIENCE, 'tools'];
const verify = (jwt: JwtVerifier, token: string, audiences = AUDIENCES): Promise<JwtOutcome> =>
  new Promise((done) => jwt.verify(token, audiences, done));
const claims = (more: Claims = {}): Claims => ({
  iss: ISSUER,
  aud: AUDIENCE,
  sub: 'alice',
  exp: inSeconds(300),
  ...more,
});

test('a good token names its subject, together with who says so', async (t) => {
  const principal = { kind: 'principal', principal: 'https://auth.example#alice' } as const;
  t.deepEqual(await verify(verifier(), await KEY.sign(claims())), principal);
  t.deepEqual(await verify(verifier(), await RSA.sign(claims())), principal);
  t.deepEqual(await verify(verifier(), await KEY.sign(claims({ aud: ['other', 'tools'] }))), principal);
});

for (const algorithm of [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
]) {
  test(`a token that is signed with ${algorithm} is good`, async (t) => {
    const key = await createIssuerKey('of this algorithm', algorithm);
    t.is((await verify(verifier(new FakeKeys(key.jwk)), await key.sign(claims()))).kind, 'principal');
  });
}

const refuses = test.macro({
  title: (_, what: string) => `a token is refused that ${what}`,
  async exec(t, _what: string, more: Claims, reason: RegExp) {
    const keys = new FakeKeys(KEY.jwk);
    const outcome = await verify(verifier(keys), await KEY.sign(claims(more)));
    t.is(outcome.kind, 'invalid');
    if (outcome.kind === 'invalid') t.regex(outcome.reason, reason);
    t.is(keys.asked, 0, 'the key is known');
  },
});

test(refuses, 'has expired', { exp: inSeconds(-60) }, /expired/);
test(refuses, 'never expires', { exp: undefined }, /expiry/);
test(refuses, 'is not valid yet', { nbf: inSeconds(60) }, /not valid yet/);
test(refuses, 'is of another issuer', { iss: 'https://evil.example' }, /another issuer/);
test(refuses, 'is of an issuer that differs by a slash', { iss: `${ISSUER}/` }, /another issuer/);
test(refuses, 'has no issuer', { iss: undefined }, /another issuer/);
test(refuses, 'is made for another server', { aud: 'https://other.example/mcp' }, /another audience/);
test(refuses, 'is made for nobody', { aud: undefined }, /another audience/);
test(refuses, 'is made for what is no text', { aud: 7 as never }, /another audience/);

test('a token for one server is not taken at another, nor when it was seen a moment ago', async (t) => {
  const jwt = verifier();
  const token = await KEY.sign(claims({ aud: 'https://tools.example/one/mcp' }));
  for (let turn = 0; turn < 2; turn += 1) {
    t.is((await verify(jwt, token, ['https://tools.example/one/mcp'])).kind, 'principal');
    t.deepEqual(await verify(jwt, token, ['https://tools.example/two/mcp']), {
      kind: 'invalid',
      reason: 'it is made for another audience',
    });
  }
});
test(refuses, 'names no subject', { sub: undefined }, /no subject/);
test(refuses, 'has an empty subject', { sub: '' }, /no subject/);
test(refuses, 'has a subject that is no text but looks like one', { sub: ['alice'] }, /no subject/);
test(refuses, 'has a subject that looks like alice with more', { sub: `alice\0${'x'.repeat(43)}` }, /code 0/);
test(refuses, 'has an object for a subject, as any other could have', { sub: { id: 'alice' } }, /no subject/);

test('clocks may differ by seconds', async (t) => {
  t.is((await verify(verifier(), await KEY.sign(claims({ exp: inSeconds(-10) })))).kind, 'principal');
  t.is((await verify(verifier(), await KEY.sign(claims({ nbf: inSeconds(10) })))).kind, 'principal');
});

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

test('a token without a signature is refused', async (t) => {
  const unsigned = `${encode({ alg: 'none' })}.${encode(claims())}.`;
  const named = `${encode({ alg: 'none', kid: 'one' })}.${encode(claims())}.`;
  for (const token of [unsigned, named]) t.is((await verify(verifier(), token)).kind, 'invalid');
});

test('a token signed with the public key as a shared secret is refused', async (t) => {
  const pem = createPublicKey({ key: RSA.jwk as never, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  for (const secret of [pem, JSON.stringify(RSA.jwk), RSA.jwk.n ?? '']) {
    const signed = `${encode({ alg: 'HS256', kid: 'rsa' })}.${encode(claims())}`;
    const token = `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
    const outcome = await verify(verifier(), token);
    t.is(outcome.kind, 'invalid');
    if (outcome.kind === 'invalid') t.regex(outcome.reason, /algorithm/);
  }
});

test('a shared secret among the keys of the issuer is not used either', async (t) => {
  const secret: JWK = { kty: 'oct', k: Buffer.alloc(32, 7).toString('base64url'), kid: 'shared', alg: 'HS256' };
  const token = await new SignJWT({ ...claims() })
    .setProtectedHeader({ alg: 'HS256', kid: 'shared' })
    .sign(await importJWK(secret));
  t.is((await verify(verifier(new FakeKeys(secret, KEY.jwk)), token)).kind, 'invalid');
});

test('a token that was changed, or signed by somebody else under a known name, is refused', async (t) => {
  const token = await KEY.sign(claims());
  const [head = '', , signature = ''] = token.split('.');
  const changed = [head, encode(claims({ sub: 'admin' })), signature].join('.');
  const forged = await (await createIssuerKey('one')).sign(claims());
  for (const wrong of [changed, forged]) {
    const outcome = await verify(verifier(), wrong);
    t.is(outcome.kind, 'invalid');
    if (outcome.kind === 'invalid') t.regex(outcome.reason, /signature/);
  }
});

test('a refusal says when it is the fault of the issuer’s keys', async (t) => {
  const reasonWith = async (token: string, ...keys: readonly JWK[]): Promise<string> => {
    const outcome = await verify(verifier(new FakeKeys(...keys)), token);
    return outcome.kind === 'invalid' ? outcome.reason : outcome.kind;
  };
  t.regex(await reasonWith(await KEY.sign(claims()), KEY.jwk, KEY.jwk), /several such keys/);
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 512 });
  const short: JWK = { ...(publicKey.export({ format: 'jwk' }) as JWK), kid: 'rsa', alg: 'RS256' };
  t.regex(await reasonWith(await RSA.sign(claims()), short), /key of the issuer .* cannot be used/);
});

test('what is no JWT is refused, without a word of it in the reason', async (t) => {
  for (const token of ['hunter2', 'a.b.c', `${encode({ alg: 'ES256' })}..`, '...', 'x'.repeat(10_000)]) {
    const outcome = await verify(verifier(), token);
    t.is(outcome.kind, 'invalid');
    t.false(JSON.stringify(outcome).includes(token));
  }
});

test('the reason says that it is no JWT, or one with a header that nobody here understands', async (t) => {
  const [, payload, signature] = (await KEY.sign(claims())).split('.');
  const critical = [encode({ alg: 'ES256', kid: 'one', crit: ['x'], x: 1 }), payload, signature].join('.');
  for (const token of ['hunter2', 'a.b.c', critical]) {
    const reason = 'it is neither a token known here nor a JWT that can be checked';
    t.deepEqual(await verify(verifier(), token), { kind: 'invalid', reason });
  }
});

test('a token of a key that came after ours were fetched is good: newer ones are asked for once', async (t) => {
  const next = await createIssuerKey('two');
  const keys = new FakeKeys(KEY.jwk);
  keys.upcoming = [next.jwk];
  const jwt = verifier(keys);
  t.is((await verify(jwt, await next.sign(claims()))).kind, 'principal');
  t.is(keys.asked, 1);
  t.is((await verify(jwt, await KEY.sign(claims()))).kind, 'invalid', 'the old key was withdrawn');
});

test('a token of a key nobody knows is refused after one look for newer ones', async (t) => {
  const keys = new FakeKeys(KEY.jwk);
  const outcome = await verify(verifier(keys), await (await createIssuerKey('unknown')).sign(claims()));
  t.deepEqual(outcome, { kind: 'invalid', reason: 'the issuer has no such key' });
  t.is(keys.asked, 1);
});

test('what is no JWT is refused at once, whether there are keys or not', (t) => {
  const keys = new FakeKeys(KEY.jwk);
  keys.isDown = true;
  const outcomes: JwtOutcome[] = [];
  for (const token of ['hunter2', 'a.b', 'a.b.', '.b.c', 'a.b.c.d', 'a.b.c d']) {
    verifier(keys).verify(token, AUDIENCES, (outcome) => outcomes.push(outcome));
  }
  t.deepEqual(
    outcomes.map(({ kind }) => kind),
    Array(6).fill('invalid'),
  );
  t.is(keys.looks, 0);
});

test('nobody comes in while the keys cannot be had', async (t) => {
  const keys = new FakeKeys(KEY.jwk);
  keys.isDown = true;
  const outcome = await verify(verifier(keys), await KEY.sign(claims()));
  t.is(outcome.kind, 'unavailable');
  if (outcome.kind === 'unavailable') t.is(outcome.error.code, 'ERR_AUTH_UNAVAILABLE');
});

test('all scopes are needed, however the issuer writes them', async (t) => {
  const jwt = verifier(undefined, ['tools:read', 'tools:call']);
  const scoped = async (more: Claims) => (await verify(jwt, await KEY.sign(claims(more)))).kind;
  t.is(await scoped({ scope: 'other tools:call tools:read' }), 'principal');
  t.is(await scoped({ scp: ['tools:read', 'tools:call'] }), 'principal');
  t.is(await scoped({ scp: 'tools:read tools:call' }), 'principal');
  for (const more of [
    {},
    { scope: 'tools:read' },
    { scope: 'tools:read tools:calls' },
    { scp: ['tools:read'] },
    { scope: 7 },
  ]) {
    t.is(await scoped(more), 'scope', JSON.stringify(more));
  }
});

test('a token seen a moment ago is known at once, but only for a minute', async (t) => {
  const [keys, clock] = [new FakeKeys(KEY.jwk), new FakeClock()];
  const jwt = verifier(keys, [], clock);
  const token = await KEY.sign(claims());
  await verify(jwt, token);
  const outcomes: JwtOutcome[] = [];
  jwt.verify(token, AUDIENCES, (outcome) => outcomes.push(outcome));
  t.is(outcomes[0]?.kind, 'principal', 'before the call returns');
  t.is(keys.looks, 1);
  clock.advance(60_000);
  await verify(jwt, token);
  t.is(keys.looks, 2);
});

test('a known token is forgotten when it expires', async (t) => {
  const clock = new FakeClock();
  const jwt = verifier(undefined, [], clock);
  const token = await KEY.sign(claims({ exp: inSeconds(20) }));
  await verify(jwt, token);
  clock.advance(21_000);
  let known = 0;
  jwt.verify(token, AUDIENCES, () => {
    known += 1;
  });
  t.is(known, 0);
});

test('of the good tokens only the latest thousand are known at once, and places are free again after each check', async (t) => {
  const clock = new FakeClock();
  const jwt = verifier(new FakeKeys(KEY.jwk), [], clock);
  const isKnown = (token = ''): boolean => {
    let outcome: JwtOutcome | undefined;
    jwt.verify(token, AUDIENCES, (told) => {
      outcome = told;
    });
    return outcome?.kind === 'principal';
  };
  const tokens = await Promise.all(Array.from({ length: 1001 }, (_, index) => KEY.sign(claims({ sub: `${index}` }))));
  const kinds = new Set<string>();
  for (const token of tokens.slice(0, 1000)) kinds.add((await verify(jwt, token)).kind);
  t.true(isKnown(tokens[0]), 'there are a thousand');
  kinds.add((await verify(jwt, tokens[1000] ?? '')).kind);
  t.deepEqual([...kinds], ['principal']);
  t.true(isKnown(tokens[1]));
  t.false(isKnown(tokens[0]), 'the oldest had to go');
});

test('a token that is checked again counts as one of the latest', async (t) => {
  const clock = new FakeClock();
  const jwt = verifier(new FakeKeys(KEY.jwk), [], clock);
  const tokens = await Promise.all(Array.from({ length: 1001 }, (_, index) => KEY.sign(claims({ sub: `${index}` }))));
  for (const token of tokens.slice(0, 1000)) await verify(jwt, token);
  clock.advance(60_000);
  await verify(jwt, tokens[0] ?? '');
  await verify(jwt, tokens[1000] ?? '');
  const outcomes: JwtOutcome[] = [];
  jwt.verify(tokens[0] ?? '', AUDIENCES, (outcome) => outcomes.push(outcome));
  t.is(outcomes.length, 1, 'before the call returns');
});

test('a refusal is not remembered: the issuer may have the key a moment later', async (t) => {
  const next = await createIssuerKey('late');
  const keys = new FakeKeys(KEY.jwk);
  const jwt = verifier(keys);
  const token = await next.sign(claims());
  t.is((await verify(jwt, token)).kind, 'invalid');
  keys.upcoming = [next.jwk];
  t.is((await verify(jwt, token)).kind, 'principal');
});

test('too many who wait are turned away and not let in', async (t) => {
  const jwt = verifier({
    known: () => undefined,
    current: () => new Promise(() => undefined),
    newer: async () => undefined,
  });
  const token = await KEY.sign(claims());
  const outcomes: JwtOutcome[] = [];
  for (let count = 0; count < 1001; count += 1) jwt.verify(token, AUDIENCES, (outcome) => outcomes.push(outcome));
  await waitFor(() => outcomes.length > 0);
  t.is(outcomes.length, 1);
  const [outcome] = outcomes;
  t.is(outcome?.kind, 'unavailable');
  if (outcome?.kind !== 'unavailable') return;
  t.like(outcome.error, { code: 'ERR_AUTH_UNAVAILABLE', retryAfterMs: 1000 });
  t.regex(outcome.error.message, /^Too many requests wait .* try again later\.$/);
});

test('so many tokens are checked at a time, good or not, and one more is asked to come again', async (t) => {
  const jwt = verifier();
  const token = await KEY.sign(claims());
  const kinds: string[] = [];
  for (let count = 0; count < 1001; count += 1) jwt.verify(token, AUDIENCES, ({ kind }) => kinds.push(kind));
  await waitFor(() => kinds.length === 1001);
  t.is(kinds.filter((kind) => kind === 'unavailable').length, 1);
  t.is(kinds.filter((kind) => kind === 'principal').length, 1000);
});

const ofType = async (typ: string | undefined, more: Claims = {}): Promise<JwtOutcome> =>
  verify(verifier(), await KEY.sign(claims(more), { typ }));

test('a token is of the type of access tokens, or of one that issuers write when they tell none', async (t) => {
  for (const typ of ['at+jwt', 'AT+JWT', 'application/at+jwt', 'Application/AT+JWT', 'JWT', 'jwt', undefined]) {
    t.is((await ofType(typ)).kind, 'principal', typ);
  }
});

for (const typ of ['logout+jwt', 'dpop+jwt', 'secevent+jwt', 'id_token+jwt', 'JOSE', 'at+jwt ', 'text/at+jwt', '']) {
  test(`a token of the type ${JSON.stringify(typ)} is refused, and no key is looked for`, async (t) => {
    const keys = new FakeKeys();
    const outcome = await verify(verifier(keys), await KEY.sign(claims(), { typ }));
    t.deepEqual(outcome, {
      kind: 'invalid',
      reason: 'its type (typ) is not that of an access token; expected at+jwt, JWT or none',
    });
    t.is(keys.looks + keys.asked, 0);
  });
}

test('a token whose type is no text is refused', async (t) => {
  const [, payload, signature] = (await KEY.sign(claims())).split('.');
  for (const typ of [7, null, ['at+jwt'], { at: 'jwt' }]) {
    const token = [encode({ alg: 'ES256', kid: 'one', typ }), payload, signature].join('.');
    const outcome = await verify(verifier(), token);
    t.like(outcome, { kind: 'invalid' });
    if (outcome.kind === 'invalid') t.regex(outcome.reason, /type \(typ\)/);
  }
});

const OF_OTHER_KINDS: Readonly<Record<string, Claims>> = {
  'an ID token, by its nonce': { nonce: 'n-0S6_WzA2Mj' },
  'an ID token, by the hash of its access token': { at_hash: '77QmUPtjPfzWtF2AnpK9RQ' },
  'an ID token, by the hash of its code': { c_hash: 'LDktKdoQak3Pk0cnXxCltA' },
  'an ID token of Keycloak': { typ: 'ID' },
  'an ID token of Cognito': { token_use: 'id' },
  'a logout token': { events: { 'http://schemas.openid.net/event/backchannel-logout': {} } },
};

for (const [kind, more] of Object.entries(OF_OTHER_KINDS)) {
  test(`${kind}, is refused where its type does not say that it is an access token`, async (t) => {
    for (const typ of ['JWT', undefined]) {
      const outcome = await ofType(typ, more);
      t.deepEqual(outcome, {
        kind: 'invalid',
        reason: 'it is an ID token or an event by its claims, and an access token is needed',
      });
    }
    t.is((await ofType('at+jwt', more)).kind, 'principal');
  });
}

test('a token that is bound to a key is refused, as nobody checks the proof', async (t) => {
  for (const cnf of [
    { jkt: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I' },
    { 'x5t#S256': 'bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2' },
    { jwk: KEY.jwk },
    {},
    null,
  ]) {
    for (const typ of ['at+jwt', 'JWT', undefined]) {
      const outcome = await ofType(typ, { cnf });
      t.deepEqual(outcome, {
        kind: 'invalid',
        reason: 'it is bound to a key (cnf), whose proof is not checked here; a plain bearer token is needed',
      });
    }
  }
});
