import test from 'ava';
import type { ServerFault } from '../../../src/relay/ports.ts';
import { StreamMessages } from '../../../src/upstream/remote/server-messages.ts';
import type { Frame } from '../../../src/wire/frame.ts';

const MAX_BYTES = 100;

/** An answer of exactly so many bytes, as an event brings it. */
function answerOf(bytes: number) {
  const frame = (text: string) => `{"jsonrpc":"2.0","id":7,"result":"${text}"}`;
  return { event: 'message', id: undefined, data: Buffer.from(frame('x'.repeat(bytes - frame('').length))) };
}

test('a message of exactly the limit is taken, one byte more fails the call it answers', (t) => {
  const taken: Frame[] = [];
  const faults: ServerFault[] = [];
  const messages = new StreamMessages({
    name: 'the server',
    maxMessageBytes: MAX_BYTES,
    message: (frame) => taken.push(frame),
    fault: (fault) => faults.push(fault),
  });
  t.true(messages.take(answerOf(MAX_BYTES)));
  t.is(taken.length, 1);
  t.true(messages.take(answerOf(MAX_BYTES + 1)));
  t.is(taken.length, 1);
  t.is(faults[0]?.id, 7);
  t.is(faults[0]?.error.code, 'ERR_UPSTREAM_TOO_LARGE');
});
