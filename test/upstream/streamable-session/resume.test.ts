import type { ServerResponse } from 'node:http';
import test from 'ava';
import { createEverything } from '../../fixtures/everything/everything.js';
import {
  type AskedMessage,
  event,
  listenScripted,
  notification,
  openStream,
  resultOf,
} from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { startStreamable } from '../../support/sdk-servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectClient } from '../connect.ts';
import { dialStreamable } from '../remote-dialers.ts';

/** A server that begins to answer each call on a stream and lets the test say how it goes on. */
async function listenPolling(begin: (asked: AskedMessage, response: ServerResponse) => void) {
  let asked: AskedMessage | undefined;
  const resumptions: { readonly from: unknown; readonly response: ServerResponse; readonly atMs: number }[] = [];
  const server = await listenScripted({
    'tools/call': (call, response) => {
      asked = call;
      begin(call, response);
    },
    GET: ({ headers }, response) => {
      const from = headers['last-event-id'];
      if (from === undefined) return void response.writeHead(405).end();
      resumptions.push({ from, response, atMs: performance.now() });
    },
  });
  return { server, resumptions, result: (text: string) => resultOf(asked as AskedMessage, text) };
}

test('waits for the time asked for, then resumes the call’s stream with GET', async (t) => {
  let endedMs = 0;
  const { server, resumptions, result } = await listenPolling((_, response) => {
    openStream(response).end('id: s-0\nretry: 400\ndata:\n\n');
    endedMs = performance.now();
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  const id = client.start('tools/call', { name: 'x' });
  const first = await waitFor(() => resumptions[0]);
  t.true(first.atMs - endedMs >= 390);
  t.is(first.from, 's-0');
  // The server lets go again, having said something.
  openStream(first.response).end(
    `${event(notification('notifications/message', { progress: 1 }), 's-1')}retry: 50\n\n`,
  );
  const second = await waitFor(() => resumptions[1]);
  t.is(second.from, 's-1');
  // And again, having said nothing.
  openStream(second.response).end();
  const third = await waitFor(() => resumptions[2]);
  t.is(third.from, 's-1');
  openStream(third.response).write(
    event(notification('notifications/message', { progress: 1 }), 's-1') + event(result('at last'), 's-2'),
  );
  const answer = await client.answer(id);
  t.is(answer.result?.content?.[0]?.text, 'at last');
  t.is(client.notifications('notifications/message').length, 1, 'a repeated event is delivered once');
  t.is(client.received.filter((message) => message.id === id).length, 1);
  const { headers } = server.received.find(({ headers }) => headers['last-event-id'] === 's-0') ?? {};
  t.like(headers, { 'mcp-session-id': 'session-1', 'mcp-protocol-version': '2025-11-25' });
  t.false(server.order.includes('notifications/cancelled'), 'a break is no withdrawal');
});

test('resumes a stream that was cut without a word', async (t) => {
  const { server, resumptions, result } = await listenPolling((_, response) => {
    openStream(response).write(event(notification('notifications/started'), 'a'));
    setTimeout(() => response.destroy(), 20);
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  const id = client.start('tools/call', { name: 'x' });
  const { response } = await waitFor(() => resumptions[0]);
  openStream(response).end(event(result('recovered'), 'b'));
  t.is((await client.answer(id)).result?.content?.[0]?.text, 'recovered');
});

test('tries again while the server is in trouble', async (t) => {
  const { server, resumptions, result } = await listenPolling((_, response) => {
    openStream(response).end('id: a\nretry: 10\ndata:\n\n');
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  const id = client.start('tools/call', { name: 'x' });
  (await waitFor(() => resumptions[0])).response.writeHead(502).end();
  openStream((await waitFor(() => resumptions[1])).response).end(event(result('recovered'), 'b'));
  t.is((await client.answer(id)).result?.content?.[0]?.text, 'recovered');
});

for (const status of [400, 405, 410]) {
  test(`a server that answers ${status} to the resumption loses the call, and it says so`, async (t) => {
    const { server, resumptions } = await listenPolling((_, response) => {
      openStream(response).end('id: a\nretry: 10\ndata:\n\n');
    });
    const client = await connectClient(t, server, dialStreamable(server.url));
    const id = client.start('tools/call', { name: 'x' });
    (await waitFor(() => resumptions[0])).response.writeHead(status).end();
    const { error } = await client.answer(id);
    t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_CLOSED' } });
    t.regex(error?.message ?? '', new RegExp(`could not resume it.*not known\\..*answered ${status}`));
    await waitFor(() => server.order.includes('notifications/cancelled'));
  });
}

/** Time that passes only when a test says so, and how many pauses of this length have begun. */
class PauseClock extends FakeClock {
  readonly #pauseMs: number;
  pauses = 0;
  givenUp = 0;

  constructor(pauseMs: number) {
    super();
    this.#pauseMs = pauseMs;
  }

  override after(delayMs: number, run: () => void): () => void {
    const cancel = super.after(delayMs, run);
    if (delayMs !== this.#pauseMs) return cancel;
    this.pauses += 1;
    return () => {
      this.givenUp += 1;
      cancel();
    };
  }
}

/** Nobody else takes such a one. */
const PAUSE_MS = 1234;
const LET_GO = `id: a\nretry: ${PAUSE_MS}\ndata:\n\n`;

test('a limit on the whole call counts the time between connections, too', async (t) => {
  const { server, resumptions } = await listenPolling((_, response) => void openStream(response).end(LET_GO));
  const clock = new PauseClock(PAUSE_MS);
  const options = { timeouts: { callMs: 2 * PAUSE_MS + 500 }, client: { clock } };
  const client = await connectClient(t, server, dialStreamable(server.url, options));
  const id = client.start('tools/call', { name: 'x' });
  for (const pause of [1, 2]) {
    await waitFor(() => clock.pauses === pause, { message: 'a pause' });
    clock.advance(PAUSE_MS);
    const { response } = await waitFor(() => resumptions[pause - 1]);
    if (pause === 1) openStream(response).end(LET_GO);
  }
  clock.advance(499);
  await client.request('tools/list');
  t.false(client.received.some((message) => message.id === id));
  clock.advance(1);
  const { error } = await client.answer(id);
  t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_TIMEOUT', phase: 'call' } });
});

test('a call withdrawn between two connections is not resumed', async (t) => {
  const { server, resumptions } = await listenPolling((_, response) => void openStream(response).end(LET_GO));
  const clock = new PauseClock(PAUSE_MS);
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  const id = client.start('tools/call', { name: 'x' });
  await waitFor(() => clock.pauses === 1, { message: 'a pause' });
  client.notify('notifications/cancelled', { requestId: id });
  await waitFor(() => server.order.includes('notifications/cancelled'));
  await waitFor(() => clock.givenUp === 1, { message: 'the end of the pause' });
  clock.advance(10_000);
  // It would have left before this.
  await client.request('tools/list');
  t.is(resumptions.length, 0);
});

test('an SDK server that lets its clients poll gets the result to them', async (t) => {
  const server = await startStreamable({ hasEventStore: true, retryMs: 100, createServer: createEverything });
  const client = await connectClient(t, server, dialStreamable(server.url));
  t.is(await client.call('test_reconnection'), 'The result after the reconnection.');
  t.true(server.asked.some(({ method, headers }) => method === 'GET' && headers['last-event-id'] !== undefined));
});
