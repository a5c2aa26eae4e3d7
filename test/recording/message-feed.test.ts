import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { KEPT_LIMITS, MAX_READERS, MessageFeed } from '../../src/recording/message-feed.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { waitFor } from '../support/wait-for.ts';

async function serve(t: ExecutionContext) {
  const clock = new FakeClock();
  const feed = new MessageFeed({ format: { secrets: 'hidden', maxMessageBytes: 65_536 }, clock });
  const server = createServer((_request, response) => feed.read(response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    feed.close();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const open = async (): Promise<IncomingMessage> => {
    const request = get({ port, host: '127.0.0.1' });
    t.teardown(() => request.destroy());
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  };
  return { feed, clock, open };
}

function collect(response: IncomingMessage): () => string {
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

test('a reader gets what is kept, and then what comes', async (t) => {
  const { feed, open } = await serve(t);
  feed.take(['{"n":1}', '{"n":2}']);
  const text = collect(await open());
  await waitFor(() => text().includes('"n":2') || undefined);
  feed.take(['{"n":3}']);
  await waitFor(() => text().includes('"n":3') || undefined);
  t.is(text(), [1, 2, 3].map((n) => `event: message\ndata: {"n":${n}}\n\n`).join(''));
});

test('only the latest messages are kept', async (t) => {
  const { feed, open } = await serve(t);
  feed.take(Array.from({ length: KEPT_LIMITS.maxItems + 5 }, (_, n) => `{"n":${n}}`));
  const text = collect(await open());
  await waitFor(() => text().includes(`"n":${KEPT_LIMITS.maxItems + 4}}`) || undefined);
  t.is(text().match(/event: message/g)?.length, KEPT_LIMITS.maxItems);
  feed.take(Array.from({ length: 10 }, () => `"${'x'.repeat(1024 * 1024)}"`));
  const later = collect(await open());
  await waitFor(() => later().length > 3 * 1024 * 1024 || undefined);
  t.true(later().length <= KEPT_LIMITS.maxBytes);
});

test('a reader that does not keep up loses messages, and is told how many', async (t) => {
  const { feed, open } = await serve(t);
  const response = await open();
  response.pause();
  const line = `"${'x'.repeat(256 * 1024)}"`;
  for (let n = 0; n < 200; n += 1) feed.take([line]);
  const text = collect(response);
  response.resume();
  await waitFor(() => /event: dropped\ndata: \{"messages":\d+\}/.test(text()) || undefined);
  const lost = Number(/"messages":(\d+)/.exec(text())?.[1]);
  t.true(lost > 0 && lost < 200);
  feed.take(['{"after":1}']);
  await waitFor(() => text().includes('"after":1') || undefined);
  t.is((text().match(/event: message/g)?.length ?? 0) + lost, 201);
});

test('the number of readers is limited, and a place is free when one leaves', async (t) => {
  const { feed, open } = await serve(t);
  const readers: IncomingMessage[] = [];
  for (let n = 0; n < MAX_READERS; n += 1) readers.push(await open());
  t.is((await open()).statusCode, 503);
  readers[0]?.destroy();
  await waitFor(() => feed.readers < MAX_READERS || undefined);
  t.is((await open()).statusCode, 200);
});

test('a silent feed is kept alive', async (t) => {
  const { clock, open } = await serve(t);
  const text = collect(await open());
  await waitFor(() => text().includes('nothing yet') || undefined);
  clock.advance(15_000);
  await waitFor(() => text().includes(': keep-alive') || undefined);
  t.pass();
});
