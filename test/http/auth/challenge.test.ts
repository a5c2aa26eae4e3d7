import test from 'ava';
import { BridgeError, type ErrorCode } from '../../../src/errors.ts';
import { type RefusalCause, refuse, type TokenHints } from '../../../src/http/auth/bearer-authenticator.ts';

test('nothing in a challenge ends a quoted text, or its header', (t) => {
  const { challenge } = refuse(
    { kind: 'invalid', reason: 'so "it", says\\\r\nSet-Cookie: a=b' },
    { resourceMetadata: 'https://bridge.example/"\r\n', scopes: ['mcp"', 'x\n'] },
  );
  t.is(
    challenge,
    'Bearer error="invalid_token", error_description="so it, saysSet-Cookie: a=b", scope="mcp x", resource_metadata="https://bridge.example/"',
  );
});

const HINTS: TokenHints = { resourceMetadata: 'https://bridge.example/meta', scopes: ['mcp', 'tools'] };
const UNTOLD: TokenHints = { resourceMetadata: undefined, scopes: [] };
const ALL_HINTS = 'scope="mcp tools", resource_metadata="https://bridge.example/meta"';

const refusals: Readonly<Record<string, [RefusalCause, ErrorCode, string, string]>> = {
  'who shows no token is told how to send one, and of no error': [
    { kind: 'missing' },
    'ERR_AUTH_REQUIRED',
    'Only known callers are served here; send a token in the header Authorization: Bearer <token>.',
    `Bearer ${ALL_HINTS}`,
  ],
  'a malformed request is told what is wrong with it': [
    { kind: 'malformed', reason: 'It is malformed.' },
    'ERR_AUTH_REQUEST',
    'It is malformed.',
    `Bearer error="invalid_request", error_description="It is malformed.", ${ALL_HINTS}`,
  ],
  'a token that is no good is told with the reason': [
    { kind: 'invalid', reason: 'it has expired' },
    'ERR_AUTH_TOKEN',
    'The token is not accepted: it has expired.',
    `Bearer error="invalid_token", error_description="it has expired", ${ALL_HINTS}`,
  ],
  'a token that lacks a scope is told with all that are needed': [
    { kind: 'scope' },
    'ERR_AUTH_SCOPE',
    'The token lacks a scope; required: mcp tools.',
    `Bearer error="insufficient_scope", ${ALL_HINTS}`,
  ],
};

for (const [title, [cause, code, message, expected]] of Object.entries(refusals)) {
  test(title, (t) => {
    const { error, challenge } = refuse(cause, HINTS);
    t.like(error, { code, message });
    t.is(challenge, expected);
  });
}

test('a challenge without hints is the name of the scheme alone', (t) => {
  t.is(refuse({ kind: 'missing' }, UNTOLD).challenge, 'Bearer');
});

test('who cannot be judged now is not challenged: another token would not help', (t) => {
  const error = new BridgeError('ERR_AUTH_UNAVAILABLE', 'down');
  t.deepEqual(refuse({ kind: 'unavailable', error }, HINTS), { error, challenge: undefined });
});
