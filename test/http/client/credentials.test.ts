import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import {
  BearerTokenFile,
  findTokenFault,
  isBearerToken,
  lexAuthChallenge,
  MAX_TOKEN_LENGTH,
  parseAuthChallenge,
} from '../../../src/http/client/credentials.ts';
import { temporaryFolder } from '../login/logged-in.ts';

test('takes what a header can carry as a token, up to a length, and nothing else', (t) => {
  for (const token of ['a', 'a-._~+/b==', 'x'.repeat(MAX_TOKEN_LENGTH)]) t.true(isBearerToken(token));
  for (const token of ['', 'a b', 'a\r\nX-Evil: 1', '=', 'ä']) t.false(isBearerToken(token), token);
  t.false(isBearerToken('x'.repeat(MAX_TOKEN_LENGTH + 1)));
});

test('says why a text is no token without showing it', (t) => {
  t.is(findTokenFault('x'.repeat(900_000)), 'has 900000 characters, more than the 16384 that a bearer token may have');
  t.is(findTokenFault('secret with spaces'), 'holds something that is no bearer token');
});

test('a token file that is too long is refused with the length', (t) => {
  const path = join(temporaryFolder(t), 'token');
  writeFileSync(path, 'x'.repeat(20_000));
  t.throws(() => new BearerTokenFile(path).show(), {
    code: 'ERR_UPSTREAM_AUTH',
    message: /token has 20000 characters, more than the 16384 that a bearer token may have; expected one token/,
  });
});

const NOTHING = {
  ...{ scheme: undefined, resourceMetadata: undefined, error: undefined, dpop: undefined },
  scopes: [] as readonly string[],
};
const DPOP = { isOnly: true, algorithms: undefined, error: undefined };

for (const [header, expected] of [
  [undefined, NOTHING],
  ['Basic realm="a"', { ...NOTHING, scheme: 'Basic' }],
  ['Bearer', { ...NOTHING, scheme: 'Bearer' }],
  [
    'Bearer resource_metadata="https://a.example/.well-known/oauth-protected-resource"',
    {
      ...NOTHING,
      scheme: 'Bearer',
      resourceMetadata: new URL('https://a.example/.well-known/oauth-protected-resource'),
    },
  ],
  [
    'bearer realm="x, \\"y\\"", error=invalid_token,scope="a b" , Resource_Metadata=http://a.example/m',
    {
      ...{ scheme: 'bearer', error: 'invalid_token', scopes: ['a', 'b'], dpop: undefined },
      resourceMetadata: new URL('http://a.example/m'),
    },
  ],
  ['Basic realm="a", Bearer error="insufficient_scope"', { ...NOTHING, scheme: 'Basic', error: 'insufficient_scope' }],
  ['Bearer resource_metadata="javascript:alert(1)"', { ...NOTHING, scheme: 'Bearer' }],
  ['Bearer resource_metadata="not a url"', { ...NOTHING, scheme: 'Bearer' }],
  ['"', NOTHING],
  ['Bearer error="never ends, scope=all', { ...NOTHING, scheme: 'Bearer' }],
  ['Bearer error="ends in a backslash\\', { ...NOTHING, scheme: 'Bearer' }],
  ['Bearer scope = "a" , error = b', { ...NOTHING, scheme: 'Bearer', scopes: ['a'], error: 'b' }],
  ['Bearer error=, scope=a', { ...NOTHING, scheme: 'Bearer', scopes: ['a'] }],
  [
    'Bearer resource_metadata=https://a.example/m?of=mcp&x=1, error=e',
    { ...NOTHING, scheme: 'Bearer', error: 'e', resourceMetadata: new URL('https://a.example/m?of=mcp&x=1') },
  ],
  ['Negotiate YWJj==, Bearer scope="a"', { ...NOTHING, scheme: 'Negotiate', scopes: ['a'] }],
  ['Bearer \u00e9rror="x", error="y"', { ...NOTHING, scheme: 'Bearer', error: 'y' }],
  ['DPoP', { ...NOTHING, scheme: 'DPoP', dpop: DPOP }],
  ['dpop algs="ES256  PS256"', { ...NOTHING, scheme: 'dpop', dpop: { ...DPOP, algorithms: ['ES256', 'PS256'] } }],
  [
    'Bearer, DPoP algs=ES256',
    { ...NOTHING, scheme: 'Bearer', dpop: { ...DPOP, isOnly: false, algorithms: ['ES256'] } },
  ],
  [
    'Bearer error="invalid_token", DPoP algs="", error="use_dpop_nonce"',
    { ...NOTHING, scheme: 'Bearer', error: 'invalid_token', dpop: { ...DPOP, isOnly: false, error: 'use_dpop_nonce' } },
  ],
  [
    'DPoP error="use_dpop_nonce", Basic realm="a", error="b"',
    { ...NOTHING, scheme: 'DPoP', error: 'use_dpop_nonce', dpop: { ...DPOP, error: 'use_dpop_nonce' } },
  ],
  ['Bearer realm="DPoP", dpop="x"', { ...NOTHING, scheme: 'Bearer' }],
  ['Negotiate YWJj==, DPoP', { ...NOTHING, scheme: 'Negotiate', dpop: DPOP }],
] as const) {
  test(`reads WWW-Authenticate: ${header}`, (t) => {
    t.deepEqual(parseAuthChallenge(header === undefined ? {} : { 'www-authenticate': header }), expected);
  });
}

for (const [shape, piece] of [
  ['one long word', 'a'],
  ['words without values', 'a '],
  ['a quote that never ends', 'a="b'],
  ['backslashes', '\\'],
  ['escaped quotes', 'a="\\"'],
  ['equals signs', 'a='],
  ['spaces around nothing', 'a   =   '],
] as const) {
  test(`takes each character of a challenge of 16 KiB once: ${shape}`, (t) => {
    const text = `Bearer ${piece.repeat(Math.ceil((16 * 1024) / piece.length))}`;
    const lexemes = [...lexAuthChallenge(text)];
    t.is(lexemes.join(''), text, 'nothing is passed over, and nothing is read twice');
    t.false(lexemes.includes(''), 'each step gets on');
    t.is(parseAuthChallenge({ 'www-authenticate': text }).scheme, 'Bearer');
  });
}
