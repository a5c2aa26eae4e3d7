import test from 'ava';
import { BridgeError, toBridgeError } from '../src/errors.ts';

test('an error of ours has no stack trace, which would cost more than the refusal', (t) => {
  const { stackTraceLimit } = Error;
  const error = new BridgeError('ERR_WIRE_MESSAGE', 'This is no message.');
  t.is(error.stack?.includes('\n'), false);
  t.is(Error.stackTraceLimit, stackTraceLimit);
});

test('a fault keeps its stack trace as the cause of an error', (t) => {
  const fault = new TypeError('undefined is not a function');
  const { code, cause } = toBridgeError(fault);
  t.is(code, 'ERR_INTERNAL');
  t.is(cause, fault);
  t.regex(fault.stack ?? '', /\n {4}at /);
});
