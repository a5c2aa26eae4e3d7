import test from 'ava';
import { parseServerUrl } from '../../../src/cli/parse/servers/target.ts';
import type { UrlTarget } from '../../../src/config/server.ts';
import { BridgeError } from '../../../src/errors.ts';
import { judgeRedirect } from '../../../src/http/client/redirects.ts';
import { showUrl } from '../../../src/http/shown-url.ts';

function refusal(text: string, platform: NodeJS.Platform = 'linux'): string {
  try {
    parseServerUrl(text, { platform });
  } catch (thrown) {
    if (thrown instanceof BridgeError) return thrown.message;
    throw thrown;
  }
  throw new Error(`${text} was taken`);
}

function parseUrl(text: string, platform: NodeJS.Platform): UrlTarget {
  const target = parseServerUrl(text, { platform });
  if (target.kind !== 'url') throw new Error(`${text} is no place for HTTP`);
  return target;
}

const reached = test.macro({
  title: (_, text: string) => `${text} is a place at a socket`,
  exec(
    t,
    text: string,
    platform: NodeJS.Platform,
    expected: { readonly url: string; readonly path: string; readonly shown: string },
  ) {
    const target = parseUrl(text, platform);
    t.is(target.url.href, expected.url);
    t.is(target.socketPath, expected.path);
    t.is(showUrl(target.url), expected.shown);
  },
});

test(reached, 'unix:///run/mcp.sock#/mcp', 'linux', {
  url: 'http://localhost/mcp',
  path: '/run/mcp.sock',
  shown: 'unix:///run/mcp.sock#/mcp',
});
test(reached, 'UNIX:///run/my%20mcp%23.sock#/a/mcp?tenant=1', 'darwin', {
  url: 'http://localhost/a/mcp?tenant=1',
  path: '/run/my mcp#.sock',
  shown: 'unix:///run/my%20mcp%23.sock#/a/mcp',
});
for (const written of ['pipe:///mcp#/mcp', 'pipe:///pipe/mcp#/mcp']) {
  test(reached, written, 'win32', {
    url: 'http://localhost/mcp',
    path: String.raw`\\.\pipe\mcp`,
    shown: 'pipe:///pipe/mcp#/mcp',
  });
}

test('what is no place at a socket is refused with one that is', (t) => {
  t.regex(
    refusal('unix://run/mcp.sock#/mcp'),
    /expected an absolute path after unix:\/\/, like unix:\/\/\/run\/mcp\.sock/,
  );
  t.regex(refusal('unix:///run/%zz#/mcp'), /percent signs/);
  t.regex(refusal('unix:///run/a%00b#/mcp'), /percent signs/);
  t.regex(refusal('unix:///run/mcp.sock#mcp'), /expected a path after #/);
  t.regex(refusal('unix:///run/mcp.sock#//evil.example/mcp'), /expected a path after #/);
  t.regex(refusal('pipe:///mcp#/mcp'), /named pipes are for Windows/);
  t.regex(refusal('unix:///run/mcp.sock#/mcp', 'win32'), /expected a named pipe, like pipe:\/\/\/mcp/);
});

test('a scheme that leads to no server is named, and an address without one is not taken for a scheme', (t) => {
  t.regex(refusal('ftp://a.example'), /^ftp:\/\/ is not supported; expected a URL that begins with https:/);
  for (const text of ['localhost:8000/mcp', 'a.example/mcp', ''])
    t.regex(refusal(text), /^An address without a scheme was given; expected a URL that begins with https:/);
});

test('a redirect stays on the socket, and one to anywhere else is refused', (t) => {
  const { url } = parseUrl('unix:///run/mcp.sock#/mcp', 'linux');
  const judge = (location: string) => judgeRedirect({ method: 'POST', url, status: 307, location, hops: 0 });
  const followed = judge('http://localhost/elsewhere');
  t.is(followed.kind === 'follow' ? showUrl(followed.url) : followed.kind, 'unix:///run/mcp.sock#/elsewhere');
  for (const location of [
    'http://localhost:8080/mcp',
    'https://localhost/mcp',
    'http://evil.example/',
    'unix:///run/other.sock#/mcp',
  ]) {
    t.is(judge(location).kind, 'refuse', location);
  }
});
