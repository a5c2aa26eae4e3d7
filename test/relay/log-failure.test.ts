import test from 'ava';
import { BridgeError, type ErrorCode } from '../../src/errors.ts';
import { logFailure } from '../../src/relay/log-failure.ts';
import { collectLog } from '../process/collected-log.ts';

function logged(code: ErrorCode, cause?: Error): object | undefined {
  const { log, entries } = collectLog();
  logFailure(log, new BridgeError(code, 'because', { cause }), 'it failed');
  return entries[0];
}

test('what has failed is logged with the reason', (t) => {
  const cause = new Error('low');
  t.like(logged('ERR_UPSTREAM_PROTOCOL', cause), {
    level: 40,
    code: 'ERR_UPSTREAM_PROTOCOL',
    msg: 'it failed: because',
  });
  t.false('err' in (logged('ERR_UPSTREAM_PROTOCOL', cause) ?? {}));
});

test('a bug is logged with its stack', (t) => {
  t.like(logged('ERR_INTERNAL', new Error('low')), { level: 40, err: { message: 'low' }, msg: 'it failed: because' });
});

for (const code of ['ERR_UPSTREAM_EXITED', 'ERR_UPSTREAM_SPAWN', 'ERR_UPSTREAM_HUNG'] as const) {
  test(`the reason is left out where the process itself has said it: ${code}`, (t) => {
    t.like(logged(code), { level: 30, code, msg: 'it failed' });
  });
}
