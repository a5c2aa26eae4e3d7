import test from 'ava';
import { ALL, type Message, ModernBridge, type ModernRequest, SERVER_RESULT } from './modern-bridge.ts';

const ASK = {
  method: 'elicitation/create',
  params: { message: 'who?', requestedSchema: { type: 'object', properties: {} } },
};
const SAMPLE = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1.0 } };
const ACCEPT = { action: 'accept', content: { n: 1 } };

interface Parked {
  readonly bridge: ModernBridge;
  /** The id of the call at the server. */
  readonly upstreamId: unknown;
  readonly result: Message['result'];
  readonly state: string;
}

/** A call whose server has asked these things, and whose client was told. */
function park(questions: readonly object[] = [{ id: 'q', ...ASK }], bridge = new ModernBridge(), options = {}): Parked {
  const call = bridge.call({}, options);
  const upstreamId = bridge.heardOnly('tools/call').id;
  for (const question of questions) bridge.says(question);
  bridge.collect();
  const { result } = call.answer();
  call.leaves();
  return { bridge, upstreamId, result, state: result.requestState };
}

function retry({ bridge }: Parked, requestState: string, inputResponses: object = {}, options = {}): ModernRequest {
  return bridge.call({ requestState, inputResponses }, { id: 8, ...options });
}

function reasonOf({ error }: Message): unknown {
  return error?.code === -32602 ? (error.data?.bridge as { reason?: unknown } | undefined)?.reason : error;
}

test('what the server asks ends the request, and the retry ends the call', (t) => {
  const parked = park();
  const { bridge, upstreamId, result, state } = parked;
  t.deepEqual(result.inputRequests, { 'elicitation-1': ASK });
  t.is(result.resultType, 'input_required');
  t.deepEqual(bridge.heard(), [], 'the call goes on although its client is gone');
  const again = retry(parked, state, { 'elicitation-1': ACCEPT });
  t.deepEqual(bridge.heard(), [{ jsonrpc: '2.0', id: 'q', result: ACCEPT }] as object[]);
  bridge.says({ id: upstreamId, result: { content: [] } });
  t.like(again.answer(), { id: 8, result: { resultType: 'complete', content: [] } });
});

test('numbers that no parser could give back pass both ways', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  bridge.heard();
  bridge.says('{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"n":12345678901234567890}}');
  bridge.collect();
  const text = String(call.listener.received[0]?.frame.bytes);
  t.true(text.includes('{"method":"elicitation/create","params":{"n":12345678901234567890}}'), text);
});

test('what is asked at the same time is asked in one answer', (t) => {
  const roots = { id: 3, method: 'roots/list' };
  const parked = park([{ id: 1, ...ASK }, { id: 2, ...SAMPLE }, roots]);
  const { bridge, result, state, upstreamId } = parked;
  t.deepEqual(result.inputRequests, {
    'elicitation-1': ASK,
    'sampling-2': SAMPLE,
    'roots-3': { method: 'roots/list' },
  });
  const sampled = { role: 'assistant', content: { type: 'text', text: 'x' }, model: 'm' };
  const again = retry(parked, state, {
    'elicitation-1': ACCEPT,
    'sampling-2': sampled,
    'roots-3': { roots: [] },
    other: {},
  });
  t.deepEqual(
    bridge.heard().map(({ id, result: given }) => [id, given]),
    [
      [1, ACCEPT],
      [2, sampled],
      [3, { roots: [] }],
    ],
  );
  bridge.says({ id: upstreamId, result: {} });
  t.is(again.answer().result.resultType, 'complete');
});

test('each round has its own keys and its own state', (t) => {
  const parked = park();
  const second = retry(parked, parked.state, { 'elicitation-1': ACCEPT });
  parked.bridge.says({ id: 'q', ...ASK });
  parked.bridge.collect();
  const { result } = second.answer();
  t.deepEqual(Object.keys(result.inputRequests), ['elicitation-2']);
  t.not(result.requestState, parked.state);
});

test('a retry that is sent twice is delivered once and answered twice', (t) => {
  const parked = park();
  const { bridge, state, upstreamId } = parked;
  const first = retry(parked, state, { 'elicitation-1': ACCEPT });
  const second = retry(parked, state, { 'elicitation-1': ACCEPT }, { id: 9 });
  t.is(bridge.heard().length, 1);
  bridge.says({ id: upstreamId, result: { n: 1 } });
  t.like(first.answer(), { id: 8, result: { n: 1 } });
  t.like(second.answer(), { id: 9, result: { n: 1 } });
  bridge.clock.advance(59_000);
  t.like(retry(parked, state, { 'elicitation-1': ACCEPT }, { id: 10 }).answer(), { id: 10, result: { n: 1 } });
  t.deepEqual(bridge.heard(), []);
  bridge.clock.advance(1000);
  t.is(reasonOf(retry(parked, state).answer()), 'state_lost');
});

test('what was not answered is asked again, and only that', (t) => {
  const parked = park([
    { id: 1, ...ASK },
    { id: 2, ...ASK },
  ]);
  const { bridge, state } = parked;
  const again = retry(parked, state, { 'elicitation-1': ACCEPT, 'elicitation-2': { action: 'perhaps' } });
  t.deepEqual(
    bridge.heard().map(({ id }) => id),
    [1],
  );
  t.deepEqual(Object.keys(again.answer().result.inputRequests), ['elicitation-2']);
});

test('what the server asks while nobody is there is asked with the next retry', (t) => {
  const parked = park();
  const { bridge, state } = parked;
  bridge.says({ id: 'r', ...ASK });
  const again = retry(parked, state, { 'elicitation-1': ACCEPT, 'elicitation-2': ACCEPT });
  t.deepEqual(
    bridge.heard().map(({ id }) => id),
    ['q'],
    'an answer to what was not asked is none',
  );
  t.deepEqual(Object.keys(again.answer().result.inputRequests), ['elicitation-2']);
});

test('a retry of an older round gets what was asked last', (t) => {
  const parked = park();
  const { bridge, state } = parked;
  const second = retry(parked, state, { 'elicitation-1': ACCEPT });
  bridge.says({ id: 'r', ...ASK });
  bridge.collect();
  bridge.heard();
  const { result } = second.answer();
  t.deepEqual(retry(parked, state, { 'elicitation-1': ACCEPT }).answer().result, result);
  t.deepEqual(bridge.heard(), []);
});

test('answers without a state start a new call', (t) => {
  const { bridge } = park();
  bridge.call({ inputResponses: { 'elicitation-1': ACCEPT } });
  t.deepEqual(bridge.heardOnly('tools/call').params, { name: 'x', arguments: {} });
});

test('a state that does not fit is refused with the reason, and the server hears nothing', (t) => {
  const parked = park();
  const { bridge, state } = parked;
  const answers = { 'elicitation-1': ACCEPT };
  t.is(reasonOf(retry(parked, `A${state.slice(1)}`, answers).answer()), 'state_invalid');
  t.is(reasonOf(bridge.call({ requestState: 5 }).answer()), 'state_invalid');
  t.is(reasonOf(retry(parked, state, answers, { principal: 'bob' }).answer()), 'state_invalid');
  t.is(reasonOf(bridge.call({ requestState: state, arguments: { a: 1 } }).answer()), 'state_mismatch');
  t.is(reasonOf(bridge.ask('prompts/get', { requestState: state, name: 'x' }).answer()), 'state_mismatch');
  t.deepEqual(bridge.heard(), []);
});

test('a client that does not come back is not waited for; its call is not run again', (t) => {
  const parked = park([
    { id: 1, ...ASK },
    { id: 2, ...SAMPLE },
  ]);
  const { bridge, state, upstreamId } = parked;
  bridge.clock.advance(5 * 60_000);
  const [elicited, sampled, canceled, ...rest] = bridge.heard();
  t.like(elicited, { id: 1, result: { action: 'cancel' } });
  t.like(sampled, { id: 2, error: { code: -32603 } });
  t.like(canceled, { method: 'notifications/cancelled', params: { requestId: upstreamId } });
  t.deepEqual(rest, []);
  t.is(reasonOf(retry(parked, state, { 'elicitation-1': ACCEPT }).answer()), 'state_expired');
  t.deepEqual(bridge.heard(), []);
});

test('who leaves during a retry withdraws the call', (t) => {
  const parked = park();
  const { bridge, state, upstreamId } = parked;
  const again = retry(parked, state, { 'elicitation-1': ACCEPT });
  bridge.heard();
  again.leaves();
  t.is(bridge.heardOnly('notifications/cancelled').params.requestId, upstreamId);
  t.is(reasonOf(retry(parked, state).answer()), 'state_lost');
});

test('of two that follow a call one may leave', (t) => {
  const parked = park();
  const { bridge, state, upstreamId } = parked;
  const first = retry(parked, state, { 'elicitation-1': ACCEPT });
  const second = retry(parked, state, {}, { id: 9 });
  first.leaves();
  t.is(bridge.heard().length, 1, 'the answer, and no withdrawal');
  bridge.says({ id: upstreamId, result: { n: 1 } });
  t.like(second.answer(), { id: 9, result: { n: 1 } });
});

test('what the client did not declare is refused to the server, and never shown', (t) => {
  for (const [capabilities, question, code] of [
    [{}, ASK, -32601],
    [{ sampling: {} }, ASK, -32601],
    [{ elicitation: { url: {} } }, ASK, -32602],
    [{ elicitation: {} }, { method: 'elicitation/create', params: { mode: 'url', url: 'https://a' } }, -32602],
    [{ sampling: {} }, { method: 'sampling/createMessage', params: { tools: [] } }, -32602],
    [ALL, { method: 'acme/ask' }, -32601],
  ] as const) {
    const bridge = new ModernBridge();
    const call = bridge.call({}, { capabilities });
    bridge.heard();
    bridge.says({ id: 'q', ...question });
    bridge.collect();
    t.like(bridge.heard()[0], { id: 'q', error: { code } });
    t.deepEqual(call.told(), []);
  }
});

test('roots that were asked for before any call are asked of the first one, which then runs once', (t) => {
  const bridge = new ModernBridge();
  bridge.ask('tools/list', {}, { capabilities: ALL });
  bridge.heard();
  // Once the list is answered nothing is open.
  bridge.says({ id: 2, result: { tools: [] } });
  bridge.says({ id: 'r', method: 'roots/list' });
  t.deepEqual(bridge.heard(), []);
  const call = bridge.call();
  bridge.collect();
  t.deepEqual(bridge.heard(), [], 'the call has not been sent');
  const { result } = call.answer();
  t.deepEqual(result.inputRequests, { 'roots-1': { method: 'roots/list' } });
  const roots = { roots: [{ uri: 'file:///a' }] };
  const again = bridge.call({ requestState: result.requestState, inputResponses: { 'roots-1': roots } });
  const [answer, sent, ...rest] = bridge.heard();
  t.like(answer, { id: 'r', result: roots });
  t.like(sent, { method: 'tools/call', params: { name: 'x', arguments: {} } });
  t.deepEqual(rest, []);
  bridge.says({ id: sent?.id, result: {} });
  t.is(again.answer().result.resultType, 'complete');
  bridge.says({ id: 's', method: 'roots/list' });
  t.like(bridge.heard()[0], { id: 's', error: { code: -32603 } }, 'the next call may be of somebody with other roots');
});

test('roots that nobody can be asked for are refused after a while', (t) => {
  const bridge = new ModernBridge();
  const list = bridge.ask('tools/list', {}, { capabilities: ALL });
  const { id } = bridge.heardOnly('tools/list');
  bridge.says({ id: 'r', method: 'roots/list' });
  bridge.says({ id, result: { tools: [] } });
  t.is(list.answer().result.resultType, 'complete');
  bridge.clock.advance(9999);
  t.deepEqual(bridge.heard(), []);
  bridge.clock.advance(1);
  t.like(bridge.heard()[0], { id: 'r', error: { code: -32603 } });
});

test('without a call nobody is asked', (t) => {
  const bridge = new ModernBridge();
  bridge.ask('tools/list', {}, { capabilities: ALL });
  bridge.heard();
  bridge.says({ id: 1, ...SAMPLE });
  bridge.says({ id: 2, ...ASK });
  const [sampled, elicited] = bridge.heard();
  t.like(sampled, { id: 1, error: { code: -32603 } });
  t.like(elicited, { id: 2, result: { action: 'cancel' } });
});

test('two calls of a client have a session each, and each is asked what its own server asks', (t) => {
  const bridge = new ModernBridge();
  const calls = [bridge.call(), bridge.call({ name: 'y' })];
  t.is(bridge.dialer.dialed.length, 2);
  const ids = calls.map((_, session) => bridge.heard(session)[0]?.id);
  for (const session of [0, 1])
    bridge.says({ id: 'q', ...ASK, params: { ...ASK.params, message: `${session}` } }, session);
  bridge.collect();
  for (const [session, call] of calls.entries()) {
    const { inputRequests, requestState } = call.answer().result;
    t.is(inputRequests['elicitation-1'].params.message, `${session}`);
    const name = session === 0 ? 'x' : 'y';
    const again = bridge.call({ name, requestState, inputResponses: { 'elicitation-1': ACCEPT } });
    t.like(bridge.heard(session), [{ id: 'q', result: ACCEPT }]);
    bridge.says({ id: ids[session], result: { n: session } }, session);
    t.is(again.answer().result.n, session);
  }
  t.is(bridge.dialer.dialed.length, 2, 'the retries use the sessions that their calls have');
});

test('an outcome that comes while nobody is there waits for the retry', (t) => {
  const parked = park();
  const { bridge, state, upstreamId } = parked;
  bridge.says({ id: upstreamId, error: { code: -1, message: 'gave up' } });
  t.is(retry(parked, state).answer().error?.code, -1);
});

test('an outcome beyond the limit is evicted, and the retry is told why', (t) => {
  const bridge = new ModernBridge({ parkingLimits: { bytes: 2000 } });
  const first = park(undefined, bridge);
  bridge.says({ id: first.upstreamId, result: { content: [] } });
  bridge.heard();
  const second = park(undefined, bridge);
  bridge.says({ id: second.upstreamId, result: { content: [{ type: 'text', text: 'x'.repeat(3000) }] } });
  t.is(reasonOf(retry(first, first.state).answer()), 'state_given_up');
  t.is(retry(second, second.state).answer().result.resultType, 'complete');
  const calls = bridge.heard().filter(({ method }) => method !== undefined);
  t.deepEqual(calls, [], 'nothing is run again');
});

test('a server that ends loses the calls that wait for their clients', (t) => {
  const parked = park();
  parked.bridge.exits();
  parked.bridge.clock.advance(1000);
  t.is(reasonOf(retry(parked, parked.state, { 'elicitation-1': ACCEPT }).answer()), 'state_lost');
  t.is(parked.bridge.dialer.dialed.length, 1, 'nothing is run again');
});

test('a question the server withdraws in time is not shown; one that was shown is not answered', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  const { id } = bridge.heardOnly('tools/call');
  bridge.says({ id: 'q', ...ASK });
  bridge.says({ method: 'notifications/cancelled', params: { requestId: 'q' } });
  bridge.collect();
  t.deepEqual(call.told(), []);
  bridge.says({ id: 'r', ...ASK });
  bridge.collect();
  const { result } = call.answer();
  bridge.says({ method: 'notifications/cancelled', params: { requestId: 'r' } });
  const again = bridge.call({ requestState: result.requestState, inputResponses: { 'elicitation-2': ACCEPT } });
  t.deepEqual(bridge.heard(), []);
  bridge.says({ id, result: {} });
  t.is(again.answer().result.resultType, 'complete');
});

test('too many waiting calls: the server is told that nobody can be asked', (t) => {
  const bridge = new ModernBridge({ parkingLimits: { perPrincipal: 1, total: 2 } });
  park(undefined, bridge);
  const call = bridge.call();
  const { id } = bridge.heardOnly('tools/call');
  bridge.says({ id: 'r', ...SAMPLE });
  t.like(bridge.heard()[0], { id: 'r', error: { code: -32603 } });
  bridge.says({ id, result: {} });
  t.is(call.answer().result.resultType, 'complete');
  park(undefined, bridge, { principal: 'bob' });
});

test('a caller whose calls wait for answers leaves half to others; the next is refused at the server', (t) => {
  const bridge = new ModernBridge({ poolLimits: { total: 1024, perCaller: 1024 } });
  for (let n = 0; n < 512; n += 1) park([{ id: `q${n}`, ...ASK }], bridge);
  const call = bridge.call();
  const { id } = bridge.heardOnly('tools/call');
  bridge.says({ id: 'one too many', ...SAMPLE });
  t.like(bridge.heard()[0], { id: 'one too many', error: { code: -32603 } });
  bridge.says({ id, result: { content: [] } });
  t.is(call.answer().result.resultType, 'complete', 'the call itself goes on');
  t.is(park(undefined, bridge, { principal: 'bob' }).result.resultType, 'input_required');
});

test('several choices in one field are not for servers that know only one', (t) => {
  const bridge = new ModernBridge({ greeting: { ...SERVER_RESULT, protocolVersion: '2025-06-18' } });
  const parked = park(undefined, bridge);
  retry(parked, parked.state, { 'elicitation-1': { action: 'accept', content: { colors: ['red', 'blue'] } } });
  t.like(bridge.heard()[0], { id: 'q', result: { action: 'cancel' } });
});

test('an older server gets one block of a sampled message, or an error', (t) => {
  const text = { type: 'text', text: 'x' };
  for (const [content, expected] of [
    [[text], { result: { content: text } }],
    [[text, text], { error: { code: -32603 } }],
    [[{ type: 'tool_use' }], { error: { code: -32603 } }],
    [text, { result: { content: text } }],
  ] as const) {
    const bridge = new ModernBridge({ greeting: { ...SERVER_RESULT, protocolVersion: '2025-06-18' } });
    const parked = park([{ id: 'q', ...SAMPLE }], bridge);
    retry(parked, parked.state, { 'sampling-1': { role: 'assistant', model: 'm', content } });
    t.like(bridge.heard()[0], { id: 'q', ...expected });
  }
});

test('a server of the first revision gets no audio in a sampled message', (t) => {
  const audio = { type: 'audio', data: '', mimeType: 'audio/wav' };
  for (const [protocolVersion, expected] of [
    ['2024-11-05', { error: { code: -32603 } }],
    ['2025-03-26', { result: { content: audio } }],
  ] as const) {
    const bridge = new ModernBridge({ greeting: { ...SERVER_RESULT, protocolVersion } });
    const parked = park([{ id: 'q', ...SAMPLE }], bridge);
    retry(parked, parked.state, { 'sampling-1': { role: 'assistant', model: 'm', content: audio } });
    t.like(bridge.heard()[0], { id: 'q', ...expected });
  }
});

test('a server that wants to know hears that somebody still thinks', (t) => {
  const question = { id: 'q', ...ASK, params: { ...ASK.params, _meta: { progressToken: 'tok' } } };
  const parked = park([question]);
  const { bridge, state } = parked;
  t.deepEqual(parked.result.inputRequests, { 'elicitation-1': ASK }, 'the token is between the two of them');
  bridge.clock.advance(60_000);
  t.deepEqual(
    bridge.heard().map(({ params }) => params),
    [1, 2, 3].map((progress) => ({ progressToken: 'tok', progress })),
  );
  retry(parked, state, { 'elicitation-1': ACCEPT });
  bridge.heard();
  bridge.clock.advance(60_000);
  t.deepEqual(bridge.heard(), []);
});

test('it hears so under its token as it wrote it', (t) => {
  const bridge = new ModernBridge();
  bridge.call();
  bridge.heard();
  const params = '{"message":"","_meta":{"progressToken":9007199254740993}}';
  bridge.says(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":${params}}`);
  bridge.collect();
  bridge.clock.advance(20_000);
  const [told] = bridge.dialer.latest.link.take();
  t.true(
    String(told?.frame.bytes).includes('"progressToken":9007199254740993,"progress":1}'),
    String(told?.frame.bytes),
  );
});

test('the end of the bridge refuses what is open and leaves no timer', async (t) => {
  const { bridge } = park();
  await bridge.modern.close();
  t.like(bridge.heard()[0], { id: 'q', result: { action: 'cancel' } });
  t.is(bridge.clock.pendingTimers, 0);
});

test('of two states none is taken', (t) => {
  const { bridge, state } = park();
  const text = JSON.stringify(state);
  const twice = bridge.raw(`"name":"x","arguments":{},"requestState":${text},"requestState":${text}`);
  t.is(twice.answer().error?.code, -32600);
  t.deepEqual(bridge.heard(), []);
});

test('a client that is about to be asked something when the bridge ends is told that it ends', async (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  bridge.heardOnly('tools/call');
  bridge.says({ id: 'q', ...ASK });
  await bridge.modern.close();
  t.is(call.answer().error?.code, -32000);
  t.is(bridge.clock.pendingTimers, 0);
});
