import test from 'ava';
import { callsOverSessions } from '../../src/relay/dialer-adapters.ts';
import { FakeDialer, FakeServerListener } from '../support/fake-peers.ts';

test('modern requests go over sessions where a server need not be told for whom they are', (t) => {
  const server = new FakeDialer();
  const dialer = callsOverSessions(server);
  const listener = new FakeServerListener();
  const context = { principal: 'anonymous', metadata: undefined, headers: undefined };
  t.is(dialer.dial(listener), server.latest.link);
  t.is(dialer.dialCalls(listener, context), server.latest.link);
  t.deepEqual(
    server.dialed.map((dialed) => dialed.listener),
    [listener, listener],
  );
  t.is(dialer.name, server.name);
  t.deepEqual(dialer.readiness(), server.readiness());
});

test('the dialer of sessions ends with that of the requests', async (t) => {
  const server = new FakeDialer();
  const dialer = callsOverSessions(server);
  dialer.killNow();
  t.true(server.isKilled);
  await dialer.close();
  t.true(server.isClosed);
});
