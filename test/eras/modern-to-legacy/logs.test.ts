import test from 'ava';
import { ModernBridge, SERVER_RESULT } from './modern-bridge.ts';

function log(bridge: ModernBridge, level: string): void {
  bridge.says({ method: 'notifications/message', params: { level, data: level } });
}

test('a request that does not ask for logs gets none', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  bridge.heardOnly('tools/call');
  log(bridge, 'emergency');
  t.deepEqual(call.told(), []);
});

test('the server is told the level first, and what is as severe comes with the answer', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call({}, { logLevel: 'warning' });
  const level = bridge.heardOnly('logging/setLevel');
  t.deepEqual(level.params, { level: 'warning' });
  bridge.says({ id: level.id, result: {} });
  const { id } = bridge.heardOnly('tools/call');
  for (const severity of ['debug', 'warning', 'error']) log(bridge, severity);
  bridge.says({ id, result: {} });
  log(bridge, 'error');
  t.deepEqual(
    call.told().map(({ params, result }) => params?.level ?? result.resultType),
    ['warning', 'error', 'complete'],
  );
});

test('a server that does not answer the level in time is asked all the same', (t) => {
  const bridge = new ModernBridge();
  bridge.call({}, { logLevel: 'info' });
  bridge.heardOnly('logging/setLevel');
  bridge.clock.advance(1999);
  t.deepEqual(bridge.heard(), []);
  bridge.clock.advance(1);
  bridge.heardOnly('tools/call');
  t.pass();
});

test('a server without logging is not told of levels', (t) => {
  const bridge = new ModernBridge({ greeting: { ...SERVER_RESULT, capabilities: { tools: {} } } });
  bridge.call({}, { logLevel: 'info' });
  bridge.heardOnly('tools/call');
  t.pass();
});

test('what may be about either of two calls with levels goes to neither; other calls do not count', (t) => {
  const bridge = new ModernBridge({ attribution: 'stream' });
  const plain = bridge.call();
  bridge.heard();
  const first = bridge.call({}, { logLevel: 'debug' });
  bridge.says({ id: bridge.heardOnly('logging/setLevel').id, result: {} });
  bridge.heardOnly('tools/call');
  log(bridge, 'info');
  t.is(first.told().length, 1);
  const second = bridge.call({}, { logLevel: 'info' });
  bridge.heardOnly('tools/call');
  log(bridge, 'info');
  for (const call of [plain, first, second]) t.deepEqual(call.told(), []);
  first.leaves();
  bridge.heard();
  log(bridge, 'info');
  t.is(second.told().length, 1);
});

test('a retry has a level of its own', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call();
  bridge.heard();
  bridge.says({ id: 'q', method: 'roots/list' });
  bridge.collect();
  const { requestState } = call.answer().result;
  const again = bridge.call({ requestState, inputResponses: { 'roots-1': { roots: [] } } }, { logLevel: 'info' });
  t.deepEqual(
    bridge.heard().map(({ method }) => method),
    ['logging/setLevel', undefined],
  );
  log(bridge, 'info');
  t.is(again.told().length, 1);
});

/** A call that has asked for logs and is over. */
function finishedCall(bridge: ModernBridge, logLevel: string): void {
  bridge.call({}, { logLevel });
  for (const { id, method } of bridge.heard()) if (method === 'logging/setLevel') bridge.says({ id, result: {} });
  for (const { id, method } of bridge.heard()) if (method === 'tools/call') bridge.says({ id, result: {} });
}

test('the level stays for a moment, then the server may be quiet', (t) => {
  const bridge = new ModernBridge();
  finishedCall(bridge, 'info');
  bridge.clock.advance(4999);
  t.deepEqual(bridge.heard(), []);
  const next = bridge.call({}, { logLevel: 'warning' });
  const { id } = bridge.heardOnly('tools/call');
  bridge.clock.advance(1);
  const lowered = bridge.heardOnly('logging/setLevel');
  t.deepEqual(lowered.params, { level: 'warning' }, 'who is left still wants these');
  bridge.says({ id, result: {} });
  t.is(next.answer().result.resultType, 'complete');
  bridge.clock.advance(5000);
  const quiet = bridge.heardOnly('logging/setLevel');
  t.deepEqual(quiet.params, { level: 'emergency' });
  bridge.says({ id: quiet.id, result: {} });
  bridge.call({}, { logLevel: 'warning' });
  t.deepEqual(bridge.heardOnly('logging/setLevel').params, { level: 'warning' });
});

test('requests in quick succession set the level once', (t) => {
  const bridge = new ModernBridge();
  finishedCall(bridge, 'debug');
  for (let n = 0; n < 3; n += 1) {
    bridge.clock.advance(4000);
    bridge.call({}, { logLevel: 'debug' });
    bridge.says({ id: bridge.heardOnly('tools/call').id, result: {} });
  }
  bridge.clock.advance(5000);
  t.deepEqual(bridge.heardOnly('logging/setLevel').params, { level: 'emergency' });
});

test('a server that ends has no level to hold', (t) => {
  const bridge = new ModernBridge();
  finishedCall(bridge, 'debug');
  bridge.exits();
  bridge.clock.advance(60_000);
  t.is(bridge.dialer.dialed.length, 1, 'nobody wants another one');
});

test('a level that the server has refused is not held', (t) => {
  const bridge = new ModernBridge();
  const call = bridge.call({}, { logLevel: 'info' });
  bridge.says({ id: bridge.heardOnly('logging/setLevel').id, error: { code: -32602, message: 'no' } });
  bridge.says({ id: bridge.heardOnly('tools/call').id, result: {} });
  t.is(call.answer().result.resultType, 'complete');
  bridge.clock.advance(5000);
  t.deepEqual(bridge.heard(), []);
  bridge.call({}, { logLevel: 'info' });
  bridge.heardOnly('logging/setLevel');
});
