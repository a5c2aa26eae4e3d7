import test from 'ava';
import {
  rewriteClientCancelled,
  rewriteProgress,
  rewriteRequest,
  rewriteServerCancelled,
} from '../../../src/mcp/translate/rewrite.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';

test('a rewritten request is a frame with the new id, whatever the order of its members', (t) => {
  for (const text of [
    '{"jsonrpc":"2.0","id":"abc","method":"m","params":{"_meta":{"progressToken":"t"}}}',
    '{"params":{"_meta":{"progressToken":"t"}},"method":"m","id":"abc","jsonrpc":"2.0"}',
  ]) {
    const rewritten = rewriteRequest(clientFrame(text), 12);
    t.is(rewritten?.frame.id, 12);
    t.is(rewritten?.frame.method, 'm');
    t.is(rewritten?.progressToken?.toString(), '"t"');
    t.is(rewritten?.frame.bytes.toString(), text.replace('"abc"', '12').replace('"t"', '12'));
  }
});

test('what is kept of a request is a copy', (t) => {
  const frame = clientFrame({ id: 1, method: 'm', params: { _meta: { progressToken: 'token' } } });
  const rewritten = rewriteRequest(frame, 12);
  frame.bytes.fill(0);
  t.is(rewritten?.progressToken?.toString(), '"token"');
});

test('a notification without the id or token it should name is not rewritten', (t) => {
  const notification = clientFrame({ method: 'n', params: { other: 1 } });
  t.is(rewriteClientCancelled(notification, 1), undefined);
  t.is(rewriteServerCancelled(notification, 1), undefined);
  t.is(rewriteProgress(notification, Buffer.from('1')), undefined);
});

test('a message of a server that is not JSON is not rewritten into something worse', (t) => {
  const odd = serverFrame('{"jsonrpc":"2.0","method":"n","params":{"a":x"y,"progressToken":1,"b":z"}}');
  const rewritten = rewriteProgress(odd, Buffer.from('"\\""'));
  t.is(rewritten, undefined);
});
