import test from 'ava';
import { LinkClient } from '../../../src/upstream/detect/link-client.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeDialer, FakeServerListener } from '../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';

const INITIALIZE = clientFrame({ id: 1, method: 'initialize', params: {} });
const ANSWER = serverFrame({ id: 1, result: {} });

function trial() {
  const dialer = new FakeDialer();
  const tried = new LinkClient(dialer, new FakeClock());
  const answer = tried.try({ frame: INITIALIZE, exchange: undefined });
  return { tried, answer, ...dialer.latest };
}

test('what the server says up to its answer is said again to the client, in order, and all that follows', async (t) => {
  const { tried, answer, listener, link } = trial();
  const [early, late] = [serverFrame({ method: 'x/early' }), serverFrame({ method: 'x/late' })];
  listener.fromServer(early);
  listener.fromServer(ANSWER);
  t.like(await answer, { outcome: { kind: 'result' }, error: undefined });
  const client = new FakeServerListener();
  t.is(tried.open(client), link);
  listener.fromServer(late);
  t.deepEqual(
    client.received.map(({ frame }) => frame),
    [early, ANSWER, late],
  );
});

for (const [title, count, bytes] of [
  ['many messages', 100, 0],
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

test('a connection that is taken back says nothing of what was tried on it, and is not halted', async (t) => {
  const { tried, answer, listener, link } = trial();
  link.pause();
  listener.fromServer(serverFrame({ id: 1, error: { code: -32601, message: 'no' } }));
  await answer;
  tried.takeBack();
  const client = new FakeServerListener();
  tried.open(client);
  t.deepEqual(client.received, []);
  t.false(link.isPaused);
});

test('a late answer to a question of the bridge is not for the client that has the connection by then', async (t) => {
  const dialer = new FakeDialer();
  const clock = new FakeClock();
  const connection = new LinkClient(dialer, clock);
  const answer = connection.request('x/ask', {}, 1000);
  clock.advance(1000);
  t.like(await answer, { outcome: { kind: 'silence' } });
  const client = new FakeServerListener();
  connection.open(client);
  dialer.latest.listener.fromServer(serverFrame({ id: dialer.latest.link.sent[0]?.frame.id, result: {} }));
  t.deepEqual(client.received, []);
});
