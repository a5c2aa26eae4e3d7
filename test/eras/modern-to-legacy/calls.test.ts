import test from 'ava';
import { collectLog } from '../../process/collected-log.ts';
import { createFakeDeps } from '../../support/fake-peers.ts';
import { type Message, ModernBridge, SERVER_RESULT } from './modern-bridge.ts';

const SERVER_META = { 'io.modelcontextprotocol/serverInfo': { name: 'old', version: '1' } };

test('what the server could read otherwise than the bridge is not translated', (t) => {
  const bridge = new ModernBridge();
  for (const params of [
    '"name":"x","Name":"y"',
    '"name":"x","Task":{}',
    '"name":"x","arguments":{},"argument\u017f":{}',
  ]) {
    t.is(bridge.raw(params).answer().error?.code, -32600, params);
  }
  t.deepEqual(bridge.heard(), []);
});

test('a call goes to the server without its envelope, and comes back as a modern result', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.ask(
    'tools/call',
    { name: 'x', arguments: { a: 1 } },
    { id: 'seven', capabilities: { roots: {} } },
  );
  const told = bridge.dialer.latest.link.take().map(({ frame }) => frame.json() as { params?: object; id?: number });
  t.like(told[0], {
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: { name: 'c', version: '1' } },
  });
  t.like(told[1], { method: 'notifications/initialized' });
  t.deepEqual(told[2], {
    jsonrpc: '2.0',
    id: told[2]?.id,
    method: 'tools/call',
    params: { name: 'x', arguments: { a: 1 } },
  } as object);
  t.is(told.length, 3);
  bridge.says({ id: told[2]?.id, result: { content: [], n: 1 } });
  t.deepEqual(call.answer(), {
    jsonrpc: '2.0',
    id: 'seven',
    result: { content: [], n: 1, resultType: 'complete', _meta: SERVER_META },
  } as object);
});

test('discover is answered from the handshake, which is made once', (t) => {
  const bridge = new ModernBridge();
  const first = bridge.ask('server/discover');
  t.deepEqual(first.answer().result, {
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: SERVER_RESULT.capabilities,
    instructions: 'be kind',
    ttlMs: 0,
    cacheScope: 'private',
    _meta: SERVER_META,
  });
  t.truthy(bridge.ask('server/discover', {}, { capabilities: { roots: {} } }).answer().result);
  t.is(bridge.dialer.dialed.length, 1);
});

test('discover waits for the server, and says why there is none', (t) => {
  const bridge = new ModernBridge();
  bridge.greeting = undefined;
  const waiting = bridge.ask('server/discover');
  t.deepEqual(waiting.told(), []);
  bridge.exits();
  t.is(waiting.answer().error?.code, -32603);
});

test('a session serves one caller with exactly its capabilities', (t) => {
  const bridge = new ModernBridge();
  const list = (capabilities: object, principal = 'ada') => bridge.ask('tools/list', {}, { capabilities, principal });
  list({ roots: {} });
  list({ roots: { listChanged: true } });
  t.is(bridge.dialer.dialed.length, 1);
  list({ sampling: {} });
  t.is(bridge.dialer.dialed.length, 2);
  list({ sampling: {} }, 'bob');
  t.is(bridge.dialer.dialed.length, 3);
});

test('a session is opened in the name of its client, and serves no other; a nameless one has the name of the bridge', (t) => {
  const bridge = new ModernBridge();
  const list = (clientInfo: object | undefined) => bridge.ask('tools/list', {}, { clientInfo });
  const told = () => bridge.dialer.latest.link.sent[0]?.frame.json() as { params: { clientInfo: object } };
  list({ name: 'editor', title: 'The Editor', version: '2', icons: [{ src: 'data:,' }] });
  t.deepEqual(told().params.clientInfo, { name: 'editor', title: 'The Editor', version: '2' });
  list({ name: 'editor', title: 'The Editor', version: '2' });
  t.is(bridge.dialer.dialed.length, 1);
  for (const other of [
    { name: 'editor', version: '2' },
    { name: 'editor', version: '3' },
    { name: 'Editor', version: '2' },
  ]) {
    list(other);
    t.deepEqual(told().params.clientInfo, other);
  }
  list(undefined);
  t.deepEqual(told().params.clientInfo, { name: 'bridge', version: '0' });
  t.is(bridge.dialer.dialed.length, 5);
});

test('names without end are cut, and those who invent them take no more sessions than others', (t) => {
  const bridge = new ModernBridge({ poolLimits: { perCaller: 3 } });
  const clientInfo = { name: 'n'.repeat(100_000), title: 't'.repeat(100_000), version: '1' };
  bridge.ask('tools/list', {}, { clientInfo }).leaves();
  const told = bridge.dialer.latest.link.sent[0]?.frame.json() as { params: { clientInfo: object } };
  t.deepEqual(told.params.clientInfo, { name: 'n'.repeat(256), version: '1' });
  for (let n = 0; n < 20; n += 1)
    bridge.ask('tools/list', {}, { clientInfo: { name: `n${n}`, version: '1' } }).leaves();
  const open = bridge.dialer.dialed.filter(({ link }) => link.closedWith.length === 0);
  t.is(open.length, 3);
});

test('a server that knows only forms is told anew, without elicitation, of a client that only opens URLs', (t) => {
  const bridge = new ModernBridge({ greeting: { ...SERVER_RESULT, protocolVersion: '2025-06-18' } });
  const call = bridge.call({}, { capabilities: { roots: {}, elicitation: { url: {} } } });
  const declared = bridge.dialer.dialed.map(({ link }) => link.sent[0]?.frame.json());
  t.like(declared[0], { method: 'initialize', params: { capabilities: { elicitation: { url: {} } } } });
  t.deepEqual((declared[1] as { params: { capabilities: object } }).params.capabilities, { roots: {} });
  t.is(bridge.dialer.dialed[0]?.link.closedWith.length, 1);
  t.deepEqual(bridge.heard(0), []);
  bridge.says({ id: bridge.heardOnly('tools/call').id, result: { content: [] } });
  t.is(call.answer().result.resultType, 'complete');
  t.is(bridge.dialer.dialed.length, 2);
});

test('a server of another revision, or a client that fills in forms, is told once', (t) => {
  for (const [protocolVersion, elicitation] of [
    ['2025-06-18', { form: {}, url: {} }],
    ['2025-11-25', { url: {} }],
    ['2025-03-26', { url: {} }],
  ] as const) {
    const bridge = new ModernBridge({ greeting: { ...SERVER_RESULT, protocolVersion } });
    bridge.call({}, { capabilities: { elicitation } });
    t.is(bridge.dialer.dialed.length, 1, protocolVersion);
  }
});

test('methods of the legacy era and of servers are refused here', (t) => {
  const bridge = new ModernBridge();
  for (const method of ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'tasks/list', 'roots/list']) {
    t.is(bridge.ask(method).answer().error?.code, -32601, method);
  }
  t.is(bridge.dialer.dialed.length, 0);
});

test("a vendor's method goes to the server", (t) => {
  const bridge = new ModernBridge();
  const call = bridge.ask('acme/do', { requestState: 'mine' });
  const { id, params } = bridge.heardOnly('acme/do');
  t.deepEqual(params, { requestState: 'mine' });
  bridge.says({ id, error: { code: -32601, message: 'no' } });
  t.is(call.answer().error?.code, -32601);
});

for (const method of ['resources/directory/read', 'skills/get', 'tasks/pause', 'server/x', 'notifications/replay']) {
  test(`${method} of an extension goes to the server, and its result comes back`, (t) => {
    const extensions = { 'com.example/x': { deep: [1, { b: null }] } };
    const bridge = new ModernBridge();
    const capabilities = { extensions: { ...extensions, 'io.modelcontextprotocol/tasks': {} } };
    const call = bridge.ask(method, { uri: 'skill://a', inputResponses: 1 }, { capabilities });
    const [initialize] = bridge.dialer.latest.link.sent.map(({ frame }) => frame.json() as Message);
    t.deepEqual(initialize?.params.capabilities, { extensions });
    const { id, params } = bridge.heardOnly(method);
    t.deepEqual(params, { uri: 'skill://a', inputResponses: 1 });
    bridge.says({ method: 'notifications/resources/moved', params: { uri: 'skill://a' } });
    t.like(call.told()[0], { method: 'notifications/resources/moved', params: { uri: 'skill://a' } });
    const own = { ttlMs: 5, cacheScope: 'public', requestState: 'r', inputRequests: {} };
    bridge.says({ id, result: { ...own, _meta: { ui: {} } } });
    t.like(call.answer().result, { ...own, resultType: 'complete', _meta: { ui: {} } });
  });
}

test('what the modern era is known not to have is told to no client, not even during its call', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  bridge.says({ method: 'notifications/tasks/status', params: { taskId: '1', status: 'working' } });
  bridge.says({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e' } });
  t.deepEqual(call.told(), []);
  bridge.says({ method: 'notifications/tasks/moved', params: { taskId: '1' } });
  t.is(call.told().length, 1);
});

test('what a server says of an extension while no call runs stands in the log', (t) => {
  const { log, entries } = collectLog();
  const bridge = new ModernBridge({ deps: { ...createFakeDeps(), log } });
  const listening = bridge.ask('subscriptions/listen', {
    notifications: { toolsListChanged: true, skillsChanged: true },
  });
  t.deepEqual(listening.answer().params.notifications, { toolsListChanged: true });
  bridge.says({ method: 'notifications/skills/list_changed' });
  t.deepEqual(listening.told(), []);
  const dropped = entries.filter(({ msg }) => msg.startsWith('notification dropped'));
  t.like(dropped, [{ level: 20, method: 'notifications/skills/list_changed' }]);
});

test('a subscription brings nothing that its filter cannot name, not even while it is being made', (t) => {
  const { log, entries } = collectLog();
  const bridge = new ModernBridge({ deps: { ...createFakeDeps(), log } });
  const listening = bridge.ask('subscriptions/listen', { notifications: { resourceSubscriptions: ['a:b'] } });
  const { id } = bridge.heardOnly('resources/subscribe');
  bridge.says({ method: 'notifications/skills/list_changed' });
  bridge.says({ id, result: {} });
  t.is(listening.answer().method, 'notifications/subscriptions/acknowledged');
  t.like(entries.at(-1), { level: 20, method: 'notifications/skills/list_changed' });
});

test('a server gets the arguments it expects, in the revision it speaks', (t) => {
  const bridge = new ModernBridge({ greeting: { ...SERVER_RESULT, protocolVersion: '2025-03-26' } });
  bridge.ask('tools/call', { name: 'x' });
  t.deepEqual(bridge.heardOnly('tools/call').params, { name: 'x', arguments: {} });
  bridge.ask('completion/complete', { ref: {}, argument: {}, context: {} });
  t.deepEqual(bridge.heardOnly('completion/complete').params, { ref: {}, argument: {} });
});

test('an unknown resource is a wrong param that names it', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.ask('resources/read', { uri: 'a:b' });
  bridge.says({ id: bridge.heardOnly('resources/read').id, error: { code: -32002, message: 'gone' } });
  t.deepEqual(call.answer().error, { code: -32602, message: 'gone', data: { uri: 'a:b' } });
});

test('a code that only the specification may use becomes an internal error', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  bridge.says({ id: bridge.heardOnly('tools/call').id, error: { code: -32050, message: 'odd' } });
  t.deepEqual(call.answer().error, { code: -32603, message: 'odd', data: { bridge: { originalCode: -32050 } } });
});

test('data of an error that no parser could give back passes as it was written', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  const error = '{"code":-32601,"message":"no tool","data":{"n":12345678901234567890,"f":1.0}}';
  bridge.says(`{"jsonrpc":"2.0","id":${JSON.stringify(bridge.heardOnly('tools/call').id)},"error":${error}}`);
  const text = String(call.listener.received[0]?.frame.bytes);
  t.true(text.endsWith(`"error":${error.replace('-32601', '-32602')}}`), text);
});

test('a tool that is not there is a wrong param', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  bridge.says({ id: bridge.heardOnly('tools/call').id, error: { code: -32601, message: 'no tool' } });
  t.is(call.answer().error?.code, -32602);
});

test('a tool stays, without the annotation of parameters and whatever else modern clients take amiss', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.ask('tools/list');
  const property = { type: 'string', description: 'b' };
  const tools = [
    {
      name: 'x',
      execution: { taskSupport: 'optional' },
      inputSchema: { properties: { a: { ...property, 'x-mcp-header': 'a b' } } },
      annotations: { title: 'X' },
    },
    { name: 'y', inputSchema: { type: 'object', properties: { a: { ...property, 'x-mcp-header': 'Fine' } } } },
    { name: 'z' },
  ];
  bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools, nextCursor: 'n' } });
  const { result } = call.answer();
  t.like(result, { ttlMs: 0, cacheScope: 'private', nextCursor: 'n' });
  const inputSchema = { type: 'object', properties: { a: property } };
  t.deepEqual(result.tools, [
    { name: 'x', inputSchema, annotations: { title: 'X' } },
    { name: 'y', inputSchema },
    { name: 'z', inputSchema: { type: 'object' } },
  ]);
});

test('progress goes to the call it is about, under its own token, increasing', (t) => {
  const bridge = new ModernBridge();
  const a = bridge.call({}, { progressToken: 'a', capabilities: {} });
  const first = bridge.heardOnly('tools/call');
  const b = bridge.call({}, { progressToken: 'a', capabilities: {} });
  const second = bridge.heardOnly('tools/call');
  t.not(first.params._meta.progressToken, second.params._meta.progressToken);
  for (const progress of [1, 1, 0, 2]) {
    bridge.says({
      method: 'notifications/progress',
      params: { progressToken: first.params._meta.progressToken, progress },
    });
  }
  const progress = a.told();
  t.deepEqual(
    progress.map(({ params }) => params),
    [
      { progressToken: 'a', progress: 1 },
      { progressToken: 'a', progress: 2 },
    ],
  );
  t.deepEqual(b.told(), []);
});

for (const rawToken of ['1.0', '1e3', '9007199254740993', '"1.0"']) {
  test(`progress comes under the token ${rawToken}, as the client wrote it`, (t) => {
    const bridge = new ModernBridge();
    const call = bridge.call({}, { rawToken });
    const { progressToken } = bridge.heardOnly('tools/call').params._meta;
    for (const progress of [1, 2])
      bridge.says({ method: 'notifications/progress', params: { progressToken, progress } });
    t.deepEqual(
      call.listener.received.map(({ frame }) => String(frame.bytes)),
      [1, 2].map(
        (progress) =>
          `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${rawToken},"progress":${progress}}}`,
      ),
    );
  });
}

test('a client that leaves or cancels withdraws its call, and hears nothing more', (t) => {
  const bridge = new ModernBridge();
  for (const how of ['leaves', 'cancels'] as const) {
    const call = bridge.call();
    const { id } = bridge.heardOnly('tools/call');
    call[how]();
    t.is(bridge.heardOnly('notifications/cancelled').params.requestId, id);
    bridge.says({ id, result: { content: [] } });
    t.deepEqual(call.told(), []);
  }
});

test('a client that leaves before the server serves has asked nothing', (t) => {
  const bridge = new ModernBridge();
  bridge.greeting = undefined;
  bridge.call().leaves();
  const [hello] = bridge.dialer.latest.link.take();
  bridge.says({ id: hello?.frame.id, result: SERVER_RESULT });
  t.deepEqual(bridge.heard(), []);
});

test('a server that ends fails its calls; the next call gets another one', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  bridge.exits();
  t.like(call.answer().error, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_EXITED' } } });
  bridge.call();
  bridge.clock.advance(250);
  t.is(bridge.dialer.dialed.length, 2);
  t.is(bridge.heard().length, 1);
});

test('where no other session may be opened the caller is told so', async (t) => {
  const bridge = new ModernBridge({ poolLimits: { perCaller: 1 } });
  const first = bridge.call({}, { capabilities: { roots: {} } });
  t.like(bridge.call({}, { capabilities: {} }).answer().error, {
    code: -32000,
    data: { bridge: { reason: 'ERR_SESSION_LIMIT' } },
  });
  first.leaves();
  bridge.call();
  t.is(bridge.dialer.dialed.length, 2);
  t.is(bridge.dialer.dialed[0]?.link.closedWith.length, 1);
  await bridge.modern.close();
});

test('a session without calls ends after a while', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  bridge.clock.advance(10 * 60_000);
  t.is(bridge.dialer.latest.link.closedWith.length, 0);
  call.leaves();
  bridge.clock.advance(5 * 60_000 - 1);
  t.is(bridge.dialer.latest.link.closedWith.length, 0);
  bridge.clock.advance(1);
  t.is(bridge.dialer.latest.link.closedWith.length, 1);
  t.is(bridge.clock.pendingTimers, 0);
});
