import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import test from 'ava';
import { type AccessOptions, AccessPolicy } from '../../../src/http/server/access-policy.ts';

function check(options: Partial<AccessOptions>, headers: IncomingHttpHeaders): string {
  const policy = new AccessPolicy({ addresses: ['127.0.0.1'], allowHosts: [], allowOrigins: [], ...options });
  return policy.check({ headers } as IncomingMessage)?.code ?? 'welcome';
}

const host = test.macro({
  title: (_, name: string | undefined, verdict: string, options: Partial<AccessOptions> = {}) =>
    `Host ${name ?? '(absent)'} ${verdict === 'welcome' ? 'is welcome' : 'is refused'} with ${JSON.stringify(options)}`,
  exec(t, name: string | undefined, verdict: string, options: Partial<AccessOptions> = {}) {
    t.is(check(options, name === undefined ? {} : { host: name }), verdict);
  },
});

for (const name of ['localhost', '127.0.0.1', '[::1]', 'LocalHost']) {
  test(host, name, 'welcome');
  test(host, `${name}:8000`, 'welcome');
}
for (const name of [
  undefined,
  '',
  'evil.example.com',
  'localhost.evil.example.com',
  'evil.example.com:8000',
  '127.0.0.1.evil.example.com',
  'evil-localhost',
  '192.168.1.7:8000',
  '::1',
  'localhost:8000:8000',
  'localhost:',
]) {
  test(host, name, 'ERR_HTTP_HOST');
}
test(host, 'tools.example.com', 'welcome', { allowHosts: ['Tools.example.com'] });
test(host, 'tools.example.com:9', 'welcome', { allowHosts: ['tools.example.com'] });
test(host, 'tools.example.com:8443', 'welcome', { allowHosts: ['tools.example.com:8443'] });
test(host, 'tools.example.com:9', 'ERR_HTTP_HOST', { allowHosts: ['tools.example.com:8443'] });
test(host, 'localhost:8000', 'welcome', { allowHosts: ['tools.example.com'] });
test(host, '192.168.1.7:8000', 'welcome', { addresses: ['192.168.1.7'] });
test(host, '[fd00::7]:8000', 'welcome', { addresses: ['fd00::7'] });
test(host, '[fd00::7]:8000', 'welcome', { addresses: ['[fd00::7]'] });
test(host, 'anything.example.com', 'welcome', { addresses: ['0.0.0.0'] });
test(host, 'anything.example.com', 'welcome', { addresses: ['::'] });
test(host, 'anything.example.com', 'welcome', { addresses: ['[::]'] });
test(host, 'anything.example.com', 'welcome', { addresses: ['127.0.0.1', '0.0.0.0'] });
test(host, 'anything.example.com', 'ERR_HTTP_HOST', { addresses: ['0.0.0.0'], allowHosts: ['tools.example.com'] });
test(host, 'tools.example.com', 'welcome', { addresses: ['0.0.0.0'], allowHosts: ['tools.example.com'] });
test(host, '192.168.1.7:8000', 'welcome', { addresses: ['127.0.0.1', '192.168.1.7'] });
test(host, 'anything.example.com', 'welcome', { addresses: 'any' });
test(host, undefined, 'welcome', { addresses: 'any', allowHosts: ['tools.example.com'] });

test('over a socket, what tells of a web page still counts', (t) => {
  for (const name of ['localhost', 'evil.example.com']) {
    const page = { host: name, origin: `http://${name}`, 'sec-fetch-site': 'same-site' };
    t.is(check({ addresses: 'any' }, { host: name, origin: 'https://evil.example.com' }), 'ERR_HTTP_ORIGIN');
    t.is(check({ addresses: 'any' }, { host: name, 'sec-fetch-site': 'cross-site' }), 'ERR_HTTP_ORIGIN');
    t.is(check({ addresses: 'any' }, page), 'ERR_HTTP_ORIGIN');
  }
});

const origin = test.macro({
  title: (_, name: string, verdict: string, options: Partial<AccessOptions> = {}) =>
    `Origin ${name} ${verdict === 'welcome' ? 'is welcome' : 'is refused'} with ${JSON.stringify(options)}`,
  exec(t, name: string, verdict: string, options: Partial<AccessOptions> = {}) {
    t.is(check(options, { host: 'localhost', origin: name }), verdict);
  },
});

for (const host of ['localhost', 'localhost:5173', '127.0.0.1:8000', '[::1]:3000']) {
  test(`a page, or a program, whose Origin is our own address ${host} is welcome`, (t) => {
    t.is(check({}, { host, origin: `http://${host}` }), 'welcome');
    t.is(check({}, { host: host.toUpperCase(), origin: `https://${host}` }), 'welcome');
  });
}
for (const [host, name] of [
  ['localhost', 'http://localhost:5173'],
  ['localhost:8000', 'http://localhost:5173'],
  ['localhost:8000', 'http://localhost'],
  ['localhost:8000', 'http://127.0.0.1:8000'],
  ['[::1]:8000', 'http://[::1]:80'],
] as const) {
  test(`a page of ${name} is of another origin than ${host}, whether or not its browser says so`, (t) => {
    t.is(check({}, { host, origin: name }), 'ERR_HTTP_ORIGIN');
    t.is(check({ addresses: 'any' }, { host, origin: name }), 'ERR_HTTP_ORIGIN');
    t.is(check({ allowOrigins: [name] }, { host, origin: name }), 'welcome');
  });
}
for (const name of [
  'null',
  '',
  'http://evil.example.com',
  'http://localhost.evil.example.com',
  'http://localhost:8000@evil.example.com',
  'http://evil.example.com/localhost',
  'http://localhost/evil.example.com',
  'evil+http://localhost',
  'file://localhost',
  'chrome-extension://abcdef',
  'localhost',
  'http://localhost:8000, http://evil.example.com',
]) {
  test(origin, name, 'ERR_HTTP_ORIGIN');
}
test(origin, 'https://app.example.com', 'welcome', { allowOrigins: ['https://App.example.com'] });
test(origin, 'https://app.example.com:444', 'ERR_HTTP_ORIGIN', { allowOrigins: ['https://app.example.com'] });
test(origin, 'http://app.example.com', 'ERR_HTTP_ORIGIN', { allowOrigins: ['https://app.example.com'] });
test(origin, 'http://localhost:5173', 'ERR_HTTP_ORIGIN', { allowOrigins: ['https://app.example.com'] });
test(origin, 'http://localhost', 'welcome', { allowOrigins: ['https://app.example.com'] });

test('takes a client without an origin: it is no web page', (t) => {
  t.is(check({}, { host: 'localhost' }), 'welcome');
});

const site = test.macro({
  title: (_, value: string, origin: string | undefined, verdict: string) =>
    `Sec-Fetch-Site ${value} with ${origin === undefined ? 'no Origin' : `the Origin ${origin}`} ${verdict === 'welcome' ? 'is welcome' : 'is refused'}`,
  exec(t, value: string, origin: string | undefined, verdict: string) {
    const headers = { host: 'localhost', 'sec-fetch-site': value, ...(origin !== undefined && { origin }) };
    t.is(check({ allowOrigins: ['https://app.example.com'] }, headers), verdict);
  },
});

for (const value of ['cross-site', 'same-site', 'Cross-Site', 'cross-site, none', 'something-new', '']) {
  test(site, value, undefined, 'ERR_HTTP_ORIGIN');
  test(site, value, 'https://evil.example.com', 'ERR_HTTP_ORIGIN');
  test(site, value, 'https://app.example.com', 'welcome');
  test(site, value, 'http://localhost:5173', 'ERR_HTTP_ORIGIN');
}
test('a page on another port of this machine may call once it is named', (t) => {
  const headers = { host: 'localhost', origin: 'http://localhost:5173', 'sec-fetch-site': 'same-site' };
  t.is(check({}, headers), 'ERR_HTTP_ORIGIN');
  t.is(check({ allowOrigins: ['http://localhost:5173'] }, headers), 'welcome');
});
for (const value of ['none', 'same-origin']) {
  test(site, value, undefined, 'welcome');
  test(site, value, 'https://evil.example.com', 'ERR_HTTP_ORIGIN');
}

test('quotes what it refuses, cut and without control characters', (t) => {
  const policy = new AccessPolicy({ addresses: ['127.0.0.1'], allowHosts: [], allowOrigins: [] });
  const request = { headers: { host: `\u0007${'x'.repeat(500)}` } } as IncomingMessage;
  const message = policy.check(request)?.message ?? '';
  t.regex(message, /"\\u0007x{99}" .* --allow-host/);
});

test('says that the Host header is absent, where one is needed and none came', (t) => {
  const policy = new AccessPolicy({ addresses: ['127.0.0.1'], allowHosts: [], allowOrigins: [] });
  t.regex(policy.check({ headers: {} } as IncomingMessage)?.message ?? '', /The Host header \(absent\) is not/);
});

test('a Host is judged alike however often it comes, and whatever came before', (t) => {
  const policy = new AccessPolicy({ addresses: ['127.0.0.1'], allowHosts: [], allowOrigins: [] });
  const verdicts = ['evil.example', 'evil.example', 'localhost', 'localhost', 'evil.example', 'localhost'].map(
    (name) => policy.check({ headers: { host: name } } as IncomingMessage)?.code ?? 'welcome',
  );
  const [refused, welcome] = ['ERR_HTTP_HOST', 'welcome'];
  t.deepEqual(verdicts, [refused, refused, welcome, welcome, refused, welcome]);
});
