import test from 'ava';
import { OpenMessages } from '../../../../src/upstream/stdio/replacing/open-messages.ts';
import type { Frame, JsonRpcId } from '../../../../src/wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../../../src/wire/write-message.ts';

const INITIALIZE = requestFrame(0, 'initialize', { protocolVersion: '2025-11-25', capabilities: {} });
const OFFER = resultFrame(0, { protocolVersion: '2025-11-25', capabilities: { tools: {} } });
const LISTEN = requestFrame('l', 'subscriptions/listen', { notifications: { toolsListChanged: true } });
const ACKNOWLEDGED = notificationFrame('notifications/subscriptions/acknowledged', {
  _meta: { 'io.modelcontextprotocol/subscriptionId': 'l' },
});

function follow(...requests: readonly Frame[]): OpenMessages {
  const open = new OpenMessages();
  for (const frame of requests) open.requested({ frame, call: undefined });
  return open;
}

const call = (id: JsonRpcId): Frame => requestFrame(id, 'tools/call', { name: 'work' });

test('a request is open until its answer, its fault or its cancellation', (t) => {
  const open = follow(call(1), call(2), call(3));
  t.false(open.isIdle);
  // Some servers return the id in the other JSON type.
  open.toClient(resultFrame('1', {}));
  open.failed(2);
  open.notified(notificationFrame('notifications/cancelled', { requestId: 3 }));
  t.true(open.isIdle);
});

test('an answered handshake makes the connection one of the legacy era, and another result one of the modern era', (t) => {
  const legacy = follow(INITIALIZE);
  t.is(legacy.era, undefined);
  legacy.toClient(OFFER);
  t.is(legacy.era, 'legacy');
  t.deepEqual(legacy.capabilities, { tools: {} });
  const modern = follow(requestFrame(1, 'server/discover'));
  modern.toClient(errorFrame(1, { code: -32601, message: 'unknown' }));
  t.is(modern.era, undefined);
  modern.requested({ frame: call(2), call: undefined });
  modern.toClient(resultFrame(2, {}));
  t.is(modern.era, 'modern');
});

test('the next process may get the handshake and what only reads, and other calls are lost', (t) => {
  const list = requestFrame(1, 'tools/list');
  const open = follow(INITIALIZE, list, call(2));
  const { repeatable, lost } = open.processEnded();
  t.deepEqual(
    repeatable.map(({ frame }) => frame),
    [INITIALIZE, list],
  );
  t.deepEqual(lost, [2]);
  t.true(open.isIdle);
});

test('no answer reaches a process that has not asked for it', (t) => {
  const open = follow();
  const question = requestFrame(0, 'elicitation/create', { message: 'name?' });
  t.is(open.toClient(question), question);
  t.deepEqual(open.processEnded().questions, [0]);
  const later = open.toClient(question);
  t.not(later?.id, 0);
  t.is(open.toProcess(resultFrame(0, {})), undefined);
  t.is(open.toProcess(resultFrame(later?.id ?? '', {}))?.id, 0);
  t.is(open.toProcess(resultFrame(later?.id ?? '', {})), undefined);
});

test('a question that its process withdraws is withdrawn by the id that the client knows', (t) => {
  const open = follow();
  open.processEnded();
  const shown = open.toClient(requestFrame(7, 'roots/list'));
  const withdrawn = open.toClient(notificationFrame('notifications/cancelled', { requestId: 7 }));
  t.deepEqual(withdrawn?.json(), {
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId: shown?.id },
  });
});

test('a subscription goes on in the next process, and its client sees one acknowledgment and no end', (t) => {
  const open = follow(LISTEN);
  t.true(open.isIdle);
  t.is(open.toClient(ACKNOWLEDGED), ACKNOWLEDGED);
  open.isReplacing = true;
  t.is(open.toClient(resultFrame('l', {})), undefined);
  open.processEnded();
  open.isReplacing = false;
  t.deepEqual(
    open.reopen().map(({ frame }) => frame),
    [LISTEN],
  );
  t.is(open.toClient(ACKNOWLEDGED), undefined);
  t.true(open.listening[0]?.filter.toolsListChanged);
  const end = resultFrame('l', {});
  t.is(open.toClient(end), end);
  t.deepEqual(open.listening, []);
});
