import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { dialRefusalOf } from '../../../src/relay/readiness.ts';
import { RestartPause } from '../../../src/relay/shared/process-replacement.ts';
import { failing, stopped } from '../../support/readiness.ts';

const READY = { state: 'ready' } as const;
const EXITED = new BridgeError('ERR_UPSTREAM_EXITED', 'exited');

test('the pause doubles while no handshake succeeds, up to half a minute, and starts anew when one does', (t) => {
  const pause = new RestartPause();
  const pauses = Array.from({ length: 9 }, () => pause.next(EXITED, READY));
  t.deepEqual(pauses, [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  pause.served();
  t.is(pause.next(EXITED, READY), 250);
});

test('a dialer that names a time is believed, be it in the end of the server or in its own state', (t) => {
  const pause = new RestartPause();
  t.is(pause.next(new BridgeError('ERR_UPSTREAM_EXITED', 'exited', { retryAfterMs: 700.2 }), READY), 701);
  const error = new BridgeError('ERR_UPSTREAM_CRASH_LOOP', 'later', { retryAfterMs: 5000 });
  t.is(pause.next(EXITED, stopped(error)), 5000);
});

test('a server that wants to be left alone for a week is tried again after five minutes', (t) => {
  const error = new BridgeError('ERR_UPSTREAM_CONNECT', 'maintenance', { retryAfterMs: 7 * 24 * 3600_000 });
  t.is(new RestartPause().next(error, READY), 300_000);
  t.is(new RestartPause().next(EXITED, stopped(error)), 300_000);
});

test('only a dialer that refuses stands in the way; one that has failed may be tried', (t) => {
  t.is(dialRefusalOf(stopped(EXITED)), EXITED);
  t.is(dialRefusalOf(failing(EXITED)), undefined);
  t.is(dialRefusalOf({ state: 'ready' }), undefined);
});
