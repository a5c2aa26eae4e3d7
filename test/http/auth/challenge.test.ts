import test from 'ava';
import { refuse } from '../../../src/http/auth/challenge.ts';

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
