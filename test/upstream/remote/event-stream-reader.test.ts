import type { ServerResponse } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { NO_TIMEOUTS } from '../../../src/http/client/call-limits.ts';
import { SessionCookies } from '../../../src/http/client/cookies.ts';
import { EventStreamReader, type StreamEnd } from '../../../src/upstream/remote/event-stream-reader.ts';
import { CallerHeaders } from '../../../src/upstream/remote/remote-environment.ts';
import { listenScripted, openStream } from '../../fixtures/http-servers/scripted.ts';
import { createClient } from '../../http/recorded-call.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A server whose streams the test writes to, and what one client of it hears. */
async function openStreams(t: ExecutionContext, { maxMessageBytes = 10_000 } = {}) {
  const streams: ServerResponse[] = [];
  const resumedFrom: unknown[] = [];
  const server = await listenScripted({
    GET: (asked, response) => {
      resumedFrom.push(asked.headers['last-event-id']);
      streams.push(openStream(response));
      response.flushHeaders();
    },
  });
  const clock = new FakeClock();
  const heard = { events: [] as string[], oversized: [] as number[], ends: [] as StreamEnd[] };
  const http = createClient({ clock });
  const stream = new EventStreamReader({
    http,
    url: server.url,
    headers: {},
    cookies: new SessionCookies(),
    caller: new CallerHeaders(),
    timeouts: NO_TIMEOUTS,
    maxMessageBytes,
    reconnects: true,
    isPaused: false,
    log: pino({ level: 'silent' }),
    listener: {
      opened: () => {},
      event: ({ event, data }) => void heard.events.push(`${event} ${data.length < 100 ? data : data.length}`),
      oversized: (byteLength) => void heard.oversized.push(byteLength),
      notReopened: () => undefined,
      ended: (end) => void heard.ends.push(end),
    },
  });
  t.teardown(async () => {
    stream.close();
    http.close();
    await server.close();
  });
  return { clock, stream, streams, resumedFrom, heard };
}

test('a pause longer than a timer can take becomes the longest one', async (t) => {
  const { clock, streams } = await openStreams(t);
  (await waitFor(() => streams[0])).end('retry: 99999999999999\ndata: 1\n\n');
  await waitFor(() => clock.pendingTimers === 1);
  clock.advance(2 ** 31 - 2);
  t.is(streams.length, 1);
  clock.advance(1);
  await waitFor(() => streams.length === 2);
});

test('a server that wants no pause, and brings something each time, gets a short one all the same', async (t) => {
  const { clock, streams } = await openStreams(t);
  (await waitFor(() => streams[0])).end('retry: 0\ndata: 1\n\n');
  await waitFor(() => clock.pendingTimers === 1);
  clock.advance(49);
  t.is(clock.pendingTimers, 1, 'not yet');
  clock.advance(1);
  await waitFor(() => streams.length === 2);
});

test('without a pause asked for it comes back after three seconds; a connection that only brought an id was no failure', async (t) => {
  const { clock, streams, resumedFrom } = await openStreams(t);
  (await waitFor(() => streams[0])).end('id: e-1\ndata:\n\n');
  await waitFor(() => clock.pendingTimers === 1);
  clock.advance(2999);
  t.is(streams.length, 1);
  clock.advance(1);
  (await waitFor(() => streams[1])).end();
  t.deepEqual(resumedFrom, [undefined, 'e-1']);
  await waitFor(() => clock.pendingTimers === 1);
  clock.advance(3000);
  t.is(streams.length, 2, 'the second brought nothing');
  clock.advance(500);
  await waitFor(() => streams.length === 3);
  t.deepEqual(resumedFrom, [undefined, 'e-1', 'e-1'], 'the id outlives a connection without one');
});

test('the limit is that of the message, whatever other fields its event has', async (t) => {
  const { streams, heard } = await openStreams(t, { maxMessageBytes: 5000 });
  const stream = await waitFor(() => streams[0]);
  stream.write(`event: message\nid: ${'i'.repeat(900)}\ndata: ${'x'.repeat(5000)}\n\n`);
  stream.write(`data: ${'x'.repeat(7000)}\n\ndata: after\n\n`);
  await waitFor(() => heard.events.length === 2);
  t.deepEqual(heard.events, ['message 5000', 'message after']);
  t.deepEqual(heard.oversized, [7006]);
});

test('nothing is said after close, not even what the same chunk brought', async (t) => {
  const { clock, stream, streams, heard } = await openStreams(t);
  const response = await waitFor(() => streams[0]);
  const push = heard.events.push.bind(heard.events);
  heard.events.push = (event) => {
    stream.close();
    return push(event);
  };
  response.write('data: 1\n\ndata: 2\n\n');
  await waitFor(() => heard.events.length > 0);
  await waitFor(() => response.destroyed);
  t.deepEqual(heard, { events: heard.events, oversized: [], ends: [] });
  t.is(heard.events.length, 1);
  t.is(clock.pendingTimers, 0);
});
