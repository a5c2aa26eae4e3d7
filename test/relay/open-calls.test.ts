import test from 'ava';
import { OpenCalls } from '../../src/relay/open-calls.ts';

test('so many calls may be open and no more', (t) => {
  const calls = new OpenCalls(2);
  for (let n = 0; n < 2; n += 1) calls.opened(100);
  const refusal = calls.refusalOf(100);
  t.is(refusal?.code, 'ERR_SESSION_BUSY');
  t.regex(refusal?.message ?? '', /^2 calls of all clients/);
  calls.closed(100);
  t.is(calls.refusalOf(100), undefined);
});

test('large requests together are limited by their bytes, and small ones go on', (t) => {
  const calls = new OpenCalls(100, 60_000);
  for (let n = 0; n < 2; n += 1) calls.opened(40_000);
  calls.opened(10_000);
  const refusal = calls.refusalOf(20_000);
  t.is(refusal?.code, 'ERR_SESSION_BUSY');
  t.is(refusal?.retryAfterMs, 1000);
  t.regex(refusal?.message ?? '', /60000 bytes/);
  t.is(calls.refusalOf(16 * 1024), undefined);
  calls.closed(40_000);
  t.is(calls.refusalOf(20_000), undefined, 'the one that goes beyond it is still taken');
});
