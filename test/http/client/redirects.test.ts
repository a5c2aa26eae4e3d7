import test from 'ava';
import { judgeRedirect } from '../../../src/http/client/redirects.ts';

test('credentials in the place a server points to are left out', (t) => {
  const url = new URL('https://mcp.example/mcp');
  const request = { method: 'POST', url, status: 307, hops: 0 };
  const verdict = judgeRedirect({ ...request, location: 'https://eve:hunter2@mcp.example/v2?a=1' });
  t.is(verdict.kind === 'follow' ? verdict.url.href : verdict.kind, 'https://mcp.example/v2?a=1');
});

const from = { method: 'GET', url: new URL('http://mcp.example/mcp'), status: 307, hops: 0 };

test('the same host over TLS is followed to, on the default ports of both', (t) => {
  const verdict = judgeRedirect({ ...from, location: 'https://mcp.example/mcp' });
  t.is(verdict.kind === 'follow' ? verdict.url.href : verdict.kind, 'https://mcp.example/mcp');
});

for (const location of ['https://mcp.example:8443/mcp', 'https://other.example/mcp', 'http://mcp.example:81/mcp']) {
  test(`another origin is not followed to: ${location}`, (t) => {
    t.is(judgeRedirect({ ...from, location }).kind, 'refuse');
  });
}

test('a redirect from TLS to none is not followed', (t) => {
  const url = new URL('https://mcp.example/mcp');
  t.is(judgeRedirect({ ...from, url, location: 'http://mcp.example/mcp' }).kind, 'refuse');
});
