import test from 'ava';
import { BridgeError } from '../../../src/errors.ts';
import { Prober } from '../../../src/upstream/detect/prober.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeConnector } from '../../support/fake-connections.ts';
import { FakeServerListener, messagesOf } from '../../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../../support/frames.ts';

const INITIALIZE = clientFrame({ id: 1, method: 'initialize', params: {} });
const ANSWER = serverFrame({ id: 1, result: {} });
const EXITED = new BridgeError('ERR_UPSTREAM_EXITED', 'exited');

/** Everything that can go on has. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function prober() {
  const connector = new FakeConnector();
  const clock = new FakeClock();
  return { prober: new Prober(connector, clock), clock, ...connector.latest };
}

function trial() {
  const opened = prober();
  return { ...opened, answer: opened.prober.try({ frame: INITIALIZE, call: undefined }) };
}

test('what the server says up to its answer is said again to the client, in order, and all that follows', async (t) => {
  const { prober, answer, listener, link } = trial();
  const [early, late] = [serverFrame({ method: 'x/early' }), serverFrame({ method: 'x/late' })];
  listener.fromServer(early);
  listener.fromServer(ANSWER);
  t.like(await answer, { outcome: { kind: 'result' }, error: undefined });
  const client = new FakeServerListener();
  t.is(prober.open(client), link);
  listener.fromServer(late);
  await settled();
  t.deepEqual(
    client.received.map(({ frame }) => frame),
    [early, ANSWER, late],
  );
});

test('the client that gets the connection has nothing between it and the server', async (t) => {
  const { prober, answer, listener, link } = trial();
  listener.fromServer(ANSWER);
  await answer;
  const client = new FakeServerListener();
  prober.open(client);
  t.is(link.listener, client);
});

test('a server that asks before it answers the handshake is legacy, and its client hears the question', async (t) => {
  const { prober, answer, listener } = trial();
  const question = serverFrame({ id: 'q', method: 'roots/list' });
  listener.fromServer(question);
  t.like(await answer, { outcome: { kind: 'result' } });
  const client = new FakeServerListener();
  prober.open(client);
  await settled();
  t.is(client.received[0]?.frame, question);
});

test('a client whose request cannot be read is told so after the verdict', async (t) => {
  const { prober, answer, listener } = trial();
  const fault = { error: new BridgeError('ERR_UPSTREAM_TOO_LARGE', 'too large'), kind: 'result', id: 1 } as const;
  listener.serverFault(fault);
  t.like(await answer, { error: fault.error });
  const client = new FakeServerListener();
  prober.open(client);
  await settled();
  t.deepEqual(client.faults, [fault]);
});

test('a server that ends during the trial is the outcome, and its client hears of it', async (t) => {
  const { prober, answer, listener } = trial();
  listener.serverClosed(EXITED);
  t.like(await answer, { outcome: { kind: 'exited' }, error: EXITED });
  t.is(prober.end, EXITED);
  const client = new FakeServerListener();
  prober.open(client);
  await settled();
  t.deepEqual(client.closedWith, [EXITED]);
});

test('a connection that is let go says nothing of what was tried on it, and is not halted', async (t) => {
  const { prober, answer, listener, link } = trial();
  link.pause();
  listener.fromServer(serverFrame({ id: 1, error: { code: -32601, message: 'no' } }));
  await answer;
  const client = new FakeServerListener();
  prober.release().listener = client;
  await settled();
  t.deepEqual(client.received, []);
  t.false(link.isPaused);
});

test('questions of the bridge are answered while a request of a client is tried, and are not for that client', async (t) => {
  const { prober, listener, link } = trial();
  const asked = prober.request('server/discover', {}, 1000);
  const answer = serverFrame({ id: link.sent[1]?.frame.id, error: { code: -32601, message: 'no' } });
  listener.fromServer(answer);
  t.like(await asked, { outcome: { kind: 'error' } });
  const client = new FakeServerListener();
  prober.open(client);
  await settled();
  t.deepEqual(client.received, []);
});

test('while only the bridge asks, pings are answered and other questions refused', (t) => {
  const { listener, link } = prober();
  listener.fromServer(serverFrame({ id: 'p', method: 'ping' }));
  listener.fromServer(serverFrame({ id: 'q', method: 'roots/list' }));
  t.like(messagesOf(link.sent), [
    { id: 'p', result: {} },
    { id: 'q', error: { code: -32601 } },
  ]);
});

test('a question that is not answered in time has silence for an answer', async (t) => {
  const { prober: asking, clock } = prober();
  const answer = asking.request('x/ask', {}, 1000);
  clock.advance(1000);
  t.like(await answer, { outcome: { kind: 'silence' } });
});
