import test from 'ava';
import type { Call } from '../../../src/relay/call.ts';
import { ALL, ModernBridge, SERVER_RESULT } from './modern-bridge.ts';

/** The call sent last, as the server's transport knows it. */
function sentLast(bridge: ModernBridge): Call | undefined {
  return bridge.dialer.latest.link.sent.at(-1)?.call;
}

test('a question on the stream of a call is of that call, whatever was sent since', (t) => {
  const bridge = new ModernBridge({ attribution: 'stream' });
  const first = bridge.call();
  const stream = sentLast(bridge);
  const second = bridge.call();
  bridge.saysOn(stream, { id: 'q', method: 'roots/list' });
  bridge.collect();
  t.is(first.answer().result.resultType, 'input_required');
  t.deepEqual(second.told(), []);
});

test('a question on the stream of a list is of no call', (t) => {
  const bridge = new ModernBridge({ attribution: 'stream' });
  const call = bridge.call();
  bridge.ask('tools/list', {}, { capabilities: ALL });
  const stream = sentLast(bridge);
  bridge.heard();
  bridge.saysOn(stream, { id: 'q', method: 'elicitation/create', params: {} });
  t.like(bridge.heard()[0], { id: 'q', result: { action: 'cancel' } });
  bridge.collect();
  t.deepEqual(call.told(), []);
});

test('a log message on the stream of a call goes to that one of several', (t) => {
  const bridge = new ModernBridge({ attribution: 'stream', greeting: SERVER_RESULT });
  const first = bridge.call({}, { logLevel: 'info' });
  bridge.says({ id: bridge.heardOnly('logging/setLevel').id, result: {} });
  const stream = sentLast(bridge);
  const second = bridge.call({}, { logLevel: 'info' });
  bridge.saysOn(stream, { method: 'notifications/message', params: { level: 'info', data: 1 } });
  t.is(first.told().length, 1);
  t.deepEqual(second.told(), []);
});

test('a withdrawal names the call to the transport, too', (t) => {
  const bridge = new ModernBridge({ attribution: 'stream' });
  const call = bridge.call();
  const stream = sentLast(bridge);
  call.leaves();
  t.is(sentLast(bridge), stream);
  t.deepEqual(stream?.state, { kind: 'cancelled', by: 'client' });
});
