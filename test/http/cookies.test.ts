import test from 'ava';
import { SessionCookies } from '../../src/http/cookies.ts';

const SERVER = new URL('https://mcp.example/mcp');
const named = (text: string | undefined): readonly string[] =>
  text?.split('; ').map((pair) => pair.split('=')[0] ?? '') ?? [];

test('a server may set so many cookies and renew them; further ones are not kept', (t) => {
  const cookies = new SessionCookies();
  for (let count = 0; count < 200; count += 1) cookies.store(SERVER, [`c${count}=first`]);
  t.is(named(cookies.headerFor(SERVER)).length, 50);
  cookies.store(SERVER, ['c0=second', 'other=late']);
  t.regex(cookies.headerFor(SERVER) ?? '', /\bc0=second\b/);
  t.false(named(cookies.headerFor(SERVER)).includes('other'));
});

test('a cookie that is too long, no cookie, or of another server is ignored', (t) => {
  const cookies = new SessionCookies();
  cookies.store(SERVER, [`long=${'x'.repeat(5000)}`, '', 'foreign=1; Domain=other.example', 'good=1']);
  t.is(cookies.headerFor(SERVER), 'good=1');
  t.is(cookies.headerFor(new URL('https://other.example/mcp')), undefined);
});
