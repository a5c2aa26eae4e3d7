import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { failureToldBy, rpcErrorOf } from '../../../src/mcp/vocabulary/rpc-errors.ts';
import { errorFrame } from '../../../src/wire/write-message.ts';

test('a failure of the bridge shows its code of JSON-RPC, its message and its stable code', (t) => {
  t.deepEqual(rpcErrorOf(new BridgeError('ERR_SESSION_UNKNOWN', 'gone')), {
    code: -32001,
    message: 'gone',
    data: { bridge: { reason: 'ERR_SESSION_UNKNOWN' } },
  });
});

test('details stand beside the stable code and cannot hide it', (t) => {
  const error = new BridgeError('ERR_UPSTREAM_EXITED', 'exited', { data: { exitCode: 1, reason: 'x' } });
  t.deepEqual(rpcErrorOf(error).data, { bridge: { reason: 'ERR_UPSTREAM_EXITED', exitCode: 1 } });
});

test('a code that has none of JSON-RPC is an internal error', (t) => {
  t.is(rpcErrorOf(new BridgeError('ERR_CONFIG_OPTION', 'no')).code, -32603);
});

test('the cause stays inside', (t) => {
  const error = new BridgeError('ERR_INTERNAL', 'failed', { cause: new Error('secret') });
  t.false(JSON.stringify(rpcErrorOf(error)).includes('secret'));
});

test('what a bridge has told is known again, no longer than a bridge tells', (t) => {
  const failure = new BridgeError('ERR_UPSTREAM_CONNECT', 'nothing listens there', { data: { cause: 'ECONNREFUSED' } });
  const told = failureToldBy(errorFrame(1, rpcErrorOf(failure)));
  t.like(told, { code: 'ERR_UPSTREAM_CONNECT', message: 'nothing listens there', data: undefined });
  const long = failureToldBy(errorFrame(1, { ...rpcErrorOf(failure), message: 'x'.repeat(100_000) }));
  t.is(long?.message.length, 1000);
});

for (const reason of ['toString', 'no such code', ['ERR_UPSTREAM_CONNECT'], undefined]) {
  test(`an error whose reason is ${JSON.stringify(reason)} is the server's own`, (t) => {
    t.is(failureToldBy(errorFrame(1, { code: -32603, message: 'no', data: { bridge: { reason } } })), undefined);
  });
}
