import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import {
  BearerTokenFile,
  findTokenFault,
  isBearerToken,
  MAX_TOKEN_LENGTH,
} from '../../../src/http/client/bearer-token.ts';
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
  t.throws(() => new BearerTokenFile(path).authorization(), {
    code: 'ERR_UPSTREAM_AUTH',
    message: /token has 20000 characters, more than the 16384 that a bearer token may have; expected one token/,
  });
});
