import test from 'ava';
import { ClientLink, type ClientLinkHost } from '../../../src/relay/shared/client-link.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeServerListener } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { GONE } from './shared-bridge.ts';

class FakeHost implements ClientLinkHost {
  readonly taken: Frame[] = [];
  leavings = 0;
  hasCapacity = true;

  fromClient(_client: ClientLink, frame: Frame): boolean {
    this.taken.push(frame);
    return this.hasCapacity;
  }

  leave(): void {
    this.leavings += 1;
  }
}

test('a client link passes on what its client says, and whether the server has capacity', (t) => {
  const host = new FakeHost();
  const link = new ClientLink(host, new FakeServerListener(), new FakeClock());
  const frame = clientFrame({ method: 'x-vendor/event' });
  t.true(link.send(frame));
  host.hasCapacity = false;
  t.false(link.send(frame));
  t.deepEqual(host.taken, [frame, frame]);
});

test('initialized is noted, not passed on: the server has had its own', (t) => {
  const host = new FakeHost();
  const link = new ClientLink(host, new FakeServerListener(), new FakeClock());
  t.false(link.isInitialized);
  link.send(clientFrame({ method: 'notifications/initialized' }));
  t.true(link.isInitialized);
  t.deepEqual(host.taken, []);
});

test('a client link leaves the server once, and nothing is passed on after that', (t) => {
  const host = new FakeHost();
  const link = new ClientLink(host, new FakeServerListener(), new FakeClock());
  link.close(GONE);
  link.close(GONE);
  t.is(host.leavings, 1);
  t.true(link.send(clientFrame({ method: 'x-vendor/event' })));
  t.deepEqual(host.taken, []);
});

test('a slow client does not stop the server', (t) => {
  const link = new ClientLink(new FakeHost(), new FakeServerListener(), new FakeClock());
  t.notThrows(() => link.pause());
  t.notThrows(() => link.resume());
});

for (const [title, params, expected] of [
  ['what it asked for', { protocolVersion: '2025-03-26', capabilities: { roots: {} } }, ['2025-03-26', { roots: {} }]],
  ['a revision nobody knows', { protocolVersion: '1.0', capabilities: {} }, ['2025-11-25', {}]],
  ['nothing', undefined, ['2025-11-25', {}]],
] as const) {
  test(`a client that says ${title} is introduced as ${JSON.stringify(expected)}`, (t) => {
    const link = new ClientLink(new FakeHost(), new FakeServerListener(), new FakeClock());
    t.false(link.isIntroduced);
    link.introduce(clientFrame({ id: 1, method: 'initialize', params }), '2025-11-25');
    t.true(link.isIntroduced);
    t.deepEqual([link.revisionId, link.capabilities], [...expected]);
  });
}
