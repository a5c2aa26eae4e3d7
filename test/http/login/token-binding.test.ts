import test from 'ava';
import { decodeJwt } from 'jose';
import type { AuthChallenge } from '../../../src/http/client/credentials.ts';
import { bindTokens } from '../../../src/http/login/bind-tokens.ts';
import { PROOF_ALGORITHMS, ProofKey } from '../../../src/http/login/proof-key.ts';
import { TokenBinding } from '../../../src/http/login/token-binding.ts';
import { readProof } from '../../support/proofs.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);
const SERVER = new URL('https://mcp.example/mcp?key=secret#part');

function depsOf() {
  let ids = 0;
  return { wallClock: () => NOW_MS, randomId: () => `id-${ids++}` };
}

async function createBinding() {
  const key = await ProofKey.create('ES256');
  return new TokenBinding({ key, algorithm: undefined, isRequired: false, deps: depsOf() });
}

const nonceIn = (proof = ''): unknown => decodeJwt(proof).nonce;

test('each proof is for one request, without the query of its URL', async (t) => {
  const binding = await createBinding();
  const expected = { method: 'POST', url: 'https://mcp.example/mcp' };
  const first = await readProof(binding.prove('POST', SERVER), expected);
  const second = await readProof(binding.prove('POST', SERVER, 'token'), { ...expected, token: 'token' });
  t.deepEqual([first.jti, second.jti], ['id-0', 'id-1']);
  t.is(first.iat, NOW_MS / 1000);
  t.is(first.nonce, undefined);
  t.true(first.thumbprint === binding.key?.thumbprint);
  await t.throwsAsync(readProof(binding.prove('GET', SERVER), expected), { message: /wrong in the proof: htm/ });
});

test('the latest nonce of an origin is in the proofs for it, and for no other', async (t) => {
  const binding = await createBinding();
  const other = new URL('https://mcp.example:8443/mcp');
  t.true(binding.hear(SERVER, { 'dpop-nonce': 'first' }));
  t.true(binding.hear(new URL('/elsewhere', SERVER), { 'dpop-nonce': 'second' }));
  t.false(binding.hear(SERVER, {}));
  t.is(nonceIn(binding.prove('POST', SERVER)), 'second');
  t.is(nonceIn(binding.prove('POST', other)), undefined);
  t.true(binding.hear(other, { 'dpop-nonce': 'its-own' }));
  t.is(nonceIn(binding.prove('POST', SERVER)), 'second');
  t.is(nonceIn(binding.prove('POST', other)), 'its-own');
});

test('what is no nonce, or too long for a header, is passed over', async (t) => {
  const binding = await createBinding();
  t.true(binding.hear(SERVER, { 'dpop-nonce': 'x'.repeat(2048) }));
  binding.hear(SERVER, { 'dpop-nonce': 'good' });
  for (const nonce of ['', 'a b', 'a\u0007', 'a\r\nb', '"', '\\', 'ä', 'one, two', 'x'.repeat(2049)]) {
    t.false(binding.hear(SERVER, { 'dpop-nonce': nonce }), nonce.slice(0, 20));
  }
  t.false(binding.hear(SERVER, { 'dpop-nonce': ['a', 'b'] }));
  t.is(nonceIn(binding.prove('POST', SERVER)), 'good');
});

test('an endless number of origins does not fill the memory', async (t) => {
  const binding = await createBinding();
  const heard = Array.from({ length: 1000 }, (_, at) =>
    binding.hear(new URL(`https://host-${at}.example/`), { 'dpop-nonce': 'n' }),
  );
  t.is(heard.filter((isKept) => isKept).length, 8);
});

test('a proof that is refused is explained with the clock where that is wrong', async (t) => {
  const binding = await createBinding();
  const at = (minutes: number): string => new Date(NOW_MS + minutes * 60_000).toUTCString();
  t.regex(binding.advise(at(7)), /^The clock of this machine is 7 min behind that of the server, .* set it right\.$/);
  t.regex(binding.advise(at(-61)), /is 61 min ahead of that of the server/);
  for (const date of [at(0), at(1), undefined, null, 'yesterday']) {
    t.regex(binding.advise(date), /^If that lasts, log in once with --login anew/);
  }
});

const ISSUER = 'https://auth.example';
const ASKED = { isOnly: true, algorithms: undefined, error: undefined };

/** Binds tokens to a key where one of these asks for it. */
function bind({
  offered = ['RS256', 'PS256', 'ES256'],
  dpop,
  areRequired = false,
  algorithms,
  token = 'access',
}: {
  readonly offered?: readonly string[] | undefined;
  readonly dpop?: AuthChallenge['dpop'];
  readonly areRequired?: boolean;
  readonly algorithms?: readonly string[];
  readonly token?: 'access' | 'id';
}) {
  return bindTokens({
    server: SERVER,
    challenge: { dpop },
    setup: {
      authorizationServer: {
        issuer: ISSUER,
        ...(offered.length > 0 && { dpop_signing_alg_values_supported: [...offered] }),
      },
      boundTokens: { areRequired, algorithms },
    },
    token,
    deps: depsOf(),
  });
}

test('a key is made where the server asks for it, and not because the authorization server could', async (t) => {
  const describe = async (...[request]: Parameters<typeof bind>) => {
    const { key, isRequired } = await bind(request);
    return [key !== undefined, isRequired];
  };
  t.deepEqual(await describe({}), [false, false]);
  t.deepEqual(await describe({ dpop: ASKED }), [true, true]);
  t.deepEqual(await describe({ dpop: { ...ASKED, isOnly: false } }), [true, false]);
  t.deepEqual(await describe({ areRequired: true }), [true, true]);
  t.deepEqual(await describe({ areRequired: true, dpop: { ...ASKED, isOnly: false } }), [true, true]);
  t.deepEqual(await describe({ dpop: { ...ASKED, isOnly: false }, offered: [] }), [false, false]);
  t.deepEqual(await describe({ dpop: ASKED, areRequired: true, token: 'id' }), [false, false]);
  const later = await bind({});
  t.true(await later.begin(), 'the authorization server may want one later');
  t.is(later.prove('POST', SERVER) === undefined, false);
  const never = await bind({ offered: ['RS256'] });
  t.false(await never.begin());
  t.is(never.prove('POST', SERVER), undefined);
});

test('the algorithm is one that everybody takes who says so', async (t) => {
  const algorithmOf = async (...[request]: Parameters<typeof bind>) => {
    const { key } = await bind({ dpop: ASKED, ...request });
    return JSON.parse(JSON.stringify(key)).alg;
  };
  t.is(await algorithmOf({}), 'ES256');
  t.is(await algorithmOf({ algorithms: ['PS256'] }), 'PS256');
  t.is(await algorithmOf({ dpop: { ...ASKED, algorithms: ['none', 'PS256'] } }), 'PS256');
  t.is(await algorithmOf({ offered: ['EdDSA'] }), 'EdDSA');
});

test('a login is refused where bound tokens are required and cannot be had, with what was found', async (t) => {
  const expected = `Expected one of ${PROOF_ALGORITHMS.join(', ')} in each list.`;
  const asks = 'The server at https://mcp.example/mcp takes only tokens that are bound to a key (DPoP)';
  await t.throwsAsync(bind({ dpop: ASKED, offered: [] }), {
    code: 'ERR_UPSTREAM_AUTH',
    message: `${asks}, and ${ISSUER} does not give any. Its metadata has no dpop_signing_alg_values_supported. Tell their operators.`,
  });
  await t.throwsAsync(bind({ areRequired: true, offered: ['none', 'HS256'] }), {
    message: `${asks}, with an algorithm that is not supported: ${ISSUER} takes none HS256. ${expected}`,
  });
  await t.throwsAsync(bind({ dpop: { ...ASKED, algorithms: ['none'] }, algorithms: ['ES256'] }), {
    message: `${asks}, with an algorithm that is not supported: ${ISSUER} takes RS256 PS256 ES256, the server ES256, the server none. ${expected}`,
  });
});
