import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { IdWarnings, LinkRequests } from '../../src/upstream/answer-ids.ts';
import type { Frame } from '../../src/wire/frame.ts';
import { notificationFrame, requestFrame } from '../../src/wire/write-message.ts';
import { collectLog } from '../process/collected-log.ts';
import { serverFrame } from '../support/frames.ts';

function open() {
  const { log } = collectLog();
  const sent: unknown[] = [];
  const received: unknown[] = [];
  const requests: LinkRequests = new LinkRequests({
    warnings: new IdWarnings('server', log),
    log,
    send: (frame) => send(frame),
  });
  const send = (frame: Frame): void => {
    requests.sent(frame);
    sent.push(frame.json());
  };
  const says = (frame: Frame): void => {
    const passed = requests.received(frame, undefined);
    if (passed !== undefined) received.push(passed.json());
  };
  return { requests, send, says, received, sent };
}

const HELLO = { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: { name: 'c', version: '1' } };
const refusal = (id: number, data: object) =>
  serverFrame({ id, error: { code: -32602, message: 'Unsupported', data } });

test('gives an answer the id of its request, and that of a message that could not be taken, too', (t) => {
  const { requests, send, says, received } = open();
  send(requestFrame(5, 'tools/list'));
  send(requestFrame(6, 'tools/list'));
  says(serverFrame('{"jsonrpc":"2.0","id":"5","result":{"id":"5"}}'));
  const error = new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large');
  t.deepEqual(received, [{ jsonrpc: '2.0', id: 5, result: { id: '5' } }]);
  t.is(requests.failed({ error, kind: 'result', id: '6' }).id, 6);
});

test('an error without id that may be the answer to a notification is not passed on', (t) => {
  const { send, says, received } = open();
  const unknown = serverFrame('{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}');
  send(notificationFrame('notifications/initialized'));
  send(requestFrame(1, 'tools/list'));
  says(unknown);
  t.is(received.length, 0);
  says(serverFrame({ id: 1, result: {} }));
  says(unknown);
  t.is(received.length, 2, 'a request was answered since');
  send(requestFrame(2, 'tools/list'));
  send(notificationFrame('notifications/cancelled', { requestId: 2 }));
  says(unknown);
  t.is(received.length, 2);
  says(serverFrame('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot read"}}'));
  t.is(received.length, 3, 'a notification can be read');
});

test("leaves the ids of the server's own requests alone", (t) => {
  const { send, says, received } = open();
  send(requestFrame(5, 'tools/list'));
  says(serverFrame('{"jsonrpc":"2.0","id":"5","method":"ping"}'));
  t.deepEqual(received, [{ jsonrpc: '2.0', id: '5', method: 'ping' }]);
});

test('offers a server that refuses a revision the newest that it lists, and tells nobody of the refusal', (t) => {
  const { send, says, received, sent } = open();
  send(requestFrame(0, 'initialize', HELLO));
  sent.length = 0;
  says(refusal(0, { supported: ['2024-11-05', '2025-06-18', '2030-01-01'], requested: '2025-11-25' }));
  const params = { ...HELLO, protocolVersion: '2025-06-18' };
  t.deepEqual(sent, [{ jsonrpc: '2.0', id: 0, method: 'initialize', params }]);
  t.deepEqual(received, []);
  says(serverFrame({ id: 0, result: { protocolVersion: '2025-06-18' } }));
  t.deepEqual(received, [{ jsonrpc: '2.0', id: 0, result: { protocolVersion: '2025-06-18' } }]);
});

for (const [what, data] of [
  ['lists only the revision that it refuses', { supported: ['2025-11-25'] }],
  ['lists only what is not known here', { supported: ['2030-01-01'] }],
  ['lists no texts', { supported: [1] }],
  ['lists nothing', {}],
] as const) {
  test(`the refusal of a server that ${what} is passed on`, (t) => {
    const { send, says, received, sent } = open();
    send(requestFrame(0, 'initialize', HELLO));
    sent.length = 0;
    says(refusal(0, data));
    t.deepEqual(sent, []);
    t.is(received.length, 1);
  });
}

test('offers an older revision once, and only for a handshake', (t) => {
  const { send, says, received, sent } = open();
  send(requestFrame(0, 'initialize', HELLO));
  says(refusal(0, { supported: ['2025-06-18'] }));
  sent.length = 0;
  says(refusal(0, { supported: ['2025-03-26'] }));
  send(requestFrame(1, 'tools/list', { protocolVersion: '2025-11-25' }));
  sent.length = 0;
  says(refusal(1, { supported: ['2025-06-18'] }));
  t.deepEqual(sent, []);
  t.is(received.length, 2);
});
