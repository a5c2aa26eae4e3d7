import test from 'ava';
import { parseAuthChallenge } from '../../src/http/auth-challenge.ts';

const NOTHING = { scheme: undefined, resourceMetadata: undefined, error: undefined, scope: undefined };

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
    { scheme: 'bearer', error: 'invalid_token', scope: 'a b', resourceMetadata: new URL('http://a.example/m') },
  ],
  ['Basic realm="a", Bearer error="insufficient_scope"', { ...NOTHING, scheme: 'Basic', error: 'insufficient_scope' }],
  ['Bearer resource_metadata="javascript:alert(1)"', { ...NOTHING, scheme: 'Bearer' }],
  ['Bearer resource_metadata="not a url"', { ...NOTHING, scheme: 'Bearer' }],
  ['"', NOTHING],
] as const) {
  test(`reads WWW-Authenticate: ${header}`, (t) => {
    t.deepEqual(parseAuthChallenge(header === undefined ? {} : { 'www-authenticate': header }), expected);
  });
}
