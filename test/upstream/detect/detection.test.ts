/**
 * Detection over HTTP as it runs without a client at hand, against real servers. Of those that turn out modern only the
 * verdict is asserted here: speaking with them is the part of the transport for the modern era.
 */
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Clock } from '../../../src/deps.ts';
import type { BridgeError } from '../../../src/errors.ts';
import { SessionCookies } from '../../../src/http/client/cookies.ts';
import {
  BUSY_PAUSE_MS,
  type Detection,
  type DetectOptions,
  detect as detectWith,
  LEGACY_FIRST,
  MODERN_FIRST,
  RETRY_PAUSE_MS,
} from '../../../src/upstream/detect/detection.ts';
import { OwnAttempts } from '../../../src/upstream/detect/url-attempts.ts';
import { discovered, events, initialized, rpcError, serveReplies } from '../../fixtures/http-servers/replies.ts';
import type { SdkKind } from '../../fixtures/http-servers/sdk.ts';
import { createClient } from '../../http/recorded-call.ts';
import { collectLog, createTestDeps } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { scripted, serve } from '../../support/servers-of-a-test.ts';
import { waitFor } from '../../support/wait-for.ts';

const MODERN = '2026-07-28';
const INFO = pino.levels.values.info as number;

/** For each question. Longer than any machine is held up: where it is to run out, a clock says so. */
const TIMEOUT_MS = 60_000;

interface Run extends Partial<DetectOptions> {
  /** By which that limit runs; default: the time of the system. */
  readonly limitClock?: Clock;
}

/** A detection but for the answer it comes from. */
type Found = { readonly kind: Detection['kind'] } & Readonly<Record<string, unknown>>;

function shown(detection: Detection): Found {
  return Object.fromEntries(Object.entries(detection).filter(([name]) => name !== 'answer')) as Found;
}

/** Runs the driver with attempts of its own, and ends what they opened. */
async function detect(t: ExecutionContext, url: URL, { limitClock, ...run }: Run = {}): Promise<Found> {
  const { deps } = createTestDeps();
  const http = createClient({ ...(limitClock && { clock: limitClock }) });
  t.teardown(() => http.close());
  const signal = run.signal ?? new AbortController().signal;
  const target = { http, url, cookies: new SessionCookies(), forwarded: undefined, maxMessageBytes: 1024 * 1024 };
  const attempts = new OwnAttempts({
    target,
    clientInfo: { name: 'test', version: '1' },
    timeoutMs: TIMEOUT_MS,
    signal,
  });
  try {
    const detection = await detectWith({
      attempts,
      order: MODERN_FIRST,
      goal: 'session',
      clock: deps.clock,
      log: deps.log,
      signal,
      ...run,
    });
    return shown(detection);
  } finally {
    await attempts.close();
  }
}

async function fails(t: ExecutionContext, url: URL, run: Run = {}): Promise<BridgeError> {
  const error = await t.throwsAsync<BridgeError>(detect(t, url, run));
  if (error === undefined) throw new Error('it did not fail');
  return error;
}

/** Waits of the driver pass at once; how long they were is kept. */
function skipWaits(): { readonly clock: FakeClock; readonly waitedMs: number[] } {
  const waitedMs: number[] = [];
  class SkippingClock extends FakeClock {
    override after(delayMs: number, run: () => void): () => void {
      waitedMs.push(delayMs);
      setImmediate(() => this.advance(delayMs));
      return super.after(delayMs, run);
    }
  }
  return { clock: new SkippingClock(), waitedMs };
}

const real: readonly (readonly [
  kind: SdkKind,
  order: 'modern first' | 'legacy first',
  found: Found,
  asked: string[],
])[] = [
  ['modern', 'modern first', { kind: 'modern', revision: MODERN }, ['POST server/discover']],
  ['modern', 'legacy first', { kind: 'modern', revision: MODERN }, ['POST initialize']],
  ['both-eras', 'modern first', { kind: 'modern', revision: MODERN }, ['POST server/discover']],
  ['both-eras', 'legacy first', { kind: 'legacy', by: 'initialize', confidence: 'firm' }, ['POST initialize']],
  [
    'stateful',
    'modern first',
    { kind: 'legacy', by: 'initialize', confidence: 'firm' },
    ['POST server/discover', 'POST initialize', 'DELETE'],
  ],
  ['stateful', 'legacy first', { kind: 'legacy', by: 'initialize', confidence: 'firm' }, ['POST initialize', 'DELETE']],
  [
    'stateless',
    'modern first',
    { kind: 'legacy', by: 'initialize', confidence: 'firm' },
    ['POST server/discover', 'POST initialize'],
  ],
  [
    'http-sse',
    'modern first',
    { kind: 'legacy', by: 'eventStream', confidence: 'firm' },
    ['POST server/discover', 'POST initialize', 'GET'],
  ],
  [
    'http-sse',
    'legacy first',
    { kind: 'legacy', by: 'eventStream', confidence: 'firm' },
    ['POST initialize', 'POST server/discover', 'GET'],
  ],
];

for (const [kind, order, found, asked] of real) {
  test(`the SDK's ${kind} server, ${order}: ${found.by ?? found.kind}, asked ${asked.join(', ')}`, async (t) => {
    const server = await serve(t, kind);
    const detection = await detect(t, server.url, {
      order: order === 'modern first' ? MODERN_FIRST : LEGACY_FIRST,
      // Time stands still: the end of a session is waited for, however long it takes.
      limitClock: new FakeClock(),
    });
    t.deepEqual(detection, found);
    t.deepEqual(server.asked, asked);
    await waitFor(() => server.sessions.size === 0, { message: 'the sessions of the detection to end' });
  });
}

test('a server that offers another revision is asked once more with that one, and gets no initialize', async (t) => {
  const server = await scripted(t, ({ id, time }) =>
    time === 1 ? rpcError(id, -32022, { status: 400, data: { supported: [MODERN] } }) : discovered(id, MODERN),
  );
  t.deepEqual(await detect(t, server.url, { revision: '2027-01-01' }), { kind: 'modern', revision: MODERN });
  t.deepEqual(server.asked, ['POST server/discover', 'POST server/discover']);
  t.deepEqual(
    server.received.map(({ headers }) => headers['mcp-protocol-version']),
    ['2027-01-01', MODERN],
  );
});

test('a server that refuses the revision it offers is not asked for ever, and gets no initialize', async (t) => {
  const server = await scripted(t, ({ id }) => rpcError(id, -32022, { status: 400, data: { supported: [MODERN] } }));
  const error = await fails(t, server.url);
  t.is(error.code, 'ERR_UPSTREAM_REVISION');
  t.deepEqual(server.asked, ['POST server/discover', 'POST server/discover']);
});

test('a legacy server that answers 400 gets an initialize without modern headers', async (t) => {
  const server = await scripted(t, ({ what, id }) =>
    what === 'POST initialize' ? initialized(id) : rpcError(id, -32000, { status: 400 }),
  );
  t.deepEqual(await detect(t, server.url), { kind: 'legacy', by: 'initialize', confidence: 'firm' });
  const [discover, initialize] = server.received;
  t.like(discover?.headers, { 'mcp-protocol-version': MODERN, 'mcp-method': 'server/discover' });
  for (const name of ['mcp-protocol-version', 'mcp-method', 'mcp-session-id'])
    t.false(name in (initialize?.headers ?? {}));
  t.is(initialize?.headers.accept, 'application/json, text/event-stream');
});

test('a server that knows only GET is found to speak HTTP+SSE', async (t) => {
  const server = await scripted(t, ({ what }) =>
    what === 'GET' ? events('event: endpoint\ndata: /messages\n\n') : undefined,
  );
  t.deepEqual(await detect(t, server.url), { kind: 'legacy', by: 'eventStream', confidence: 'firm' });
  t.deepEqual(server.asked, ['POST server/discover', 'POST initialize', 'GET']);
});

for (const status of [401, 403]) {
  for (const order of [MODERN_FIRST, LEGACY_FIRST]) {
    test(`${status} at POST ${order[0]} is no era but a question of authorization`, async (t) => {
      const server = await scripted(t, () => ({
        status,
        headers: {
          'WWW-Authenticate':
            'Bearer error="invalid_token", resource_metadata="https://auth.example/.well-known/oauth-protected-resource/mcp?x=1", scope="tools:read"',
        },
      }));
      const error = await fails(t, server.url, { order });
      t.is(error.code, 'ERR_UPSTREAM_AUTH');
      t.like(error.data, {
        status,
        resourceMetadata: 'https://auth.example/.well-known/oauth-protected-resource/mcp',
      });
      t.regex(error.message, /\.well-known\/oauth-protected-resource\/mcp\..*--bearer-token-file/);
      t.is(server.asked.length, 1);
    });
  }
}

for (const headers of [{}, { 'Retry-After': '1' }] as Record<string, string>[]) {
  for (const order of [MODERN_FIRST, LEGACY_FIRST]) {
    const how = 'Retry-After' in headers ? 'with' : 'without';
    test(`a modern server behind 503 ${how} Retry-After is waited for, ${order[0]} first`, async (t) => {
      let times = 0;
      const server = await scripted(t, ({ what, id }) => {
        times += 1;
        if (times <= 2) return { status: 503, headers };
        if (what === 'POST server/discover') return discovered(id, MODERN);
        return rpcError(id, -32022, { status: 400, data: { supported: [MODERN] } });
      });
      const { clock, waitedMs } = skipWaits();
      t.deepEqual(await detect(t, server.url, { clock, order }), { kind: 'modern', revision: MODERN });
      t.deepEqual(waitedMs, how === 'with' ? [1000, 1000] : [RETRY_PAUSE_MS]);
    });
  }
}

for (const trouble of ['500', 'reset', 'hang'] as const) {
  test(`a legacy server that answers discover with ${trouble} works, but the verdict is weak`, async (t) => {
    const limitClock = new FakeClock();
    const server = await scripted(t, ({ what, id }) => {
      if (what === 'POST initialize') return initialized(id);
      if (trouble === 'hang') setImmediate(() => limitClock.advance(TIMEOUT_MS));
      return trouble === '500' ? { status: 500, text: 'oops' } : trouble;
    });
    const { clock } = skipWaits();
    t.deepEqual(await detect(t, server.url, { clock, limitClock }), {
      kind: 'legacy',
      by: 'initialize',
      confidence: 'weak',
    });
    t.is(server.asked.at(-1), 'POST initialize');
    t.is(server.asked.filter((what) => what === 'POST initialize').length, 1);
  });
}

test('a server in trouble whatever it is asked is reported with its first answer, and gets one initialize', async (t) => {
  const server = await scripted(t, ({ what }) =>
    what === 'POST initialize' ? { status: 404 } : { status: 502, text: 'oops' },
  );
  const { clock } = skipWaits();
  const error = await fails(t, server.url, { clock });
  t.is(error.code, 'ERR_UPSTREAM_HTTP');
  t.regex(error.message, /502 Bad Gateway/);
  t.deepEqual(error.data, { status: 502 });
  t.deepEqual(server.asked, ['POST server/discover', 'POST server/discover', 'POST initialize']);
});

for (const order of [MODERN_FIRST, LEGACY_FIRST]) {
  test(`an HTTP+SSE server that answers 500 to a POST is found, with a weak verdict, ${order[0]} first`, async (t) => {
    const server = await scripted(t, ({ what }) =>
      what === 'GET' ? events('event: endpoint\ndata: /m\n\n') : { status: 500 },
    );
    const { clock } = skipWaits();
    t.deepEqual(await detect(t, server.url, { clock, order }), {
      kind: 'legacy',
      by: 'eventStream',
      confidence: 'weak',
    });
  });
}

test('a busy server is asked four times, and the client told to come back if that was in vain', async (t) => {
  const server = await scripted(t, () => ({ status: 429 }));
  const { clock, waitedMs } = skipWaits();
  const { log, entries } = collectLog();
  const error = await fails(t, server.url, { clock, log });
  t.is(error.code, 'ERR_UPSTREAM_HTTP');
  t.deepEqual(waitedMs, [BUSY_PAUSE_MS, 2 * BUSY_PAUSE_MS, 4 * BUSY_PAUSE_MS]);
  t.deepEqual(
    entries.filter(({ level }) => level >= INFO).map(({ msg }) => msg),
    waitedMs.map((pauseMs) => `the server is busy; asking again in ${pauseMs} ms`),
  );
  t.is(server.asked.length, 4);
});

test('a server that wants to be left alone for longer is not waited for', async (t) => {
  const server = await scripted(t, () => ({ status: 503, headers: { 'Retry-After': '120' } }));
  const error = await fails(t, server.url);
  t.is(error.retryAfterMs, 120_000);
  t.is(server.asked.length, 1);
});

test('a stream that begins with another event is no HTTP+SSE; the error lists all attempts', async (t) => {
  const server = await scripted(t, ({ what }) =>
    what === 'GET' ? events('event: message\ndata: {}\n\nevent: endpoint\ndata: /m\n\n') : { status: 405 },
  );
  const error = await fails(t, server.url);
  t.is(error.code, 'ERR_UPSTREAM_DETECT');
  t.deepEqual(error.data, {
    attempts: [
      { request: 'POST server/discover', saw: '405 Method Not Allowed', status: 405 },
      { request: 'POST initialize', saw: '405 Method Not Allowed', status: 405 },
      {
        request: 'GET for an event stream',
        saw: 'an event stream that begins with a "message" event instead of "endpoint"',
        status: 200,
      },
    ],
  });
  t.is(
    error.message,
    `No MCP server was recognized at ${server.url.href}. Tried: POST server/discover: 405 Method Not Allowed; ` +
      'POST initialize: 405 Method Not Allowed; GET for an event stream: an event stream that begins with a "message" ' +
      'event instead of "endpoint". Is the path right (/mcp and /sse are common)? If you know what the server speaks, ' +
      'say so with --transport or --protocol.',
  );
});

for (const endpoint of [
  'https://127.0.0.1/m',
  'http://127.0.0.1:1/m',
  '//evil.example/m',
  'http://evil.example/m?k=v',
]) {
  test(`an endpoint at ${endpoint} is refused, and nothing is posted there`, async (t) => {
    const server = await scripted(t, ({ what }) =>
      what === 'GET' ? events(`event: endpoint\ndata: ${endpoint}\n\n`) : undefined,
    );
    const error = await fails(t, server.url);
    t.is(error.code, 'ERR_UPSTREAM_DETECT');
    t.regex(error.message, /leads to another origin, https?:\/\/(127|evil)\S+; that is refused/);
    t.notRegex(error.message, /k=v/);
    t.deepEqual(server.asked, ['POST server/discover', 'POST initialize', 'GET']);
  });
}

for (const status of [202, 204]) {
  test(`a server that takes the probe with ${status} is asked for an event stream, then reported`, async (t) => {
    const server = await scripted(t, ({ what }) => (what === 'GET' ? { status: 404 } : { status }));
    const error = await fails(t, server.url);
    t.is(error.code, 'ERR_UPSTREAM_DETECT');
    t.deepEqual(server.asked, ['POST server/discover', 'GET']);
    t.regex(
      error.message,
      new RegExp(`POST server/discover: ${status} \\w.* without an answer; GET .*: 404 Not Found`),
    );
  });
}

test('a request whose headers got lost on the way is repeated; then initialize gives a weak verdict', async (t) => {
  const server = await scripted(t, ({ what, id }) =>
    what === 'POST initialize' ? initialized(id) : rpcError(id, -32020, { status: 400 }),
  );
  t.deepEqual(await detect(t, server.url), { kind: 'legacy', by: 'initialize', confidence: 'weak' });
  t.deepEqual(server.asked, ['POST server/discover', 'POST server/discover', 'POST initialize']);
});

test('an initialize that is turned down in so many words is reported in those words', async (t) => {
  const server = await scripted(t, ({ id }) => rpcError(id, -32602, { data: { why: 'key' } }));
  t.deepEqual(await detect(t, server.url), {
    kind: 'refused',
    error: { code: -32602, message: 'not like this', data: { why: 'key' } },
  });
  t.deepEqual(server.asked, ['POST server/discover', 'POST initialize']);
});

test('a login page is no MCP server, whatever it answers 200 to', async (t) => {
  const server = await scripted(t, () => ({ text: '<html>log in</html>', headers: { 'Content-Type': 'text/html' } }));
  const error = await fails(t, server.url);
  t.is(error.code, 'ERR_UPSTREAM_DETECT');
  t.regex(
    error.message,
    /POST initialize: 200 OK with text\/html that is no MCP answer; .*200 OK, but no event stream/,
  );
});

test('where nobody listens nothing more is tried', async (t) => {
  const server = await serveReplies(() => undefined);
  await server.close();
  const error = await fails(t, server.url);
  t.is(error.code, 'ERR_UPSTREAM_CONNECT');
  t.regex(error.message, /ECONNREFUSED/);
});

test('an answer is found in an event stream, behind other messages, and in an array', async (t) => {
  const stream = await scripted(t, ({ id }) =>
    events(
      `: hello\n\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\n\n` +
        `data: {"jsonrpc":"2.0","id":${id},"result":{"supportedVersions":["${MODERN}"]}}\n\n`,
    ),
  );
  t.like(await detect(t, stream.url), { kind: 'modern' });
  const batch = await scripted(t, ({ id }) => ({
    json: [{ jsonrpc: '2.0', id, result: { supportedVersions: [MODERN] } }],
  }));
  t.like(await detect(t, batch.url), { kind: 'modern' });
});

test('an error without id is taken for the answer: there was only one question', async (t) => {
  const server = await scripted(t, ({ what, id }) =>
    what === 'POST initialize'
      ? initialized(id)
      : rpcError(null, -32022, { status: 400, data: { supported: [MODERN] } }),
  );
  await fails(t, server.url);
  t.deepEqual(server.asked, ['POST server/discover', 'POST server/discover']);
});

test('a detection that is given up stops at once and keeps no connection', async (t) => {
  const server = await scripted(t, () => 'hang');
  const controller = new AbortController();
  const detection = detect(t, server.url, { signal: controller.signal });
  await waitFor(() => server.asked.length === 1);
  const reason = new Error('the client has left');
  controller.abort(reason);
  t.is(await t.throwsAsync(detection), reason);
  await waitFor(() => server.open.size === 0, { message: 'the connection to be let go' });
});
