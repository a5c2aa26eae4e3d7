import test from 'ava';
import { LegacyPool } from '../../../../src/eras/modern-to-legacy/pool/legacy-pool.ts';
import { LegacySession } from '../../../../src/eras/modern-to-legacy/pool/legacy-session.ts';
import { createFakeDeps, FakeDialer, remainsOf } from '../../../support/fake-peers.ts';
import { serverFrame } from '../../../support/frames.ts';
import { FakeSessionUser, wants } from './fake-session-user.ts';

test('a server that is to be told anew is not started before the one that was told is gone', async (t) => {
  const dialer = new FakeDialer();
  const deps = createFakeDeps();
  const pool = new LegacyPool({ dialer, deps, handshakeTimeoutMs: 0, attribution: 'lease', calls: 'lost' });
  const session = new LegacySession({
    dialer,
    deps,
    handshakeTimeoutMs: 0,
    attribution: 'lease',
    calls: 'lost',
    wanted: wants('ada', { elicitation: { url: {} } }),
    onUnplaced: () => {},
    onAbandonedLess: () => {},
  });
  session.server.join(new FakeSessionUser(pool, wants('ada')));
  const { link, listener } = dialer.latest;
  const { end } = remainsOf(link);
  // A revision that has no word for what was declared.
  const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } };
  listener.fromServer(serverFrame({ id: link.sent[0]?.frame.id, result }));
  t.is(link.closedWith.length, 1);
  deps.clock.advance(60_000);
  t.is(dialer.dialed.length, 1);
  await end();
  t.is(dialer.dialed.length, 2);
});
