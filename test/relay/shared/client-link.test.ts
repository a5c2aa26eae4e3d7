import test from 'ava';
import { ClientLink, type ClientLinkHost } from '../../../src/relay/shared/client-link.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import { FakeServerListener } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { GONE } from './legacy/shared-bridge.ts';

class FakeHost implements ClientLinkHost<undefined> {
  readonly taken: Frame[] = [];
  leavings = 0;
  hasCapacity = true;

  send({ frame }: { readonly frame: Frame }): boolean {
    this.taken.push(frame);
    return this.hasCapacity;
  }

  leave(): void {
    this.leavings += 1;
  }
}

test('a client link passes on what its client says, and whether the server has capacity', (t) => {
  const host = new FakeHost();
  const link = new ClientLink(host, new FakeServerListener(), undefined);
  const frame = clientFrame({ method: 'x-vendor/event' });
  t.true(link.send(frame));
  host.hasCapacity = false;
  t.false(link.send(frame));
  t.deepEqual(host.taken, [frame, frame]);
});

test('a client link leaves the server once, and nothing is passed on after that', (t) => {
  const host = new FakeHost();
  const link = new ClientLink(host, new FakeServerListener(), undefined);
  link.close(GONE);
  link.close(GONE);
  t.is(host.leavings, 1);
  t.true(link.send(clientFrame({ method: 'x-vendor/event' })));
  t.deepEqual(host.taken, []);
});

test('a slow client does not stop the server', (t) => {
  const link = new ClientLink(new FakeHost(), new FakeServerListener(), undefined);
  t.notThrows(() => link.pause());
  t.notThrows(() => link.resume());
});
