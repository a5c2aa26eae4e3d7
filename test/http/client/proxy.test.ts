import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { findProxy } from '../../../src/http/client/agents.ts';
import { NO_TIMEOUTS } from '../../../src/http/client/call-limits.ts';
import { ControlClient } from '../../../src/http/client/control-client.ts';
import { SessionCookies } from '../../../src/http/client/cookies.ts';
import { answerJson, listen } from '../../fixtures/http-servers/listen.ts';
import { startProxy } from '../../fixtures/http-servers/proxy.ts';
import { waitFor } from '../../support/wait-for.ts';
import { closeAfter, createClient, RecordedCall } from '../recorded-call.ts';

const tlsFile = (name: string): string => fileURLToPath(new URL(`../../fixtures/tls/${name}`, import.meta.url));

test('reads the proxy for a URL from the environment it is given', (t) => {
  const find = (url: string, environment: Record<string, string>) => findProxy(new URL(url), environment)?.href;
  t.is(find('http://a.example/', { HTTP_PROXY: 'http://p:3128' }), 'http://p:3128/');
  t.is(find('https://a.example/', { HTTP_PROXY: 'http://p:3128' }), undefined);
  t.is(find('https://a.example/', { HTTPS_PROXY: 'p:3128' }), 'http://p:3128/');
  t.is(find('https://a.example/', { HTTPS_PROXY: 'http://upper:1', https_proxy: 'http://lower:1' }), 'http://lower:1/');
  t.is(find('https://a.example/', { ALL_PROXY: 'http://p:1' }), 'http://p:1/');
  t.is(find('https://a.example/', { HTTPS_PROXY: ' ' }), undefined);
});

test('NO_PROXY exempts names, subdomains, addresses, ranges and ports', (t) => {
  const isExempt = (url: string, noProxy: string): boolean =>
    findProxy(new URL(url), { ALL_PROXY: 'http://p:1', NO_PROXY: noProxy }) === undefined;
  for (const entry of ['*', 'a.example', '.example', '*.example', 'example', 'x, a.example:443', 'A.EXAMPLE']) {
    t.true(isExempt('https://a.example/', entry), entry);
  }
  for (const entry of ['', 'b.example', 'xample', 'a.example:80', 'a.example.org', '10.0.0.0/8']) {
    t.false(isExempt('https://a.example/', entry), entry);
  }
  t.true(isExempt('http://10.1.2.3:8080/', '10.0.0.0/8'));
  t.false(isExempt('http://11.1.2.3:8080/', '10.0.0.0/8'));
  t.true(isExempt('http://[fd00::1]/', 'fd00::/8'));
  t.true(isExempt('http://[fd00::1]/', 'fd00::1'));
  t.false(isExempt('http://10.1.2.3/', '10.0.0.0/99'));
});

test('this machine is never asked for through a proxy', (t) => {
  const environment = { ALL_PROXY: 'http://p:1' };
  for (const url of [
    'http://localhost:1/',
    'http://127.0.0.1/',
    'http://127.1.2.3/',
    'http://[::1]/',
    'http://a.localhost/',
  ]) {
    t.is(findProxy(new URL(url), environment), undefined, url);
  }
});

test('a proxy that cannot be used is an error that does not show its password', (t) => {
  const error = t.throws(() => findProxy(new URL('http://a.example'), { HTTP_PROXY: 'socks5://u:secret@p:1' }));
  t.like(error, { code: 'ERR_CONFIG_OPTION' });
  t.notRegex(error?.message ?? '', /secret/);
});

test('http goes through the proxy, with its credentials and on a kept connection', async (t) => {
  const server = await listen((_, response) => answerJson(response, {}));
  const proxy = await startProxy();
  const proxyEnv = { HTTP_PROXY: proxy.url.replace('//', '//user:p%40ss@') };
  const client = createClient({ proxyEnv });
  closeAfter(t, client, proxy, server);
  const url = new URL(`http://server.test:${server.port}/mcp?a=b`);
  for (const _ of [1, 2]) t.is((await new RecordedCall(client, url).finished()).head?.status, 200);
  t.deepEqual(proxy.asked, [`POST ${url.href}`, `POST ${url.href}`]);
  t.is(proxy.authorizations[0], `Basic ${Buffer.from('user:p@ss').toString('base64')}`);
  t.is(server.received[0]?.headers.host, `server.test:${server.port}`);
});

test('https goes through a tunnel, checked against the given authority', async (t) => {
  const tls = { cert: readFileSync(tlsFile('server.pem')), key: readFileSync(tlsFile('server-key.pem')) };
  const server = await listen((_, response) => answerJson(response, { ok: true }), { tls });
  const proxy = await startProxy();
  const client = createClient({
    proxyEnv: { HTTPS_PROXY: proxy.url },
    tls: { caFile: tlsFile('ca.pem'), certFile: undefined, keyFile: undefined },
  });
  const untrusting = createClient({ proxyEnv: { HTTPS_PROXY: proxy.url } });
  closeAfter(t, client, untrusting, proxy, server);
  const url = new URL(`https://server.test:${server.port}/mcp`);
  for (const _ of [1, 2]) t.is((await new RecordedCall(client, url).finished()).body, '{"ok":true}');
  t.deepEqual(proxy.asked, [`CONNECT server.test:${server.port}`], 'the tunnel is kept');
  const refused = await new RecordedCall(untrusting, url).finished();
  t.regex(refused.failure?.message ?? '', /not trusted here/);

  const control = new ControlClient(client);
  const { status } = await control.request({
    method: 'POST',
    url,
    headers: {},
    cookies: new SessionCookies(),
    timeoutMs: 60_000,
  });
  t.is(status, 200);
  t.is(proxy.asked.length, 2, 'one tunnel for each client');
});

test('a proxy that is not there is what the error names, without its password', async (t) => {
  const proxy = await startProxy();
  await proxy.close();
  const { host } = new URL(proxy.url);
  const client = createClient({ proxyEnv: { ALL_PROXY: `http://user:secret@${host}` } });
  closeAfter(t, client);
  for (const url of ['http://server.test/mcp', 'https://server.test/mcp'].map((text) => new URL(text))) {
    const expected = {
      code: 'ERR_UPSTREAM_CONNECT',
      message: `Cannot reach the server at ${url.href} through the proxy http://${host} of the environment: nothing listens there (ECONNREFUSED). Correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, or except the server with NO_PROXY.`,
    };
    t.like((await new RecordedCall(client, url).finished()).failure, expected);
    const control = new ControlClient(client);
    const asked = { method: 'GET', url, headers: {}, cookies: new SessionCookies(), timeoutMs: 60_000 } as const;
    t.like(await t.throwsAsync(control.request(asked)), expected);
  }
});

test('a proxy that takes the connection and says nothing counts against the connect limit', async (t) => {
  const proxy = await startProxy({ isSilent: true });
  const client = createClient({ proxyEnv: { HTTPS_PROXY: proxy.url } });
  closeAfter(t, client, proxy);
  const timeouts = { ...NO_TIMEOUTS, connectMs: 100 };
  const { failure } = await new RecordedCall(client, new URL('https://server.test/mcp'), { timeouts }).finished();
  t.deepEqual(failure?.data, { phase: 'connect', timeoutMs: 100 });
  t.regex(failure?.message ?? '', /within 100 ms through the proxy http:\/\/127\.0\.0\.1:\d+ of the environment/);
  await waitFor(() => proxy.open.size === 0, { message: 'the half-made tunnel to be given up' });
});
