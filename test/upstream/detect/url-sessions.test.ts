/** Connections to a URL, with detection by the client's own `initialize`, against real servers. */
import test, { type ExecutionContext } from 'ava';
import type { RemoteConfig } from '../../../src/config/remote.ts';
import type { Protocol } from '../../../src/config/server.ts';
import type { Clock } from '../../../src/deps.ts';
import { BridgeError } from '../../../src/errors.ts';
import type { SessionDialer } from '../../../src/relay/ports.ts';
import { DECISION_TIMEOUT_MS } from '../../../src/upstream/detect/deadline.ts';
import { MAX_HELD } from '../../../src/upstream/detect/detecting-link.ts';
import { FirstFailures } from '../../../src/upstream/detect/detection-errors.ts';
import { Prober } from '../../../src/upstream/detect/prober.ts';
import { createSessionDialer } from '../../../src/upstream/detect/url-sessions.ts';
import { createKeyOf, VerdictCache } from '../../../src/upstream/detect/verdict-cache.ts';
import { Reachability } from '../../../src/upstream/resilience/reachability.ts';
import {
  discovered,
  events,
  initialized,
  result,
  rpcError,
  serveReplies,
} from '../../fixtures/http-servers/replies.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { asConnector } from '../../support/dialers.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeServerListener, followLink } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { REMOTE } from '../../support/remote-config.ts';
import { scripted, serve } from '../../support/servers-of-a-test.ts';
import { waitFor } from '../../support/wait-for.ts';

const INITIALIZE_PARAMS = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'client', version: '1' },
};

const { deps } = createTestDeps();

/** Closed with the test. */
function connectTo(
  t: ExecutionContext,
  url: URL,
  {
    clock = deps.clock,
    protocol = 'auto',
    ...changes
  }: Partial<RemoteConfig> & { clock?: Clock; protocol?: Protocol } = {},
): SessionDialer {
  const remote = { ...REMOTE, ...changes };
  const dialer = createSessionDialer(
    {
      target: { kind: 'url', url, socketPath: undefined },
      protocol,
      remote,
      credentials: undefined,
      maxMessageBytes: 1024 * 1024,
      tracing: 'off',
      clientInfo: { name: 'mcp-portage', version: '0' },
      reachability: new Reachability({ name: url.href, attempt: undefined, deps: { ...deps, clock } }),
      deps: { ...deps, clock },
    },
    {
      verdicts: new VerdictCache(clock, () => undefined),
      keyOf: createKeyOf(url, remote),
      modern: { kind: 'unasked' },
      foundModern: () => {},
      failed: () => {},
      failures: new FirstFailures({ clock, log: deps.log }),
    },
  );
  t.teardown(() => dialer.close());
  return dialer;
}

/** Long: a busy machine takes its time with a hundred clients. */
const PATIENCE_MS = 60_000;

const initialize = (client: Prober) => client.request('initialize', INITIALIZE_PARAMS, PATIENCE_MS);

/** A session through its handshake and one call. */
async function callTools(dialer: SessionDialer): Promise<Prober> {
  const client = new Prober(asConnector(dialer), deps.clock);
  const handshake = await initialize(client);
  if (handshake.outcome.kind !== 'result') throw handshake.error ?? new Error(handshake.summary);
  client.notify('notifications/initialized');
  const tools = await client.request('tools/list', {}, PATIENCE_MS);
  if (tools.outcome.kind !== 'result') throw tools.error ?? new Error(tools.summary);
  return client;
}

async function fails(dialer: SessionDialer): Promise<BridgeError> {
  const { outcome, error } = await initialize(new Prober(asConnector(dialer), deps.clock));
  if (error === undefined) throw new Error(`no error but ${outcome.kind}`);
  return error;
}

for (const [kind, asked] of [
  ['stateful', ['POST initialize', 'POST notifications/initialized', 'GET', 'POST tools/list', 'DELETE']],
  ['stateless', ['POST initialize', 'POST notifications/initialized', 'GET', 'POST tools/list']],
  ['both-eras', ['POST initialize', 'POST notifications/initialized', 'GET', 'POST tools/list']],
  [
    'http-sse',
    [
      'POST initialize',
      'POST server/discover',
      'GET',
      'POST initialize',
      'POST notifications/initialized',
      'POST tools/list',
    ],
  ],
] as const) {
  test(`the SDK's ${kind} server is served, and takes one initialize`, async (t) => {
    const server = await serve(t, kind);
    // Nothing is given up: what a slow server is not waited for would come in another order.
    const dialer = connectTo(t, server.url, { clock: new FakeClock() });
    const client = await callTools(dialer);
    client.close();
    await dialer.close();
    // The answer to the last request is not waited for without end.
    await waitFor(() => server.sessions.size === 0, { message: 'the sessions to end' });
    t.deepEqual(server.asked, asked);
  });
}

test('a second client of an HTTP+SSE server goes there straight', async (t) => {
  const server = await serve(t, 'http-sse');
  const dialer = connectTo(t, server.url);
  const clients = [await callTools(dialer), await callTools(dialer)];
  t.deepEqual(server.asked.slice(6), ['GET', 'POST initialize', 'POST notifications/initialized', 'POST tools/list']);
  for (const client of clients) client.close();
});

test('a server that speaks only the modern era is named with its revision', async (t) => {
  const server = await serve(t, 'modern');
  const error = await fails(connectTo(t, server.url));
  t.is(error.code, 'ERR_UPSTREAM_REVISION');
  t.deepEqual(error.data, { supported: ['2026-07-28'] });
  t.regex(error.message, /speaks only MCP 2026-07-28/);
  t.deepEqual(server.asked, ['POST initialize']);
});

test('a modern server that does not say so to initialize is found by discover', async (t) => {
  const server = await scripted(t, ({ what, id }) =>
    what === 'POST server/discover' ? discovered(id, '2026-07-28') : rpcError(id, -32602, { status: 400 }),
  );
  t.is((await fails(connectTo(t, server.url))).code, 'ERR_UPSTREAM_REVISION');
  t.deepEqual(server.asked, ['POST initialize', 'POST server/discover']);
});

test('401 is told with the place of its metadata, and not remembered', async (t) => {
  let isOpen = false;
  const server = await scripted(t, ({ what, id }) => {
    const challenge = 'Bearer resource_metadata="https://auth.example/meta"';
    if (!isOpen) return { status: 401, headers: { 'WWW-Authenticate': challenge } };
    return what === 'POST initialize' ? initialized(id) : result(id, { tools: [] });
  });
  const dialer = connectTo(t, server.url);
  const error = await fails(dialer);
  t.is(error.code, 'ERR_UPSTREAM_AUTH');
  t.like(error.data, { status: 401, resourceMetadata: 'https://auth.example/meta' });
  t.deepEqual(server.asked, ['POST initialize']);
  isOpen = true;
  (await callTools(dialer)).close();
});

test('a legacy server behind 503 is waited for', async (t) => {
  const server = await scripted(t, ({ what, id, time }) => {
    if (what === 'POST initialize') {
      return time <= 2 ? { status: 503, headers: { 'Retry-After': '0' } } : initialized(id);
    }
    return result(id, { tools: [] });
  });
  (await callTools(connectTo(t, server.url))).close();
  t.deepEqual(server.asked.slice(0, 3), ['POST initialize', 'POST initialize', 'POST initialize']);
});

test('what was tried is told to the client when nothing works', async (t) => {
  const server = await scripted(t, ({ what }) =>
    what === 'GET' ? events('event: message\ndata: {}\n\n') : { status: 404 },
  );
  const error = await fails(connectTo(t, server.url));
  t.is(error.code, 'ERR_UPSTREAM_DETECT');
  t.regex(
    error.message,
    /Tried: POST initialize: 404 Not Found; POST server\/discover: 404 Not Found.*; GET .*: began its stream with an event other than "endpoint"/,
  );
  t.is((error.data?.attempts as unknown[]).length, 3);
});

test('what answers as no MCP server does, such as a web page, is told in plain words', async (t) => {
  const page = { status: 200, headers: { 'Content-Type': 'text/html' }, text: '<p>hello</p>' };
  const server = await scripted(t, () => page);
  const { message } = await fails(connectTo(t, server.url));
  t.true(
    message.startsWith(
      `No MCP server was recognized at ${server.url.href}. Tried: ` +
        'POST initialize: 200 and text/html instead of JSON or an event stream; ' +
        'POST server/discover: 200 OK with text/html that is no MCP answer; ' +
        'GET for an event stream: text/html instead of an event stream. Is the path right',
    ),
    message,
  );
});

test('a page of plain text is no stream that broke off', async (t) => {
  const server = await scripted(t, () => ({ status: 200, text: '<p>hello</p>' }));
  const { code, message } = await fails(connectTo(t, server.url));
  t.is(code, 'ERR_UPSTREAM_DETECT');
  t.regex(message, /POST initialize: ended its response to initialize without an answer in it;/);
});

test('an answer without anything in it is not called a broken connection', async (t) => {
  const server = await scripted(t, () => ({ status: 200 }));
  const { message } = await fails(connectTo(t, server.url));
  t.regex(message, /GET for an event stream: ended its event stream/);
  t.notRegex(message, /broke/);
});

for (const endpoint of ['http://127.0.0.1:1/m', '//evil.example/m', 'https://127.0.0.1/m']) {
  test(`messages are not posted to an endpoint at ${endpoint}`, async (t) => {
    const server = await scripted(t, ({ what }) =>
      what === 'GET' ? events(`event: endpoint\ndata: ${endpoint}\n\n`) : undefined,
    );
    const error = await fails(connectTo(t, server.url));
    t.is(error.code, 'ERR_UPSTREAM_DETECT');
    t.regex(error.message, /another origin/);
    t.deepEqual(server.asked, ['POST initialize', 'POST server/discover', 'GET']);
  });
}

test('a server that is no longer what it was is found anew, once', async (t) => {
  const server = await serve(t, 'http-sse');
  const dialer = connectTo(t, server.url);
  (await callTools(dialer)).close();
  server.become('stateless');
  const before = server.asked.length;
  for (let clients = 1; clients <= 2; clients++) (await callTools(dialer)).close();
  t.deepEqual(server.asked.slice(before, before + 2), ['GET', 'POST initialize']);
  t.is(server.asked.slice(before).filter((what) => what === 'POST initialize').length, 2);
  t.false(server.asked.slice(before).includes('POST server/discover'));
});

test('a modern server that was downgraded serves the next client', async (t) => {
  const server = await serve(t, 'modern');
  const dialer = connectTo(t, server.url);
  t.is((await fails(dialer)).code, 'ERR_UPSTREAM_REVISION');
  server.become('stateful');
  (await callTools(dialer)).close();
});

test('100 clients at the same time make for one detection, and a session each', async (t) => {
  const server = await serve(t, 'http-sse');
  // A busy machine takes its time with a hundred streams.
  const dialer = connectTo(t, server.url, { clock: new FakeClock() });
  const clients = await Promise.all(Array.from({ length: 100 }, () => callTools(dialer)));
  const count = (what: string) => server.asked.filter((asked) => asked === what).length;
  t.is(count('POST server/discover'), 1);
  t.is(count('GET'), 100);
  t.is(count('POST initialize'), 101);
  t.is(server.sessions.size, 100);
  for (const client of clients) client.close();
});

test('100 calls of one client wait for one initialize', async (t) => {
  const server = await serve(t, 'stateful');
  const client = new Prober(asConnector(connectTo(t, server.url)), deps.clock);
  const handshake = initialize(client);
  client.notify('notifications/initialized');
  const calls = Array.from({ length: 100 }, () => client.request('tools/list', {}, PATIENCE_MS));
  t.is((await handshake).outcome.kind, 'result');
  for (const { outcome } of await Promise.all(calls)) t.is(outcome.kind, 'result');
  t.is(server.asked.filter((what) => what === 'POST initialize').length, 1);
  client.close();
});

test('a server that takes everything with 202 and has no stream is reported', async (t) => {
  const server = await scripted(t, ({ what }) => (what === 'GET' ? { status: 405 } : { status: 202 }));
  const error = await fails(connectTo(t, server.url));
  t.is(error.code, 'ERR_UPSTREAM_DETECT');
  t.deepEqual(server.asked, ['POST initialize', 'POST server/discover', 'GET']);
});

test('an initialize that the server turns down is answered with its own words, byte for byte', async (t) => {
  const refusal = '{"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "no\\u0021", "data": 1.0}}';
  const server = await scripted(t, ({ what }) =>
    what === 'POST initialize' ? { text: refusal, headers: { 'Content-Type': 'application/json' } } : undefined,
  );
  const listener = new FakeServerListener();
  const link = followLink(listener, (owner) => connectTo(t, server.url).dial(owner));
  link.send(clientFrame({ id: 7, method: 'initialize', params: INITIALIZE_PARAMS }));
  await waitFor(() => listener.received.length > 0);
  t.is(listener.received[0]?.frame.bytes.toString(), refusal);
  t.deepEqual(listener.closedWith, []);
  link.close(new BridgeError('ERR_SESSION_CLOSED', 'done'));
});

test('messages wait for the verdict, bounded, and the client is told when there is capacity', async (t) => {
  const server = await serve(t, 'stateful');
  const listener = new FakeServerListener();
  const link = followLink(listener, (owner) => connectTo(t, server.url).dial(owner));
  t.true(link.send(clientFrame({ id: 0, method: 'initialize', params: INITIALIZE_PARAMS })));
  for (let id = 1; id < MAX_HELD; id++) t.true(link.send(clientFrame({ id, method: 'tools/list' })));
  t.false(link.send(clientFrame({ id: MAX_HELD, method: 'tools/list' })));
  await waitFor(() => listener.received.length === 1 + MAX_HELD, { message: 'all answers' });
  t.is(listener.received[0]?.frame.id, 0);
  t.true(listener.drains > 0);
  link.close(new BridgeError('ERR_SESSION_CLOSED', 'done'));
});

test('a client that leaves while its server is being found takes the attempt with it, and another goes on', async (t) => {
  const server = await scripted(t, ({ what, id, time }) => {
    if (what === 'POST initialize') return time === 1 ? 'hang' : initialized(id);
    return what === 'POST tools/list' ? result(id, { tools: [] }) : { status: 405 };
  });
  const dialer = connectTo(t, server.url);
  const first = new Prober(asConnector(dialer), deps.clock);
  void initialize(first);
  await waitFor(() => server.asked.length === 1);
  const second = callTools(dialer);
  first.close();
  (await second).close();
  t.is(server.asked.filter((what) => what === 'POST initialize').length, 2);
});

test('a server that never answers initialize is given up, and its connection let go', async (t) => {
  const server = await scripted(t, () => 'hang');
  const clock = new FakeClock();
  const listener = new FakeServerListener();
  const link = followLink(listener, (owner) => connectTo(t, server.url, { clock }).dial(owner));
  link.send(clientFrame({ id: 1, method: 'initialize', params: INITIALIZE_PARAMS }));
  await waitFor(() => server.asked.length === 1);
  clock.advance(DECISION_TIMEOUT_MS);
  await waitFor(() => listener.closedWith.length === 1);
  t.is(listener.closedWith[0]?.code, 'ERR_UPSTREAM_TIMEOUT');
  await waitFor(() => server.open.size === 0, { message: 'the connection to be let go' });
});

test('a link that is paused while its server is being found stays so', async (t) => {
  const server = await serve(t, 'stateful');
  const listener = new FakeServerListener();
  const link = followLink(listener, (owner) => connectTo(t, server.url).dial(owner));
  link.send(clientFrame({ id: 1, method: 'initialize', params: INITIALIZE_PARAMS }));
  link.pause();
  link.send(clientFrame({ method: 'notifications/initialized' }));
  link.send(clientFrame({ id: 2, method: 'tools/list' }));
  await waitFor(() => server.asked.includes('POST tools/list'));
  t.is(listener.received.length, 0);
  link.resume();
  await waitFor(() => listener.received.length === 2, { message: 'the answers that waited' });
  link.close(new BridgeError('ERR_SESSION_CLOSED', 'done'));
});

test('where nobody listens every client that waited is told, and the dialer is not ready', async (t) => {
  const server = await serveReplies(() => undefined);
  await server.close();
  const dialer = connectTo(t, server.url);
  t.is(dialer.readiness().state, 'ready');
  for (const error of await Promise.all([fails(dialer), fails(dialer)])) t.is(error.code, 'ERR_UPSTREAM_CONNECT');
  t.is(dialer.readiness().state, 'failing');
});

test('--transport streamable-http does not look for an event stream', async (t) => {
  const server = await scripted(t, () => ({ status: 404 }));
  const error = await fails(connectTo(t, server.url, { transport: 'streamable-http' }));
  t.is(error.code, 'ERR_UPSTREAM_DETECT');
  t.deepEqual(server.asked, ['POST initialize', 'POST server/discover']);
});

test('--protocol legacy does not ask for the modern era', async (t) => {
  const server = await scripted(t, () => ({ status: 404 }));
  await fails(connectTo(t, server.url, { protocol: 'legacy' }));
  t.deepEqual(server.asked, ['POST initialize', 'GET']);
});

test('--transport sse goes there straight', async (t) => {
  const server = await serve(t, 'http-sse');
  const client = await callTools(connectTo(t, server.url, { transport: 'sse' }));
  t.deepEqual(server.asked.slice(0, 2), ['GET', 'POST initialize']);
  client.close();
});

test('--transport streamable-http --protocol legacy asks nothing but initialize', async (t) => {
  const server = await serve(t, 'modern');
  const client = new Prober(
    asConnector(connectTo(t, server.url, { transport: 'streamable-http', protocol: 'legacy' })),
    deps.clock,
  );
  t.like((await initialize(client)).outcome, { kind: 'error', error: { code: -32022 } });
  t.deepEqual(server.asked, ['POST initialize']);
  client.close();
});
