import test from 'ava';
import fc from 'fast-check';
import { CookieJar } from 'tough-cookie';
import { SessionCookies } from '../../../src/http/client/cookies.ts';

const SERVER = new URL('https://tools.example.com/a/mcp');
const MCP = new URL('https://mcp.example/mcp');

function headerAfter(setCookies: readonly string[], { from = SERVER, to = from }: { from?: URL; to?: URL } = {}) {
  const cookies = new SessionCookies();
  cookies.store(from, setCookies);
  return cookies.headerFor(to);
}

test('without cookies there is no header', (t) => {
  t.is(headerAfter([]), undefined);
  t.is(new SessionCookies().headerFor(SERVER), undefined);
  const cookies = new SessionCookies();
  cookies.store(SERVER, undefined);
  t.is(cookies.headerFor(SERVER), undefined);
});

test('a cookie comes back as it was set, quotes and equals signs included', (t) => {
  t.is(headerAfter([' AWSALB = "a=b==" ; HttpOnly; SameSite=None']), 'AWSALB="a=b=="');
  t.is(headerAfter(['empty=']), 'empty=');
});

test('what is no cookie is ignored', (t) => {
  t.is(headerAfter(['', ';', 'word', '=value', '; Path=/', `long=${'x'.repeat(4096)}`]), undefined);
});

test('a cookie of the same name, domain and path takes the place of the one before', (t) => {
  t.is(headerAfter(['a=1; Path=/', 'b=2; Path=/', 'a=3; Path=/']), 'a=3; b=2');
});

test('a path holds for itself and what is below it; longer ones go first', (t) => {
  const set = ['root=1; Path=/', 'here=2; Path=/a/mcp', 'near=3; Path=/a/', 'far=4; Path=/b', 'alike=5; Path=/a/mc'];
  t.is(headerAfter(set), 'here=2; near=3; root=1');
});

test('without a usable path it is that of the folder', (t) => {
  for (const set of ['a=1', 'a=1; Path=', 'a=1; Path=relative']) {
    t.is(headerAfter([set], { to: new URL('/a/other', SERVER) }), 'a=1', set);
    t.is(headerAfter([set], { to: new URL('/b', SERVER) }), undefined, set);
  }
  const top = new URL('/mcp', SERVER);
  t.is(headerAfter(['a=1'], { from: top, to: new URL('/', SERVER) }), 'a=1');
});

test('a cookie for a domain that the server is not in is ignored', (t) => {
  const set = ['a=1; Domain=example.com', 'b=2; Domain=.Tools.Example.com', 'c=3; Domain=other.com', 'd=4; Domain='];
  t.is(headerAfter(set), 'a=1; b=2; d=4');
  t.is(headerAfter(['a=1; Domain=ample.com', 'b=2; Domain=x.tools.example.com']), undefined);
  t.is(headerAfter(['a=1; Domain=0.0.1'], { from: new URL('http://127.0.0.1/') }), undefined);
});

test('a secure cookie is none over http', (t) => {
  t.is(headerAfter(['a=1; Secure', 'b=2']), 'a=1; b=2');
  t.is(headerAfter(['a=1; Secure', 'b=2'], { from: new URL('http://tools.example.com/') }), 'b=2');
});

test('a cookie ends with its time, and can be taken back', (t) => {
  let now = Date.parse('2026-01-01T00:00:00Z');
  const cookies = new SessionCookies(() => now);
  cookies.store(SERVER, [
    'short=1; Max-Age=10; Expires=Fri, 01 Jan 2027 00:00:00 GMT',
    'dated=2; Expires=Thu, 01-Jan-2026 00:00:20 GMT',
    'odd=3; Max-Age=soon; Expires=never',
    'gone=4',
  ]);
  cookies.store(SERVER, ['gone=; Max-Age=0', 'none=5; Expires=Thu, 01 Jan 1970 00:00:00 GMT']);
  t.is(cookies.headerFor(SERVER), 'short=1; dated=2; odd=3');
  now += 10_000;
  t.is(cookies.headerFor(SERVER), 'dated=2; odd=3');
  now += 10_000;
  t.is(cookies.headerFor(SERVER), 'odd=3');
});

const named = (text: string | undefined): readonly string[] =>
  text?.split('; ').map((pair) => pair.split('=')[0] ?? '') ?? [];

test('a server may set so many cookies and renew them; further ones are not kept', (t) => {
  const cookies = new SessionCookies();
  for (let count = 0; count < 200; count += 1) cookies.store(MCP, [`c${count}=first`]);
  t.is(named(cookies.headerFor(MCP)).length, 50);
  cookies.store(MCP, ['c0=second', 'other=late']);
  t.regex(cookies.headerFor(MCP) ?? '', /\bc0=second\b/);
  t.false(named(cookies.headerFor(MCP)).includes('other'));
});

test('a cookie that is too long, no cookie, or of another server is ignored', (t) => {
  const cookies = new SessionCookies();
  cookies.store(MCP, [`long=${'x'.repeat(5000)}`, '', 'foreign=1; Domain=other.example', 'good=1']);
  t.is(cookies.headerFor(MCP), 'good=1');
  t.is(cookies.headerFor(new URL('https://other.example/mcp')), undefined);
});

test('agrees with tough-cookie', (t) => {
  const word = fc.constantFrom('a', 'b', 'x-y', 'A');
  const path = fc.constantFrom('/', '/a', '/a/', '/a/mcp', '/a/mcp/x', '/a/mc', '/b', '', 'a');
  const domain = fc.constantFrom(
    'tools.example.com',
    '.example.com',
    'Example.com',
    'other.com',
    'x.tools.example.com',
  );
  const attribute = fc.oneof(
    path.map((value) => `Path=${value}`),
    domain.map((value) => `domain=${value}`),
    fc.constantFrom('Max-Age=0', 'max-age=100', 'Max-Age=-1', 'Max-Age=x', 'Secure', 'HttpOnly', 'SameSite=Lax', ''),
    fc.constantFrom('Expires=Wed, 21 Oct 2015 07:28:00 GMT', 'expires=Wed, 21 Oct 2115 07:28:00 GMT', 'Expires=x'),
  );
  const setCookie = fc
    .tuple(word, fc.constantFrom('', '1', '"q"', 'a=b'), fc.array(attribute, { maxLength: 3 }))
    .map(([name, value, attributes]) => [`${name}=${value}`, ...attributes].join('; '));
  fc.assert(
    fc.property(fc.array(setCookie, { maxLength: 6 }), path, (set, requested) => {
      const jar = new CookieJar();
      for (const text of set) jar.setCookieSync(text, SERVER.href, { ignoreError: true });
      const to = new URL(requested, SERVER);
      // Where one was taken back and set again, its age is a matter of taste.
      const sorted = (header = ''): string[] => header.split('; ').sort();
      const expected = sorted(jar.getCookieStringSync(to.href));
      t.deepEqual(sorted(headerAfter(set, { to })), expected, `${JSON.stringify(set)} for ${to}`);
    }),
    { numRuns: 1000 },
  );
});
