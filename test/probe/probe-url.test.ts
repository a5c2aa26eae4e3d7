/** The report on servers at URLs: the SDKs' own, and such as work only by half. */
import test from 'ava';
import { changeId } from '../fixtures/http-servers/change-id.js';
import { listenAtStream, takings } from '../fixtures/http-servers/old-server.ts';
import {
  type Ask,
  discovered,
  events,
  initialized,
  type Reply,
  result,
  rpcError,
  type ScriptedServer,
  serveReplies,
} from '../fixtures/http-servers/replies.ts';
import type { SdkKind } from '../fixtures/http-servers/sdk.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { JSON_HEADERS } from '../support/legacy-clients.ts';
import { scripted, serve } from '../support/servers-of-a-test.ts';
import { waitFor } from '../support/wait-for.ts';
import { adviceIn, conclusionOf, offerOf, probe, working } from './run.ts';

const EVERYTHING = {
  serverInfo: { name: 'sdk-v1', version: '1.0.0' },
  revision: '2025-11-25',
  tools: { state: 'counted', count: 3, isComplete: true },
  resources: { state: 'counted', count: 1, isComplete: true },
  resourceTemplates: { state: 'counted', count: 1, isComplete: true },
  prompts: { state: 'counted', count: 1, isComplete: true },
} as const;

const TWO_TOOLS = {
  serverInfo: { name: 'sdk-v2', version: '2.0.0' },
  tools: { state: 'counted', count: 2, isComplete: true },
  prompts: { state: 'not-declared' },
} as const;

const real: readonly (readonly [SdkKind, Readonly<Record<string, object>>])[] = [
  ['stateful', { 'streamable-http legacy': { ...EVERYTHING, session: 'session', serverStream: 'offered' } }],
  ['stateless', { 'streamable-http legacy': { ...EVERYTHING, session: 'stateless', serverStream: 'not-offered' } }],
  ['http-sse', { 'http-sse legacy': { ...EVERYTHING, session: 'session', serverStream: undefined } }],
  [
    'modern',
    { 'streamable-http modern': { ...TWO_TOOLS, revision: '2026-07-28', supportedRevisions: ['2026-07-28'] } },
  ],
  [
    'both-eras',
    {
      'streamable-http modern': { ...TWO_TOOLS, revision: '2026-07-28', session: undefined },
      'streamable-http legacy': { ...TWO_TOOLS, revision: '2025-11-25', session: 'stateless' },
    },
  ],
];

for (const [kind, offers] of real) {
  test(`the SDK's ${kind} server is usable as ${Object.keys(offers).join(' and ')}, and left without sessions`, async (t) => {
    const server = await serve(t, kind);
    // A machine that is held up is no reason to look beside an answer.
    const report = await probe(server.url, { clock: new FakeClock() });
    t.is(conclusionOf(report), 'usable (0)');
    t.deepEqual(report.problems, []);
    t.deepEqual(working(report), Object.keys(offers));
    for (const [name, expected] of Object.entries(offers)) t.like(offerOf(report, name), expected);
    t.true(report.steps.every((step) => step.tookMs >= 0 && step.saw !== ''));
    await waitFor(() => server.sessions.size === 0, { message: 'the sessions of the probe to end' });
    // Over HTTP+SSE the stream of the session and the notification are no steps of their own.
    t.is(server.asked.length - report.steps.length, kind === 'http-sse' ? 2 : 0);
  });
}

for (const [how, post] of Object.entries(takings)) {
  test(`a server of HTTP+SSE where a POST is ${how} is found without waiting for an answer to each`, async (t) => {
    const server = await listenAtStream(post);
    t.teardown(() => server.close());
    const report = await probe(server.url);
    t.deepEqual(working(report), ['http-sse legacy']);
    t.is(conclusionOf(report), 'usable (0)');
    t.deepEqual(
      report.steps.slice(0, 2).map(({ request }) => request),
      ['POST server/discover', 'GET for an event stream'],
    );
  });
}

test('each kind of client is told how to get to a server with sessions', async (t) => {
  const server = await serve(t, 'stateful');
  const url = server.url.href;
  t.deepEqual(adviceIn(await probe(server.url)), {
    'stdio-legacy': `mcp-portage connect ${url}`,
    'http-sse': `mcp-portage serve ${url}`,
    'streamable-http-legacy': 'direct',
    'streamable-http-modern': `mcp-portage serve ${url}`,
    'stdio-modern': `mcp-portage connect ${url}`,
  });
});

test('each kind of client is told how to get to a modern server', async (t) => {
  const server = await serve(t, 'modern');
  const url = server.url.href;
  t.deepEqual(adviceIn(await probe(server.url)), {
    'stdio-legacy': `mcp-portage connect ${url}`,
    'http-sse': `mcp-portage serve ${url}`,
    'streamable-http-legacy': `mcp-portage serve ${url}`,
    'streamable-http-modern': 'direct',
    'stdio-modern': `mcp-portage connect ${url}`,
  });
});

test('clients of either era go directly to a server of both', async (t) => {
  const server = await serve(t, 'both-eras');
  t.like(adviceIn(await probe(server.url)), {
    'streamable-http-legacy': 'direct',
    'streamable-http-modern': 'direct',
    'stdio-modern': `mcp-portage connect ${server.url.href}`,
  });
});

/** Streamable HTTP with a session and one tool. */
function usual({ what, id }: Ask): Reply {
  switch (what) {
    case 'POST initialize':
      return { ...(initialized(id) as object), headers: { 'Mcp-Session-Id': 'abc' } };
    case 'POST notifications/initialized':
      return { status: 202 };
    case 'POST tools/list':
      return result(id, { tools: [{ name: 'a' }] });
    case 'POST server/discover':
      return rpcError(id, -32601, { status: 400 });
    case 'GET':
      return { status: 405 };
    case 'DELETE':
      return { status: 204 };
    default:
      return { status: 404 };
  }
}

for (const status of [200, 400]) {
  test(`a server that refuses a revision with ${status} and lists others is asked with the newest of those`, async (t) => {
    const server = await scripted(t, (ask) => {
      const isOld = ask.params.protocolVersion === '2025-03-26';
      if (ask.what !== 'POST initialize' || isOld) return usual(ask);
      return rpcError(ask.id, -32602, { status, data: { supported: ['2024-11-05', '2025-03-26'] } });
    });
    const report = await probe(server.url);
    t.is(conclusionOf(report), 'usable (0)');
    t.like(offerOf(report, 'streamable-http legacy'), { tools: { state: 'counted', count: 1 } });
    t.is(server.asked.filter((what) => what === 'POST initialize').length, 2);
    await sessionToEnd(server);
  });
}

for (const type of ['text', 'fraction'] as const) {
  test(`a server that returns each id as a ${type} is usable`, async (t) => {
    const server = await scripted(t, (ask) => {
      const reply = usual(ask);
      if (typeof reply !== 'object' || reply.json === undefined) return reply;
      const { json, ...others } = reply;
      return { ...others, headers: { ...others.headers, ...JSON_HEADERS }, text: changeId(json as object, type) };
    });
    const report = await probe(server.url);
    t.is(conclusionOf(report), 'usable (0)');
    t.like(offerOf(report, 'streamable-http legacy'), { tools: { state: 'counted', count: 1 } });
  });
}

/** The end of its session was the last thing it was asked for; the report waits for that only so long. */
const sessionToEnd = ({ asked }: ScriptedServer) =>
  waitFor(() => asked.at(-1) === 'DELETE', { message: 'the session of the probe to end' });

test('a server whose calls work but whose stream does not is told apart, and still usable', async (t) => {
  const server = await scripted(t, (ask) => (ask.what === 'GET' ? { status: 500 } : usual(ask)));
  const report = await probe(server.url);
  t.is(conclusionOf(report), 'partly-usable (0)');
  t.is(offerOf(report, 'streamable-http legacy').serverStream, 'failing');
  t.deepEqual(report.problems, [
    'Calls by POST work, but the stream by GET fails: 500 Internal Server Error. What the server says outside of calls (changed lists, updated resources) does not arrive.',
  ]);
});

test('a server that shakes hands but lists none of its tools is not usable', async (t) => {
  const server = await scripted(t, (ask) => (ask.what === 'POST tools/list' ? rpcError(ask.id, -32603) : usual(ask)));
  const report = await probe(server.url);
  t.is(conclusionOf(report), 'unusable (69)');
  t.deepEqual(offerOf(report, 'streamable-http legacy').tools, {
    state: 'failed',
    saw: 'error -32603 "not like this"',
  });
  t.deepEqual(report.problems, ['It declares tools, but tools/list fails: error -32603 "not like this".']);
  await sessionToEnd(server);
});

test('a server that does not take notifications/initialized is reported', async (t) => {
  const server = await scripted(t, (ask) =>
    ask.what === 'POST notifications/initialized' ? { status: 400 } : usual(ask),
  );
  const report = await probe(server.url);
  t.is(conclusionOf(report), 'partly-usable (0)');
  t.regex(report.problems.join(), /does not take notifications\/initialized: 400 Bad Request/);
});

test('a server that chose a revision nobody knows is reported', async (t) => {
  const server = await scripted(t, (ask) =>
    ask.what === 'POST initialize' ? initialized(ask.id, '2020-01-01') : usual(ask),
  );
  const report = await probe(server.url);
  t.regex(report.problems.join(), /chose revision 2020-01-01/);
});

test('lists are followed to their last page', async (t) => {
  const server = await scripted(t, (ask) => {
    if (ask.what !== 'POST tools/list') return usual(ask);
    const page = Number(ask.params.cursor ?? 0);
    const nextCursor = page < 4 ? { nextCursor: String(page + 1) } : {};
    return result(ask.id, { tools: [{ name: `a${page}` }, { name: `b${page}` }], ...nextCursor });
  });
  const { tools } = offerOf(await probe(server.url), 'streamable-http legacy');
  t.deepEqual(tools, { state: 'counted', count: 10, isComplete: true });
});

test('a list that goes round in circles is left, and reported', async (t) => {
  const server = await scripted(t, (ask) =>
    ask.what === 'POST tools/list' ? result(ask.id, { tools: [{}], nextCursor: 'again' }) : usual(ask),
  );
  const report = await probe(server.url);
  t.deepEqual(offerOf(report, 'streamable-http legacy').tools, { state: 'counted', count: 2, isComplete: false });
  t.regex(report.problems.join(), /tools\/list does not come to an end/);
});

test('the version and session headers of a session go along with everything after the handshake', async (t) => {
  const server = await scripted(t, usual);
  await probe(server.url, { protocol: 'legacy' });
  await sessionToEnd(server);
  const [handshake, ...rest] = server.received;
  t.is(handshake?.headers['mcp-session-id'], undefined);
  const inSession = rest.filter(({ method, headers }) => method !== 'GET' || 'mcp-session-id' in headers);
  t.is(inSession.length, 4);
  for (const { headers } of inSession) {
    t.like(headers, { 'mcp-session-id': 'abc', 'mcp-protocol-version': '2025-11-25' });
  }
});

test('HTTP+SSE whose endpoint takes no messages is reported as half of a server', async (t) => {
  const server = await scripted(t, ({ what }) =>
    what === 'GET' ? events('event: endpoint\ndata: /messages\n\n') : undefined,
  );
  const report = await probe(server.url);
  t.is(conclusionOf(report), 'unusable (69)');
  t.regex(
    report.problems.join(),
    /announces an endpoint for HTTP\+SSE, but initialize over it fails: .*\/messages answered 404 Not Found/,
  );
});

test('a server that only discover troubles is usable, and the trouble reported', async (t) => {
  const server = await scripted(t, (ask) => (ask.what === 'POST server/discover' ? { status: 500 } : usual(ask)));
  const report = await probe(server.url);
  t.is(conclusionOf(report), 'partly-usable (0)');
  t.deepEqual(report.problems, ['POST server/discover fails: 500 Internal Server Error.']);
});

test('a server that wants authorization names its metadata in the header', async (t) => {
  const server = await scripted(t, () => ({
    status: 401,
    headers: { 'WWW-Authenticate': 'Bearer resource_metadata="https://a.example/meta?k=v", scope="read write"' },
  }));
  const report = await probe(server.url);
  t.is(conclusionOf(report), 'unauthorized (77)');
  t.deepEqual(report.authorization, {
    status: 401,
    token: 'missing',
    scheme: 'Bearer',
    resourceMetadata: 'https://a.example/meta',
    metadataSource: 'header',
    authorizationServers: [],
    scopes: ['read', 'write'],
  });
  t.deepEqual(Object.values(adviceIn(report)), Array(5).fill('none'));
  t.deepEqual(server.asked, ['POST server/discover', 'POST initialize', 'GET']);
});

test('a server that gets a token and wants another is told apart from one that got none', async (t) => {
  const server = await scripted(t, () => ({
    status: 401,
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  }));
  const headers = new Map([['authorization', 'Bearer wrong']]);
  const report = await probe(server.url, { remote: { headers } });
  t.is(conclusionOf(report), 'unauthorized (77)');
  t.is(report.authorization?.token, 'refused');
});

test('metadata that is not named is looked for at the well-known place of the path', async (t) => {
  const metadata = { resource: 'x', authorization_servers: ['https://auth.example'], scopes_supported: ['tools'] };
  const server = await scripted(t, ({ received }) =>
    received.path === '/.well-known/oauth-protected-resource/mcp' ? { json: metadata } : { status: 401 },
  );
  const { authorization } = await probe(server.url);
  t.deepEqual(authorization, {
    status: 401,
    token: 'missing',
    scheme: undefined,
    resourceMetadata: `${server.url.origin}/.well-known/oauth-protected-resource/mcp`,
    metadataSource: 'well-known',
    authorizationServers: ['https://auth.example'],
    scopes: ['tools'],
  });
});

test('a gateway that refuses discover alone does not make a server unauthorized', async (t) => {
  const server = await scripted(t, (ask) => (ask.what === 'POST server/discover' ? { status: 403 } : usual(ask)));
  const report = await probe(server.url);
  t.is(conclusionOf(report), 'partly-usable (0)');
  t.regex(report.problems.join(), /refused with 403, although others are not/);
});

test('where nobody listens the report says so, once', async (t) => {
  const server = await serveReplies(() => undefined);
  await server.close();
  const report = await probe(server.url);
  t.is(conclusionOf(report), 'unusable (69)');
  t.is(report.problems.length, 1);
  t.regex(report.problems.join(), /ECONNREFUSED/);
  t.is(report.steps.length, 1);
});

test('a server that breaks connections without TLS is asked for with it', async (t) => {
  const server = await scripted(t, () => 'reset');
  const report = await probe(server.url);
  t.is(conclusionOf(report), 'unusable (69)');
  t.is(
    report.problems[0],
    'POST server/discover fails: the connection broke before an answer came. If it speaks TLS on this port, use https://.',
  );
});

test('something that is no MCP server is reported with a hint', async (t) => {
  const server = await scripted(t, () => ({ text: '<html>', headers: { 'Content-Type': 'text/html' } }));
  const report = await probe(server.url);
  t.is(conclusionOf(report), 'unusable (69)');
  t.deepEqual(report.problems, [
    'It answers, but not as an MCP server does. Is the path right (/mcp and /sse are common)?',
  ]);
});

/** Plays a server whose MCP endpoint is at one path of it, and nothing anywhere else. */
const onlyAt = (path: string, reply: (ask: Ask) => Reply) => (ask: Ask) =>
  ask.received.path.split('?', 1)[0] === path ? reply(ask) : { status: 404 };

for (const [given, path] of [
  ['/', '/mcp'],
  ['/wrong?tenant=1', '/mcp'],
  ['/api/v1/wrong', '/api/v1/mcp'],
  ['/api/', '/api/mcp'],
  ['/sse', '/mcp'],
  ['/api', '/mcp'],
] as const) {
  test(`a server at ${path} is found when the URL ends in ${given}, which answers 404`, async (t) => {
    const server = await scripted(t, onlyAt(path, usual));
    const headers = new Map([['x-api-key', 'secret']]);
    const report = await probe(new URL(given, server.url), { remote: { headers } });
    t.is(conclusionOf(report), 'unusable (69)');
    const found = `${server.url.origin}${path}`;
    const query = given.includes('?') ? '?…' : '';
    t.deepEqual(report.problems, [
      `Nothing is at this path (404), but ${found} speaks MCP: Streamable HTTP, legacy. For a report on it: mcp-portage probe ${query === '' ? found : `'${found}${query}'`} --header 'x-api-key: …'`,
    ]);
    t.true(report.steps.some(({ request, status }) => request === `POST initialize at ${path}` && status === 200));
    t.deepEqual(Object.values(adviceIn(report)), Array(5).fill('none'), 'the URL that was given is of no use');
    await sessionToEnd(server);
  });
}

test('a server of HTTP+SSE is found beside a URL that answers 404', async (t) => {
  const server = await serve(t, 'http-sse');
  const report = await probe(new URL('/nothing', server.url));
  t.regex(report.problems.join(), /^Nothing is at this path \(404\), but \S+\/sse speaks MCP: HTTP\+SSE, legacy\./);
});

test('a server that asks for authorization beside a URL that answers 404 is told as that', async (t) => {
  const server = await scripted(
    t,
    onlyAt('/mcp', () => ({ status: 401 })),
  );
  const report = await probe(new URL('/nothing', server.url));
  t.is(conclusionOf(report), 'unusable (69)');
  t.regex(report.problems.join(), /\/mcp asks for authorization \(401\)\. For a report on it: mcp-portage probe /);
});

test('where nothing is beside a URL that answers 404 either, the report says so, and nothing but its origin was asked', async (t) => {
  const server = await scripted(t, () => ({ status: 404 }));
  const report = await probe(new URL('/a/b', server.url));
  t.deepEqual(report.problems, [
    'Nothing is at this path (404), and no MCP server at /mcp or /sse beside it. Check the URL.',
  ]);
  t.deepEqual(
    [...new Set(server.received.map(({ path }) => path))],
    ['/a/b', '/a/mcp', '/a/sse', '/a/b/mcp', '/a/b/sse', '/mcp', '/sse'],
  );
});

test('what is pinned is pinned beside the URL, too', async (t) => {
  const server = await scripted(t, onlyAt('/mcp', usual));
  const report = await probe(new URL('/nothing', server.url), { remote: { transport: 'sse' } });
  t.false(server.asked.some((what) => what.startsWith('POST')));
  t.regex(report.problems.join(), /no MCP server at \/mcp or \/sse/);
});

test('the time limit ends the probe with what is known, names the question, and the session is ended', async (t) => {
  const server = await scripted(t, (ask) => (ask.what === 'POST tools/list' ? 'hang' : usual(ask)));
  const clock = new FakeClock();
  const reported = probe(server.url, { timeoutMs: 1500, clock });
  await waitFor(() => server.asked.includes('POST tools/list'));
  clock.advance(1500);
  const report = await reported;
  t.is(conclusionOf(report), 'partly-usable (0)');
  t.deepEqual(report.problems, ['The time limit of 1500 ms was reached while waiting for POST tools/list.']);
  t.is(offerOf(report, 'streamable-http legacy').tools.state, 'not-asked');
  await sessionToEnd(server);
  await waitFor(() => server.open.size === 0, { message: 'all connections to be let go' });
});

test('what is pinned is not looked for elsewhere', async (t) => {
  const server = await scripted(t, usual);
  const pinned = await probe(server.url, { protocol: 'legacy', remote: { transport: 'streamable-http' } });
  t.deepEqual(
    pinned.offers.map(({ transport, era }) => `${transport} ${era}`),
    ['streamable-http legacy'],
  );
  t.deepEqual(
    (await probe(server.url, { protocol: 'modern' })).offers.map(({ era }) => era),
    ['modern'],
  );
  t.deepEqual(
    (await probe(server.url, { remote: { transport: 'sse' } })).offers.map(({ transport }) => transport),
    ['http-sse'],
  );
});

test('a modern server of another revision is asked again with the one it offers', async (t) => {
  const server = await scripted(t, ({ what, id, time }) => {
    if (what !== 'POST server/discover') return { status: 405 };
    return time === 1
      ? rpcError(id, -32022, { status: 400, data: { supported: ['2026-07-28'] } })
      : discovered(id, '2026-07-28');
  });
  const report = await probe(server.url);
  t.deepEqual(
    report.steps.slice(0, 2).map(({ request }) => request),
    ['POST server/discover', 'POST server/discover'],
  );
  t.is(offerOf(report, 'streamable-http modern').revision, '2026-07-28');
});

test('configured headers go along and are named in the advice without their values', async (t) => {
  const server = await scripted(t, usual);
  const headers = new Map([['x-api-key', 'very-secret']]);
  const report = await probe(new URL('?tenant=secret-too', server.url), { remote: { headers } });
  t.true(server.received.every((received) => received.headers['x-api-key'] === 'very-secret'));
  t.is(adviceIn(report)['stdio-legacy'], `mcp-portage connect '${server.url.href}?…' --header 'x-api-key: …'`);
  t.notRegex(JSON.stringify(report), /secret/);
});

test('the JSON report has these members, for scripts to rely on', async (t) => {
  const server = await scripted(t, usual);
  const report = JSON.parse(JSON.stringify(await probe(server.url)));
  t.deepEqual(Object.keys(report), ['format', 'target', 'verdict', 'offers', 'problems', 'clients', 'steps', 'tookMs']);
  const offer = report.offers.find((candidate: { works: boolean }) => candidate.works);
  t.deepEqual(Object.keys(offer).sort(), [
    'capabilities',
    'era',
    'prompts',
    'resourceTemplates',
    'resources',
    'revision',
    'saw',
    'serverInfo',
    'serverStream',
    'session',
    'tools',
    'transport',
    'works',
  ]);
  t.deepEqual(Object.keys(report.steps[0]), ['request', 'saw', 'status', 'tookMs']);
});
