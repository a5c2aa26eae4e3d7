/** Who may come in by WebSocket is decided before the upgrade, as for every other request, and told over HTTP. */
import test, { type ExecutionContext } from 'ava';
import { ADMISSION_CHECK_MS } from '../../../src/downstream/listener/admitted-streams.ts';
import { BridgeError, SHUTTING_DOWN } from '../../../src/errors.ts';
import type { Authenticator } from '../../../src/http/auth/callers.ts';
import { callHttp } from '../../support/http-call.ts';
import { type HttpHarness, type HttpHarnessOptions, startHttpHarness } from '../../support/http-harness.ts';
import { call, initialize, POST_HEADERS } from '../../support/legacy-clients.ts';
import { waitFor } from '../../support/wait-for.ts';
import { RawClient, type Refusal } from './client.ts';

/** The same request as a POST to the endpoint beside it. */
async function postRefused({ port }: HttpHarness, headers: Readonly<Record<string, string>>): Promise<Refusal> {
  const body = JSON.stringify(initialize());
  const answer = await callHttp({ port, method: 'POST', headers: { ...POST_HEADERS, ...headers }, body });
  return { status: answer.status, headers: answer.headers, body: await answer.text() };
}

const CHALLENGE = 'Bearer resource_metadata="https://example/.well-known/x"';
const ONLY_ALICE: Authenticator = {
  authenticate({ headers }, decided) {
    if (headers.authorization === 'Bearer of-alice') return decided({ kind: 'principal', principal: 'alice' });
    const error = new BridgeError('ERR_AUTH_REQUIRED', 'Say who you are.');
    decided({ kind: 'refused', refusal: { error, challenge: CHALLENGE } });
  },
};

interface Trial {
  readonly what: string;
  readonly options?: HttpHarnessOptions;
  readonly headers: Readonly<Record<string, string>>;
  readonly status: number;
}

const REFUSED: readonly Trial[] = [
  { what: 'a page of another web origin', headers: { Origin: 'https://evil.example' }, status: 403 },
  {
    what: 'a page of another port of this machine',
    headers: { Origin: 'http://localhost:1' },
    status: 403,
  },
  { what: 'a page that hides its origin', headers: { 'Sec-Fetch-Site': 'cross-site' }, status: 403 },
  { what: 'an opaque origin', headers: { Origin: 'null' }, status: 403 },
  { what: 'a name that is made to lead here', headers: { Host: 'rebound.example' }, status: 403 },
  { what: 'a caller without a token', options: { authenticator: ONLY_ALICE }, headers: {}, status: 401 },
  {
    what: 'a caller with a wrong token',
    options: { authenticator: ONLY_ALICE },
    headers: { Authorization: 'Bearer x' },
    status: 401,
  },
];

for (const { what, options, headers, status } of REFUSED) {
  test(`refuses ${what} as it refuses a POST`, async (t) => {
    const harness = await startHttpHarness(t, options);
    const client = new RawClient(harness.port, { headers });
    const refusal = await client.refused();
    const expected = await postRefused(harness, headers);
    t.is(refusal.status, status);
    t.is(refusal.status, expected.status);
    t.is(refusal.body, expected.body);
    t.is(refusal.headers['www-authenticate'], expected.headers['www-authenticate']);
    t.is(refusal.headers['content-type'], expected.headers['content-type']);
    t.is(harness.server.connections.length, 0);
  });
}

test('tells a caller without a token where to get one', async (t) => {
  const harness = await startHttpHarness(t, { authenticator: ONLY_ALICE });
  const { headers } = await new RawClient(harness.port).refused();
  t.is(headers['www-authenticate'], CHALLENGE);
});

test('lets in a web origin that is allowed, and whoever has a token', async (t) => {
  const origin = 'https://app.example';
  const harness = await startHttpHarness(t, { authenticator: ONLY_ALICE, allowOrigins: [origin] });
  const client = new RawClient(harness.port, { headers: { Origin: origin, Authorization: 'Bearer of-alice' } });
  await client.initialized();
  t.is(client.socket.protocol, 'mcp');
  t.is(harness.sessions.size, 1);
  client.socket.terminate();
});

test('refuses one connection more than there may be, until one ends', async (t) => {
  const harness = await startHttpHarness(t, { maxSessions: 2 });
  const [first, second] = [new RawClient(harness.port), new RawClient(harness.port)];
  await Promise.all([first.opened(), second.opened()]);
  const { status, headers, body } = await new RawClient(harness.port).refused();
  t.is(status, 503);
  t.truthy(headers['retry-after']);
  t.regex(body, /ERR_SESSION_LIMIT/);
  first.socket.close();
  await first.closed;
  await waitFor(async () => {
    const again = new RawClient(harness.port);
    return Promise.race([again.opened().then(() => true), again.refused().then(() => false)]);
  });
  second.socket.terminate();
});

test('leaves a part of the connections to other callers', async (t) => {
  const principalOf = (request: { headers: object }) => String((request.headers as { 'x-who'?: string })['x-who']);
  const harness = await startHttpHarness(t, { maxSessions: 4, maxCallerSessions: 1, principalOf });
  const alice = await new RawClient(harness.port, { headers: { 'X-Who': 'alice' } }).initialized();
  const { status, body } = await new RawClient(harness.port, { headers: { 'X-Who': 'alice' } }).refused();
  t.is(status, 503);
  t.regex(body, /--max-caller-sessions/);
  const bob = await new RawClient(harness.port, { headers: { 'X-Who': 'bob' } }).initialized();
  t.is(harness.sessions.size, 2);
  alice.socket.terminate();
  bob.socket.terminate();
});

test('tells a process of its own what the headers of the handshake say', async (t) => {
  const harness = await startHttpHarness(t, { mapHeaders: [{ header: 'x-user', variable: 'USER_ENV' }] });
  const client = await new RawClient(harness.port, { headers: { 'X-User': 'alice' } }).initialized();
  t.deepEqual(harness.server.latest.environment, { USER_ENV: 'alice' });
  const { status } = await new RawClient(harness.port, { headers: { 'X-User': 'x'.repeat(2000) } }).refused();
  t.is(status, 400);
  client.socket.terminate();
});

test('lets named headers of the handshake pass with every call, and no other', async (t) => {
  const harness = await startHttpHarness(t, { forwardHeaders: ['x-request-id', 'authorization'] });
  const headers = { 'X-Request-Id': 'r-1', 'X-Other': 'secret', Authorization: 'Bearer secret' };
  const client = await new RawClient(harness.port, { headers }).initialized();
  client.send(call(1));
  const { latest: connection } = harness.server;
  const request = await connection.next('tools/call');
  t.deepEqual(connection.calls[connection.received.indexOf(request)]?.lane.headers, { 'x-request-id': 'r-1' });
  client.socket.terminate();
});

test('lets nobody into the session of a WebSocket by HTTP', async (t) => {
  const harness = await startHttpHarness(t);
  const client = await new RawClient(harness.port).initialized();
  const headers = { ...POST_HEADERS, 'Mcp-Session-Id': 'A'.repeat(22) };
  const answer = await callHttp({ port: harness.port, method: 'POST', headers, body: JSON.stringify(call(1)) });
  t.is(answer.status, 404);
  t.is(harness.sessions.size, 1);
  client.socket.terminate();
});

// ---- the end

const ending = async (t: ExecutionContext) => {
  const harness = await startHttpHarness(t);
  return { harness, client: await new RawClient(harness.port).initialized() };
};

test('closes with 1001 when the bridge ends, after the answers to open calls', async (t) => {
  const { harness, client } = await ending(t);
  const idle = await new RawClient(harness.port).opened();
  client.send(call(1));
  const request = await harness.server.latest.next('tools/call');
  const drained = harness.served.drain(10_000);
  harness.server.latest.answer(request);
  t.regex(await client.inbox.next(), /"id":1/);
  harness.clock.advance(100);
  await drained;
  const { status, body } = await new RawClient(harness.port).refused();
  t.is(status, 503);
  t.regex(body, /ERR_SESSION_CLOSED/);
  void harness.served.close(SHUTTING_DOWN);
  t.deepEqual(await client.closed, { code: 1001, reason: SHUTTING_DOWN.message });
  t.is((await idle.closed).code, 1001);
});

test('closes with 1012 when another server takes its place', async (t) => {
  const { harness, client } = await ending(t);
  const reason = new BridgeError('ERR_SESSION_CLOSED', 'The configuration of this server has changed.');
  const retired = harness.served.retire(10_000, reason);
  harness.clock.advance(1000);
  t.deepEqual(await client.closed, { code: 1012, reason: reason.message });
  await retired;
});

test('closes with 1011 when the server is gone', async (t) => {
  const { harness, client } = await ending(t);
  client.send(call(1));
  await harness.server.latest.next('tools/call');
  harness.server.latest.die(new BridgeError('ERR_UPSTREAM_EXITED', 'The server exited with code 1.'));
  t.regex(await client.inbox.next(), /ERR_UPSTREAM_EXITED/);
  t.deepEqual(await client.closed, { code: 1011, reason: 'The server exited with code 1.' });
});

test('answers a request that cannot have a session, and keeps the connection', async (t) => {
  const harness = await startHttpHarness(t);
  const client = await new RawClient(harness.port).opened();
  harness.server.refusal = new BridgeError('ERR_UPSTREAM_SPAWN', 'There is no such program.');
  client.send(initialize());
  t.regex(await client.inbox.next(), /ERR_UPSTREAM_SPAWN/);
  harness.server.refusal = undefined;
  client.send(initialize());
  t.regex(await client.inbox.next(), /"protocolVersion"/);
  client.socket.terminate();
});

test('a connection whose token is not accepted anymore is closed at the next check, with the reason', async (t) => {
  let isAccepted = true;
  const error = new BridgeError('ERR_AUTH_TOKEN', 'The token is not accepted: it has expired.');
  const authenticator: Authenticator = {
    authenticate: (_request, decided) =>
      decided(
        isAccepted
          ? { kind: 'principal', principal: 'alice' }
          : { kind: 'refused', refusal: { error, challenge: 'Bearer error="invalid_token"' } },
      ),
  };
  const harness = await startHttpHarness(t, { authenticator });
  const client = await new RawClient(harness.port).opened();
  client.send(initialize());
  await client.inbox.next();
  const stream = await callHttp({ port: harness.port, path: '/sse', headers: { Accept: 'text/event-stream' } });
  harness.clock.advance(ADMISSION_CHECK_MS);
  client.send(call(1));
  await waitFor(() => harness.server.connections.length > 0);
  isAccepted = false;
  harness.clock.advance(ADMISSION_CHECK_MS);
  t.deepEqual(await client.closed, { code: 1008, reason: error.message });
  await t.throwsAsync(() => stream.text(), undefined, 'an open stream is cut');
});

test('a connection stays while it cannot be told whether its token is still accepted', async (t) => {
  let isAvailable = true;
  const error = new BridgeError('ERR_AUTH_UNAVAILABLE', 'The keys cannot be fetched.');
  const authenticator: Authenticator = {
    authenticate: (_request, decided) =>
      decided(
        isAvailable
          ? { kind: 'principal', principal: 'alice' }
          : { kind: 'refused', refusal: { error, challenge: undefined } },
      ),
  };
  const harness = await startHttpHarness(t, { authenticator });
  const client = await new RawClient(harness.port).opened();
  isAvailable = false;
  harness.clock.advance(ADMISSION_CHECK_MS);
  client.send(initialize());
  t.regex(await client.inbox.next(), /"id":0/);
});
