import test from 'ava';
import { withoutUrlElicitation } from '../../../src/mcp/translate/errors.ts';
import { serverFrame } from '../../support/frames.ts';

test('an error that its client does not know keeps its words and data, and gets a code it knows', (t) => {
  const required = '{"jsonrpc":"2.0","id":"\\u0061","error":{"code":-32042,"message":"sign in","data":{"n":1}}}';
  const known = withoutUrlElicitation(serverFrame(required));
  t.is(known.bytes.toString(), required.replace('-32042', '-32603'));
});

test('everything else passes as it is', (t) => {
  for (const code of ['-32603', '-32602,"data":-32042', '1e3']) {
    const other = serverFrame(`{"jsonrpc":"2.0","id":1,"error":{"message":"-32042","code":${code}}}`);
    t.is(withoutUrlElicitation(other), other);
  }
  const result = serverFrame('{"jsonrpc":"2.0","id":1,"result":{"code":-32042,"message":"x"}}');
  t.is(withoutUrlElicitation(result), result);
});
