import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { createLenientSessions } from '../../../src/upstream/resilience/lenient-sessions.ts';
import { requestFrame } from '../../../src/wire/write-message.ts';
import { collectLog } from '../../process/collected-log.ts';
import { FakeDialer, FakeServerListener, messagesOf } from '../../support/fake-peers.ts';
import { serverFrame } from '../../support/frames.ts';

function dial() {
  const { log, entries } = collectLog();
  const dialer = new FakeDialer();
  const listener = new FakeServerListener();
  const link = createLenientSessions(dialer, log).dial(listener);
  return { listener, link, server: dialer.latest, entries };
}

const HELLO = { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: { name: 'c', version: '1' } };
const refusal = (id: number, data: object) =>
  serverFrame({ id, error: { code: -32602, message: 'Unsupported', data } });

test('gives an answer the id of its request, and that of a message that could not be taken, too', (t) => {
  const { listener, link, server } = dial();
  link.send(requestFrame(5, 'tools/list'));
  link.send(requestFrame(6, 'tools/list'));
  server.listener.fromServer(serverFrame('{"jsonrpc":"2.0","id":"5","result":{"id":"5"}}'));
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
  server.listener.serverFault({ error, kind: 'result', id: '6' });
  t.deepEqual(messagesOf(listener.received), [{ jsonrpc: '2.0', id: 5, result: { id: '5' } }]);
  t.is(listener.faults[0]?.id, 6);
});

test("leaves the ids of the server's own requests alone", (t) => {
  const { listener, link, server } = dial();
  link.send(requestFrame(5, 'tools/list'));
  server.listener.fromServer(serverFrame('{"jsonrpc":"2.0","id":"5","method":"ping"}'));
  t.deepEqual(messagesOf(listener.received), [{ jsonrpc: '2.0', id: '5', method: 'ping' }]);
});

test('offers a server that refuses a revision the newest that it lists, and tells nobody of the refusal', (t) => {
  const { listener, link, server } = dial();
  link.send(requestFrame(0, 'initialize', HELLO));
  server.link.take();
  server.listener.fromServer(
    refusal(0, { supported: ['2024-11-05', '2025-06-18', '2030-01-01'], requested: '2025-11-25' }),
  );
  const params = { ...HELLO, protocolVersion: '2025-06-18' };
  t.deepEqual(messagesOf(server.link.take()), [{ jsonrpc: '2.0', id: 0, method: 'initialize', params }]);
  t.deepEqual(listener.received, []);
  server.listener.fromServer(serverFrame({ id: 0, result: { protocolVersion: '2025-06-18' } }));
  t.deepEqual(messagesOf(listener.received), [{ jsonrpc: '2.0', id: 0, result: { protocolVersion: '2025-06-18' } }]);
});

for (const [what, data] of [
  ['lists only the revision that it refuses', { supported: ['2025-11-25'] }],
  ['lists only what is not known here', { supported: ['2030-01-01'] }],
  ['lists no texts', { supported: [1] }],
  ['lists nothing', {}],
] as const) {
  test(`the refusal of a server that ${what} is passed on`, (t) => {
    const { listener, link, server } = dial();
    link.send(requestFrame(0, 'initialize', HELLO));
    server.link.take();
    server.listener.fromServer(refusal(0, data));
    t.deepEqual(messagesOf(server.link.take()), []);
    t.is(listener.received.length, 1);
  });
}

test('offers an older revision once, and only for a handshake', (t) => {
  const { listener, link, server } = dial();
  link.send(requestFrame(0, 'initialize', HELLO));
  server.listener.fromServer(refusal(0, { supported: ['2025-06-18'] }));
  server.link.take();
  server.listener.fromServer(refusal(0, { supported: ['2025-03-26'] }));
  link.send(requestFrame(1, 'tools/list', { protocolVersion: '2025-11-25' }));
  server.link.take();
  server.listener.fromServer(refusal(1, { supported: ['2025-06-18'] }));
  t.deepEqual(messagesOf(server.link.take()), []);
  t.is(listener.received.length, 2);
});
