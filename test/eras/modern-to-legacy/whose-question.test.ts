import test from 'ava';
import {
  MAX_UNCLEAR,
  MAX_UNCLEAR_BYTES,
  UNCLEAR_HOLD_MS,
} from '../../../src/eras/modern-to-legacy/pool/unclear-questions.ts';
import { ABANDONED_MS } from '../../../src/relay/shared/legacy/attribution.ts';
import { ALL, ModernBridge } from './modern-bridge.ts';

const ASK = { method: 'elicitation/create', params: { message: 'who?', requestedSchema: { type: 'object' } } };
const UNCLEAR = { error: { code: -32603, data: { bridge: { reason: 'ERR_SHARED_AMBIGUOUS' } } } };

for (const attribution of ['stream', 'none'] as const) {
  test(`attribution ${attribution}: what names no call waits until only one can be meant; new calls do not count`, (t) => {
    const bridge = new ModernBridge({ attribution });
    const [first, second] = [bridge.call(), bridge.call()];
    const [, { id } = {}] = bridge.heard();
    t.is(bridge.dialer.dialed.length, 1);
    bridge.says({ id: 'q', ...ASK });
    bridge.collect();
    t.deepEqual([...first.told(), ...second.told(), ...bridge.heard()], []);
    bridge.call();
    bridge.says({ id, result: { content: [] } }, 0);
    t.is(second.answer().result.resultType, 'complete');
    bridge.collect();
    t.is(first.answer().result.resultType, 'input_required');
  });

  test(`attribution ${attribution}: while several calls can be meant nobody is asked, and the server is told so`, (t) => {
    const bridge = new ModernBridge({ attribution });
    const calls = [bridge.call(), bridge.call()];
    bridge.heard();
    bridge.says({ id: 'q', ...ASK });
    bridge.says({ id: 'withdrawn', ...ASK });
    bridge.says({ method: 'notifications/cancelled', params: { requestId: 'withdrawn' } });
    bridge.clock.advance(UNCLEAR_HOLD_MS - 1);
    t.deepEqual(bridge.heard(), []);
    bridge.clock.advance(1);
    t.like(bridge.heard(), [{ id: 'q', ...UNCLEAR }]);
    for (const call of calls) t.deepEqual(call.told(), []);
    bridge.says({ id: 'r', ...ASK });
    bridge.exits();
    bridge.clock.advance(UNCLEAR_HOLD_MS);
    for (const call of calls) t.is(call.answer().error?.code, -32603);
  });
}

test('no more is kept until it is clear than may be', (t) => {
  const bridge = new ModernBridge({ attribution: 'none' });
  for (let n = 0; n < 2; n += 1) bridge.call();
  bridge.heard();
  for (let n = 0; n <= MAX_UNCLEAR; n += 1) bridge.says({ id: n, ...ASK });
  t.like(bridge.heard(), [{ id: MAX_UNCLEAR, ...UNCLEAR }]);
  const large = new ModernBridge({ attribution: 'none' });
  for (let n = 0; n < 2; n += 1) large.call();
  large.heard();
  large.says({ id: 'q', ...ASK, params: { ...ASK.params, message: 'x'.repeat(MAX_UNCLEAR_BYTES) } });
  t.like(large.heard(), [{ id: 'q', ...UNCLEAR }]);
});

test('calls share a session until the server asks on a stream that is no call’s; then each has one to itself', (t) => {
  const bridge = new ModernBridge({ attribution: 'stream' });
  const shared = [bridge.call(), bridge.call()];
  const [first] = bridge.dialer.latest.link.sent.filter(({ frame }) => frame.method === 'tools/call');
  bridge.saysOn(first?.call, { id: 'q', ...ASK });
  bridge.call();
  t.is(bridge.dialer.dialed.length, 1);
  for (const { id, method } of bridge.heard())
    if (method === 'tools/call') bridge.says({ id, result: { content: [] } });
  t.is(shared[1]?.answer().result.resultType, 'complete');
  bridge.collect();
  const only = bridge.call();
  bridge.says({ id: 'r', ...ASK });
  bridge.collect();
  t.is(only.answer().result.resultType, 'input_required');
  bridge.call();
  t.is(bridge.dialer.dialed.length, 2);
});

test('the stream that a question comes on is believed only where the transport keeps one for each call', (t) => {
  const bridge = new ModernBridge({ attribution: 'none' });
  const [first, second] = [bridge.call(), bridge.call()];
  const [sent] = bridge.dialer.latest.link.sent.filter(({ frame }) => frame.method === 'tools/call');
  bridge.heard();
  bridge.saysOn(sent?.call, { id: 'q', ...ASK });
  bridge.clock.advance(UNCLEAR_HOLD_MS);
  t.like(bridge.heard()[0], { id: 'q', ...UNCLEAR });
  t.deepEqual([...first.told(), ...second.told()], []);
});

test('a question on the stream of a call that is over is asked of nobody', (t) => {
  const bridge = new ModernBridge({ attribution: 'stream' });
  bridge.call();
  const sent = bridge.dialer.latest.link.sent.at(-1);
  const [{ id } = {}] = bridge.heard();
  const other = bridge.call();
  bridge.heard();
  bridge.says({ id, result: { content: [] } });
  bridge.saysOn(sent?.call, { id: 'q', ...ASK });
  t.like(bridge.heard()[0], { id: 'q', result: { action: 'cancel' } });
  bridge.collect();
  t.deepEqual(other.told(), []);
});

test('over HTTP the session of an abandoned call serves only what cannot be asked; calls that can take another one', (t) => {
  const bridge = new ModernBridge();
  bridge.call().leaves();
  const next = bridge.call();
  t.is(bridge.dialer.dialed.length, 2);
  bridge.says({ id: 'q', ...ASK });
  bridge.collect();
  t.is(next.answer().result.resultType, 'input_required');
  bridge.heard();
  bridge.ask('tools/list', {}, { capabilities: ALL });
  t.is(bridge.heard(1).at(-1)?.method, 'tools/list', 'where the calls are');
  bridge.clock.advance(5 * 60_000);
  t.is(bridge.dialer.dialed[0]?.link.closedWith.length, 1, 'nobody uses it anymore');
});

test('a list that is abandoned asks nothing, and calls go on where they were', (t) => {
  const bridge = new ModernBridge();
  bridge.ask('tools/list', {}, { capabilities: ALL }).leaves();
  bridge.call();
  t.is(bridge.dialer.dialed.length, 1);
});

test('a client on a connection of its own is asked in its session, whatever it has canceled', (t) => {
  const bridge = new ModernBridge();
  const connection = bridge.connect();
  for (const id of [1, 2, 3]) bridge.call({}, { connection, id }).cancels();
  const next = bridge.call({}, { connection, id: 4 });
  bridge.says({ id: 'q', ...ASK });
  bridge.collect();
  t.is(next.answer().result.resultType, 'input_required');
  t.is(bridge.dialer.dialed.length, 1);
});

test('a client whose requests come alone, but are known to be of one, is asked in its session as well', (t) => {
  const bridge = new ModernBridge();
  const [ada, other] = [{}, {}];
  for (const id of [1, 2]) bridge.call({}, { identity: ada, id }).leaves();
  const next = bridge.call({}, { identity: ada });
  t.is(bridge.dialer.dialed.length, 1);
  bridge.says({ id: 'q', ...ASK });
  bridge.collect();
  t.is(next.answer().result.resultType, 'input_required');
  bridge.call({}, { identity: other });
  t.is(bridge.dialer.dialed.length, 2, 'others are not asked there');
});

test('of two connections each is asked in a session without abandoned calls of the other', (t) => {
  const bridge = new ModernBridge();
  const [first, second] = [bridge.connect(), bridge.connect()];
  bridge.call({}, { connection: first, id: 1 }).cancels();
  const other = bridge.call({}, { connection: second, id: 2 });
  t.is(bridge.dialer.dialed.length, 2);
  const own = bridge.call({}, { connection: first, id: 3 });
  t.is(bridge.dialer.dialed.length, 2, 'the first has only what it has abandoned itself');
  bridge.says({ id: 'q', ...ASK }, 0);
  bridge.collect();
  t.is(own.answer().result.resultType, 'input_required');
  t.deepEqual(other.told(), []);
});

test('a call that was abandoned and is answered all the same is over, and its session serves calls again', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  const [{ id } = {}] = bridge.heard();
  call.leaves();
  bridge.says({ id, result: { content: [] } });
  const next = bridge.call();
  t.is(bridge.dialer.dialed.length, 1);
  bridge.says({ id: 'q', ...ASK });
  bridge.collect();
  t.is(next.answer().result.resultType, 'input_required');
});

test('a call that waits for a session gets it as soon as the server answers the abandoned call', (t) => {
  const bridge = new ModernBridge({ poolLimits: { total: 1 } });
  bridge.ask('subscriptions/listen', { notifications: { toolsListChanged: true } }, { capabilities: ALL });
  const abandoned = bridge.call();
  const { id } = bridge.heardOnly('tools/call');
  abandoned.leaves();
  bridge.heard();
  bridge.call({ name: 'y' });
  t.deepEqual(bridge.heard(), []);
  bridge.says({ id, result: { content: [] } });
  t.is(bridge.heardOnly('tools/call').params.name, 'y');
});

test('a server that names the call it asks in keeps its session, whatever was abandoned there', (t) => {
  const bridge = new ModernBridge({ attribution: 'stream' });
  const call = bridge.call();
  const sent = bridge.dialer.latest.link.sent.at(-1);
  bridge.saysOn(sent?.call, { id: 'q', ...ASK });
  bridge.collect();
  t.is(call.answer().result.resultType, 'input_required');
  bridge.call().leaves();
  bridge.call();
  t.is(bridge.dialer.dialed.length, 1);
});

test('a transport that names no call of an answer, as HTTP+SSE, is met like a pipe: each call has a session to itself', (t) => {
  const bridge = new ModernBridge({ attribution: 'stream', namesCalls: false });
  const abandoned = bridge.call();
  const next = bridge.call();
  t.is(bridge.dialer.dialed.length, 2);
  // The client may be seen to leave only after its next call has come.
  abandoned.leaves();
  bridge.says({ id: 'q', ...ASK });
  bridge.collect();
  t.is(next.answer().result.resultType, 'input_required');
});

test('in one process for all an abandoned call keeps others from being asked for a moment only', (t) => {
  const bridge = new ModernBridge({ attribution: 'none' });
  bridge.call().leaves();
  const call = bridge.call();
  bridge.heard();
  bridge.clock.advance(ABANDONED_MS - 1);
  bridge.says({ id: 'q', ...ASK });
  t.like(bridge.heard()[0], { id: 'q', ...UNCLEAR });
  t.deepEqual(call.told(), []);
  bridge.clock.advance(1);
  bridge.says({ id: 'r', ...ASK });
  bridge.collect();
  t.is(call.answer().result.resultType, 'input_required');
  t.is(bridge.dialer.dialed.length, 1);
});

test('a question that waits for one of several calls is refused as soon as one of them is abandoned', (t) => {
  const bridge = new ModernBridge({ attribution: 'none' });
  const calls = [bridge.call(), bridge.call()];
  bridge.heard();
  bridge.says({ id: 'q', ...ASK });
  t.deepEqual(bridge.heard(), []);
  calls[0]?.leaves();
  t.like(bridge.heard().at(-1), { id: 'q', ...UNCLEAR });
  bridge.clock.advance(ABANDONED_MS);
  t.deepEqual(calls[1]?.told(), []);
});

test('clients that cannot be asked anything share a session, given up or not', (t) => {
  const bridge = new ModernBridge();
  const options = { capabilities: { experimental: { x: {} } } };
  const [first] = [bridge.call({}, options), bridge.call({}, options)];
  first?.leaves();
  bridge.call({}, options);
  t.is(bridge.dialer.dialed.length, 1);
});

test('who listens neither waits for a session nor keeps a call from it', (t) => {
  const bridge = new ModernBridge({ poolLimits: { total: 1 } });
  const listen = () =>
    bridge.ask('subscriptions/listen', { notifications: { toolsListChanged: true } }, { capabilities: ALL });
  const streams = [listen()];
  const call = bridge.call();
  streams.push(listen());
  const { id } = bridge.heardOnly('tools/call');
  for (const stream of streams) t.is(stream.told()[0]?.method, 'notifications/subscriptions/acknowledged');
  bridge.says({ id: 'q', ...ASK });
  bridge.collect();
  t.is(call.answer().result.resultType, 'input_required');
  for (const stream of streams) t.deepEqual(stream.told(), []);
  const waiting = bridge.call();
  call.leaves();
  bridge.says({ id, result: { content: [] } });
  t.is(bridge.heard().at(-1)?.method, 'tools/call');
  t.deepEqual(waiting.told(), []);
});

test('a call that waits for a session leaves with its client, and is never sent', (t) => {
  const bridge = new ModernBridge({ poolLimits: { total: 1 } });
  const first = bridge.call();
  const [waiting, next] = [bridge.call({ name: 'y' }), bridge.call({ name: 'z' })];
  waiting.cancels();
  const { id } = bridge.heardOnly('tools/call');
  bridge.says({ id, result: { content: [] } });
  t.is(first.answer().result.resultType, 'complete');
  t.is(bridge.heardOnly('tools/call').params.name, 'z');
  t.deepEqual([...waiting.told(), ...next.told()], []);
});

test('a call that waits too long is answered with the reason', (t) => {
  const bridge = new ModernBridge({ poolLimits: { total: 1 } });
  bridge.call();
  const waiting = bridge.call();
  bridge.clock.advance(50_000);
  t.like(waiting.answer().error, { code: -32000, data: { bridge: { reason: 'ERR_SESSION_LIMIT' } } });
});

test('the roots that one call was told are not those of the next', (t) => {
  const bridge = new ModernBridge();
  bridge.ask('server/discover', {}, { capabilities: ALL });
  bridge.says({ id: 'r', method: 'roots/list' });
  const call = bridge.call();
  bridge.collect();
  const { requestState } = call.answer().result;
  const roots = { roots: [{ uri: 'file:///ada' }] };
  bridge.call({ requestState, inputResponses: { 'roots-1': roots } });
  const [answered, sent] = bridge.heard();
  t.like(answered, { id: 'r', result: roots });
  bridge.says({ id: sent?.id, result: { content: [] } });
  bridge.says({ id: 's', method: 'roots/list' });
  t.like(bridge.heard()[0], { id: 's', error: { code: -32603 } }, 'no call is open that it could be asked in');
  const next = bridge.call();
  bridge.heard();
  bridge.says({ id: 't', method: 'roots/list' });
  bridge.collect();
  t.deepEqual(Object.keys(next.answer().result.inputRequests), ['roots-1']);
});

test('a call that no specification names meets the session of its client; what is asked waits until it is over', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  const own = bridge.ask('acme/do', {}, { capabilities: ALL });
  t.is(bridge.dialer.dialed.length, 1);
  const [, { id } = {}] = bridge.heard();
  bridge.says({ id: 'q', ...ASK });
  bridge.collect();
  t.deepEqual([...call.told(), ...bridge.heard()], []);
  bridge.says({ id, result: {} });
  t.is(own.answer().result.resultType, 'complete');
  bridge.collect();
  t.is(call.answer().result.resultType, 'input_required');
});
