import test from 'ava';
import { BridgeError } from '../../src/errors.ts';
import {
  CallerLinks,
  callerOf,
  IDLE_LINK_MS,
  MAX_CALLER_LINKS,
  MAX_KEPT_NOTIFICATION_BYTES,
  MAX_KEPT_NOTIFICATIONS,
} from '../../src/relay/caller-links.ts';
import { forEveryCaller } from '../../src/relay/dialer-adapters.ts';
import { createFakeDeps, FakeDialer } from '../support/fake-peers.ts';
import { clientFrame } from '../support/frames.ts';

const NOTIFICATION = clientFrame({ method: 'notifications/x' });

class Trial {
  readonly dialer = new FakeDialer();
  readonly deps = createFakeDeps();
  readonly links = new CallerLinks(forEveryCaller(this.dialer), this.deps);

  notify(principal = 'ada'): void {
    this.links.send(NOTIFICATION, { principal, environment: undefined, headers: undefined });
  }

  wait(ms: number): void {
    this.deps.clock.advance(ms);
  }

  /** How many links were made, and how many of them ended. */
  get counts(): readonly [made: number, ended: number] {
    const { dialed } = this.dialer;
    return [dialed.length, dialed.filter(({ link }) => link.closedWith.length > 0).length];
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
    link.hasCapacity = false;
  };
  trial.notify();
  trial.dialer.latest.link.hasCapacity = true;
  trial.notify();
  trial.wait(10 * IDLE_LINK_MS);
  t.deepEqual(trial.counts, [1, 0]);
  trial.dialer.latest.listener.serverDrained();
  trial.wait(IDLE_LINK_MS);
  t.deepEqual(trial.counts, [1, 1]);
});

/** A server that takes one notification, and then nothing until it is told to. */
function createFull(): Trial {
  const trial = new Trial();
  trial.dialer.onDial = ({ link }) => {
    link.hasCapacity = false;
  };
  return trial;
}

test('a server that takes nothing is given one notification of a caller, and the next when it has taken that', (t) => {
  const trial = createFull();
  for (let n = 0; n < 3; n += 1) trial.notify();
  t.is(trial.dialer.latest.link.take().length, 1);
  trial.notify('bob');
  t.is(trial.dialer.latest.link.take().length, 1, 'others have their own');
  const [{ link, listener } = trial.dialer.latest] = trial.dialer.dialed;
  listener.serverDrained();
  t.is(link.take().length, 1);
  link.hasCapacity = true;
  listener.serverDrained();
  trial.notify();
  t.is(link.take().length, 2);
});

test('what waits for a server is bounded: beyond that it is dropped', (t) => {
  const trial = createFull();
  for (let n = 0; n < 200; n += 1) trial.notify();
  const { link, listener } = trial.dialer.latest;
  link.hasCapacity = true;
  listener.serverDrained();
  t.is(link.take().length, 1 + MAX_KEPT_NOTIFICATIONS);

  const large = clientFrame({ method: 'notifications/x', params: { text: 'x'.repeat(100 * 1024) } });
  link.hasCapacity = false;
  for (let n = 0; n < 10; n += 1)
    trial.links.send(large, { principal: 'ada', environment: undefined, headers: undefined });
  link.hasCapacity = true;
  listener.serverDrained();
  t.is(link.take().length, 1 + Math.floor(MAX_KEPT_NOTIFICATION_BYTES / large.bytes.length));
});

test('a link that has capacity again before it says so is not full', (t) => {
  const trial = new Trial();
  trial.dialer.onDial = ({ link, listener }) => {
    link.onSend = () => listener.serverDrained();
  };
  for (let n = 0; n < 3; n += 1) trial.notify();
  t.is(trial.dialer.latest.link.take().length, 3);
});

test('the link used longest ago makes way, and only idle ones end with time', (t) => {
  const trial = new Trial();
  for (let n = 0; n <= MAX_CALLER_LINKS; n += 1) trial.notify(`caller-${n}`);
  t.deepEqual(trial.counts, [MAX_CALLER_LINKS + 1, 1]);
  t.is(trial.dialer.dialed[0]?.link.closedWith.length, 1);
  trial.wait(1);
  trial.notify('caller-1');
  trial.wait(IDLE_LINK_MS - 1);
  t.deepEqual(trial.counts, [MAX_CALLER_LINKS + 1, MAX_CALLER_LINKS], 'all but the one in use');
  trial.links.close(new BridgeError('ERR_SESSION_CLOSED', 'over'));
  t.deepEqual(trial.counts, [MAX_CALLER_LINKS + 1, MAX_CALLER_LINKS + 1]);
  t.is(trial.deps.clock.pendingTimers, 0);
});

test('requests of one caller that let other headers pass get another link, and no key has their values', (t) => {
  const trial = new Trial();
  const notify = (headers: Record<string, string> | undefined): void =>
    trial.links.send(NOTIFICATION, { principal: 'ada', environment: undefined, headers });
  notify({ 'x-tenant': 'one', 'x-user': 'two' });
  notify({ 'x-user': 'two', 'x-tenant': 'one' });
  t.deepEqual(trial.counts, [1, 0]);
  notify({ 'x-tenant': 'two', 'x-user': 'one' });
  notify(undefined);
  t.deepEqual(trial.counts, [3, 0]);
  const key = callerOf({ principal: 'ada', headers: { authorization: 'secret' } });
  t.false(key.includes('secret'));
  t.not(key, callerOf({ principal: 'bob', headers: { authorization: 'secret' } }));
});
