import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { metadataRoutes } from '../../src/bridge/create-authentication.ts';
import { BridgeError } from '../../src/errors.ts';
import { BearerAuthenticator, WITHOUT_ISSUER } from '../../src/http/auth/bearer-authenticator.ts';
import type { AuthVerdict } from '../../src/http/auth/callers.ts';
import type { JwtOutcome } from '../../src/http/auth/jwt-verifier.ts';
import { ProtectedResource } from '../../src/http/auth/protected-resource.ts';
import { TokenTable } from '../../src/http/auth/token-table.ts';
import { callHttp, type HttpAnswer, type HttpCall } from '../support/http-call.ts';
import { startHttpHarness } from '../support/http-harness.ts';
import { initialize, POST_HEADERS } from '../support/legacy-clients.ts';
import { RawSocket } from '../support/raw-socket.ts';
import { waitFor } from '../support/wait-for.ts';

const ENDPOINTS = {
  path: '/mcp',
  httpSse: 'served',
  sunset: undefined,
  ssePath: '/sse',
  messagePath: '/messages',
  webSocket: 'served',
  wsPath: '/ws',
  baseUrl: undefined,
} as const;
const APP = 'https://app.example.com';

interface AdmissionOptions {
  /** What becomes of a token that is none of ours; undefined: there is no OAuth. */
  readonly jwt?: JwtOutcome;
  readonly scopes?: readonly string[];
  readonly baseUrl?: URL;
}

/** A listener that knows alice's token `a-secret`, and perhaps an issuer. */
async function startServer(t: ExecutionContext, { jwt, scopes = [], baseUrl }: AdmissionOptions = {}) {
  const issuer = 'https://auth.example';
  const resource =
    jwt && new ProtectedResource({ issuer, scopes, endpoints: { ...ENDPOINTS, baseUrl }, scheme: 'http' });
  const tokens = new TokenTable(
    [{ kind: 'value', principal: 'token:alice', token: 'a-secret' }],
    pino({ level: 'silent' }),
  );
  const authenticator = new BearerAuthenticator({
    tokens,
    jwt: jwt === undefined ? WITHOUT_ISSUER : { verify: (_token, _audiences, done) => setImmediate(() => done(jwt)) },
    audiences: [],
    hintsFor: (request) => ({ resourceMetadata: resource?.urlFor(request), scopes }),
  });
  const publicRoutes = resource === undefined ? new Map() : metadataRoutes(resource);
  const harness = await startHttpHarness(t, { authenticator, publicRoutes, allowOrigins: [APP] });
  const base = `http://127.0.0.1:${harness.port}`;
  const post = (headers: HttpCall['headers'], path = '/mcp') => {
    const body = JSON.stringify(initialize());
    return callHttp({ port: harness.port, method: 'POST', path, headers: { ...POST_HEADERS, ...headers }, body });
  };
  return { harness, base, post };
}

const challengeOf = (answer: HttpAnswer) => answer.headers['www-authenticate'];

async function reasonOf(answer: HttpAnswer): Promise<string> {
  const { error } = await answer.json<{ error: { data: { bridge: { reason: string } } } }>();
  return error.data.bridge.reason;
}

const PROTECTED = [
  { method: 'POST', path: '/mcp' },
  { method: 'GET', path: '/mcp' },
  { method: 'DELETE', path: '/mcp' },
  { method: 'GET', path: '/sse' },
  { method: 'POST', path: '/messages?sessionId=x' },
];

for (const { method, path } of PROTECTED) {
  test(`${method} ${path} without a token is 401 with a bare challenge, and nothing is opened`, async (t) => {
    const { harness } = await startServer(t);
    const answer = await callHttp({ port: harness.port, method, path, headers: POST_HEADERS });
    t.is(answer.status, 401);
    t.is(challengeOf(answer), 'Bearer');
    t.is(await reasonOf(answer), 'ERR_AUTH_REQUIRED');
    t.is(harness.server.connections.length, 0);
    t.is(harness.sessions.size, 0);
  });

  test(`${method} ${path} with a wrong token is 401 and says that the token is at fault`, async (t) => {
    const { harness } = await startServer(t);
    for (const Authorization of ['Bearer wrong', 'Bearer a-secret2', 'bearer A-SECRET', 'Bearer a-secret, a-secret']) {
      const answer = await callHttp({ port: harness.port, method, path, headers: { ...POST_HEADERS, Authorization } });
      t.is(answer.status, 401);
      t.regex(String(challengeOf(answer)), /^Bearer error="invalid_token", error_description="[^"]+"$/);
      t.is(await reasonOf(answer), 'ERR_AUTH_TOKEN');
    }
    t.is(harness.server.connections.length, 0);
  });
}

test('a known token is accepted, however the scheme is written', async (t) => {
  const { harness, post } = await startServer(t);
  for (const Authorization of ['Bearer a-secret', 'bearer a-secret', 'BEARER   a-secret ']) {
    t.is((await post({ Authorization })).status, 200, Authorization);
  }
  t.is(harness.server.connections.length, 3);
});

test('other schemes show nothing that counts', async (t) => {
  const { post } = await startServer(t);
  for (const Authorization of ['Basic YTphLXNlY3JldA==', 'a-secret', 'Bearer', 'Bearer ', 'Bearera-secret']) {
    const answer = await post({ Authorization });
    t.is(answer.status, 401, Authorization);
    t.is(challengeOf(answer), 'Bearer');
  }
});

test('two tokens are nobody’s, even if the first is right: a proxy may have gone by the other', async (t) => {
  const { harness } = await startServer(t);
  for (const shown of [
    ['Bearer a-secret', 'Bearer other'],
    ['Bearer a-secret', 'Basic YTpi'],
    ['Basic YTpi', 'Bearer a-secret'],
  ]) {
    const socket = await RawSocket.connect(harness.port);
    t.teardown(() => socket.destroy());
    const lines = shown.map((value) => `Authorization: ${value}\r\n`).join('');
    socket.read().write(`GET /sse HTTP/1.1\r\nHost: localhost\r\n${lines}Accept: text/event-stream\r\n\r\n`);
    t.regex(await socket.until(/\r\n\r\n/), /^HTTP\/1\.1 401 /);
  }
  t.is(harness.server.connections.length, 0);
});

test('a token in the URL is refused, even the right one, even beside the right header', async (t) => {
  const { harness, post } = await startServer(t);
  for (const headers of [{}, { Authorization: 'Bearer a-secret' }]) {
    for (const query of ['access_token=a-secret', 'sessionId=x&access_token=', 'access%5Ftoken=a-secret']) {
      const answer = await post(headers, `/mcp?${query}`);
      t.is(answer.status, 400, query);
      t.regex(String(challengeOf(answer)), /^Bearer error="invalid_request"/);
      t.is(await reasonOf(answer), 'ERR_AUTH_REQUEST');
    }
  }
  t.is(harness.server.connections.length, 0);
});

test('Host and Origin are judged first: a page learns nothing about tokens', async (t) => {
  const { post } = await startServer(t);
  t.is((await post({ Host: 'evil.example', Authorization: 'Bearer a-secret' })).status, 403);
  t.is((await post({ Origin: 'https://evil.example', Authorization: 'Bearer a-secret' })).status, 403);
});

test('a named page may ask before it has a token, and reads the challenge', async (t) => {
  const { harness, post } = await startServer(t);
  const preflight = {
    Origin: APP,
    'Access-Control-Request-Method': 'POST',
    'Access-Control-Request-Headers': 'authorization',
  };
  const allowed = await callHttp({ port: harness.port, method: 'OPTIONS', headers: preflight });
  t.is(allowed.status, 204);
  t.is(allowed.headers['access-control-allow-headers'], 'authorization');
  const refused = await post({ Origin: APP });
  t.is(refused.status, 401);
  t.is(refused.headers['access-control-allow-origin'], APP);
  t.regex(String(refused.headers['access-control-expose-headers']), /WWW-Authenticate/);
});

test('health routes ask nobody for a token', async (t) => {
  const { harness } = await startServer(t);
  for (const path of ['/healthz', '/readyz']) t.is((await callHttp({ port: harness.port, path })).status, 200);
});

test('with an issuer the challenge names the metadata and the scopes', async (t) => {
  const { base, post, harness } = await startServer(t, { jwt: { kind: 'scope' }, scopes: ['read', 'call'] });
  const missing = await post({});
  t.is(missing.status, 401);
  const metadata = `${base}/.well-known/oauth-protected-resource`;
  t.is(challengeOf(missing), `Bearer scope="read call", resource_metadata="${metadata}/mcp"`);
  for (const path of ['/sse', '/messages?sessionId=x']) {
    const answer = await callHttp({ port: harness.port, path });
    t.is(challengeOf(answer), `Bearer scope="read call", resource_metadata="${metadata}/sse"`);
  }
});

test('a token that lacks a scope is 403, with all scopes it needs', async (t) => {
  const { base, post } = await startServer(t, { jwt: { kind: 'scope' }, scopes: ['read', 'call'] });
  const answer = await post({ Authorization: 'Bearer a.b.c' });
  t.is(answer.status, 403);
  const metadata = `${base}/.well-known/oauth-protected-resource/mcp`;
  t.is(challengeOf(answer), `Bearer error="insufficient_scope", scope="read call", resource_metadata="${metadata}"`);
  t.is(await reasonOf(answer), 'ERR_AUTH_SCOPE');
});

test('a token that is not good is 401, with the reason', async (t) => {
  const { base, post } = await startServer(t, { jwt: { kind: 'invalid', reason: 'it has "expired"' } });
  const answer = await post({ Authorization: 'Bearer a.b.c' });
  t.is(answer.status, 401);
  const metadata = `${base}/.well-known/oauth-protected-resource/mcp`;
  t.is(
    challengeOf(answer),
    `Bearer error="invalid_token", error_description="it has expired", resource_metadata="${metadata}"`,
  );
});

test('while keys cannot be had everybody is refused: 503, to be tried again, no reason to log in again', async (t) => {
  const error = new BridgeError('ERR_AUTH_UNAVAILABLE', 'down', { retryAfterMs: 5000 });
  const { harness, post } = await startServer(t, { jwt: { kind: 'unavailable', error } });
  const answer = await post({ Authorization: 'Bearer a.b.c' });
  t.is(answer.status, 503);
  t.is(answer.headers['retry-after'], '5');
  t.is(challengeOf(answer), undefined);
  t.is(harness.server.connections.length, 0);
});

for (const { method, path, body } of [
  { method: 'POST', path: '/mcp', body: JSON.stringify(initialize()) },
  { method: 'GET', path: '/sse', body: undefined },
]) {
  test(`who leaves while its token for ${method} ${path} is looked at opens nothing`, async (t) => {
    const asked: ((verdict: AuthVerdict) => void)[] = [];
    const harness = await startHttpHarness(t, {
      authenticator: { authenticate: (_request, decided) => asked.push(decided) },
    });
    const gone = new AbortController();
    const call = callHttp({ port: harness.port, method, path, headers: POST_HEADERS, body, signal: gone.signal });
    await waitFor(() => asked[0]);
    gone.abort();
    await t.throwsAsync(call);
    await waitFor(() => harness.logLines.some((line) => line.includes('"msg":"request"')) || undefined);
    asked[0]?.({ kind: 'principal', principal: 'late' });
    t.is(harness.server.connections.length, 0);
  });
}

const DOCUMENT = { authorization_servers: ['https://auth.example'], bearer_methods_supported: ['header'] };

test('the metadata is open to all, at the path of the endpoint and at the root', async (t) => {
  const { harness, base } = await startServer(t, { jwt: { kind: 'scope' }, scopes: ['read'] });
  const scopes = { scopes_supported: ['read'] };
  for (const [path, resource] of [
    ['/.well-known/oauth-protected-resource/mcp', `${base}/mcp`],
    ['/.well-known/oauth-protected-resource/sse', `${base}/sse`],
    ['/.well-known/oauth-protected-resource', `${base}/mcp`],
  ]) {
    const answer = await callHttp({ port: harness.port, ...(path === undefined ? {} : { path }) });
    t.is(answer.status, 200);
    t.is(answer.headers['content-type'], 'application/json');
    t.deepEqual(await answer.json(), { resource, ...DOCUMENT, ...scopes });
  }
  const path = '/.well-known/oauth-protected-resource';
  t.is((await callHttp({ port: harness.port, method: 'POST', path })).status, 405);
  t.is((await callHttp({ port: harness.port, path, headers: { Host: 'evil.example' } })).status, 403);
  t.is(
    (await callHttp({ port: harness.port, path, headers: { Origin: APP } })).headers['access-control-allow-origin'],
    APP,
  );
});

test('behind a reverse proxy the metadata has the names clients use', async (t) => {
  const baseUrl = new URL('https://example.com/tools');
  const { harness, post } = await startServer(t, { jwt: { kind: 'scope' }, baseUrl });
  const url = 'https://example.com/tools/.well-known/oauth-protected-resource/mcp';
  t.is(challengeOf(await post({})), `Bearer resource_metadata="${url}"`);
  for (const path of ['/mcp', '/tools/mcp', '']) {
    const answer = await callHttp({ port: harness.port, path: `/.well-known/oauth-protected-resource${path}` });
    t.deepEqual(await answer.json(), { resource: 'https://example.com/tools/mcp', ...DOCUMENT });
  }
});

test('without an issuer there is no metadata', async (t) => {
  const { harness } = await startServer(t);
  t.is((await callHttp({ port: harness.port, path: '/.well-known/oauth-protected-resource' })).status, 404);
});
