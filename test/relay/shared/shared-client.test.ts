import test from 'ava';
import { ModernClient } from '../../../src/relay/shared/modern/open-requests.ts';
import type { ClientHost } from '../../../src/relay/shared/shared-client.ts';
import type { Frame } from '../../../src/wire/frame.ts';
import { FakeServerListener } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { EXITED, GONE } from './legacy/shared-bridge.ts';

const EVENT = clientFrame({ method: 'x-vendor/event' });

class FakeHost implements ClientHost<ModernClient> {
  readonly taken: Frame[] = [];
  leavings = 0;
  hasCapacity = true;
  isDown = false;

  join(): void {
    if (this.isDown) throw EXITED;
  }

  send(_client: ModernClient, frame: Frame): boolean {
    this.taken.push(frame);
    return this.hasCapacity;
  }

  leave(): void {
    this.leavings += 1;
  }

  connect(): ModernClient {
    const client = new ModernClient(new FakeServerListener());
    client.join(this);
    return client;
  }
}

test('a client of a shared server passes messages on, and says whether the server has capacity', (t) => {
  const host = new FakeHost();
  const client = host.connect();
  t.true(client.send(EVENT));
  host.hasCapacity = false;
  t.false(client.send(EVENT));
  t.deepEqual(host.taken, [EVENT, EVENT]);
});

test('a client leaves a shared server once, and nothing is passed on after that', (t) => {
  const host = new FakeHost();
  const client = host.connect();
  client.close(GONE);
  client.close(GONE);
  t.is(host.leavings, 1);
  t.true(client.send(EVENT));
  t.deepEqual(host.taken, []);
});

test('a client that could not join a shared server has nothing to leave', (t) => {
  const host = new FakeHost();
  const client = new ModernClient(new FakeServerListener());
  host.isDown = true;
  t.is(
    t.throws(() => client.join(host)),
    EXITED,
  );
  client.close(GONE);
  t.is(host.leavings, 0);
});

test('a slow client does not stop the server', (t) => {
  const client = new FakeHost().connect();
  t.notThrows(() => client.pause());
  t.notThrows(() => client.resume());
});
