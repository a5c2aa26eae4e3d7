/** Clients over HTTP that share a server, one of which dies while it is asked: its session goes on without it. */
import test, { type ExecutionContext } from 'ava';
import { ABANDONED_MS } from '../../../../src/relay/shared/legacy/attribution.ts';
import { createSharedLegacyServer } from '../../../../src/relay/shared/legacy/legacy-era.ts';
import type { EventReader } from '../../../support/event-reader.ts';
import { createFakeDeps } from '../../../support/fake-peers.ts';
import { FakeServer } from '../../../support/fake-server.ts';
import { type HttpHarness, startHttpHarness } from '../../../support/http-harness.ts';
import { call, type HttpSession, notification, openHttpSession } from '../../../support/legacy-clients.ts';
import { waitFor } from '../../../support/wait-for.ts';

const HELLO = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: { sampling: {} }, clientInfo: { name: 'c', version: '1' } },
};
const STREAM_FIRST = { Accept: 'text/event-stream, application/json' };
const SAMPLE = 'sampling/createMessage';

async function start(t: ExecutionContext): Promise<{ readonly harness: HttpHarness; readonly server: FakeServer }> {
  const server = new FakeServer();
  const harness = await startHttpHarness(t, {
    dialer: (clock) => {
      const deps = { ...createFakeDeps(), clock };
      const clientInfo = { name: 'bridge', version: '0' };
      return createSharedLegacyServer({ dialer: server, deps, prewarm: false, handshakeTimeoutMs: 0, clientInfo });
    },
  });
  return { harness, server };
}

async function open({ port }: HttpHarness): Promise<HttpSession> {
  const session = await openHttpSession(port, HELLO);
  await session.post(notification('notifications/initialized'));
  return session;
}

/** Calls a tool on a stream, and waits until the server has the call. */
async function callTool(session: HttpSession, server: FakeServer): Promise<EventReader> {
  const events = (await session.post(call(1), STREAM_FIRST)).events();
  await server.latest.next('tools/call');
  return events;
}

async function nextMethod(events: EventReader): Promise<unknown> {
  const { data } = await events.next();
  return data === '' ? nextMethod(events) : (JSON.parse(data) as { readonly method?: unknown }).method;
}

const openResponses = ({ logLines }: HttpHarness): number =>
  logLines.filter((line) => line.includes('"method":"POST"')).length;

test('a client that dies while it is asked keeps others from being asked for a moment only', async (t) => {
  const { harness, server } = await start(t);
  const [dying, other] = [await open(harness), await open(harness)];
  const asked = await callTool(dying, server);
  server.latest.ask('first', SAMPLE, { messages: [], maxTokens: 1 });
  t.is(await nextMethod(asked), SAMPLE);
  const before = openResponses(harness);
  asked.leave();
  await waitFor(() => openResponses(harness) > before, { message: 'the bridge to see that the client is gone' });

  const events = await callTool(other, server);
  harness.clock.advance(ABANDONED_MS - 1);
  server.latest.ask('second', SAMPLE, { messages: [], maxTokens: 1 });
  t.deepEqual(
    server.latest.answers.map(({ id, kind }) => [id, kind]),
    [['second', 'error']],
  );
  harness.clock.advance(1);
  server.latest.ask('third', SAMPLE, { messages: [], maxTokens: 1 });
  t.is(await nextMethod(events), SAMPLE);
  events.leave();
});

test('a client that comes back for its stream is one that may be meant', async (t) => {
  const { harness, server } = await start(t);
  const [returning, other] = [await open(harness), await open(harness)];
  const asked = await callTool(returning, server);
  const before = openResponses(harness);
  asked.leave();
  await waitFor(() => openResponses(harness) > before, { message: 'the bridge to see that the client is gone' });
  const events = await callTool(other, server);
  harness.clock.advance(ABANDONED_MS);
  const stream = (await returning.get()).events();
  server.latest.ask('q', SAMPLE, { messages: [], maxTokens: 1 });
  t.deepEqual(
    server.latest.answers.map(({ id, kind }) => [id, kind]),
    [['q', 'error']],
  );
  for (const reader of [events, stream]) reader.leave();
});
