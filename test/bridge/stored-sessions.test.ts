/** Sessions that a bridge has stored, and another one goes on with, at servers that do not know them anymore. */
import test, { type ExecutionContext } from 'ava';
import { findRevision, LATEST_LEGACY_REVISION } from '../../src/mcp/vocabulary/revisions.ts';
import type { SessionDialer } from '../../src/relay/ports.ts';
import { SessionState } from '../../src/relay/sessions/session-state.ts';
import { RelayedClient } from '../contract/relayed-client.ts';
import { SERVERS, type ServerName } from '../matrix/servers.ts';
import { waitFor } from '../support/wait-for.ts';
import { dialersOf } from './dialers-of.ts';

const URI = 'test://static';
const UPDATED = 'notifications/resources/updated';

/** A client whose session this bridge keeps. It shares nothing with those of other bridges. */
async function clientOf(t: ExecutionContext, target: readonly string[], state: SessionState): Promise<RelayedClient> {
  const dialers = await dialersOf(t, ['serve', ...target]);
  const { restores: policy } = dialers;
  if (policy === undefined) throw new Error('sessions are not restored');
  const dialer = dialers.forCaller(undefined);
  const dial: SessionDialer['dial'] = (owner, session) => dialer.dial(owner, session);
  const client = new RelayedClient({ ...dialers, dial }, { kept: { policy, state } });
  t.teardown(() => client.close());
  return client;
}

/** A client that was handed over. */
async function goOn(t: ExecutionContext, target: readonly string[], stored: string): Promise<RelayedClient> {
  const session = SessionState.from(stored);
  const client = await clientOf(t, target, session);
  client.relay.resume(findRevision(session.offer?.protocolVersion) ?? LATEST_LEGACY_REVISION);
  return client;
}

/** Somebody changes the resource, and the client hears of it. */
async function hears(client: RelayedClient): Promise<void> {
  const before = client.notifications(UPDATED).length;
  await client.call('touch', { uri: URI });
  await waitFor(() => client.notifications(UPDATED).length > before, { message: 'the client to hear of the resource' });
}

const MOVED = [
  'httpSse',
  'modernHttp',
  'modernSocket',
  'webSocket',
  'modernWebSocket',
  'stream',
  'modernStream',
] as const satisfies readonly ServerName[];

for (const name of MOVED) {
  const { title, start } = SERVERS[name];
  test(`a session with a server over ${title} goes on elsewhere with its level and its subscriptions`, async (t) => {
    const server = await start();
    t.teardown(() => server.stop());
    const session = new SessionState();
    const first = await clientOf(t, server.target, session);
    await first.initialize();
    await first.request('logging/setLevel', { level: 'error' });
    await first.request('resources/subscribe', { uri: URI });
    await hears(first);
    const stored = JSON.stringify(session);
    session.isHandedOver = true;
    first.close();

    const second = await goOn(t, server.target, stored);
    t.is(await second.call('echo', { value: 'again' }), 'again');
    // It may have changed while nobody listened.
    await waitFor(() => second.notifications(UPDATED).length > 0, { message: 'the client to be told to look again' });
    await hears(second);
    await second.request('resources/unsubscribe', { uri: URI });
    t.deepEqual(SessionState.from(stored).wishes().length, 2);
    second.close();

    // Whoever has it next begins where this one stopped, also before it has said anything.
    const third = await goOn(t, server.target, stored);
    await waitFor(() => third.notifications(UPDATED).length > 0, { message: 'the session to begin by itself' });
  });
}
