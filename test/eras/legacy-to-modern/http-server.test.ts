import type { ServerResponse } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import {
  type Act,
  type AskedMessage,
  answerResult,
  event,
  notification as notificationOf,
  openStream,
  type Script,
} from '../../fixtures/http-servers/scripted.ts';
import { FakeDialer } from '../../support/fake-peers.ts';
import { serverFrame } from '../../support/frames.ts';
import { callHttp, type HttpAnswer } from '../../support/http-call.ts';
import type { HttpHarness } from '../../support/http-harness.ts';
import {
  call,
  cancellation,
  type HttpSession,
  initialize,
  notification,
  openHttpSession,
  openSseStream,
  POST_HEADERS,
} from '../../support/legacy-clients.ts';
import { connectStreamable } from '../../support/sdk-client.ts';
import { waitFor } from '../../support/wait-for.ts';
import { askedFor, refuseWith } from '../../upstream/streamable-stateless/connect-modern.ts';
import { DISCOVERY, META, type Message } from './legacy-session.ts';
import { type ScriptedHarness, startScriptedHarness, startTranslatedHarness } from './modern-servers.ts';

const TOOLS = 'notifications/tools/list_changed';
const done = { resultType: 'complete', content: [{ type: 'text', text: 'done' }] };
const legacyDone = { content: [{ type: 'text', text: 'done' }] };

interface HttpClient extends ScriptedHarness {
  readonly session: HttpSession;
  /** Posts a request and reads what it is answered, as JSON. */
  ask(method: string, params?: object): Promise<Message>;
}

/** A client over Streamable HTTP of a modern server that does as the script says. */
async function connect(t: ExecutionContext, script: Script = {}, hello = initialize()): Promise<HttpClient> {
  const { server, harness } = await startScriptedHarness(t, script);
  const session = await openHttpSession(harness.port, hello);
  t.is((await session.post(notification('notifications/initialized'))).status, 202);
  let lastId = 100;
  const ask = async (method: string, params: object = {}): Promise<Message> => {
    lastId += 1;
    return (await session.post({ jsonrpc: '2.0', id: lastId, method, params })).json();
  };
  return { server, harness, session, ask };
}

const helloWith = (capabilities: object): object => {
  const hello = initialize() as { params: object };
  return { ...hello, params: { ...hello.params, capabilities } };
};

// ---- one request

test('what the server needs is asked on the stream of the POST it is for, and brought in a new POST', async (t) => {
  const state = 'c3RhdGU=\u00e9"';
  const { server, session } = await connect(
    t,
    {
      'tools/call': (asked, response) => {
        if (asked.message.params?.inputResponses !== undefined) return answerResult(asked, response, done);
        const params = { message: 'Who?', requestedSchema: { type: 'object', properties: {} } };
        const inputRequests = { who: { method: 'elicitation/create', params } };
        answerResult(asked, response, { resultType: 'input_required', inputRequests, requestState: state });
      },
    },
    helloWith({ elicitation: {} }),
  );
  const stream = (await session.post(call(1))).events();
  await stream.next(); // which is there to resume from
  const question = await stream.message<Message>();
  t.is(question.method, 'elicitation/create');
  const result = { action: 'accept', content: {} };
  t.is((await session.post({ jsonrpc: '2.0', id: question.id, result })).status, 202);
  t.deepEqual(await stream.message(), { jsonrpc: '2.0', id: 1, result: legacyDone });
  t.is(await stream.closed, 'ended');
  const [first, second] = askedFor(server, 'tools/call');
  t.not(first?.message.id, second?.message.id);
  t.is(first?.headers['mcp-name'], second?.headers['mcp-name']);
  t.is(second?.message.params?.requestState, state);
  t.deepEqual(second?.message.params?.inputResponses, { who: result });
});

test('an error that the server sends with a status of its own is an answer with 200', async (t) => {
  const data = { requiredCapabilities: { elicitation: {} } };
  const { session } = await connect(t, { 'tools/call': refuseWith(400, -32021, data) });
  const answer = await session.post(call(1));
  t.is(answer.status, 200);
  t.like(await answer.json(), { id: 1, error: { code: -32021, data } });
});

test('progress and log messages travel on the stream of the POST they belong to', async (t) => {
  const { server, session, ask } = await connect(t, {
    'tools/call': ({ message: { id, params } }, response) => {
      const { progressToken } = params?._meta as { progressToken: unknown };
      openStream(response);
      response.write(event(notificationOf('notifications/progress', { progressToken, progress: 1 })));
      response.write(event(notificationOf('notifications/message', { level: 'info', data: 'x' })));
      response.end(event({ jsonrpc: '2.0', id, result: done }));
    },
  });
  t.deepEqual((await ask('logging/setLevel', { level: 'debug' })).result, {});
  const events = await (await session.post(call(1, 'work', { progressToken: 'mine' }))).events().rest();
  const messages = events.filter(({ data }) => data !== '').map(({ data }) => JSON.parse(data) as Message);
  t.deepEqual(
    messages.map(({ method, params }) => method && [method, params.progressToken ?? params.level]),
    [['notifications/progress', 'mine'], ['notifications/message', 'info'], undefined],
  );
  const [asked] = askedFor(server, 'tools/call');
  t.is((asked?.message.params?._meta as Record<string, unknown>)[`${META}logLevel`], 'debug');
});

test('a call that is withdrawn is withdrawn by closing its connection to the server', async (t) => {
  let waiting: ServerResponse | undefined;
  const { server, session } = await connect(t, {
    'tools/call': (_, response) => {
      waiting = response;
    },
  });
  const answer = session.post(call('mine'));
  await waitFor(() => waiting !== undefined);
  t.is((await session.post(cancellation('mine'))).status, 202);
  t.is(await (await answer).text(), '');
  await waitFor(() => waiting?.destroyed);
  t.false(server.order.includes('notifications/cancelled'));
});

test('a server that was replaced by one of other revisions gets the call once more, and only once', async (t) => {
  let refusals = 1;
  const { server, ask } = await connect(t, {
    'tools/call': (asked, response) => {
      refusals -= 1;
      if (refusals < 0) return answerResult(asked, response, done);
      refuseWith(400, -32022, { supported: ['2026-07-28'] })(asked, response);
    },
  });
  t.deepEqual((await ask('tools/call', { name: 'x' })).result, legacyDone);
  t.is(askedFor(server, 'tools/call').length, 2);
  refusals = Number.POSITIVE_INFINITY;
  t.is((await ask('tools/call', { name: 'x' })).error.code, -32603);
  t.is(askedFor(server, 'tools/call').length, 4);
});

test('roots/list_changed is taken with 202 and goes no further', async (t) => {
  const { server, session, ask } = await connect(t, {}, helloWith({ roots: { listChanged: true } }));
  t.is((await session.post(notification('notifications/roots/list_changed'))).status, 202);
  await ask('tools/list');
  t.deepEqual(server.order, ['server/discover', 'tools/list']);
});

test('an SDK v1 client that checks output against its schema takes what is no object', async (t) => {
  const outputSchema = { type: 'array', items: { $ref: '#/$defs/n' }, $defs: { n: { type: 'number' } } };
  const tool = { name: 'numbers', inputSchema: { type: 'object' }, outputSchema };
  let structuredContent: readonly unknown[] = [1, 2];
  const { harness } = await startScriptedHarness(t, {
    'tools/list': (asked, response) =>
      answerResult(asked, response, { resultType: 'complete', ttlMs: 0, cacheScope: 'private', tools: [tool] }),
    'tools/call': (asked, response) => answerResult(asked, response, { ...done, structuredContent }),
  });
  const { client, close } = await connectStreamable(new URL(`http://127.0.0.1:${harness.port}/mcp`));
  t.teardown(close);
  t.is((await client.listTools()).tools.length, 1);
  const called = await client.callTool({ name: 'numbers' });
  t.deepEqual(called.structuredContent, { result: [1, 2] });
  structuredContent = ['one'];
  await t.throwsAsync(
    client.callTool({ name: 'numbers' }),
    { message: /number/ },
    'the references still lead somewhere',
  );
});

// ---- connections that break

/** The bridge has noticed that the responses to this many POSTs are over; the handshake has two. */
async function closedPosts({ logLines }: HttpHarness, count: number): Promise<void> {
  await waitFor(() => logLines.filter((line) => line.includes('"method":"POST"')).length >= count);
}

test('a call goes on when its stream breaks, and who comes back with Last-Event-ID gets the answer', async (t) => {
  let response: ServerResponse | undefined;
  let asked: AskedMessage | undefined;
  const { session, harness } = await connect(t, {
    'tools/call': (...call) => {
      [asked, response] = call;
    },
  });
  const pending = session.post(call('mine'));
  await waitFor(() => response !== undefined);
  // Silent for so long that it is given a stream.
  harness.clock.advance(6000);
  const lost = await pending;
  const { id } = await lost.events().next();
  t.truthy(id);
  lost.leave();
  await closedPosts(harness, 3);
  harness.clock.advance(59_000);
  t.false(response?.destroyed, 'a disconnect is no cancellation');
  answerResult(asked as AskedMessage, response as ServerResponse, done);
  await waitFor(() => response?.writableFinished);
  const events = await (await session.get({ 'Last-Event-ID': id })).events().rest();
  t.deepEqual(JSON.parse(events.at(-1)?.data ?? ''), { jsonrpc: '2.0', id: 'mine', result: legacyDone });
});

/** A server that keeps the subscriptions it is asked for. */
class Subscriptions {
  readonly opened: { readonly id: unknown; readonly asked: unknown; readonly response: ServerResponse }[] = [];
  readonly script: Script = {
    'subscriptions/listen': ({ message: { id, params } }, response) => {
      openStream(response);
      this.opened.push({ id, asked: params?.notifications, response });
      this.tell('notifications/subscriptions/acknowledged', { notifications: params?.notifications });
    },
  };

  tell(method: string, params: object = {}): void {
    const { id, response } = this.opened.at(-1) ?? {};
    response?.write(event(notificationOf(method, { ...params, _meta: { [`${META}subscriptionId`]: id } })));
  }
}

test('a call whose client does not come back goes on until its session has been idle for too long', async (t) => {
  let waiting: ServerResponse | undefined;
  const { session, harness } = await connect(t, {
    'tools/call': (_, response) => {
      waiting = response;
    },
  });
  const abort = new AbortController();
  const lost = t.throwsAsync(session.post(call('mine'), {}, abort.signal));
  await waitFor(() => waiting !== undefined);
  abort.abort();
  await lost;
  await closedPosts(harness, 3);
  harness.clock.advance(60_000);
  t.is(harness.sessions.size, 1);
  t.false(waiting?.destroyed);
  harness.clock.advance(30 * 60_000);
  t.is(harness.sessions.size, 0);
  await waitFor(() => waiting?.destroyed);
});

test('a client of HTTP+SSE that leaves has its calls withdrawn at once', async (t) => {
  let waiting: ServerResponse | undefined;
  const { harness } = await startScriptedHarness(t, {
    'tools/call': (_, response) => {
      waiting = response;
    },
  });
  const { post, stream } = await openSseStream(harness.port);
  await post(initialize('2024-11-05'));
  await stream.next();
  await post(call(1));
  await waitFor(() => waiting !== undefined);
  stream.leave();
  await waitFor(() => waiting?.destroyed);
  t.is(harness.sessions.size, 0);
});

test('a session that is deleted takes its calls and its subscription at the server with it', async (t) => {
  const subscriptions = new Subscriptions();
  let waiting: ServerResponse | undefined;
  const { session, harness } = await connect(t, {
    ...subscriptions.script,
    'tools/call': (_, response) => {
      waiting = response;
    },
  });
  harness.clock.advance(30);
  const pending = session.post(call(1));
  await waitFor(() => waiting !== undefined && subscriptions.opened.length === 1);
  t.is((await session.delete()).status, 204);
  t.like(await (await pending).json(), { error: { data: { bridge: { reason: 'ERR_SESSION_CLOSED' } } } });
  await waitFor(() => waiting?.destroyed && subscriptions.opened[0]?.response.destroyed);
});

test('a client that ends its session has the server end the task that it made of a call', async (t) => {
  const missing = { requiredCapabilities: { extensions: { [`${META}tasks`]: {} } } };
  const { server, session, harness } = await connect(t, {
    'tools/call': (asked, response) => {
      const isFirst = askedFor(server, 'tools/call').length === 1;
      if (isFirst) return refuseWith(400, -32021, missing)(asked, response);
      answerResult(asked, response, { resultType: 'task', taskId: 't/1', status: 'working', pollIntervalMs: 100 });
    },
    'tasks/get': () => {},
  });
  // A stream from the start, however much time the wait lets go by.
  const answer = (await session.post(call(1), { Accept: 'text/event-stream, application/json' })).events();
  await waitFor(() => {
    harness.clock.advance(100);
    return server.order.includes('tasks/get');
  });
  t.is((await session.delete()).status, 204);
  await waitFor(() => askedFor(server, 'tasks/cancel').length === 1);
  t.is(askedFor(server, 'tasks/cancel')[0]?.message.params?.taskId, 't/1');
  t.truthy(JSON.parse((await answer.rest()).at(-1)?.data ?? '').error);
});

test('changes while no stream is open are one notification once there is one', async (t) => {
  const dialer = new FakeDialer();
  dialer.onDial = ({ link, listener }) => {
    link.onSend = ({ frame: { id, method } }) => {
      if (method === 'server/discover') setImmediate(() => listener.fromServer(serverFrame({ id, result: DISCOVERY })));
    };
  };
  const harness = await startTranslatedHarness(t, () => dialer);
  const session = await openHttpSession(harness.port);
  await session.post(notification('notifications/initialized'));
  harness.clock.advance(30);
  const listen = dialer.latest.link.sent.at(-1)?.frame.id;
  const tell = (method: string, params: object = {}): void => {
    const message = { method, params: { ...params, _meta: { [`${META}subscriptionId`]: listen } } };
    dialer.latest.listener.fromServer(serverFrame(message));
  };
  tell('notifications/subscriptions/acknowledged', { notifications: { toolsListChanged: true } });
  for (const method of [TOOLS, TOOLS, TOOLS, 'notifications/vendor']) tell(method);
  const stream = (await session.get()).events();
  await stream.next();
  const heard = [await stream.message<Message>(), await stream.message<Message>()];
  t.deepEqual(
    heard.map(({ method }) => method),
    [TOOLS, 'notifications/vendor'],
  );
  tell(TOOLS);
  t.is((await stream.message<Message>()).method, TOOLS);
  t.deepEqual(stream.unread, []);
});

test('a subscription whose stream breaks is opened again, and the client told to look', async (t) => {
  const subscriptions = new Subscriptions();
  const { session, harness } = await connect(t, subscriptions.script);
  const stream = (await session.get()).events();
  await stream.next();
  harness.clock.advance(30);
  await waitFor(() => subscriptions.opened.length === 1);
  subscriptions.tell('notifications/vendor');
  t.is((await stream.message<Message>()).method, 'notifications/vendor');
  subscriptions.opened[0]?.response.destroy();
  await waitFor(() => {
    harness.clock.advance(100);
    return subscriptions.opened.length === 2;
  });
  const told = [await stream.message<Message>(), await stream.message<Message>()];
  t.deepEqual(told.map(({ method }) => method).sort(), ['notifications/resources/list_changed', TOOLS]);
  t.deepEqual(subscriptions.opened[0]?.asked, subscriptions.opened[1]?.asked);
});

// ---- headers that tools want

const property = (header: string, type = 'string'): object => ({ type, 'x-mcp-header': header });
const tool = (name: string, properties: object): object => ({ name, inputSchema: { type: 'object', properties } });
const listing =
  (...tools: readonly object[]): Act =>
  (asked, response) =>
    answerResult(asked, response, { resultType: 'complete', ttlMs: 0, cacheScope: 'private', tools });

const annotated = tool('x', {
  text: property('Text'),
  count: property('Count', 'integer'),
  flag: property('Flag', 'boolean'),
  deep: { type: 'object', properties: { er: property('Deeper') } },
});

for (const [title, args, expected] of [
  ['plain', { text: 'us-west1' }, { text: 'us-west1' }],
  ['nested', { deep: { er: 'x' } }, { deeper: 'x' }],
  ['null and absent', { text: null }, {}],
  ['a boolean and an integer', { flag: true, count: -7 }, { flag: 'true', count: '-7' }],
  ['Unicode', { text: 'Zürich' }, { text: '=?base64?WsO8cmljaA==?=' }],
  ['CRLF', { text: 'a\r\nb' }, { text: '=?base64?YQ0KYg==?=' }],
  ['TAB', { text: 'a\tb' }, { text: '=?base64?YQli?=' }],
  ['empty', { text: '' }, { text: '=?base64??=' }],
  ['like a sentinel', { text: '=?base64?x?=' }, { text: '=?base64?PT9iYXNlNjQ/eD89?=' }],
  ['like an overlapping sentinel', { text: '=?base64?=' }, { text: '=?base64?PT9iYXNlNjQ/PQ==?=' }],
] as const) {
  test(`a legacy client need not know of the headers its arguments are sent in: ${title}`, async (t) => {
    const { server, ask } = await connect(t, { 'tools/list': listing(annotated) });
    await ask('tools/call', { name: 'x', arguments: args });
    const [asked] = askedFor(server, 'tools/call');
    const sent = Object.entries(asked?.headers ?? {}).filter(([name]) => name.startsWith('mcp-param-'));
    t.deepEqual(Object.fromEntries(sent.map(([name, value]) => [name.slice('mcp-param-'.length), value])), expected);
    t.deepEqual(asked?.message.params?.arguments, args);
  });
}

test('of ten tools with invalid annotations and a good one a legacy client sees the good one', async (t) => {
  const inner = { type: 'object', properties: { a: property('A') } };
  const invalid = [
    { a: property('') },
    { a: property('My Region') },
    { a: property('A:B') },
    { a: property('Région') },
    { a: property('A\r\nB') },
    { a: { type: 'string', 'x-mcp-header': 5 } },
    { a: property('A'), b: property('a') },
    { a: property('A', 'number') },
    { a: { type: 'array', items: property('A') } },
    { a: { oneOf: [inner] } },
  ].map((properties, n) => tool(`bad-${n}`, properties));
  t.is(invalid.length, 10);
  const { server, ask } = await connect(t, { 'tools/list': listing(...invalid.slice(0, 5), annotated, ...invalid) });
  const { tools } = (await ask('tools/list')).result;
  t.deepEqual(tools, [annotated]);
  const { error } = await ask('tools/call', { name: 'bad-0', arguments: {} });
  t.is(error.code, -32602);
  t.false(server.order.includes('tools/call'));
});

test('a call whose headers are out of date is sent again with those that the list now wants, once', async (t) => {
  let header = 'Old';
  const { server, ask } = await connect(t, {
    'tools/list': (asked, response) => listing(tool('x', { a: property(header) }))(asked, response),
    'tools/call': (asked, response) => {
      const isRight = asked.headers[`mcp-param-${header.toLowerCase()}`] === 'v';
      if (isRight) answerResult(asked, response, done);
      else refuseWith(400, -32020)(asked, response);
    },
  });
  const request = { name: 'x', arguments: { a: 'v' } };
  t.deepEqual((await ask('tools/call', request)).result, legacyDone);
  header = 'New';
  t.deepEqual((await ask('tools/call', request)).result, legacyDone);
  const order = ['tools/list', 'tools/call', 'tools/call', 'tools/list', 'tools/call'];
  t.deepEqual(server.order, ['server/discover', ...order]);
});

test('headers that the server will not have either way fail the call with its error', async (t) => {
  const { server, session } = await connect(t, { 'tools/call': refuseWith(400, -32020) });
  const answer = await session.post(call(1));
  t.is(answer.status, 200);
  t.is((await answer.json<Message>()).error.code, -32603);
  t.is(askedFor(server, 'tools/call').length, 2);
});

// ---- batches

test('of a batch every request is answered, and no notification', async (t) => {
  const { server, session } = await connect(
    t,
    { 'tools/call': (asked, response) => answerResult(asked, response, done) },
    initialize('2025-03-26'),
  );
  const batch = [
    call(1),
    { jsonrpc: '2.0', id: 2, method: 'ping' },
    notification('notifications/roots/list_changed'),
    call(3),
  ];
  const answers = await (await session.post(batch)).json<readonly Message[]>();
  t.deepEqual(Object.fromEntries(answers.map(({ id, result }) => [id, result])), {
    1: legacyDone,
    2: {},
    3: legacyDone,
  } as never);
  t.deepEqual(server.order.slice(1), ['tools/list', 'tools/call', 'tools/call']);
});

for (const [title, revision, batch] of [
  ['with initialize in it', '2025-03-26', [initialize('2025-03-26', 7)]],
  ['with nothing in it', '2025-03-26', []],
  ['of a revision without batches', '2025-06-18', [call(1)]],
] as const) {
  test(`a batch ${title} is refused with 400 and -32600, and the server hears nothing`, async (t) => {
    const { server, session } = await connect(t, {}, initialize(revision));
    const answer: HttpAnswer = await session.post(batch);
    t.is(answer.status, 400);
    t.is((await answer.json<Message>()).error.code, -32600);
    t.deepEqual(server.order, ['server/discover']);
  });
}

// ---- servers that cannot be reached

test('a server that refuses server/discover refuses initialize with the same words, and no session is made', async (t) => {
  const { harness } = await startScriptedHarness(t, { 'server/discover': refuseWith(500, -32099) });
  const body = JSON.stringify(initialize());
  const answer = await callHttp({ port: harness.port, method: 'POST', headers: POST_HEADERS, body });
  t.is(answer.headers['mcp-session-id'], undefined);
  t.like((await answer.json<Message>()).error, { code: -32099, message: 'not like this' });
  t.is(harness.sessions.size, 0);
});

test('what the server said of itself is remembered for as long as it said', async (t) => {
  const { server, harness } = await startScriptedHarness(t, {
    'server/discover': (asked, response) => answerResult(asked, response, { ...DISCOVERY, ttlMs: 60_000 }),
  });
  await openHttpSession(harness.port);
  await openHttpSession(harness.port);
  t.deepEqual(server.order, ['server/discover']);
});
