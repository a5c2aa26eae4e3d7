import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { DISCOVERY, done, LegacyFront, META, TASKS_EXTENSION } from './legacy-session.ts';

const notified = (method: string, params: object) => ({ jsonrpc: '2.0', method, params }) as never;

const ELICITATION = { elicitation: { form: {}, url: {} } };

test('each request carries what the client told once, and loses what is of its own era', (t) => {
  const session = new LegacyFront().open({ capabilities: { ...ELICITATION, roots: { listChanged: true }, tasks: {} } });
  session.says(
    '{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"n":9007199254740993},"task":{"ttl":1},"_meta":{"progressToken":"p","traceparent":"t"}}}',
  );
  const [text] = session.askedTexts();
  t.true(text?.includes('"n":9007199254740993'), 'arguments are not printed anew');
  const { id, params } = JSON.parse(text ?? '');
  t.is(typeof id, 'number');
  t.deepEqual(Object.keys(params), ['name', 'arguments', '_meta']);
  t.deepEqual(params._meta, {
    progressToken: 'p',
    traceparent: 't',
    [`${META}protocolVersion`]: '2026-07-28',
    [`${META}clientCapabilities`]: { elicitation: { form: {}, url: {} }, roots: {} },
    [`${META}clientInfo`]: { name: 'c', version: '1', title: 'C' },
  });
});

test('what the server could read otherwise than the bridge is not translated', (t) => {
  const session = new LegacyFront().open();
  for (const params of ['"name":"x","Name":"y"', '"name":"x","_Meta":{}', '"name":"x","_meta":{"ProgressToken":1}']) {
    session.says(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${params}}}`);
    t.is(session.heard()[0]?.error.code, -32600, params);
    session.says(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{${params}}}`);
  }
  t.deepEqual(session.asked(), []);
});

test('a withdrawal that the server could read otherwise is told in other words', (t) => {
  const session = new LegacyFront().open();
  session.call(1);
  session.asked();
  session.says('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"RequestId":2}}');
  t.deepEqual(session.asked()[0]?.params.requestId, session.ids.at(-1));
});

test('a request without params gets some, and one with params by position is refused', (t) => {
  const session = new LegacyFront().open();
  session.says({ id: 1, method: 'tools/list' });
  t.is(session.asked()[0]?.params._meta[`${META}protocolVersion`], '2026-07-28');
  session.says({ id: 2, method: 'acme/do', params: [1] });
  t.is(session.heard()[0]?.error.code, -32602);
  t.deepEqual(session.asked(), []);
});

test('results lose what legacy clients do not know, and keep the rest byte for byte', (t) => {
  const session = new LegacyFront().open();
  session.call('x', {}, 'tools/list');
  const members = '"resultType":"complete","ttlMs":5,"cacheScope":"public"';
  session.serverSays(
    `{"jsonrpc":"2.0","id":${session.ids.at(-1)},"result":{${members},"tools":[ ],"big":9007199254740993,"_meta":{"${META}serverInfo":{"name":"s"}}}}`,
  );
  const [sent] = session.peer.take();
  t.is(sent?.frame.bytes.toString(), '{"jsonrpc":"2.0","id":"x","result":{"tools":[ ],"big":9007199254740993}}');
});

test('unknown methods and notifications pass with the envelope', (t) => {
  const session = new LegacyFront().open();
  session.call(1, { a: 1 }, 'acme/do');
  session.says({ method: 'acme/done', params: { b: 2 } });
  const [request, notification] = session.asked();
  t.is(request?.method, 'acme/do');
  t.is(notification?.method, 'acme/done');
  for (const message of [request, notification]) t.is(message?.params._meta[`${META}protocolVersion`], '2026-07-28');
  session.serverAnswers({ resultType: 'complete', ttlMs: 7 });
  t.deepEqual(session.heard()[0]?.result, { ttlMs: 7 });
});

for (const method of ['resources/directory/read', 'skills/list', 'tasks/pause', 'server/x', 'notifications/replay']) {
  test(`${method} of an extension passes, and so does all that is in its result`, (t) => {
    const extensions = { 'com.example/x': { deep: [1, { b: null }] } };
    const session = new LegacyFront().open({ capabilities: { extensions } });
    session.call(1, { uri: 'skill://a', inputResponses: 1, _meta: { 'com.example/n': 1 } }, method);
    const { params, ...request } = session.asked()[0] ?? {};
    t.is(request.method, method);
    t.like(params, { uri: 'skill://a', inputResponses: 1, _meta: { 'com.example/n': 1 } });
    t.deepEqual(params._meta[`${META}clientCapabilities`], { extensions });
    session.serverSays({ method: 'notifications/resources/moved', params: { uri: 'skill://a' } });
    t.deepEqual(session.heard()[0], notified('notifications/resources/moved', { uri: 'skill://a' }));
    const own = { ttlMs: 5, cacheScope: 'public', requestState: 'r', inputRequests: {}, _meta: { ui: {} } };
    session.serverAnswers({ resultType: 'complete', ...own });
    t.deepEqual(session.heard()[0]?.result, own);
  });
}

test('a type of result that an extension has added is for clients that declare extensions', (t) => {
  const declaring = new LegacyFront().open({ capabilities: { extensions: { 'com.example/later': {} } } });
  declaring.call(1);
  declaring.serverAnswers({ resultType: 'later', ticket: 't' });
  t.deepEqual(declaring.heard()[0]?.result, { resultType: 'later', ticket: 't' });
  const tasksOnly = new LegacyFront().open({ capabilities: { extensions: { [TASKS_EXTENSION]: {} } } });
  tasksOnly.call(1);
  tasksOnly.serverAnswers({ resultType: 'later', ticket: 't' });
  t.is(tasksOnly.heard()[0]?.error.code, -32603);
});

test('roots/list_changed means nothing to a modern server, nor does progress of a client or a state of its tasks', (t) => {
  const session = new LegacyFront().open();
  session.says({ method: 'notifications/tasks/status', params: { taskId: '1', status: 'working' } });
  session.says({ method: 'notifications/roots/list_changed' });
  session.says({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } });
  t.deepEqual(session.asked(), []);
});

test('tasks, and what only modern clients ask, are methods the server does not have', (t) => {
  const session = new LegacyFront().open();
  for (const method of [
    ...['tasks/get', 'tasks/list', 'tasks/result', 'tasks/cancel', 'tasks/update'],
    ...['server/discover', 'subscriptions/listen'],
  ]) {
    session.call(method, {}, method);
    t.is(session.heard()[0]?.error.code, -32601, method);
  }
  t.deepEqual(session.asked(), []);
});

test('without setLevel no request asks for log messages, and none is passed on', (t) => {
  const session = new LegacyFront().open();
  session.call(1);
  t.is(session.asked()[0]?.params._meta[`${META}logLevel`], undefined);
  session.serverSays({ method: 'notifications/message', params: { level: 'emergency', data: 1 } });
  t.deepEqual(session.heard(), []);
});

test('setLevel is answered with {} and goes along with what is asked from then on', (t) => {
  const session = new LegacyFront().open();
  session.call(1, { level: 'warning' }, 'logging/setLevel');
  t.deepEqual(session.heard(), [{ jsonrpc: '2.0', id: 1, result: {} } as never]);
  session.call(2);
  const [asked, ...rest] = session.asked();
  t.deepEqual(rest, []);
  t.is(asked?.params._meta[`${META}logLevel`], 'warning');
  const log = (level: string) => session.serverSays({ method: 'notifications/message', params: { level, data: 1 } });
  log('info');
  log('error');
  const sent = session.peer.take();
  t.deepEqual(
    sent.map(({ call, frame }) => [call?.id, (frame.json() as { params: { level: string } }).params.level]),
    [[2, 'error']],
  );
});

test('setLevel needs a server that logs, and one of the eight levels', (t) => {
  const session = new LegacyFront().open();
  session.call(1, { level: 'verbose' }, 'logging/setLevel');
  t.is(session.heard()[0]?.error.code, -32602);
  const silent = new LegacyFront().open({}, { ...DISCOVERY, capabilities: {} });
  silent.call(1, { level: 'info' }, 'logging/setLevel');
  t.is(silent.heard()[0]?.error.code, -32601);
});

for (const [token, echo] of [
  ['1.0', '1'],
  ['1e3', '1000.0'],
  ['9007199254740993', '9007199254740992'],
] as const) {
  test(`progress finds the call by the token ${token}, though its server writes ${echo}`, (t) => {
    const session = new LegacyFront().open();
    session.says(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":${token}}}}`);
    session.says({ id: 2, method: 'tools/call', params: { _meta: { progressToken: 'other' } } });
    const say = (said: string): void =>
      session.serverSays(
        `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${said},"progress":1}}`,
      );
    say(echo);
    say('7.0');
    t.deepEqual(
      session.peer.take().map(({ call }) => call?.id),
      [1],
    );
  });
}

test('progress goes to the call that asked for it, and late progress to nobody', (t) => {
  const session = new LegacyFront().open();
  session.call(1, { name: 'a', _meta: { progressToken: 'p1' } });
  session.call(2, { name: 'b', _meta: { progressToken: 'p2' } });
  const progress = { method: 'notifications/progress', params: { progressToken: 'p1', progress: 1 } };
  session.serverSays(progress);
  t.is(session.peer.take()[0]?.call?.id, 1);
  session.serverSays({ id: session.ids.at(-2), result: done() });
  session.heard();
  session.serverSays(progress);
  t.deepEqual(session.heard(), []);
});

test('a call is withdrawn under the id it has at the server, and its late answer is dropped', (t) => {
  const session = new LegacyFront().open();
  session.call('mine');
  session.asked();
  session.says({ method: 'notifications/cancelled', params: { requestId: 'mine', reason: 'enough' } });
  const [canceled] = session.link.sent;
  t.is(canceled?.call?.state.kind, 'cancelled');
  t.deepEqual(session.asked()[0]?.params, { requestId: session.ids.at(-1), reason: 'enough' });
  session.serverAnswers(done());
  t.deepEqual(session.heard(), []);
});

test('a resource that is not there has the code of legacy revisions', (t) => {
  const session = new LegacyFront().open();
  session.call(1, { uri: 'test://a' }, 'resources/read');
  session.serverRefuses({ code: -32602, message: 'no', data: { uri: 'test://a' } });
  t.deepEqual(session.heard()[0]?.error, { code: -32002, message: 'no', data: { uri: 'test://a' } });
});

test('a capability that the client lacks is named to it as the server named it', (t) => {
  const session = new LegacyFront().open({ revision: '2025-03-26', capabilities: ELICITATION });
  session.call(1);
  t.deepEqual(session.asked()[0]?.params._meta[`${META}clientCapabilities`], {});
  const error = { code: -32021, message: 'ask', data: { requiredCapabilities: { elicitation: {} } } };
  session.serverRefuses(error);
  t.deepEqual(session.heard()[0]?.error, error);
});

test('after -32022 the call is sent once more in a revision both know, and only once', (t) => {
  const session = new LegacyFront().open();
  session.call(1);
  session.asked();
  const error = { code: -32022, message: 'no', data: { supported: ['2026-07-28'] } };
  session.serverRefuses(error);
  t.is(session.asked()[0]?.params.name, 'work');
  t.deepEqual(session.heard(), []);
  session.serverRefuses(error);
  t.deepEqual(session.asked(), []);
  t.is(session.heard()[0]?.error.code, -32603);
});

test('a result of a type that nobody knows is an error', (t) => {
  for (const resultType of ['task', 'later', 7]) {
    const session = new LegacyFront().open();
    session.call(1);
    session.serverAnswers({ resultType, content: [] });
    const { code, data } = session.heard()[0]?.error ?? {};
    t.is(code, -32603);
    t.is(data.bridge.reason, 'ERR_UPSTREAM_PROTOCOL');
  }
});

test('what a modern server asks on its own is neither passed on nor answered', (t) => {
  const session = new LegacyFront().open({ capabilities: ELICITATION });
  session.call(1);
  session.asked();
  session.serverSays({ id: 5, method: 'elicitation/create', params: { message: 'x' } });
  t.deepEqual(session.heard(), []);
  t.deepEqual(session.asked(), []);
});

test('output that is no object is wrapped, in the list and in what the tool answers', (t) => {
  const tools = [{ name: 'list', inputSchema: {}, outputSchema: { type: 'array', items: { type: 'number' } } }];
  for (const revision of ['2025-06-18', '2025-11-25']) {
    const session = new LegacyFront().open({ revision });
    session.call(1, {}, 'tools/list');
    session.serverAnswers({ resultType: 'complete', tools });
    const [listed] = session.heard();
    t.deepEqual(listed?.result.tools[0].outputSchema.properties.result, tools[0]?.outputSchema);
    session.call(2, { name: 'list' });
    session.serverAnswers({ resultType: 'complete', content: [], structuredContent: [1, 2] });
    t.deepEqual(session.heard()[0]?.result.structuredContent, { result: [1, 2] });
  }
});

test('a tool whose schema is no object is wrapped even where it answers with one', (t) => {
  const session = new LegacyFront().open();
  session.call(1, {}, 'tools/list');
  const outputSchema = { anyOf: [{ type: 'object' }, { type: 'null' }] };
  session.serverAnswers({ resultType: 'complete', tools: [{ name: 'maybe', inputSchema: {}, outputSchema }] });
  session.call(2, { name: 'maybe' });
  session.heard();
  session.serverAnswers({ resultType: 'complete', content: [], structuredContent: { a: 1 } });
  t.deepEqual(session.heard()[0]?.result.structuredContent, { result: { a: 1 } });
});

test('the oldest clients get what they know', (t) => {
  const session = new LegacyFront().open({ revision: '2024-11-05' });
  session.call(1);
  session.serverAnswers({
    resultType: 'complete',
    content: [{ type: 'audio', data: 'AA==', mimeType: 'audio/wav' }],
    structuredContent: [1],
  });
  const { result } = session.heard()[0] ?? {};
  t.deepEqual(
    result.content.map(({ type }: { type: string }) => type),
    ['resource', 'text'],
  );
  t.false('structuredContent' in result);
});

test('an answer that could not be taken fails its call and nothing else', (t) => {
  const front = new LegacyFront();
  const session = front.open();
  session.call('a');
  session.call('b');
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
  front.dialer.latest.listener.serverFault({ error, kind: 'result', id: session.ids.at(-1) });
  const [failed] = session.heard();
  t.is(failed?.id, 'b');
  t.is(failed?.error.data.bridge.reason, 'ERR_UPSTREAM_TOO_LARGE');
  session.serverSays({ id: session.ids.at(-2), result: done() });
  t.is(session.heard()[0]?.id, 'a');
});

test('an error without id is the answer to the only call, whatever is listened to beside it', (t) => {
  const session = new LegacyFront().open();
  session.clock.advance(30);
  session.call('a');
  session.serverSays({ error: { code: -32700, message: 'what?' } });
  t.like(session.heard()[0], { id: 'a', error: { code: -32700, message: 'what?' } });
});

test('a server that withdraws a call of its client fails it', (t) => {
  const session = new LegacyFront().open();
  session.call('a');
  session.serverSays({ method: 'notifications/cancelled', params: { requestId: session.ids.at(-1) } });
  t.is(session.heard()[0]?.error.data.bridge.reason, 'ERR_UPSTREAM_PROTOCOL');
});

test('a full side holds the other one back', (t) => {
  const front = new LegacyFront();
  const session = front.open();
  session.link.hasCapacity = false;
  session.call(1);
  t.true(session.peer.isPaused);
  front.dialer.latest.listener.serverDrained();
  t.false(session.peer.isPaused);
  session.peer.hasCapacity = false;
  session.serverAnswers(done());
  t.true(session.link.isPaused);
  session.relay.clientDrained();
  t.false(session.link.isPaused);
});
