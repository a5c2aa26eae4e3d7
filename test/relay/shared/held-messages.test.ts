import test from 'ava';
import { LinkedList } from '../../../src/collections/short-lived-values.ts';
import type { BridgeError } from '../../../src/errors.ts';
import { HeldMessages } from '../../../src/relay/shared/held-messages.ts';
import { ModernClient } from '../../../src/relay/shared/modern/open-requests.ts';
import { FakeServerListener } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';
import { EXITED } from './legacy/shared-bridge.ts';

const HUGE = clientFrame({ id: 1, method: 'tools/call', params: { text: 'x'.repeat(16 * 1024 * 1024) } });

test('holds so many bytes and no more, and is free again when they were taken or their client has left', (t) => {
  const held = new HeldMessages<ModernClient>();
  const createClient = (): ModernClient => new ModernClient(new FakeServerListener());
  const [one, other] = [createClient(), createClient()];
  const fill = (): void => {
    for (const client of [one, one, other]) held.add({ sender: client, frame: HUGE, call: undefined });
    t.false(held.isFull);
    held.add({ sender: other, frame: HUGE, call: undefined });
    t.true(held.isFull);
  };
  fill();
  t.is(held.takeAll().length, 4);
  fill();
  held.dropOf(one);
  t.false(held.isFull);
  t.is(held.takeAll().length, 2);
});

test('a client that waits for the server is told when it serves or why it does not, unless the client has left', (t) => {
  const held = new HeldMessages<ModernClient>();
  const clients = new LinkedList<ModernClient>();
  const told: (string | BridgeError)[] = [];
  const wait = (): ModernClient => {
    const client = new ModernClient(new FakeServerListener());
    clients.add(client);
    held.add({ sender: client, ready: () => told.push('ready'), refused: (reason) => told.push(reason) });
    return client;
  };
  wait();
  wait().unlink();
  t.true(
    held.passOn(() => false),
    'nothing was sent that could have filled the server',
  );
  t.deepEqual(told, ['ready']);
  held.dropOf(wait());
  wait();
  held.refuseAll(EXITED);
  t.deepEqual(told, ['ready', EXITED]);
  t.true(held.passOn(() => false));
});
