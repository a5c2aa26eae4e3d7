import test from 'ava';
import { DecoratedDialer } from '../../src/relay/decorated-dialer.ts';
import type { ServerListener, UpstreamDialer } from '../../src/relay/ports.ts';
import { FakeServerListener } from '../support/fake-peers.ts';
import { FakeServer } from '../support/fake-server.ts';

test('sessions are decorated, and modern requests pass by', (t) => {
  const server = new FakeServer();
  const decorated: [UpstreamDialer, ServerListener][] = [];
  const dialer = new DecoratedDialer(server, (below, listener) => {
    decorated.push([below, listener]);
    return below.dial(listener);
  });
  const listener = new FakeServerListener();
  dialer.dial(listener);
  t.deepEqual(decorated, [[server, listener]]);
  dialer.dial(listener, { principal: 'anonymous', metadata: undefined });
  t.is(decorated.length, 1);
  t.is(dialer.name, server.name);
  t.deepEqual(dialer.readiness(), server.readiness());
});
