/** Clients of both eras and a server at a URL, with the translators and real servers. */
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { RemoteConfig } from '../../../src/config/remote.ts';
import type { Protocol } from '../../../src/config/server.ts';
import type { Deps } from '../../../src/deps.ts';
import { BridgeError } from '../../../src/errors.ts';
import type { UpstreamDialer } from '../../../src/relay/ports.ts';
import { SILENCE_MS } from '../../../src/upstream/detect/ask-url.ts';
import { PROBE_TIMEOUT_MS } from '../../../src/upstream/detect/connection-attempts.ts';
import { createUrlDialer } from '../../../src/upstream/detect/url-dialer.ts';
import { type Learned, WEAK_LEGACY_MS } from '../../../src/upstream/detect/verdict-cache.ts';
import { listenAtStream, takings } from '../../fixtures/http-servers/old-server.ts';
import {
  discovered,
  events,
  initialized,
  type Reply,
  result,
  rpcError,
  serveReplies,
} from '../../fixtures/http-servers/replies.ts';
import { answerResult, listenScripted } from '../../fixtures/http-servers/scripted.ts';
import { collectLog, createTestDeps } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { REMOTE } from '../../support/remote-config.ts';
import { startHttpSse, startStreamable } from '../../support/sdk-servers.ts';
import { scripted, serve } from '../../support/servers-of-a-test.ts';
import { waitFor } from '../../support/wait-for.ts';
import { joinClient } from '../connect.ts';
import { CLIENT_INFO, joinErasWith } from '../join-eras.ts';
import { listTools, ModernRequest } from '../modern-request.ts';

interface ConnectOptions extends Partial<Pick<Deps, 'clock' | 'log'>> {
  readonly protocol?: Protocol;
  readonly trialClient?: typeof CLIENT_INFO;
  readonly learned?: Learned;
}

/** Closed with the test. */
function connectTo(
  t: ExecutionContext,
  url: URL,
  {
    clock,
    log,
    protocol = 'auto',
    learned = () => undefined,
    trialClient,
    ...remote
  }: Partial<RemoteConfig> & ConnectOptions = {},
): UpstreamDialer {
  const system = createTestDeps().deps;
  const deps = { ...system, clock: clock ?? system.clock, log: log ?? system.log };
  const dialer = createUrlDialer({
    target: { kind: 'url', url, socketPath: undefined },
    protocol,
    remote: { ...REMOTE, ...remote },
    credentials: undefined,
    learned,
    maxMessageBytes: 1024 * 1024,
    tracing: 'off',
    clientInfo: CLIENT_INFO,
    trialClient,
    deps,
    joinEras: joinErasWith(deps),
  });
  t.teardown(() => dialer.close());
  return dialer;
}

const tools = (id: unknown): Reply => result(id, { tools: [{ name: 'one', inputSchema: { type: 'object' } }] });

/** Names of the tools a legacy client sees, in a session of its own. */
async function listToolsInSession(t: ExecutionContext, dialer: UpstreamDialer): Promise<readonly unknown[]> {
  const client = joinClient(t, { close: () => Promise.resolve() }, dialer);
  await client.initialize();
  const { result: listed, error } = await client.request('tools/list');
  if (listed === undefined) throw new Error(JSON.stringify(error));
  return (listed.tools as { readonly name: string }[]).map(({ name }) => name);
}

const count = ({ asked }: { readonly asked: readonly string[] }, what: string) =>
  asked.filter((one) => one === what).length;

const LEFT = new BridgeError('ERR_SESSION_CLOSED', 'The client left.');
const SDK_V1 = ['one', 'two', 'three'];
const SDK_V2 = ['echo', 'shout'];

// ---- legacy clients

test('a legacy client is served by a modern server, which it asks for nothing but initialize first', async (t) => {
  const server = await serve(t, 'modern');
  const dialer = connectTo(t, server.url, { clock: new FakeClock() });
  t.deepEqual(await listToolsInSession(t, dialer), SDK_V2);
  t.is(server.asked[0], 'POST initialize');
  t.is(server.asked[1], 'POST server/discover');
  t.is(count(server, 'POST initialize'), 1);
  t.deepEqual(await listToolsInSession(t, dialer), SDK_V2);
  t.is(count(server, 'POST initialize'), 1, 'known by then');
});

test('a modern server that does not say so to initialize serves a legacy client, too', async (t) => {
  const server = await scripted(t, ({ what, id }) => {
    if (what === 'POST server/discover') return discovered(id, '2026-07-28');
    return what === 'POST tools/list' ? tools(id) : rpcError(id, -32602, { status: 400 });
  });
  t.deepEqual(await listToolsInSession(t, connectTo(t, server.url)), ['one']);
});

test('a modern server that was downgraded is found out by a legacy client, and serves the next in its own era', async (t) => {
  const server = await serve(t, 'modern');
  const dialer = connectTo(t, server.url);
  await listToolsInSession(t, dialer);
  server.become('stateful');
  const before = server.asked.length;
  await t.throwsAsync(listToolsInSession(t, dialer));
  t.deepEqual(await listToolsInSession(t, dialer), SDK_V1);
  // The subscription of the first session looks for its server, too.
  const since = () => server.asked.slice(before).filter((what) => what !== 'POST subscriptions/listen');
  t.deepEqual(since().slice(0, 2), ['POST server/discover', 'POST initialize']);
  t.deepEqual(await listToolsInSession(t, dialer), SDK_V1);
  t.is(since().filter((what) => what === 'POST server/discover').length, 1);
});

test('a downgrade is noticed even by sessions that need not ask the server what it is', async (t) => {
  let isModern = true;
  const server = await scripted(t, ({ what, id }) => {
    const discovery = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} } };
    if (what === 'POST tools/list' && isModern) return tools(id);
    if (what === 'POST server/discover' && isModern) return result(id, { ...discovery, ttlMs: 60_000 });
    if (isModern) return rpcError(id, -32602, { status: 400 });
    if (what === 'POST initialize') return initialized(id);
    return what === 'POST notifications/initialized' ? { status: 202 } : { status: 400 };
  });
  const dialer = connectTo(t, server.url);
  await listToolsInSession(t, dialer);
  isModern = false;
  await t.throwsAsync(listToolsInSession(t, dialer));
  const before = server.asked.length;
  await t.throwsAsync(listToolsInSession(t, dialer));
  t.is(server.asked[before], 'POST initialize');
});

test('a server of both eras is spoken to in the era of each client, at the same time', async (t) => {
  const server = await serve(t, 'both-eras');
  const dialer = connectTo(t, server.url);
  const [session, request] = await Promise.all([listToolsInSession(t, dialer), listTools(dialer)]);
  t.deepEqual(session, SDK_V2);
  t.deepEqual(request, SDK_V2);
  t.is(count(server, 'POST initialize'), 1);
  t.is(count(server, 'POST server/discover'), 1);
});

// ---- modern clients

test('a modern server is asked once, for all its modern clients, and sees no initialize', async (t) => {
  const server = await serve(t, 'modern');
  const dialer = connectTo(t, server.url, { clock: new FakeClock() });
  t.deepEqual(await listTools(dialer), SDK_V2);
  t.deepEqual(await listTools(dialer), SDK_V2);
  t.deepEqual(server.asked, ['POST server/discover', 'POST tools/list', 'POST tools/list']);
});

for (const kind of ['stateful', 'stateless', 'http-sse'] as const) {
  test(`modern clients of the SDK's ${kind} server share a session, found with one discover`, async (t) => {
    const server = await serve(t, kind);
    const dialer = connectTo(t, server.url);
    t.deepEqual(await listTools(dialer), SDK_V1);
    t.deepEqual(await listTools(dialer), SDK_V1);
    t.is(count(server, 'POST server/discover'), 1);
    // The first attempt of two at a server that takes it on its event stream only.
    t.is(count(server, 'POST initialize'), kind === 'http-sse' ? 2 : 1);
  });
}

test('100 modern requests at the same time make for one discover and one initialize', async (t) => {
  const server = await serve(t, 'stateful');
  const dialer = connectTo(t, server.url);
  const all = await Promise.all(Array.from({ length: 100 }, () => listTools(dialer)));
  t.true(all.every((names) => names.length === SDK_V1.length));
  t.is(count(server, 'POST server/discover'), 1);
  t.is(count(server, 'POST initialize'), 1);
});

test('the request of a client that leaves is not sent, and those who wait with it go on', async (t) => {
  const server = await scripted(t, ({ what, id }) =>
    what === 'POST server/discover' ? discovered(id, '2026-07-28') : tools(id),
  );
  const dialer = connectTo(t, server.url);
  const first = new ModernRequest(dialer, 'prompts/list');
  const second = listTools(dialer);
  first.link.close(LEFT);
  t.deepEqual(await second, ['one']);
  t.deepEqual(server.asked, ['POST server/discover', 'POST tools/list']);
});

test('a server that refuses the revision it offers is asked twice and gets no initialize', async (t) => {
  const data = { supported: ['2026-07-28'] };
  const server = await scripted(t, ({ id }) => rpcError(id, -32022, { status: 400, data }));
  const error = await t.throwsAsync<BridgeError>(listTools(connectTo(t, server.url)));
  t.is(error?.code, 'ERR_UPSTREAM_REVISION');
  t.deepEqual(server.asked, ['POST server/discover', 'POST server/discover']);
});

for (const stream of ['event: message\ndata: {}\n\n', 'event: endpoint\ndata: //evil.example/m\n\n']) {
  test(`a modern client is told that nothing works with ${JSON.stringify(stream)}`, async (t) => {
    const server = await scripted(t, ({ what }) => (what === 'GET' ? events(stream) : { status: 404 }));
    const { error } = await new ModernRequest(connectTo(t, server.url)).answer();
    t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_DETECT' } });
    t.deepEqual(server.asked, ['POST server/discover', 'POST initialize', 'GET']);
  });
}

test('a server that does not answer discover in time may be a legacy one', async (t) => {
  const server = await scripted(t, ({ what, id }) => {
    if (what === 'POST server/discover') return 'hang';
    if (what === 'POST initialize') return initialized(id);
    return what === 'POST tools/list' ? tools(id) : { status: 405 };
  });
  const clock = new FakeClock();
  const listed = listTools(connectTo(t, server.url, { clock }));
  await waitFor(() => count(server, 'POST server/discover') === 1);
  clock.advance(PROBE_TIMEOUT_MS);
  t.deepEqual(await listed, ['one']);
  t.is(count(server, 'POST server/discover'), 1);
});

test('401 to discover is an error of authorization; there is no initialize, and nothing is remembered', async (t) => {
  let isOpen = false;
  const server = await scripted(t, ({ what, id }) => {
    if (!isOpen) return { status: 401 };
    return what === 'POST server/discover' ? discovered(id, '2026-07-28') : tools(id);
  });
  const dialer = connectTo(t, server.url);
  t.is((await t.throwsAsync<BridgeError>(listTools(dialer)))?.code, 'ERR_UPSTREAM_AUTH');
  t.deepEqual(server.asked, ['POST server/discover']);
  isOpen = true;
  t.deepEqual(await listTools(dialer), ['one']);
});

test('a modern server behind 503 is waited for, and taken for nothing else', async (t) => {
  const server = await scripted(t, ({ what, id, time }) => {
    if (what === 'POST tools/list') return tools(id);
    return time <= 2 ? { status: 503, headers: { 'Retry-After': '0' } } : discovered(id, '2026-07-28');
  });
  t.deepEqual(await listTools(connectTo(t, server.url)), ['one']);
  t.is(count(server, 'POST initialize'), 0);
});

test('a legacy server that fails at discover works, and is asked again a minute later', async (t) => {
  const server = await scripted(t, ({ what, id }) => {
    if (what === 'POST server/discover') return { status: 500 };
    if (what === 'POST initialize') return initialized(id);
    return what === 'POST tools/list' ? tools(id) : { status: 405 };
  });
  const clock = new FakeClock();
  const dialer = connectTo(t, server.url, { clock });
  const first = listTools(dialer);
  await waitFor(
    () => {
      clock.advance(100);
      return count(server, 'POST tools/list') === 1;
    },
    { message: 'the list to be asked for' },
  );
  t.deepEqual(await first, ['one']);
  const asked = count(server, 'POST server/discover');
  t.deepEqual(await listTools(dialer), ['one']);
  t.is(count(server, 'POST server/discover'), asked);
  clock.advance(WEAK_LEGACY_MS);
  const last = new ModernRequest(dialer);
  await waitFor(() => count(server, 'POST server/discover') > asked, { message: 'the server to be asked again' });
  last.link.close(LEFT);
});

test('a server that is none of any era is reported with what was tried, and asked again by the next client', async (t) => {
  let isThere = false;
  const server = await scripted(t, ({ what, id }) => {
    if (!isThere) return { status: 404 };
    return what === 'POST server/discover' ? discovered(id, '2026-07-28') : tools(id);
  });
  const dialer = connectTo(t, server.url);
  const { error } = await new ModernRequest(dialer).answer();
  t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_DETECT' } });
  isThere = true;
  t.deepEqual(await listTools(dialer), ['one']);
});

for (const [code, isThere] of [
  ['ERR_UPSTREAM_DETECT', true],
  ['ERR_UPSTREAM_CONNECT', false],
] as const) {
  test(`who runs the bridge reads in the log what a client is told: ${code}`, async (t) => {
    const server = await scripted(t, () => ({ status: 404 }));
    if (!isThere) await server.close();
    const { log, entries } = collectLog();
    const told = () => entries.filter((entry) => entry.level === pino.levels.values.warn && entry.code === code).length;
    const dialer = connectTo(t, server.url, { log });
    await t.throwsAsync(listToolsInSession(t, dialer));
    t.is(told(), 1, 'a legacy client');
    const request = new ModernRequest(dialer);
    await waitFor(() => told() > 1, { message: 'a line for a modern client' });
    request.link.close(LEFT);
  });
}

test('a call to a modern server that was downgraded fails, and the next is sent in the era it speaks now', async (t) => {
  const server = await serve(t, 'modern');
  const dialer = connectTo(t, server.url);
  await listTools(dialer);
  server.become('stateful');
  const before = server.asked.length;
  await t.throwsAsync(listTools(dialer));
  t.deepEqual(await listTools(dialer), SDK_V1);
  t.deepEqual(server.asked.slice(before, before + 3), ['POST tools/list', 'POST server/discover', 'POST initialize']);
  t.deepEqual(await listTools(dialer), SDK_V1);
  t.is(server.asked.slice(before).filter((what) => what === 'POST server/discover').length, 1);
});

test('many calls that notice the downgrade make for one discover', async (t) => {
  const server = await serve(t, 'modern');
  const dialer = connectTo(t, server.url);
  await listTools(dialer);
  server.become('stateful');
  const before = server.asked.length;
  await Promise.allSettled(Array.from({ length: 20 }, () => listTools(dialer)));
  const all = await Promise.all(Array.from({ length: 20 }, () => listTools(dialer)));
  t.true(all.every((names) => names.length === SDK_V1.length));
  t.is(server.asked.slice(before).filter((what) => what === 'POST server/discover').length, 1);
});

test('a refusal of a server that is modern all the same is the answer, and the call is not sent again', async (t) => {
  const server = await scripted(t, ({ what, id }) =>
    what === 'POST server/discover' ? discovered(id, '2026-07-28') : rpcError(id, -32000, { status: 400 }),
  );
  const dialer = connectTo(t, server.url);
  await new ModernRequest(dialer).answer();
  const { error } = await new ModernRequest(dialer).answer();
  t.is(error?.code, -32000);
  t.deepEqual(
    server.asked.filter((what) => what === 'POST tools/list'),
    ['POST tools/list', 'POST tools/list'],
  );
});

test('a legacy server that was replaced by a modern one is found out by the first call that fails', async (t) => {
  const server = await serve(t, 'stateful');
  const dialer = connectTo(t, server.url, { transport: 'streamable-http' });
  t.deepEqual(await listTools(dialer), SDK_V1);
  server.become('modern');
  // Another session is wanted for other capabilities, and the server refuses to open it.
  const capabilities = { sampling: {} };
  const { error } = await new ModernRequest(dialer, 'tools/list', { capabilities }).answer();
  t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_REVISION' } });
  t.deepEqual(await listTools(dialer), SDK_V2);
});

test('where headers of the client pass to the server, its era is asked with them, and for each of them', async (t) => {
  const server = await scripted(t, ({ what, id, received }) => {
    if (received.headers['x-tenant'] !== 'new') {
      if (what === 'POST server/discover') return rpcError(id, -32601);
      if (what === 'POST initialize') return initialized(id);
    }
    if (what === 'POST server/discover') return discovered(id, '2026-07-28');
    return what === 'POST tools/list' ? tools(id) : { status: 405 };
  });
  const dialer = connectTo(t, server.url, { forwardHeaders: [{ name: 'x-tenant', sentAs: 'x-tenant' }] });
  t.deepEqual(await listTools(dialer), ['one']);
  for (const tenant of ['new', 'old', 'new', 'old']) {
    t.deepEqual(await listTools(dialer, { headers: { 'x-tenant': tenant }, principal: tenant }), ['one']);
  }
  t.is(count(server, 'POST server/discover'), 3);
  t.is(count(server, 'POST initialize'), 2);
});

test('where nobody listens every client is told, and the dialer is not ready', async (t) => {
  const server = await serveReplies(() => undefined);
  await server.close();
  const dialer = connectTo(t, server.url);
  t.is(dialer.readiness().state, 'ready');
  t.is((await t.throwsAsync<BridgeError>(listTools(dialer)))?.code, 'ERR_UPSTREAM_CONNECT');
  t.is(dialer.readiness().state, 'failing');
});

for (const [kind, use, start] of [
  ['with sessions', listToolsInSession, startStreamable],
  ['over HTTP+SSE', listToolsInSession, startHttpSse],
  ['for modern requests', (_t: ExecutionContext, dialer: UpstreamDialer) => listTools(dialer), startStreamable],
] as const) {
  test(`a server ${kind} that went away stays failed until it answers again, for which it is tried`, async (t) => {
    const server = await start();
    t.teardown(() => server.close());
    const clock = new FakeClock();
    const entries = collectLog();
    const dialer = connectTo(t, server.url, { clock, log: entries.log, trialClient: CLIENT_INFO });
    await use(t, dialer);
    await server.stop();
    await t.throwsAsync(use(t, dialer));
    t.is(dialer.readiness().state, 'failing');
    const failing = server.asked.length;
    clock.advance(9_999);
    t.is(dialer.readiness().state, 'failing');
    t.is(server.asked.length, failing);
    clock.advance(1);
    await new Promise((resolve) => setTimeout(resolve, 200));
    t.is(dialer.readiness().state, 'failing', 'nothing has listened yet');
    await server.restart();
    clock.advance(20_000);
    await waitFor(() => dialer.readiness().state === 'ready');
    t.true(entries.entries.some(({ msg }) => /answers again, after 30 s/.test(String(msg))));
  });
}

test('a server that demands a login of the trial can be reached', async (t) => {
  const before = await serveReplies(() => undefined);
  await before.close();
  const clock = new FakeClock();
  const dialer = connectTo(t, before.url, { clock, trialClient: CLIENT_INFO });
  await t.throwsAsync(listTools(dialer));
  t.is(dialer.readiness().state, 'failing');
  const server = await serveReplies(() => ({ status: 401 }), { port: Number(before.url.port) });
  t.teardown(() => server.close());
  clock.advance(10_000);
  await waitFor(() => dialer.readiness().state === 'ready');
});

test('without a name for trials only clients find out that the server is back', async (t) => {
  const server = await startStreamable();
  t.teardown(() => server.close());
  const clock = new FakeClock();
  const dialer = connectTo(t, server.url, { clock });
  await server.stop();
  await t.throwsAsync(listTools(dialer));
  await server.restart();
  const asked = server.asked.length;
  clock.advance(3_600_000);
  await new Promise((resolve) => setTimeout(resolve, 200));
  t.is(server.asked.length, asked);
  t.is(dialer.readiness().state, 'failing');
  t.true((await listTools(dialer)).length > 0);
  t.is(dialer.readiness().state, 'ready');
});

// ---- told by the user

test('--protocol legacy never asks for the modern era', async (t) => {
  const server = await serve(t, 'both-eras');
  const dialer = connectTo(t, server.url, { protocol: 'legacy' });
  t.deepEqual(await listTools(dialer), SDK_V2);
  t.deepEqual(await listToolsInSession(t, dialer), SDK_V2);
  t.is(count(server, 'POST server/discover'), 0);
  t.is(count(server, 'POST initialize'), 2);
});

test('--protocol modern never sends initialize', async (t) => {
  const server = await serve(t, 'both-eras');
  const dialer = connectTo(t, server.url, { protocol: 'modern' });
  t.deepEqual(await listToolsInSession(t, dialer), SDK_V2);
  t.deepEqual(await listTools(dialer), SDK_V2);
  t.is(count(server, 'POST initialize'), 0);
});

test('--transport sse is for the legacy era', async (t) => {
  const server = await serve(t, 'http-sse');
  const dialer = connectTo(t, server.url, { transport: 'sse' });
  t.deepEqual(await listTools(dialer), SDK_V1);
  t.deepEqual(server.asked.slice(0, 2), ['GET', 'POST initialize']);
});

test('a dialer that is closed opens nothing, and lets go who waits', async (t) => {
  const server = await scripted(t, () => 'hang');
  const dialer = connectTo(t, server.url);
  const waiting = new ModernRequest(dialer);
  await waitFor(() => server.asked.length === 1);
  await dialer.close();
  t.throws(() => new ModernRequest(dialer), { message: /shutting down/ });
  t.deepEqual(waiting.listener.received, []);
  await waitFor(() => server.open.size === 0, { message: 'the connection to be let go' });
});

test('a dialer that knows its server opens nothing either once it is closed', async (t) => {
  const server = await scripted(t, ({ what, id }) =>
    what === 'POST server/discover' ? discovered(id, '2026-07-28') : tools(id),
  );
  const dialer = connectTo(t, server.url);
  await listTools(dialer);
  await listTools(dialer);
  const closed = dialer.close();
  t.throws(() => new ModernRequest(dialer), { message: /shutting down/ });
  await closed;
  t.throws(() => new ModernRequest(dialer), { message: /shutting down/ });
});

// ---- HTTP+SSE at the URL that is posted to

for (const [how, post] of Object.entries(takings)) {
  test(`a server of HTTP+SSE where a POST is ${how} serves clients of both eras, and is not waited for`, async (t) => {
    const server = await listenAtStream(post);
    t.teardown(() => server.close());
    const clock = new FakeClock();
    const postsTo = (dialer: UpstreamDialer, ask: (dialer: UpstreamDialer) => Promise<unknown>) => {
      const before = server.received.length;
      let isAnswered = false;
      void ask(dialer).then(() => {
        isAnswered = true;
      });
      return waitFor(() => {
        if (server.received.length > before) clock.advance(SILENCE_MS / 20);
        return isAnswered;
      });
    };
    const startedMs = clock.now();
    await postsTo(connectTo(t, server.url, { clock }), async (dialer) => {
      const client = joinClient(t, { close: () => Promise.resolve() }, dialer);
      await client.initialize();
      t.deepEqual((await client.request('tools/list')).result, {});
    });
    const posts = () => server.received.filter(({ method, path }) => method === 'POST' && path === '/sse').length;
    const ofLegacy = posts();
    await postsTo(connectTo(t, server.url, { clock }), async (dialer) => {
      t.truthy((await new ModernRequest(dialer).answer()).result);
    });
    const tookMs = clock.now() - startedMs;
    t.is(posts() - ofLegacy, 1, 'with the answer to server/discover the transport is known');
    t.true(how.includes('answered with an') || how.includes('with the') || tookMs >= SILENCE_MS, `${tookMs} ms`);
  });
}

test('a server that is slow to answer initialize is looked at beside it, and served over its own transport', async (t) => {
  const clock = new FakeClock();
  let answer: (() => void) | undefined;
  const server = await listenScripted({
    initialize: (asked, response) => {
      answer = () => answerResult(asked, response, { protocolVersion: '2025-11-25', capabilities: {} });
    },
  });
  const dialer = connectTo(t, server.url, { clock });
  const client = joinClient(t, server, dialer);
  const id = client.startInitialize();
  const answerNow = await waitFor(() => answer);
  await waitFor(() => {
    clock.advance(SILENCE_MS);
    return server.order.includes('GET');
  });
  answerNow();
  t.truthy((await client.answer(id)).result);
  t.is(server.order.filter((name) => name === 'initialize').length, 1);
});
