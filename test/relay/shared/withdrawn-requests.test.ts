import test, { type ExecutionContext } from 'ava';
import {
  MAX_TRIAL_BYTES,
  MAX_WITHDRAWN_BYTES,
  TRIAL_MS,
  WithdrawnRequests,
} from '../../../src/relay/shared/withdrawn-requests.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Message, only, reasonOf, SharedBridge } from './legacy/shared-bridge.ts';
import { ModernBridge } from './modern/modern-bridge.ts';

const LARGE = MAX_TRIAL_BYTES + 1;
const QUARTER = { text: 'x'.repeat(MAX_WITHDRAWN_BYTES / 4) };

test('only what a full server has not taken counts, until it has capacity again', (t) => {
  const withdrawn = new WithdrawnRequests(new FakeClock());
  t.true(withdrawn.sent(true));
  withdrawn.add(MAX_WITHDRAWN_BYTES);
  t.is(withdrawn.refusalOf(LARGE), undefined, 'that is with the server');
  t.false(withdrawn.sent(false));
  withdrawn.add(MAX_WITHDRAWN_BYTES - 1);
  t.is(withdrawn.refusalOf(LARGE), undefined);
  withdrawn.add(1);
  t.like(withdrawn.refusalOf(LARGE), { code: 'ERR_SESSION_BUSY', retryAfterMs: 1000 });
  t.regex(withdrawn.refusalOf(LARGE)?.message ?? '', /reads nothing, and 67108864 bytes.*try again later/);
  t.true(withdrawn.sent(true), 'a link that has capacity for one message may still be full');
  t.not(withdrawn.refusalOf(LARGE), undefined);
  withdrawn.clear();
  t.is(withdrawn.refusalOf(LARGE), undefined);
  withdrawn.add(MAX_WITHDRAWN_BYTES);
  t.is(withdrawn.refusalOf(LARGE), undefined, 'it is full no longer');
});

test('a small request goes on once in a second: a server that hangs is found out by calls that are given up', (t) => {
  const clock = new FakeClock();
  const withdrawn = new WithdrawnRequests(clock);
  withdrawn.sent(false);
  withdrawn.add(MAX_WITHDRAWN_BYTES);
  for (let second = 0; second < 3; second += 1) {
    t.is(withdrawn.refusalOf(MAX_TRIAL_BYTES), undefined);
    t.not(withdrawn.refusalOf(1), undefined);
    clock.advance(TRIAL_MS - 1);
    t.not(withdrawn.refusalOf(1), undefined);
    clock.advance(1);
  }
});

test('clients that ask a full server for much and withdraw it, or leave, make it ask for nothing more', (t) => {
  const bridge = new SharedBridge();
  const [patient, hasty, other] = [bridge.join(), bridge.join(), bridge.join()];
  patient.call('waits');
  bridge.link.hasCapacity = false;
  for (const id of [1, 2]) {
    hasty.call(id, 'tools/call', QUARTER);
    hasty.says({ method: 'notifications/cancelled', params: { requestId: id } });
  }
  for (const id of [3, 4]) hasty.call(id, 'tools/call', QUARTER);
  bridge.link.take();
  other.call(1);
  t.is(bridge.heard().length, 1);
  hasty.leaves();
  bridge.link.take();
  refusesUntilDrained(t, bridge, other);
});

/** What another client than the one who has left meets. */
function refusesUntilDrained(
  t: ExecutionContext,
  bridge: SharedBridge | ModernBridge,
  other: { call(id: number): unknown; heard(): readonly Message[] },
): void {
  other.call(2);
  t.is(bridge.heard().length, 1, 'now and then one goes on');
  other.call(3);
  t.is(reasonOf(only(other.heard())), 'ERR_SESSION_BUSY');
  t.deepEqual(bridge.heard(), []);
  bridge.link.hasCapacity = true;
  bridge.dialer.latest.listener.serverDrained();
  other.call(4);
  t.is(bridge.heard().length, 1);
}

test('the same before a modern server', (t) => {
  const bridge = new ModernBridge();
  const [hasty, other] = [bridge.connect(), bridge.connect()];
  other.call('waits');
  bridge.link.hasCapacity = false;
  for (const id of [1, 2]) {
    hasty.call(id, { params: QUARTER });
    hasty.says({ method: 'notifications/cancelled', params: { requestId: id } });
  }
  for (const id of [3, 4]) hasty.call(id, { params: QUARTER });
  hasty.leaves();
  bridge.link.take();
  refusesUntilDrained(t, bridge, other);
});

test('a server that replaces the full one has nothing of that waiting for it', (t) => {
  const bridge = new SharedBridge();
  const [hasty, other] = [bridge.join(), bridge.join()];
  bridge.link.hasCapacity = false;
  for (const id of [1, 2, 3, 4]) hasty.call(id, 'tools/call', QUARTER);
  hasty.leaves();
  bridge.exits();
  bridge.restart();
  other.call(1);
  t.is(bridge.heard().length, 1);
});
