import test from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import { MAX_INITIALIZE_RESULT_BYTES } from '../../../../src/relay/shared/legacy/initialize-result.ts';
import { only, reasonOf, SERVER_RESULT, SharedBridge } from './shared-bridge.ts';

test('the server sees one handshake, by the bridge, however many clients come', (t) => {
  const bridge = new SharedBridge();
  t.is(bridge.dialer.dialed.length, 0, 'nobody is there yet');
  const clients = [bridge.connect(), bridge.connect()];
  for (const client of clients) client.initialize();
  const hello = only(bridge.heard());
  t.like(hello, {
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} },
      clientInfo: { name: 'bridge', version: '0' },
    },
  });
  bridge.says({ id: hello.id, result: SERVER_RESULT });
  for (const client of clients) client.says({ method: 'notifications/initialized' });
  bridge.connect().initialize();
  t.deepEqual(bridge.heard(), [{ jsonrpc: '2.0', method: 'notifications/initialized' }]);
  t.is(bridge.dialer.dialed.length, 1);
});

test('every client gets the result of the server under its own id, in the revision it asked for', (t) => {
  const bridge = new SharedBridge();
  const asked = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '1999-01-01'];
  const clients = asked.map((protocolVersion) => bridge.connect({ protocolVersion }));
  for (const [index, client] of clients.entries()) client.initialize(index);
  bridge.answerHandshake();
  const answers = clients.map((client) => only(client.heard()));
  t.deepEqual(
    answers.map(({ id, result }) => [id, result?.protocolVersion]),
    [...asked.slice(0, 4), '2025-11-25'].map((revision, id) => [id, revision]),
  );
  for (const { result } of answers) {
    t.like(result, { serverInfo: SERVER_RESULT.serverInfo, instructions: 'be kind' });
    const { tasks: _tasks, ...others } = SERVER_RESULT.capabilities;
    t.deepEqual(result?.capabilities, others, 'tasks are not shown');
  }
});

test('a server that says more of itself than can be kept is refused, and its clients learn why', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.connect();
  client.initialize();
  bridge.answerHandshake({ ...SERVER_RESULT, instructions: 'x'.repeat(MAX_INITIALIZE_RESULT_BYTES) });
  t.regex(
    only(client.heard()).error?.message ?? '',
    /answered initialize with \d+ bytes; more than 1048576 are not kept/,
  );
  const other = new SharedBridge();
  const welcome = other.connect();
  welcome.initialize();
  other.answerHandshake({ ...SERVER_RESULT, instructions: 'x'.repeat(MAX_INITIALIZE_RESULT_BYTES - 1000) });
  t.truthy(only(welcome.heard()).result);
});

test('an id is echoed as it was written', (t) => {
  const bridge = new SharedBridge();
  bridge.join();
  const client = bridge.connect();
  client.says('{"jsonrpc":"2.0","id":"\\u00e9\\/","method":"initialize","params":{"protocolVersion":"2025-11-25"}}');
  t.true(only(client.heardTexts()).includes('"id":"\\u00e9\\/"'));
});

for (const method of ['tasks/list', 'tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/whatever']) {
  test(`${method} is refused: task ids have no owner`, (t) => {
    const bridge = new SharedBridge();
    const client = bridge.join();
    client.call(1, method, { taskId: 'of somebody else' });
    t.deepEqual(bridge.heard(), []);
    const answer = only(client.heard());
    t.is(answer.error?.code, -32601);
    t.is(reasonOf(answer), 'ERR_SHARED_METHOD');
  });
}

test('with prewarm the server is started before the first client', (t) => {
  const bridge = new SharedBridge({ prewarm: true });
  t.is(bridge.dialer.dialed.length, 1);
  t.is(bridge.server.readiness().state, 'starting');
  bridge.answerHandshake();
  t.is(bridge.server.readiness().state, 'ready');
  const client = bridge.connect();
  client.initialize();
  t.is(only(client.heard()).id, 'init');
});

test('without it readiness is what the dialer says until there is a server', (t) => {
  const bridge = new SharedBridge();
  t.is(bridge.server.readiness(), bridge.dialer.readinessNow);
  bridge.connect();
  const readiness = bridge.server.readiness();
  t.is(readiness.state === 'ready' ? undefined : readiness.error.code, 'ERR_UPSTREAM_STARTING');
});

test('calls that come during the handshake go out after it, in order', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.connect();
  client.initialize();
  client.call(1, 'tools/list');
  client.says({ method: 'x-vendor/event' });
  client.call(2, 'prompts/list');
  t.deepEqual(
    bridge.link.sent.map(({ frame }) => frame.method),
    ['initialize'],
  );
  bridge.answerHandshake();
  t.deepEqual(
    bridge.heard().map(({ method }) => method),
    ['notifications/initialized', 'tools/list', 'x-vendor/event', 'prompts/list'],
  );
});

test('a call that was canceled while it waited never reaches the server', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.connect();
  client.initialize();
  client.call(1);
  client.call(2);
  client.says({ method: 'notifications/cancelled', params: { requestId: 1 } });
  bridge.answerHandshake();
  t.deepEqual(
    bridge.heard().map(({ method }) => method),
    ['notifications/initialized', 'tools/call'],
  );
});

test('a client that leaves during the handshake takes what waited with it', (t) => {
  const bridge = new SharedBridge();
  const leaving = bridge.connect();
  leaving.initialize();
  leaving.call(1);
  leaving.says({ method: 'x-vendor/event' });
  const staying = bridge.connect();
  staying.call(1, 'tools/list');
  leaving.leaves();
  bridge.answerHandshake();
  t.deepEqual(
    bridge.heard().map(({ method }) => method),
    ['notifications/initialized', 'tools/list'],
  );
});

test('a server that refuses to be initialized is ended, and those who wait learn why', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.connect();
  client.initialize();
  const hello = only(bridge.heard());
  bridge.says({ id: hello.id, error: { code: -32602, message: 'not with you' } });
  t.is(bridge.link.closedWith.length, 1);
  const answer = only(client.heard());
  t.is(reasonOf(answer), 'ERR_UPSTREAM_PROTOCOL');
  t.regex(answer.error?.message ?? '', /not with you/);
  t.is(client.ends.length, 1);
});

for (const [title, result] of [
  ['null', null],
  ['a string', 'hello'],
  ['an array', []],
] as const) {
  test(`so is one whose result is ${title}`, (t) => {
    const bridge = new SharedBridge();
    const client = bridge.connect();
    client.initialize();
    bridge.answerHandshake(result);
    t.is(bridge.link.closedWith.length, 1);
    t.is(reasonOf(only(client.heard())), 'ERR_UPSTREAM_PROTOCOL');
  });
}

test('so is one whose answer is not JSON', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.connect();
  client.initialize();
  const hello = only(bridge.heard());
  bridge.says(`{"jsonrpc":"2.0","id":${hello.id},"result":{"protocolVersion":NaN}}`);
  t.is(reasonOf(only(client.heard())), 'ERR_UPSTREAM_PROTOCOL');
});

test('so is one whose answer was too large', (t) => {
  const bridge = new SharedBridge();
  const client = bridge.connect();
  client.initialize();
  const hello = only(bridge.heard());
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
  bridge.dialer.latest.listener.serverFault({ error, kind: 'result', id: hello.id });
  t.is(bridge.link.closedWith.length, 1);
  t.is(only(client.heard()).id, 'init');
});

test('so is one that does not answer in time', (t) => {
  const bridge = new SharedBridge({ handshakeTimeoutMs: 1000 });
  const client = bridge.connect();
  client.initialize();
  bridge.clock.advance(999);
  t.deepEqual(client.heard(), []);
  bridge.clock.advance(1);
  t.is(bridge.link.closedWith.length, 1);
  const { error } = only(client.heard());
  t.deepEqual(error?.data?.bridge, { reason: 'ERR_UPSTREAM_TIMEOUT', phase: 'initialize', timeoutMs: 1000 });
  t.regex(error?.message ?? '', /^fake-server did not answer initialize within 1000 ms; raise --request-timeout/);
});

test('a server that answered in time is left alone', (t) => {
  const bridge = new SharedBridge({ handshakeTimeoutMs: 1000 });
  bridge.join();
  bridge.clock.advance(100_000);
  t.deepEqual(bridge.link.closedWith, []);
  t.is(bridge.dialer.dialed.length, 1);
});

for (const capabilities of [undefined, null, 'x', []]) {
  test(`a result with ${JSON.stringify(capabilities)} for capabilities offers none`, (t) => {
    const bridge = new SharedBridge();
    const client = bridge.connect();
    client.initialize();
    bridge.answerHandshake({ protocolVersion: '2025-11-25', capabilities });
    t.deepEqual(only(client.heard()).result, { protocolVersion: '2025-11-25', capabilities: {} });
  });
}
