import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import type { CallerEnvironment } from '../../../src/relay/ports.ts';
import { DialerByEnvironment, IDLE_DIALER_MS, MAX_DIALERS } from '../../../src/upstream/stdio/dialer-by-environment.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeDialer } from '../../support/fake-peers.ts';
import { RecordingServerListener } from '../recording-server-listener.ts';

const OVER = new BridgeError('ERR_SESSION_CLOSED', 'over');

function setUp() {
  const clock = new FakeClock();
  const made: { readonly environment: CallerEnvironment; readonly dialer: FakeDialer; isClosed: boolean }[] = [];
  const create = (environment: CallerEnvironment) => {
    const entry = { environment, dialer: new FakeDialer(), isClosed: false };
    entry.dialer.close = async () => {
      entry.isClosed = true;
    };
    made.push(entry);
    return entry.dialer;
  };
  return { clock, made, dialer: new DialerByEnvironment({ create, clock }) };
}

const listener = () => new RecordingServerListener();

test('equal values share a dialer, whatever their order; others have their own', (t) => {
  const { dialer, made } = setUp();
  dialer.forCaller({ A: '1', B: '2' }).dial(listener());
  dialer.forCaller({ B: '2', A: '1' }).dial(listener());
  dialer.forCaller({ A: '2', B: '1' }).dial(listener());
  dialer.forCaller(undefined).dial(listener());
  dialer.forCaller({}).dial(listener());
  t.deepEqual(
    made.map(({ environment, dialer: { dialled } }) => [environment, dialled.length]),
    [
      [{}, 2],
      [{ A: '1', B: '2' }, 2],
      [{ A: '2', B: '1' }, 1],
    ],
  );
});

test('a dialer that nobody uses is let go after a while, one that is used again is not', async (t) => {
  const { dialer, made, clock } = setUp();
  const link = dialer.forCaller({ A: '1' }).dial(listener());
  clock.advance(IDLE_DIALER_MS * 2);
  t.false(made[1]?.isClosed);
  link.close(OVER);
  link.close(OVER);
  clock.advance(IDLE_DIALER_MS - 1);
  const again = dialer.forCaller({ A: '1' }).dial(listener());
  clock.advance(IDLE_DIALER_MS);
  t.is(made.length, 2);
  t.false(made[1]?.isClosed);
  again.close(OVER);
  clock.advance(IDLE_DIALER_MS);
  t.true(made[1]?.isClosed);
  t.is(clock.pendingTimers, 0);
  dialer.forCaller({ A: '1' }).dial(listener());
  t.is(made.length, 3);
  await dialer.close();
  t.true(made.every(({ isClosed }) => isClosed));
});

test('a server that ends counts as no longer used', (t) => {
  const { dialer, made, clock } = setUp();
  dialer.forCaller({ A: '1' }).dial(listener());
  made[1]?.dialer.latest.listener.serverClosed(OVER);
  clock.advance(IDLE_DIALER_MS);
  t.true(made[1]?.isClosed);
});

test('there are only so many: an idle one is replaced, else the caller has to wait', (t) => {
  const { dialer, made } = setUp();
  const links = Array.from({ length: MAX_DIALERS }, (_, n) => dialer.forCaller({ N: String(n) }).dial(listener()));
  t.throws(() => dialer.forCaller({ N: 'more' }).dial(listener()), { code: 'ERR_SESSION_LIMIT' });
  links[7]?.close(OVER);
  t.notThrows(() => dialer.forCaller({ N: 'more' }).dial(listener()));
  t.deepEqual(
    made.filter(({ isClosed }) => isClosed).map(({ environment }) => environment),
    [{ N: '7' }],
  );
});
