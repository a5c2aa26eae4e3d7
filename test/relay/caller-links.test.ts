import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import { CallerLinks, IDLE_LINK_MS, MAX_CALLER_LINKS } from '../../src/relay/caller-links.ts';
import { createFakeDeps, FakeDialer } from '../support/fake-peers.ts';
import { clientFrame } from '../support/frames.ts';

const NOTIFICATION = clientFrame({ method: 'notifications/x' });

class Trial {
  readonly dialer = new FakeDialer();
  readonly deps = createFakeDeps();
  readonly links = new CallerLinks(this.dialer, this.deps);

  notify(principal = 'ada'): void {
    this.links.send(NOTIFICATION, { principal });
  }

  wait(ms: number): void {
    this.deps.clock.advance(ms);
  }

  /** How many links were made, and how many of them ended. */
  get counts(): readonly [made: number, ended: number] {
    const { dialled } = this.dialer;
    return [dialled.length, dialled.filter(({ link }) => link.closedWith.length > 0).length];
  }
}

test('a caller has one link, which ends when nothing was sent on it for long, and is made anew', (t) => {
  const trial = new Trial();
  trial.notify();
  trial.wait(IDLE_LINK_MS - 1);
  trial.notify();
  trial.wait(IDLE_LINK_MS - 1);
  t.deepEqual(trial.counts, [1, 0], 'in use');
  trial.wait(IDLE_LINK_MS);
  t.deepEqual(trial.counts, [1, 1]);
  t.is(trial.deps.clock.pendingTimers, 0);
  trial.notify();
  t.deepEqual(trial.counts, [2, 1]);
  t.is(trial.dialer.latest.link.sent.length, 1);
});

test('a link that still has something to send is not idle', (t) => {
  const trial = new Trial();
  trial.dialer.onDial = ({ link }) => {
    link.hasRoom = false;
  };
  trial.notify();
  trial.dialer.latest.link.hasRoom = true;
  trial.notify();
  trial.wait(10 * IDLE_LINK_MS);
  t.deepEqual(trial.counts, [1, 0]);
  trial.dialer.latest.listener.serverDrained();
  trial.wait(IDLE_LINK_MS);
  t.deepEqual(trial.counts, [1, 1]);
});

test('the link used longest ago makes way, and only idle ones end with time', (t) => {
  const trial = new Trial();
  for (let n = 0; n <= MAX_CALLER_LINKS; n += 1) trial.notify(`caller-${n}`);
  t.deepEqual(trial.counts, [MAX_CALLER_LINKS + 1, 1]);
  t.is(trial.dialer.dialled[0]?.link.closedWith.length, 1);
  trial.wait(1);
  trial.notify('caller-1');
  trial.wait(IDLE_LINK_MS - 1);
  t.deepEqual(trial.counts, [MAX_CALLER_LINKS + 1, MAX_CALLER_LINKS], 'all but the one in use');
  trial.links.close(new BridgeError('ERR_SESSION_CLOSED', 'over'));
  t.deepEqual(trial.counts, [MAX_CALLER_LINKS + 1, MAX_CALLER_LINKS + 1]);
  t.is(trial.deps.clock.pendingTimers, 0);
});
