import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { Trials } from '../../../src/upstream/resilience/trials.ts';
import { tryConnection } from '../../../src/upstream/resilience/try-connection.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeConnector } from '../../support/fake-connections.ts';
import { serverFrame } from '../../support/frames.ts';

const GONE = new BridgeError('ERR_UPSTREAM_EXITED', 'exited with code 1');

function createTrials(): { clock: FakeClock; dialer: FakeConnector; trials: Trials } {
  const clock = new FakeClock();
  const dialer = new FakeConnector();
  const clientInfo = { name: 'test', version: '1' };
  const connect = () => dialer.connect();
  const attempt = async (signal: AbortSignal) => tryConnection({ connect, clientInfo, clock, signal });
  return { clock, dialer, trials: new Trials({ attempt, clock }) };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('tries nothing while nothing has failed, and a while after a failure asks whether the server answers', async (t) => {
  const { clock, dialer, trials } = createTrials();
  clock.advance(3_600_000);
  t.is(dialer.dialed.length, 0);
  trials.failed();
  trials.failed();
  clock.advance(9_999);
  t.is(dialer.dialed.length, 0);
  clock.advance(1);
  t.is(dialer.dialed.length, 1);
  const { link, listener } = dialer.latest;
  t.like(link.sent[0]?.frame.json(), { method: 'initialize' });
  t.is(link.closedWith.length, 0);
  trials.served();
  listener.fromServer(serverFrame({ id: 0, error: { code: -32601, message: 'any answer will do' } }));
  t.is(link.closedWith[0]?.code, 'ERR_SESSION_CLOSED');
  await settled();
  t.is(clock.pendingTimers, 0);
});

test('a change of the server is tried at once if it had failed, and not otherwise', async (t) => {
  const { clock, dialer, trials } = createTrials();
  trials.changed();
  t.is(dialer.dialed.length, 0);
  trials.failed();
  trials.changed();
  t.is(dialer.dialed.length, 1);
  dialer.latest.listener.serverClosed(GONE);
  await settled();
  clock.advance(9_999);
  t.is(dialer.dialed.length, 1);
  clock.advance(1);
  t.is(dialer.dialed.length, 2);
  trials.close();
});

test('waits twice as long after each trial that fails, and no longer than five minutes', async (t) => {
  const { clock, dialer, trials } = createTrials();
  trials.failed();
  const pauses = [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000];
  for (const [index, pauseMs] of pauses.entries()) {
    clock.advance(pauseMs - 1);
    t.is(dialer.dialed.length, index);
    clock.advance(1);
    t.is(dialer.dialed.length, index + 1);
    dialer.latest.listener.serverClosed(GONE);
    await settled();
  }
});

test('gives up a trial that is not answered, and tries again', async (t) => {
  const { clock, dialer, trials } = createTrials();
  trials.failed();
  clock.advance(10_000);
  clock.advance(60_000);
  t.is(dialer.latest.link.closedWith[0]?.code, 'ERR_UPSTREAM_TIMEOUT');
  await settled();
  clock.advance(20_000);
  t.is(dialer.dialed.length, 2);
});

test('tries again later where nothing can be opened, and no more once it is closed', async (t) => {
  const { clock, dialer, trials } = createTrials();
  dialer.failure = new BridgeError('ERR_UPSTREAM_SPAWN', 'no such command');
  trials.failed();
  clock.advance(10_000);
  await settled();
  dialer.failure = undefined;
  clock.advance(20_000);
  t.is(dialer.dialed.length, 1);
  trials.close();
  t.is(dialer.latest.link.closedWith.length, 1);
  await settled();
  trials.failed();
  t.is(clock.pendingTimers, 0);
});

test('a client whose server answers makes the trial unnecessary', (t) => {
  const { clock, dialer, trials } = createTrials();
  trials.failed();
  trials.served();
  clock.advance(3_600_000);
  t.is(dialer.dialed.length, 0);
});
