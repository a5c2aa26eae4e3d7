import test from 'ava';
import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from 'jose';
import { PROOF_ALGORITHMS, ProofKey } from '../../../src/http/login/proof-key.ts';

for (const name of PROOF_ALGORITHMS) {
  test(`another implementation verifies what is signed with ${name}, also after the key was stored`, async (t) => {
    const key = await ProofKey.create(name);
    const again = ProofKey.parse(JSON.parse(JSON.stringify(key)));
    t.is(again?.thumbprint, key.thumbprint);
    for (const one of [key, again]) {
      const text = one?.sign({ jti: 'id', a: 'ä' }) ?? '';
      const { payload, protectedHeader } = await jwtVerify(text, EmbeddedJWK, { algorithms: [name] });
      t.deepEqual(payload, { jti: 'id', a: 'ä' });
      const { jwk = {}, ...others } = protectedHeader;
      t.deepEqual(others, { typ: 'dpop+jwt', alg: name });
      t.deepEqual(
        Object.keys(jwk).filter((member) => ['d', 'p', 'q', 'dp', 'dq', 'qi'].includes(member)),
        [],
        'the private key stays here',
      );
      t.is(await calculateJwkThumbprint(jwk), key.thumbprint);
    }
  });
}

test('no algorithm signs without a key, or with one that the other side has as well', async (t) => {
  for (const name of ['none', 'HS256', '']) {
    t.false(PROOF_ALGORITHMS.includes(name));
    await t.throwsAsync(ProofKey.create(name));
  }
});

test('what is no stored key is none', async (t) => {
  const stored: object = JSON.parse(JSON.stringify(await ProofKey.create('ES256')));
  for (const other of [
    ...[undefined, null, 'key', 5, [], {}],
    { ...stored, alg: undefined },
    { ...stored, alg: 'none' },
    { ...stored, d: undefined },
    { ...stored, crv: 'P-999' },
    { ...stored, kty: 'oct' },
  ]) {
    t.is(ProofKey.parse(other), undefined);
  }
});

test('what prints a key does not print what is private in it', async (t) => {
  const key = await ProofKey.create('ES256');
  const { d }: { readonly d: string } = JSON.parse(JSON.stringify(key));
  const { inspect } = await import('node:util');
  t.false(inspect(key, { depth: 9, showHidden: true }).includes(d));
  t.false(String(key).includes(d));
});
