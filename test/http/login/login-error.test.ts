import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { describeOAuthError, isLoginError, loginError, quoteOthers } from '../../../src/http/login/login-error.ts';

test('the error of a login is one sentence about the problem, and one about the way out', (t) => {
  const error = loginError('The server\n  says\tno.', 'Log in again.');
  t.is(error.code, 'ERR_UPSTREAM_AUTH');
  t.is(error.message, 'The server says no. Log in again.');
  t.is(loginError('The server says no', '').message, 'The server says no.');
  t.is(loginError('The issuer v1.2 says no', '').message, 'The issuer v1.2 says no.');
});

test('the problem of a login is cut where servers have made it long', (t) => {
  t.is(loginError('x'.repeat(600), 'Log in.').message, `${'x'.repeat(600)}. Log in.`);
  t.is(loginError('x'.repeat(601), 'Log in.').message, `${'x'.repeat(600)}…. Log in.`);
});

test('the error of a login is told from others of its code', (t) => {
  t.true(isLoginError(loginError('The server says no', 'Log in again.')));
  t.false(isLoginError(new BridgeError('ERR_UPSTREAM_AUTH', 'The server says no.')));
  t.false(isLoginError(new BridgeError('ERR_UPSTREAM_AUTH', 'The server says no.', { data: { phase: 'call' } })));
});

test('what others say is one line of ASCII, and short', (t) => {
  t.is(quoteOthers(' ~no\r\n\u202eaccess\u0007é!'), '~no access !');
  t.is(quoteOthers('x'.repeat(200)), 'x'.repeat(200));
  t.is(quoteOthers('x'.repeat(201)), `${'x'.repeat(200)}…`);
});

test('an error of OAuth is told with its description if it has one', (t) => {
  t.is(describeOAuthError('invalid_grant', 'The code\nhas expired.'), 'invalid_grant: The code has expired.');
  for (const none of [undefined, null, '']) t.is(describeOAuthError('invalid\ngrant', none), 'invalid grant');
});
