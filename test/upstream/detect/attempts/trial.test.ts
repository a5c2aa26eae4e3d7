import test from 'ava';
import { Trial } from '../../../../src/upstream/detect/attempts/trial.ts';
import { FakeDialer, FakeServerListener } from '../../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../../support/frames.ts';

const INITIALIZE = clientFrame({ id: 1, method: 'initialize', params: {} });
const ANSWER = serverFrame({ id: 1, result: {} });

function trial() {
  const dialer = new FakeDialer();
  const tried = new Trial(dialer, { frame: INITIALIZE, exchange: undefined });
  return { tried, ...dialer.latest };
}

test('what the server says up to its answer is said again to the client, in order, and all that follows', async (t) => {
  const { tried, listener, link } = trial();
  const [early, late] = [serverFrame({ method: 'x/early' }), serverFrame({ method: 'x/late' })];
  listener.fromServer(early);
  listener.fromServer(ANSWER);
  t.deepEqual(await tried.ended, { kind: 'answered', frame: ANSWER });
  const client = new FakeServerListener();
  t.is(tried.open(client), link);
  listener.fromServer(late);
  t.deepEqual(
    client.received.map(({ frame }) => frame),
    [early, ANSWER, late],
  );
});

for (const [title, count, bytes] of [
  ['many messages', 101, 0],
  ['large messages', 2, 512 * 1024],
] as const) {
  test(`a server that says ${title} before its answer is asked to wait until there is a client`, (t) => {
    const { tried, listener, link } = trial();
    const said = serverFrame({ method: 'x/early', params: { text: 'x'.repeat(bytes) } });
    for (let n = 1; n < count; n += 1) listener.fromServer(said);
    t.false(link.isPaused);
    listener.fromServer(said);
    t.true(link.isPaused);
    const client = new FakeServerListener();
    tried.open(client);
    t.false(link.isPaused);
    t.is(client.received.length, count);
  });
}
