import test from 'ava';
import { judgeRedirect } from '../../../src/http/client/redirects.ts';

test('credentials in the place a server points to are left out', (t) => {
  const url = new URL('https://mcp.example/mcp');
  const request = { method: 'POST', url, status: 307, hops: 0 };
  const verdict = judgeRedirect({ ...request, location: 'https://eve:hunter2@mcp.example/v2?a=1' });
  t.is(verdict.kind === 'follow' ? verdict.url.href : verdict.kind, 'https://mcp.example/v2?a=1');
});
