import test from 'ava';
import { downgradeError } from '../../src/mcp/downgrade-errors.ts';
import { serverFrame } from '../support/frames.ts';

const required = '{"jsonrpc":"2.0","id":"\\u0061","error":{"code":-32042,"message":"sign in","data":{"n":1}}}';

test('an error that an older client does not know keeps its words and data, and gets a code it knows', (t) => {
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18'] as const) {
    const older = downgradeError(serverFrame(required), revision);
    t.is(older.bytes.toString(), required.replace('-32042', '-32603'));
  }
});

test('to a client that knows it, it passes as it is; so do all others', (t) => {
  const frame = serverFrame(required);
  t.is(downgradeError(frame, '2025-11-25'), frame);
  for (const code of ['-32603', '-32602,"data":-32042', '1e3']) {
    const other = serverFrame(`{"jsonrpc":"2.0","id":1,"error":{"message":"-32042","code":${code}}}`);
    t.is(downgradeError(other, '2024-11-05'), other);
  }
});
