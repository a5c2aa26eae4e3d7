import test from 'ava';
import type { HttpRoute } from '../../src/downstream/listener/http-server.ts';
import type { Authenticator } from '../../src/http/auth/callers.ts';
import { respondEmpty } from '../../src/http/server/respond.ts';
import { callHttp, type HttpAnswer } from '../support/http-call.ts';
import { type HttpHarness, startHttpHarness } from '../support/http-harness.ts';
import { initialize, POST_HEADERS } from '../support/legacy-clients.ts';
import { RawSocket } from '../support/raw-socket.ts';

const EVIL = 'http://evil.example.com';
const APP = 'https://app.example.com';

function corsHeaders(answer: HttpAnswer): readonly string[] {
  return Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'));
}

function postInitialize(harness: HttpHarness, headers: Record<string, string>): Promise<HttpAnswer> {
  const body = JSON.stringify(initialize());
  return callHttp({ port: harness.port, method: 'POST', headers: { ...POST_HEADERS, ...headers }, body });
}

const everywhere = [
  { method: 'POST', path: '/mcp' },
  { method: 'GET', path: '/mcp' },
  { method: 'DELETE', path: '/mcp' },
  { method: 'OPTIONS', path: '/mcp' },
  { method: 'GET', path: '/sse' },
  { method: 'POST', path: '/messages?sessionId=x' },
  { method: 'GET', path: '/nowhere' },
  { method: 'GET', path: '/' },
  { method: 'GET', path: '/.well-known/oauth-protected-resource/mcp' },
];

/** What browsers send with an <img>, a <script>, a link and an <iframe>: none of them has an Origin. */
const EMBEDDED = [
  { 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'image', Accept: 'image/avif,image/webp,*/*;q=0.8' },
  { 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'script', Accept: '*/*' },
  { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document', Accept: 'text/html,*/*;q=0.8' },
  { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'iframe', Accept: 'text/html,*/*;q=0.8' },
];

for (const { method, path } of everywhere) {
  test(`refuses ${method} ${path} under a name that is not ours, before anything is opened`, async (t) => {
    const harness = await startHttpHarness(t);
    const headers = { ...POST_HEADERS, Host: 'evil.example.com' };
    const answer = await callHttp({ port: harness.port, method, path, headers });
    t.is(answer.status, 403);
    const { error } = await answer.json<{ error: { message: string; data: { bridge: { reason: string } } } }>();
    t.is(error.data.bridge.reason, 'ERR_HTTP_HOST');
    t.regex(error.message, /"evil.example.com".*--allow-host/);
    t.is(harness.server.connections.length, 0);
  });

  test(`refuses ${method} ${path} of a foreign web page, without CORS headers`, async (t) => {
    const harness = await startHttpHarness(t, { allowOrigins: [APP] });
    for (const origin of [EVIL, 'null']) {
      const headers = { ...POST_HEADERS, Origin: origin, 'Access-Control-Request-Method': 'POST' };
      const answer = await callHttp({ port: harness.port, method, path, headers });
      t.is(answer.status, 403);
      t.deepEqual(corsHeaders(answer), []);
      const { error } = await answer.json<{ error: { message: string; data: { bridge: { reason: string } } } }>();
      t.is(error.data.bridge.reason, 'ERR_HTTP_ORIGIN');
      t.regex(error.message, /--allow-origin/);
    }
    t.is(harness.server.connections.length, 0);
  });
}

for (const { method, path } of [...everywhere, { method: 'HEAD', path: '/mcp' }]) {
  test(`refuses ${method} ${path} that a page of another origin makes a browser send, before anything is opened`, async (t) => {
    let hasAuthenticated = false;
    const authenticator: Authenticator = {
      authenticate: (_request, decided) => {
        hasAuthenticated = true;
        decided({ kind: 'principal', principal: 'anybody' });
      },
    };
    const publicRoutes = new Map<string, HttpRoute>([
      ['/.well-known/oauth-protected-resource/mcp', (_request, response) => respondEmpty(response, 200)],
    ]);
    const harness = await startHttpHarness(t, { allowOrigins: [APP], authenticator, publicRoutes });
    for (const site of ['cross-site', 'same-site']) {
      for (const embedded of EMBEDDED) {
        const headers = { ...POST_HEADERS, ...embedded, 'Sec-Fetch-Site': site };
        const answer = await callHttp({ port: harness.port, method, path, headers });
        t.is(answer.status, 403);
        t.deepEqual(corsHeaders(answer), []);
        if (method === 'HEAD') continue;
        const { error } = await answer.json<{ error: { message: string; data: { bridge: { reason: string } } } }>();
        t.is(error.data.bridge.reason, 'ERR_HTTP_ORIGIN');
        t.regex(error.message, new RegExp(`"${site}".*--allow-origin`));
      }
    }
    t.is(harness.server.connections.length, 0);
    t.is(harness.sessions.size, 0);
    t.false(hasAuthenticated);
  });
}

test('serves what the user opens and what our own pages load, and the fetch of a named origin from another site', async (t) => {
  const harness = await startHttpHarness(t, { allowOrigins: [APP] });
  for (const site of ['none', 'same-origin']) {
    t.is((await postInitialize(harness, { 'Sec-Fetch-Site': site })).status, 200, site);
  }
  for (const site of ['cross-site', 'same-site']) {
    const answer = await postInitialize(harness, { Origin: APP, 'Sec-Fetch-Site': site, 'Sec-Fetch-Mode': 'cors' });
    t.is(answer.status, 200, site);
    t.is(answer.headers['access-control-allow-origin'], APP);
    const stream = await callHttp({
      port: harness.port,
      path: '/sse',
      headers: { Origin: APP, 'Sec-Fetch-Site': site },
    });
    t.true(stream.isEventStream, site);
    const asked = { Origin: APP, 'Sec-Fetch-Site': site, 'Access-Control-Request-Method': 'POST' };
    t.is((await callHttp({ port: harness.port, method: 'OPTIONS', headers: asked })).status, 204, site);
  }
});

test('refuses before it reads: the body may still be on its way', async (t) => {
  const harness = await startHttpHarness(t);
  const headers = { ...POST_HEADERS, Origin: EVIL, 'Content-Length': '1000000' };
  const answer = await callHttp({ port: harness.port, method: 'POST', headers, body: 'x'.repeat(1_000_000) });
  t.is(answer.status, 403);
});

test('serves the loopback names and --allow-host', async (t) => {
  const harness = await startHttpHarness(t, { allowHosts: ['tools.example.com'] });
  for (const host of [
    'localhost',
    `localhost:${harness.port}`,
    `127.0.0.1:${harness.port}`,
    '[::1]',
    'tools.example.com:443',
  ]) {
    t.is((await postInitialize(harness, { Host: host })).status, 200, host);
  }
});

test('refuses a request with two names, in whatever order: a proxy may have gone by the other', async (t) => {
  const harness = await startHttpHarness(t);
  for (const hosts of [
    ['localhost', 'evil.example.com'],
    ['evil.example.com', 'localhost'],
    ['localhost', 'localhost'],
  ]) {
    const socket = await RawSocket.connect(harness.port);
    t.teardown(() => socket.destroy());
    const lines = hosts.map((host) => `Host: ${host}\r\n`).join('');
    socket.read().write(`GET /sse HTTP/1.1\r\n${lines}Accept: text/event-stream\r\n\r\n`);
    t.regex(await socket.until(/\r\n\r\n/), /^HTTP\/1\.1 403 /);
  }
  t.is(harness.server.connections.length, 0);
});

test('serves pages of this machine without CORS headers: they were not named', async (t) => {
  const harness = await startHttpHarness(t);
  const answer = await postInitialize(harness, { Origin: `http://127.0.0.1:${harness.port}` });
  t.is(answer.status, 200);
  t.deepEqual(corsHeaders(answer), []);
});

test('gives a named origin its CORS headers: itself, never a wildcard, and the session id to read', async (t) => {
  const harness = await startHttpHarness(t, { allowOrigins: [APP] });
  const answer = await postInitialize(harness, { Origin: APP });
  t.is(answer.status, 200);
  t.is(answer.headers['access-control-allow-origin'], APP);
  t.is(answer.headers['access-control-expose-headers'], 'Mcp-Session-Id, WWW-Authenticate, Deprecation, Sunset, Link');
  t.is(answer.headers['access-control-allow-credentials'], undefined);
  t.is(answer.headers.vary, 'Origin');
  t.deepEqual(
    corsHeaders(answer).toSorted(),
    ['access-control-allow-origin', 'access-control-expose-headers'],
    'what only a preflight asks for is not said',
  );
});

test('gives a named origin its CORS headers with errors and streams too, so that it can read them', async (t) => {
  const harness = await startHttpHarness(t, { allowOrigins: [APP] });
  const { port } = harness;
  const error = await callHttp({ port, method: 'PUT', headers: { Origin: APP } });
  t.is(error.status, 405);
  t.is(error.headers['access-control-allow-origin'], APP);
  const stream = await callHttp({ port, path: '/sse', headers: { Origin: APP } });
  t.true(stream.isEventStream);
  t.is(stream.headers['access-control-allow-origin'], APP);
});

test('answers the preflight of a named origin with exactly the headers it asks for', async (t) => {
  const { port } = await startHttpHarness(t, { allowOrigins: [APP] });
  const asked = 'content-type,mcp-protocol-version,mcp-session-id,mcp-method,mcp-name,mcp-param-region,x-trace';
  const preflight = { Origin: APP, 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': asked };
  for (const path of ['/mcp', '/sse', '/messages']) {
    const answer = await callHttp({ port, method: 'OPTIONS', path, headers: preflight });
    t.is(answer.status, 204);
    t.is(answer.headers['access-control-allow-origin'], APP);
    t.is(answer.headers['access-control-allow-headers'], asked);
    t.is(answer.headers['access-control-allow-methods'], 'GET, POST, DELETE, OPTIONS');
    t.is(answer.headers['access-control-max-age'], '7200');
    t.is(await answer.text(), '');
  }
});

test('names the token, and the headers of MCP, in a preflight that asks for none', async (t) => {
  const { port } = await startHttpHarness(t, { allowOrigins: [APP] });
  const headers = { Origin: APP, 'Access-Control-Request-Method': 'DELETE' };
  const answer = await callHttp({ port, method: 'OPTIONS', headers });
  t.is(
    answer.headers['access-control-allow-headers'],
    'Content-Type, Authorization, Mcp-Session-Id, mcp-protocol-version, mcp-method, mcp-name, last-event-id',
  );
});

test('health routes are open under any name, to any page', async (t) => {
  const { port } = await startHttpHarness(t);
  for (const path of ['/healthz', '/readyz']) {
    for (const page of [{ Origin: EVIL }, { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors' }]) {
      const answer = await callHttp({ port, path, headers: { Host: 'lb.internal', ...page } });
      t.is(answer.status, 200);
      t.deepEqual(corsHeaders(answer), []);
    }
  }
});
