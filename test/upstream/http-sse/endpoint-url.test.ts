import test from 'ava';
import { resolveEndpoint } from '../../../src/upstream/http-sse/link.ts';

test('credentials and the fragment of an announced endpoint are left out', (t) => {
  const announced = 'https://eve:hunter2@mcp.example/messages?sessionId=1#there';
  const endpoint = resolveEndpoint(new URL('https://mcp.example/sse'), announced);
  t.is(String(endpoint), 'https://mcp.example/messages?sessionId=1');
});
