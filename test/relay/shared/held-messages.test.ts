import test from 'ava';
import { ClientLink, HeldMessages } from '../../../src/relay/shared/client-link.ts';
import { FakeServerListener } from '../../support/fake-peers.ts';
import { clientFrame } from '../../support/frames.ts';

const HOST = { fromClient: () => true, leave: () => {} };
const HUGE = clientFrame({ id: 1, method: 'tools/call', params: { text: 'x'.repeat(16 * 1024 * 1024) } });

test('holds so many bytes and no more, and is free again when they were taken or their client has left', (t) => {
  const held = new HeldMessages<undefined>();
  const createClient = (): ClientLink<undefined> => new ClientLink(HOST, new FakeServerListener(), undefined);
  const [one, other] = [createClient(), createClient()];
  const fill = (): void => {
    for (const client of [one, one, other]) held.add({ client, frame: HUGE, exchange: undefined });
    t.false(held.isFull);
    held.add({ client: other, frame: HUGE, exchange: undefined });
    t.true(held.isFull);
  };
  fill();
  t.is(held.takeAll().length, 4);
  fill();
  held.dropOf(one);
  t.false(held.isFull);
  t.is(held.takeAll().length, 2);
});
