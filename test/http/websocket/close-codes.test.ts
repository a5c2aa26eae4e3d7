import test from 'ava';
import { BridgeError, SHUTTING_DOWN } from '../../../src/errors.ts';
import { closeCodeOf, fitReason } from '../../../src/http/websocket/close-codes.ts';

test('says by the code whether to come again, and when', (t) => {
  t.is(closeCodeOf(SHUTTING_DOWN), 1001);
  t.is(closeCodeOf(new BridgeError('ERR_SESSION_CLOSED', 'The configuration has changed.')), 1012);
  t.is(closeCodeOf(new BridgeError('ERR_SESSION_LIMIT', 'All are taken.')), 1013);
  t.is(closeCodeOf(new BridgeError('ERR_UPSTREAM_CRASH_LOOP', 'It crashes again and again.')), 1013);
  t.is(closeCodeOf(new BridgeError('ERR_UPSTREAM_EXITED', 'It exited.')), 1011);
  t.is(closeCodeOf(new BridgeError('ERR_INTERNAL', 'A fault.')), 1011);
});

test('fits words into a close frame', (t) => {
  t.is(fitReason('short'), 'short');
  for (const word of ['x', 'ü', '€', '😀']) {
    const fitted = fitReason(word.repeat(200));
    t.true(Buffer.byteLength(fitted) <= 123);
    t.regex(fitted, new RegExp(`^(${word})+…$`));
  }
});
