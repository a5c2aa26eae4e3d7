import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { rpcErrorOf } from '../../src/mcp/vocabulary/rpc-errors.ts';
import { MAX_INITIALIZE_BYTES } from '../../src/relay/call.ts';
import { messagesOf } from '../support/fake-peers.ts';
import { RelayPair, readyPair } from './relay-pair.ts';

const HELLO = { id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {} } };

test('passes the handshake through, and the client side knows the revision before it gets the answer', (t) => {
  const pair = new RelayPair();
  const revisionsAtAnswer: (string | undefined)[] = [];
  pair.peer.onSend = () => revisionsAtAnswer.push(pair.peer.revisions[0]?.id);
  const hello = pair.client(HELLO);
  t.is(pair.link.sent[0]?.frame, hello);
  const answer = pair.server({ id: 0, result: { protocolVersion: '2025-03-26' } });
  t.is(pair.peer.sent[0]?.frame, answer);
  t.deepEqual(revisionsAtAnswer, ['2025-03-26']);
  t.deepEqual(
    pair.ready.map(({ id }) => id),
    ['2025-03-26'],
  );
});

for (const [title, result] of [
  ['names a revision nobody knows', { protocolVersion: '1999-01-01' }],
  ['names none', {}],
  ['answers null', null],
] as const) {
  test(`serves the client like the oldest revision when the server ${title}`, (t) => {
    const pair = new RelayPair();
    pair.client(HELLO);
    pair.server({ id: 0, result });
    t.deepEqual(
      pair.peer.revisions.map(({ id }) => id),
      ['2024-11-05'],
    );
  });
}

test('ends the session after a refused initialize, once the refusal was passed on', (t) => {
  const pair = new RelayPair();
  pair.client(HELLO);
  const refusal = pair.server({ id: 0, error: { code: -32602, message: 'no' } });
  t.is(pair.peer.sent[0]?.frame, refusal);
  t.is(pair.peer.sent[0]?.call?.state.kind, 'settled');
  t.deepEqual(
    pair.ends.map(({ code }) => code),
    ['ERR_UPSTREAM_PROTOCOL'],
  );
  t.is(pair.link.closedWith.length, 1);
  t.deepEqual(pair.ready, []);
});

test('what was sent behind an initialize that fails is told the same as initialize', (t) => {
  const reasonsOf = (error: object): unknown[] => {
    const pair = new RelayPair();
    pair.client(HELLO);
    pair.client({ id: 1, method: 'tools/list' });
    pair.server({ id: 0, error });
    const [, early] = messagesOf(pair.peer.sent) as { error?: { message: string; data: object } }[];
    return [early?.error?.message, early?.error?.data];
  };
  const unreachable = new BridgeError('ERR_UPSTREAM_CONNECT', 'Cannot reach the server: nothing listens there.');
  t.deepEqual(reasonsOf(rpcErrorOf(unreachable)), [
    'Cannot reach the server: nothing listens there.',
    { bridge: { reason: 'ERR_UPSTREAM_CONNECT' } },
  ]);
  const refused = [
    'The server refused initialize; its error was passed on.',
    { bridge: { reason: 'ERR_UPSTREAM_PROTOCOL' } },
  ];
  t.deepEqual(reasonsOf({ code: -32602, message: 'no' }), refused);
  t.deepEqual(reasonsOf({ code: -32603, message: 'no', data: { bridge: { reason: 'toString' } } }), refused);
});

test('refuses an initialize that is too large to be kept with its session, which is over then', (t) => {
  const pair = new RelayPair();
  const padded = (bytes: number): object => ({ ...HELLO, params: { padding: 'x'.repeat(bytes) } });
  pair.client(padded(MAX_INITIALIZE_BYTES));
  t.deepEqual(pair.link.sent, []);
  t.like(messagesOf(pair.peer.sent)[0], {
    id: 0,
    error: { code: -32600, data: { bridge: { reason: 'ERR_WIRE_FRAME_TOO_LARGE' } } },
  });
  t.is(pair.ends.length, 1);
  const other = new RelayPair();
  other.client(padded(MAX_INITIALIZE_BYTES - 200));
  t.is(other.link.sent.length, 1);
});

test('a session that serves goes on when its client sends such an initialize once more', (t) => {
  const pair = readyPair();
  pair.client({ ...HELLO, params: { padding: 'x'.repeat(MAX_INITIALIZE_BYTES) } });
  t.is(pair.peer.sent.length, 1);
  t.deepEqual(pair.ends, []);
});

test('forwards requests that come before the handshake is over', (t) => {
  const pair = new RelayPair();
  pair.client(HELLO);
  const early = pair.client({ id: 1, method: 'tools/list' });
  t.is(pair.link.sent[1]?.frame, early);
});

test('drains a session in mid-handshake without losing the answer', (t) => {
  const pair = new RelayPair();
  pair.client(HELLO);
  pair.relay.drain();
  const answer = pair.server({ id: 0, result: { protocolVersion: '2025-06-18' } });
  t.is(pair.peer.sent[0]?.frame, answer);
  t.is(pair.relay.openCalls, 0);
});

test('leaves initialized to the server as it came', (t) => {
  const pair = readyPair();
  const initialized = pair.client('{"jsonrpc":"2.0" , "method":"notifications/initialized"}');
  t.is(pair.link.sent[0]?.frame, initialized);
});

test('a server whose answer to initialize is not JSON does not bring the bridge down', (t) => {
  const pair = new RelayPair();
  pair.client(HELLO);
  const answer = pair.server('{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","n":NaN}}');
  t.is(pair.peer.sent[0]?.frame, answer);
  t.deepEqual(
    pair.peer.revisions.map(({ id }) => id),
    ['2024-11-05'],
  );
});

test('a second initialize may be refused or time out without ending the session', (t) => {
  const pair = readyPair({ requestTimeoutMs: 1000 });
  pair.client({ ...HELLO, id: 1 });
  const refusal = pair.server({ id: 1, error: { code: -32600, message: 'initialized already' } });
  t.is(pair.peer.sent[0]?.frame, refusal);
  pair.client({ ...HELLO, id: 2 });
  pair.clock.advance(1000);
  pair.relay.sweep(pair.clock.now());
  t.is(pair.peer.sent[1]?.frame.id, 2);
  t.deepEqual(pair.ends, []);
  t.notThrows(() => pair.call(3));
});

test('ends the session when the answer to initialize could not be taken', (t) => {
  const pair = new RelayPair();
  pair.client(HELLO);
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
  pair.relay.serverFault({ error, kind: 'result', id: 0 });
  t.is(pair.peer.sent[0]?.frame.id, 0);
  t.deepEqual(pair.ends, [error]);
  t.is(pair.link.closedWith.length, 1);
});

test('notifications before the answer to initialize wait for it, within a limit', (t) => {
  const pair = new RelayPair();
  const log = (data: unknown) => pair.server({ method: 'notifications/message', params: { level: 'info', data } });
  const early = log('early');
  pair.client(HELLO);
  const meanwhile = log('meanwhile');
  const huge = log('x'.repeat(2 * 1024 * 1024));
  t.deepEqual(pair.peer.sent, []);
  const result = pair.server({ id: 0, result: { protocolVersion: '2025-06-18', capabilities: {} } });
  const after = log('after');
  t.deepEqual(
    pair.peer.sent.map(({ frame }) => frame),
    [result, early, meanwhile, after],
  );
  t.false(pair.peer.sent.some(({ frame }) => frame === huge));
});

test("what waits for the answer to initialize is nobody's if that is an error", (t) => {
  const pair = new RelayPair();
  pair.client(HELLO);
  pair.server({ method: 'notifications/message', params: {} });
  pair.server({ id: 0, error: { code: -32602, message: 'no' } });
  t.deepEqual(
    pair.peer.sent.map(({ frame }) => frame.kind),
    ['error'],
  );
});
