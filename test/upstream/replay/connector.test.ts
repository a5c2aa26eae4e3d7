import test from 'ava';
import {
  META,
  modernResult,
  notification,
  RecordingScript,
  request,
  result,
  toolCall,
} from '../../support/recording-script.ts';
import { replay, settle } from './replay.ts';

const initialize = (revision: string) =>
  request(1, 'initialize', { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'c', version: '1' } });

// ---- answers

test('answers by method and parameters, whatever their ids, order of members and _meta are', async (t) => {
  const script = new RecordingScript()
    .handshake()
    .sent(toolCall(5, 'weather', { city: 'Rome', days: 2 }, { progressToken: 5 }))
    .received(result(5, 'sunny'))
    .exchange(6, 'tools/list', undefined, { tools: [] });
  const client = replay(t, script).connect();
  const answer = await client.ask({
    method: 'tools/call',
    params: { _meta: { other: 1 }, arguments: { days: 2, city: 'Rome' }, name: 'weather' },
    id: 'a',
    jsonrpc: '2.0',
  });
  t.deepEqual(answer, { ...result('a', 'sunny') });
  t.deepEqual(await client.ask(request(2, 'tools/list', {})), { jsonrpc: '2.0', id: 2, result: { tools: [] } });
});

test('keeps the bytes of an answer, even numbers that JavaScript would round', async (t) => {
  const script = new RecordingScript()
    .handshake()
    .sent(request(5, 'tools/list'))
    .received('{"jsonrpc":"2.0","id":5,"result":{"n":12345678901234567890,"e":1.0}}');
  const client = replay(t, script).connect();
  await client.ask(request(9, 'tools/list'));
  t.is(
    client.listener.frames[0]?.bytes.toString(),
    '{"jsonrpc":"2.0","id":9,"result":{"n":12345678901234567890,"e":1.0}}',
  );
});

test('gives the n-th equal request the n-th answer, and after the last one the last again, on all connections', async (t) => {
  const script = new RecordingScript().handshake();
  for (const [id, text] of [
    [1, 'one'],
    [2, 'two'],
  ] as const) {
    script.sent(toolCall(id, 'count')).received(result(id, text));
  }
  const { connect } = replay(t, script);
  const [first, second] = [connect(), connect()];
  t.deepEqual(await first.ask(toolCall(7, 'count')), result(7, 'one'));
  t.deepEqual(await second.ask(toolCall(7, 'count')), result(7, 'two'));
  t.deepEqual(await first.ask(toolCall(8, 'count')), result(8, 'two'));
});

test('a recorded error is the answer, as it is', async (t) => {
  const error = { code: -32002, message: 'no such resource', data: { uri: 'x:1' } };
  const script = new RecordingScript()
    .handshake()
    .sent(request(3, 'resources/read', { uri: 'x:1' }))
    .received({ jsonrpc: '2.0', id: 3, error });
  t.deepEqual(
    await replay(t, script)
      .connect()
      .ask(request(4, 'resources/read', { uri: 'x:1' })),
    {
      jsonrpc: '2.0',
      id: 4,
      error,
    },
  );
});

test('calls of a run after a restart are not confused with those of the run before, whose ids they have', async (t) => {
  const before = new RecordingScript().handshake().sent(toolCall(1, 'lost'));
  const after = new RecordingScript().handshake().sent(toolCall(1, 'found')).received(result(1, 'found'));
  const client = replay(t, before.text + after.text).connect();
  t.deepEqual(await client.ask(toolCall(1, 'found')), result(1, 'found'));
  t.regex(JSON.stringify(await client.ask(toolCall(2, 'lost'))), /ERR_REPLAY_ANSWER/);
});

// ---- handshakes

test('initialize gets the recorded answer, in the revision of an older client', async (t) => {
  const client = replay(t, new RecordingScript().handshake(0, '2025-06-18')).connect();
  const spoken = async (revision: string): Promise<unknown> => {
    const { result: answer } = await client.ask({ ...initialize(revision), id: revision });
    t.deepEqual((answer as { serverInfo: unknown }).serverInfo, { name: 'recorded-server', version: '7' });
    return (answer as { protocolVersion: unknown }).protocolVersion;
  };
  t.is(await spoken('2025-11-25'), '2025-06-18');
  t.is(await spoken('2025-06-18'), '2025-06-18');
  t.is(await spoken('2024-11-05'), '2024-11-05');
});

test('a recording that begins after the handshake is replayed, with the capabilities that its requests need', async (t) => {
  const script = new RecordingScript().exchange(4, 'tools/list', undefined, { tools: [] });
  const client = replay(t, script).connect();
  t.deepEqual(await client.ask(initialize('2025-06-18')), {
    jsonrpc: '2.0',
    id: 1,
    result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'demo', version: '' } },
  });
});

test('server/discover is unknown to a recorded legacy server, and initialize to a modern one', async (t) => {
  const legacy = replay(t, new RecordingScript().handshake()).connect();
  t.like(await legacy.ask(request(1, 'server/discover', { _meta: META })), { error: { code: -32601 } });
  const modern = replay(t, new RecordingScript().discovery()).connect();
  t.like(await modern.ask(initialize('2025-11-25')), {
    error: { code: -32022, data: { supported: ['2026-07-28'] } },
  });
  t.like(await modern.ask(request(2, 'server/discover', { _meta: META })), {
    result: { supportedVersions: ['2026-07-28'] },
  });
});

test('a legacy server that refused server/discover in the recording does not count as modern', async (t) => {
  const script = new RecordingScript()
    .sent(request(9, 'server/discover', { _meta: META }), { era: 'modern' })
    .received({ jsonrpc: '2.0', id: 9, error: { code: -32601, message: 'no' } }, { era: 'modern' })
    .handshake();
  const client = replay(t, script).connect();
  t.like(await client.ask(request(1, 'server/discover', { _meta: META })), { error: { code: -32601 } });
  t.like(await client.ask({ ...initialize('2025-11-25'), id: 2 }), { result: { protocolVersion: '2025-11-25' } });
});

for (const method of ['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']) {
  test(`${method} is accepted although it was not recorded`, async (t) => {
    const client = replay(t, new RecordingScript().handshake()).connect();
    t.deepEqual(await client.ask(request(1, method, { uri: 'x:1', level: 'info' })), {
      jsonrpc: '2.0',
      id: 1,
      result: {},
    });
  });
}

// ---- what belongs to a call

test('notifications of a call come before its answer, with the progress token of the request', async (t) => {
  const script = new RecordingScript()
    .handshake()
    .sent(toolCall(3, 'slow', {}, { progressToken: 'old' }))
    .received(notification('notifications/progress', { progressToken: 'old', progress: 1 }))
    .received(notification('notifications/message', { level: 'info', data: 'half' }))
    .received(notification('notifications/progress', { progressToken: 'old', progress: 2 }))
    .received(result(3, 'done'));
  const { connect } = replay(t, script);
  const client = connect();
  client.send(toolCall(8, 'slow', {}, { progressToken: 77 }));
  t.deepEqual(await client.received(4), [
    notification('notifications/progress', { progressToken: 77, progress: 1 }),
    notification('notifications/message', { level: 'info', data: 'half' }),
    notification('notifications/progress', { progressToken: 77, progress: 2 }),
    result(8, 'done'),
  ]);
  const quiet = connect();
  quiet.send(toolCall(8, 'slow'));
  t.deepEqual(await quiet.received(2), [
    notification('notifications/message', { level: 'info', data: 'half' }),
    result(8, 'done'),
  ]);
});

test('messages of calls in flight at the same time go to the call whose number they have', async (t) => {
  const log = (data: string) => notification('notifications/message', { level: 'info', data });
  const script = new RecordingScript()
    .handshake()
    .sent(toolCall(1, 'a'), { call: 1 })
    .sent(toolCall(2, 'b'), { call: 2 })
    .received(log('of a'), { call: 1 })
    .received(log('of b'), { call: 2 })
    .received(result(2, 'b'), { call: 2 })
    .received(result(1, 'a'), { call: 1 });
  const client = replay(t, script).connect();
  client.send(toolCall(5, 'b'));
  t.deepEqual(await client.received(2), [log('of b'), result(5, 'b')]);
  client.send(toolCall(6, 'a'));
  t.deepEqual((await client.received(4)).slice(2), [log('of a'), result(6, 'a')]);
});

test('a modern request without a log level gets no log messages', async (t) => {
  const log = notification('notifications/message', { level: 'info', data: 'x' });
  const script = new RecordingScript({ era: 'modern' })
    .discovery()
    .sent(toolCall(1, 'a', {}, META))
    .received(log)
    .received(modernResult(1, { content: [] }));
  const { connect } = replay(t, script);
  const without = connect();
  without.send(toolCall(1, 'a', {}, META));
  t.deepEqual(await without.received(1), [modernResult(1, { content: [] })]);
  const wanting = connect();
  wanting.send(toolCall(1, 'a', {}, { ...META, 'io.modelcontextprotocol/logLevel': 'debug' }));
  t.deepEqual(await wanting.received(2), [log, modernResult(1, { content: [] })]);
});

// ---- questions

const ELICITATION = { message: 'Name?', requestedSchema: { type: 'object', properties: {} } };

test('asks the client what the recorded server asked, and waits for whatever it answers', async (t) => {
  const script = new RecordingScript()
    .handshake()
    .sent(toolCall(3, 'greet'))
    .received(request('q', 'elicitation/create', ELICITATION))
    .sent({ jsonrpc: '2.0', id: 'q', result: { action: 'accept', content: { name: 'Ann' } } })
    .received(request('r', 'sampling/createMessage', { messages: [], maxTokens: 1 }))
    .sent({ jsonrpc: '2.0', id: 'r', result: { role: 'assistant', model: 'm', content: { type: 'text', text: 'hi' } } })
    .received(result(3, 'Hello Ann'));
  const client = replay(t, script).connect();
  client.send(toolCall(4, 'greet'));
  const [first] = await client.received(1);
  t.like(first, { method: 'elicitation/create', params: ELICITATION });
  await settle();
  t.is(client.messages.length, 1);
  client.send({ jsonrpc: '2.0', id: first?.id, error: { code: -32601, message: 'never' } });
  const second = (await client.received(2))[1];
  t.like(second, { method: 'sampling/createMessage' });
  t.not(second?.id, first?.id);
  client.send({ jsonrpc: '2.0', id: second?.id, result: {} });
  t.deepEqual((await client.received(3))[2], result(4, 'Hello Ann'));
});

test('does not wait for an answer that the recorded server did not wait for', async (t) => {
  const script = new RecordingScript()
    .handshake()
    .sent(toolCall(3, 'greet'))
    .received(request('q', 'elicitation/create', ELICITATION))
    .received(notification('notifications/cancelled', { requestId: 'q' }))
    .received(result(3, 'never mind'));
  const client = replay(t, script).connect();
  client.send(toolCall(4, 'greet'));
  const [question, canceled, answer] = await client.received(3);
  t.is(question?.method, 'elicitation/create');
  t.deepEqual(canceled, notification('notifications/cancelled', { requestId: question?.id }));
  t.deepEqual(answer, result(4, 'never mind'));
});

const INPUT = { who: { method: 'elicitation/create', params: ELICITATION } };

function withRounds(states: readonly (string | undefined)[], hidden?: number): RecordingScript {
  const facts = hidden === undefined ? {} : { hidden };
  const script = new RecordingScript({ era: 'modern' }).discovery();
  states.forEach((state, index) => {
    const id = 10 * (index + 1);
    const required = { resultType: 'input_required', inputRequests: INPUT, ...(state && { requestState: state }) };
    const responses = { who: { action: 'accept', content: { name: `name ${index}` } } };
    script
      .sent(toolCall(id, 'greet', {}, META))
      .received(modernResult(id, required), facts)
      .sent(
        request(id + 1, 'tools/call', {
          name: 'greet',
          arguments: {},
          _meta: META,
          inputResponses: responses,
          ...(state && { requestState: state }),
        }),
        facts,
      )
      .received(modernResult(id + 1, { content: [{ type: 'text', text: `Hello ${index}` }] }));
  });
  return script;
}

const answered = (id: number, state: unknown) =>
  request(id, 'tools/call', {
    name: 'greet',
    arguments: {},
    _meta: META,
    inputResponses: { who: { action: 'decline' } },
    requestState: state,
  });

for (const [title, states, hidden] of [
  ['states of their own', ['a', 'b'], undefined],
  ['the same state', ['a', 'a'], undefined],
  ['hidden states', ['[hidden]', '[hidden]'], 1],
  ['no states', [undefined, undefined], undefined],
] as const) {
  test(`rounds of a modern call continue the call that required the input, with ${title} in the recording`, async (t) => {
    const client = replay(t, withRounds(states, hidden)).connect();
    const stateOf = async (id: number): Promise<unknown> => {
      const { result: required } = await client.ask(toolCall(id, 'greet', {}, META));
      t.like(required, { resultType: 'input_required', inputRequests: INPUT });
      return (required as { requestState: unknown }).requestState;
    };
    const first = await stateOf(1);
    const second = await stateOf(2);
    // In the other order, and with other answers than recorded.
    t.like(await client.ask(answered(3, second)), { result: { content: [{ text: 'Hello 1' }] } });
    t.like(await client.ask(answered(4, first)), { result: { content: [{ text: 'Hello 0' }] } });
  });
}

test('a round that the recorded client did not send gets an error that says so', async (t) => {
  const required = { resultType: 'input_required', inputRequests: INPUT, requestState: 'a' };
  const script = new RecordingScript({ era: 'modern' })
    .discovery()
    .sent(toolCall(1, 'greet', {}, META))
    .received(modernResult(1, required));
  const client = replay(t, script).connect();
  const { result: asked } = await client.ask(toolCall(1, 'greet', {}, META));
  const answer = await client.ask(answered(2, (asked as { requestState: unknown }).requestState));
  t.regex(JSON.stringify(answer), /ERR_REPLAY_ANSWER/);
  t.regex(JSON.stringify(answer), /did not repeat it/);
});

// ---- outside of calls

test('changes follow the answer after which they were recorded, once', async (t) => {
  const changed = notification('notifications/tools/list_changed');
  const script = new RecordingScript()
    .handshake()
    .sent(toolCall(3, 'install'))
    .received(result(3, 'ok'))
    .received(changed)
    .exchange(4, 'tools/list', undefined, { tools: [] });
  const client = replay(t, script).connect();
  client.send(toolCall(4, 'install'));
  t.deepEqual(await client.received(2), [result(4, 'ok'), changed]);
  client.send(toolCall(5, 'install'));
  await settle();
  t.deepEqual((await client.received(3))[2], result(5, 'ok'));
});

test('what a server asked after its handshake is asked of each client', async (t) => {
  const script = new RecordingScript()
    .handshake()
    .received(request(1, 'roots/list'))
    .sent({ jsonrpc: '2.0', id: 1, result: { roots: [] } })
    .exchange(4, 'tools/list', undefined, { tools: [] });
  const { connect } = replay(t, script);
  for (const client of [connect(), connect()]) {
    await client.ask(initialize('2025-11-25'));
    client.send(notification('notifications/initialized'));
    t.like((await client.received(2))[1], { method: 'roots/list' });
  }
});

test('a modern subscription is acknowledged, and told of the changes that it asked for', async (t) => {
  const subscribed = (id: number) => ({ _meta: { 'io.modelcontextprotocol/subscriptionId': id } });
  const filter = { notifications: { toolsListChanged: true } };
  const script = new RecordingScript({ era: 'modern' })
    .discovery()
    .sent(request(7, 'subscriptions/listen', { ...filter, _meta: META }))
    .received(notification('notifications/subscriptions/acknowledged', { ...filter, ...subscribed(7) }))
    .sent(toolCall(8, 'install', {}, META))
    .received(modernResult(8, { content: [] }))
    .received(notification('notifications/tools/list_changed', subscribed(7)));
  const client = replay(t, script).connect();
  client.send(request(20, 'subscriptions/listen', { ...filter, _meta: META }));
  client.send(request(21, 'subscriptions/listen', { notifications: { promptsListChanged: true }, _meta: META }));
  t.deepEqual(await client.received(2), [
    notification('notifications/subscriptions/acknowledged', { ...filter, ...subscribed(20) }),
    notification('notifications/subscriptions/acknowledged', {
      notifications: { promptsListChanged: true },
      ...subscribed(21),
    }),
  ]);
  client.send(toolCall(22, 'install', {}, META));
  t.deepEqual((await client.received(4)).slice(2), [
    modernResult(22, { content: [] }),
    notification('notifications/tools/list_changed', subscribed(20)),
  ]);
  client.send(notification('notifications/cancelled', { requestId: 20 }));
  client.send(toolCall(23, 'install', {}, META));
  await settle();
  t.is((await client.received(5)).length, 5);
});

// ---- time

function slow(): RecordingScript {
  return new RecordingScript()
    .handshake()
    .sent(toolCall(3, 'slow', {}, { progressToken: 3 }))
    .after(1000)
    .received(notification('notifications/progress', { progressToken: 3, progress: 1 }))
    .after(3000)
    .received(result(3, 'done'));
}

for (const [speed, factor] of [
  [1, 1],
  [2, 0.5],
  [0.5, 2],
] as const) {
  test(`at speed ${speed}, messages come after ${factor} times the recorded pauses`, async (t) => {
    const { connect, clock } = replay(t, slow(), { speed });
    const client = connect();
    client.send(toolCall(1, 'slow', {}, { progressToken: 1 }));
    await settle();
    clock.advance(1000 * factor - 1);
    t.is(client.messages.length, 0);
    clock.advance(1);
    t.is(client.messages.length, 1);
    clock.advance(3000 * factor - 1);
    t.is(client.messages.length, 1);
    clock.advance(1);
    t.deepEqual(client.messages[1], result(1, 'done'));
    t.is(clock.pendingTimers, 0);
  });
}

test('without a speed, no time passes', async (t) => {
  const { connect, clock } = replay(t, slow());
  t.deepEqual(await connect().ask(toolCall(1, 'slow')), result(1, 'done'));
  t.is(clock.pendingTimers, 0);
});

test('the time of a question is that of the client, and the next pause begins with its answer', async (t) => {
  const script = new RecordingScript()
    .handshake()
    .sent(toolCall(3, 'greet'))
    .received(request('q', 'elicitation/create', ELICITATION))
    .after(60_000)
    .sent({ jsonrpc: '2.0', id: 'q', result: { action: 'accept', content: {} } })
    .after(500)
    .received(result(3, 'Hello'));
  const { connect, clock } = replay(t, script, { speed: 1 });
  const client = connect();
  client.send(toolCall(1, 'greet'));
  const [question] = await client.received(1);
  clock.advance(10 * 60_000);
  t.is(client.messages.length, 1);
  client.send({ jsonrpc: '2.0', id: question?.id, result: { action: 'cancel' } });
  clock.advance(499);
  t.is(client.messages.length, 1);
  clock.advance(1);
  t.deepEqual(client.messages[1], result(1, 'Hello'));
});

test('a canceled call says nothing more, and leaves no timer', async (t) => {
  const { connect, clock } = replay(t, slow(), { speed: 1 });
  const client = connect();
  client.send(toolCall(1, 'slow', {}, { progressToken: 1 }), toolCall(2, 'slow', {}, { progressToken: 2 }));
  await settle();
  clock.advance(1000);
  client.send(notification('notifications/cancelled', { requestId: 1 }));
  clock.advance(3000);
  t.deepEqual(
    client.messages.filter(({ id }) => id !== undefined),
    [result(2, 'done')],
  );
  t.is(clock.pendingTimers, 0);
});

test('a closed connection says nothing more, and leaves no timer', async (t) => {
  const { connect, connector, clock } = replay(t, slow(), { speed: 1 });
  const client = connect();
  client.send(toolCall(1, 'slow'));
  await settle();
  await connector.close();
  t.is(clock.pendingTimers, 0);
  clock.advance(10_000);
  t.deepEqual(client.messages, []);
  t.throws(() => connector.connect(), { code: 'ERR_SESSION_CLOSED' });
});

test('nothing is sent to a client that takes nothing, and all of it once it does', async (t) => {
  const client = replay(t, slow()).connect();
  client.connection.pause();
  client.send(toolCall(1, 'slow', {}, { progressToken: 1 }));
  await settle();
  t.is(client.messages.length, 0);
  client.connection.resume();
  t.is((await client.received(2)).length, 2);
});
