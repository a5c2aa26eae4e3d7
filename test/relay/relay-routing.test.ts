import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { readField } from '../../src/mcp/vocabulary/payload.ts';
import { type Call, MAX_OPEN_CALLS } from '../../src/relay/call.ts';
import { FakeLane, messagesOf } from '../support/fake-peers.ts';
import { RelayPair, readyPair } from './relay-pair.ts';

interface ErrorMessage {
  readonly id?: unknown;
  readonly error: { readonly code: number; readonly data: { readonly bridge: { readonly reason: string } } };
}

/** Odd, but legal: what a printer of JSON would not leave as it is. */
const ODD = [
  '{ "params" : {"n": 1.0e+2, "big": 123456789012345678901234567890, "esc": "\\u00e9\\/"} , "method":"tools/call", "id" : 7,"jsonrpc":"2.0"}',
  '{"jsonrpc":"2.0","id":7,"method":"x-vendor/unheard-of","extra":{"a":[ ]},"params":{"_meta":{"k":null},"k":1,"k":2}}',
];

for (const text of ODD) {
  test(`hands the server the very frame the client sent, and the client the very answer: ${text.slice(0, 40)}`, (t) => {
    const pair = readyPair();
    const lane = new FakeLane();
    const request = pair.client(text, lane);
    t.is(pair.link.sent[0]?.frame, request);
    t.is(request.bytes.toString(), text);
    const answerText = '{"result" : {"x": 1.50, "y":"\\u0041"}, "id": 7 ,"jsonrpc":"2.0", "more":1}';
    const answer = pair.server(answerText);
    t.is(pair.peer.sent[0]?.frame, answer);
    t.is(answer.bytes.toString(), answerText);
    t.is(pair.peer.sent[0]?.call?.lane, lane);
  });
}

test('passes notifications of both sides on, known or not, as the frames they are', (t) => {
  const pair = readyPair();
  const toServer = [
    pair.client({ method: 'notifications/roots/list_changed' }),
    pair.client({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } }),
    pair.client({ method: 'x-vendor/event', params: [1, 2] }),
  ];
  t.deepEqual(
    pair.link.sent.map(({ frame }) => frame),
    toServer,
  );
  const toClient = [
    pair.server({ method: 'notifications/tools/list_changed' }),
    pair.server({ method: 'notifications/resources/updated', params: { uri: 'a:b' } }),
    pair.server({ method: 'x-vendor/event' }),
  ];
  t.deepEqual(
    pair.peer.sent.map(({ frame }) => frame),
    toClient,
  );
  t.true(pair.peer.sent.every(({ call }) => call === undefined));
});

test('gives each answer to the call with its id, and tells the string "1" from the number 1', (t) => {
  const pair = readyPair();
  const calls = new Map<string | number | undefined, Call>();
  for (const id of [1, '1', '01', '', 0, -1]) calls.set(id, pair.call(id));
  for (const id of ['', -1, '1', 0, 1, '01']) pair.server({ id, result: {} });
  t.deepEqual(
    pair.peer.sent.map(({ frame }) => frame.id),
    ['', -1, '1', 0, 1, '01'],
  );
  for (const { frame, call } of pair.peer.sent) t.is(call, calls.get(frame.id));
});

test('knows an id however it is spelled', (t) => {
  const pair = readyPair();
  pair.client('{"jsonrpc":"2.0","id":"\\u00e9/","method":"ping"}');
  const answer = pair.server('{"jsonrpc":"2.0","id":"é\\/","result":{}}');
  t.is(pair.peer.sent[0]?.frame, answer);
});

test('drops an answer to an id that is not open, and the second answer to one', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.server({ id: 2, result: {} });
  pair.server({ id: '1', result: {} });
  t.deepEqual(pair.peer.sent, []);
  pair.server({ id: 1, result: {} });
  pair.server({ id: 1, error: { code: 1, message: 'again' } });
  t.is(pair.peer.sent.length, 1);
});

test('passes a server error on untouched', (t) => {
  const pair = readyPair();
  pair.call(1);
  const error = pair.server({ id: 1, error: { code: -32042, message: 'm', data: { elicitations: [] } } });
  t.is(pair.peer.sent[0]?.frame, error);
});

test('refuses a request id that is in use, and leaves the call that uses it alone', (t) => {
  const pair = readyPair();
  pair.call(5);
  pair.link.take();
  const lane = new FakeLane();
  pair.client({ id: 5, method: 'tools/list' }, lane);
  t.deepEqual(pair.link.sent, []);
  const [refusal] = pair.peer.take();
  t.is(refusal?.call?.lane, lane);
  const message = refusal?.frame.json() as ErrorMessage;
  t.is(message.id, 5);
  t.is(message.error.code, -32600);
  const answer = pair.server({ id: 5, result: {} });
  t.is(pair.peer.sent[0]?.frame, answer);
});

test('takes an id again once its call was answered', (t) => {
  const pair = readyPair();
  pair.call(5);
  pair.server({ id: 5, result: {} });
  t.notThrows(() => pair.call(5));
});

test('refuses calls beyond the most one session may have open, and takes more once some are answered', (t) => {
  const pair = readyPair();
  for (let id = 0; id < MAX_OPEN_CALLS; id += 1) pair.call(id);
  t.is(pair.relay.openCalls, MAX_OPEN_CALLS);
  pair.client({ id: 'one more', method: 'ping' });
  const [refusal] = messagesOf(pair.peer.take()) as ErrorMessage[];
  t.is(refusal?.id, 'one more');
  t.is(refusal?.error.data.bridge.reason, 'ERR_SESSION_BUSY');
  pair.server({ id: 0, result: {} });
  t.notThrows(() => pair.call('now'));
});

test('gives progress to the call whose token it names, however many are open', (t) => {
  const pair = readyPair();
  const one = pair.call(1, 'tools/call', { _meta: { progressToken: 'a' } });
  const two = pair.call(2, 'tools/call', { _meta: { progressToken: 1 } });
  pair.call(3, 'tools/call');
  const progress = [1, 'a'].map((progressToken) =>
    pair.server({ method: 'notifications/progress', params: { progressToken, progress: 1 } }),
  );
  t.deepEqual(pair.peer.sent, [
    { frame: progress[0], call: two },
    { frame: progress[1], call: one },
  ]);
});

test('drops progress of no open call: with an invented token, after the answer, after a cancellation', (t) => {
  const pair = readyPair();
  const progress = (progressToken: unknown, known?: Call) =>
    pair.server({ method: 'notifications/progress', params: { progressToken, progress: 1 } }, known);
  const one = pair.call(1, 'tools/call', { _meta: { progressToken: 1 } });
  progress('tool-call-1');
  progress('tool-call-1', one);
  pair.server({ method: 'notifications/progress', params: { progress: 1 } });
  pair.server({ id: 1, result: {} });
  progress(1);
  progress(1, one);
  pair.call(2, 'tools/call', { _meta: { progressToken: 2 } });
  pair.client({ method: 'notifications/cancelled', params: { requestId: 2 } });
  progress(2);
  t.deepEqual(
    pair.peer.sent.map(({ frame }) => frame.id),
    [1],
  );
});

test('gives progress with a token of another JSON type under the token of the client, exact matches first', (t) => {
  const pair = readyPair();
  const progress = (progressToken: unknown) =>
    pair.server({ method: 'notifications/progress', params: { progress: 1, progressToken } });
  const one = pair.call(1, 'tools/call', { _meta: { progressToken: 1 } });
  const two = pair.call(2, 'tools/call', { _meta: { progressToken: '2' } });
  const three = pair.call(3, 'tools/call', { _meta: { progressToken: '1' } });
  for (const token of ['1', 1, 2]) progress(token);
  t.deepEqual(
    pair.peer.sent.map(({ frame, call }) => [readField(frame, 'progressToken'), call]),
    [
      ['1', three],
      [1, one],
      ['2', two],
    ],
  );
});

test('passes progress of a task on, whose call has been answered', (t) => {
  const pair = readyPair();
  pair.call(1, 'tools/call', { task: {}, _meta: { progressToken: 't' } });
  pair.server({ id: 1, result: { task: { taskId: 'a', status: 'working' } } });
  const progress = pair.server({ method: 'notifications/progress', params: { progressToken: 't', progress: 1 } });
  t.deepEqual(pair.peer.sent[1], { frame: progress, call: undefined });
});

test('a token used twice reaches the later call, and the earlier answer does not make it unknown', (t) => {
  const pair = readyPair();
  pair.call(1, 'tools/call', { _meta: { progressToken: 't' } });
  const later = pair.call(2, 'tools/call', { _meta: { progressToken: 't' } });
  pair.server({ id: 1, result: {} });
  pair.server({ method: 'notifications/progress', params: { progressToken: 't', progress: 1 } });
  t.is(pair.peer.sent[1]?.call, later);
});

test('gives a log message to the only open call, else to no call', (t) => {
  const pair = readyPair();
  const log = { method: 'notifications/message', params: { level: 'info', data: 'x' } };
  pair.server(log);
  const one = pair.call(1);
  pair.server(log);
  pair.call(2);
  pair.server(log);
  t.deepEqual(
    pair.peer.sent.map(({ call }) => call),
    [undefined, one, undefined],
  );
});

test('believes a transport that knows which call a message belongs to', (t) => {
  const pair = readyPair();
  const first = pair.call(1);
  const second = pair.call(2);
  pair.server({ method: 'notifications/message', params: { level: 'info' } }, first);
  pair.server({ id: 9, method: 'roots/list' }, second);
  t.deepEqual(
    pair.peer.sent.map(({ call }) => call),
    [first, second],
  );
});

test('an error without id does not touch several open calls', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.call(2);
  pair.server({ error: { code: -32700, message: 'what?' } });
  t.deepEqual(pair.peer.sent, []);
  t.is(pair.relay.openCalls, 2);
});

test('over-long messages fail exactly their call', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.call('1');
  const error = tooLarge();
  pair.relay.serverFault({ error, kind: 'result', id: '1' });
  const [failed, ...others] = messagesOf(pair.peer.sent) as ErrorMessage[];
  t.is(failed?.id, '1');
  t.is(failed?.error.data.bridge.reason, 'ERR_UPSTREAM_TOO_LARGE');
  t.deepEqual(others, []);
  t.is(pair.relay.openCalls, 1);
});

test('an over-long message nothing is known of fails the only open call, but none of several', (t) => {
  const pair = readyPair();
  const fault = { error: tooLarge(), kind: undefined, id: undefined };
  pair.call(1);
  pair.call(2);
  pair.relay.serverFault(fault);
  t.is(pair.relay.openCalls, 2);
  pair.server({ id: 1, result: {} });
  pair.relay.serverFault(fault);
  t.is(pair.relay.openCalls, 0);
  t.is(pair.peer.sent.at(-1)?.frame.id, 2);
});

test('an over-long notification fails nothing, an over-long request is refused to the server', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.link.take();
  pair.relay.serverFault({ error: tooLarge(), kind: 'notification', id: undefined });
  t.deepEqual(pair.link.sent, []);
  const error = new BridgeError('ERR_WIRE_FRAME_TOO_LARGE', 'too large');
  pair.relay.serverFault({ error, kind: 'request', id: 1 });
  t.is(pair.relay.openCalls, 1);
  t.deepEqual(pair.peer.sent, []);
  const [refusal] = messagesOf(pair.link.sent) as ErrorMessage[];
  t.is(refusal?.id, 1);
  t.is(refusal?.error.code, -32600);
});

test('an over-long request whose id is not known either cannot be refused to the server', (t) => {
  const pair = readyPair();
  pair.relay.serverFault({ error: tooLarge(), kind: 'request', id: undefined });
  t.deepEqual(pair.link.sent, []);
});

test('an over-long answer to a call that came before the handshake does not end the session', (t) => {
  const pair = new RelayPair();
  pair.call(1, 'ping');
  pair.relay.serverFault({ error: tooLarge(), kind: 'result', id: 1 });
  t.is(pair.peer.sent[0]?.frame.id, 1);
  t.deepEqual(pair.ends, []);
});

test('a fault about a call that is not open does nothing', (t) => {
  const pair = readyPair();
  pair.call(1);
  pair.relay.serverFault({ error: tooLarge(), kind: 'result', id: 2 });
  t.deepEqual(pair.peer.sent, []);
});

function tooLarge() {
  return new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
}

for (const [title, text] of [
  ['without id', '{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?","data":1.0}}'],
  ['with id null', '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?","data":1.0}}'],
]) {
  test(`an error ${title} answers the only open call, which the client then recognizes`, (t) => {
    const pair = readyPair();
    const call = pair.call('é');
    pair.server(text ?? '');
    const [sent] = pair.peer.sent;
    t.is(sent?.call, call);
    t.is(sent?.frame.id, 'é');
    t.deepEqual(sent?.frame.json(), {
      jsonrpc: '2.0',
      id: 'é',
      error: { code: -32700, message: 'what?', data: 1 },
    });
    t.true(sent?.frame.bytes.includes('"data":1.0'), 'the rest stays as it was written');
    t.is(pair.relay.openCalls, 0);
  });
}

test('an answer to a call that is over is dropped even if the transport knows which call it was', (t) => {
  const pair = readyPair();
  const call = pair.call(1);
  pair.client({ method: 'notifications/cancelled', params: { requestId: 1 } });
  t.notThrows(() => pair.server({ id: 1, result: {} }, call));
  t.deepEqual(pair.peer.sent, []);
});
