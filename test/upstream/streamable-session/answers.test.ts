import type { ServerResponse } from 'node:http';
import test from 'ava';
import { LINGERING_LIMITS } from '../../../src/upstream/streamable-session/link.ts';
import {
  type AskedMessage,
  event,
  listenScripted,
  notification,
  openStream,
  resultOf,
} from '../../fixtures/http-servers/scripted.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectClient } from '../connect.ts';
import { type DialOptions, dialStreamable } from '../remote-dialers.ts';

type Answer = (asked: AskedMessage, response: ServerResponse) => void;

async function callAnsweredBy(t: Parameters<typeof connectClient>[0], answer: Answer, options?: DialOptions) {
  const server = await listenScripted({ 'tools/call': answer });
  const client = await connectClient(t, server, dialStreamable(server.url, options));
  const id = client.start('tools/call', { name: 'x' });
  return { server, client, answer: await client.answer(id) };
}

const bodies: Record<string, Answer> = {
  'JSON with a charset': (asked, response) =>
    void response
      .writeHead(200, { 'Content-Type': 'Application/JSON; charset=utf-8' })
      .end(JSON.stringify(resultOf(asked, 'ok'))),
  'JSON without a content type': (asked, response) => void response.end(JSON.stringify(resultOf(asked, 'ok'))),
  'JSON as plain text': (asked, response) =>
    void response.writeHead(200, { 'Content-Type': 'text/plain' }).end(`\n ${JSON.stringify(resultOf(asked, 'ok'))}`),
  'printed JSON with a byte order mark': (asked, response) =>
    void response
      .writeHead(200, { 'Content-Type': 'application/json' })
      .end(`\ufeff${JSON.stringify(resultOf(asked, 'ok'), null, 2)}\r\n`),
  'JSON in small pieces': async (asked, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const bytes = Buffer.from(JSON.stringify(resultOf(asked, 'ok')));
    for (const byte of bytes) await new Promise((resolve) => response.write(Buffer.of(byte), resolve));
    response.end();
  },
  'an array of one': (asked, response) =>
    void response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify([resultOf(asked, 'ok')])),
  'a stream': (asked, response) => void openStream(response).end(event(resultOf(asked, 'ok'))),
  'a stream without a content type': (asked, response) => void response.end(`: hello\n${event(resultOf(asked, 'ok'))}`),
  'a stream with CRLF, comments and an event name': (asked, response) =>
    void openStream(response).end(`:x\r\nevent: message\r\ndata: ${JSON.stringify(resultOf(asked, 'ok'))}\r\n\r\n`),
  'a message over several data lines': (asked, response) =>
    void openStream(response).end(
      `data: ${JSON.stringify(resultOf(asked, 'ok'), null, 1).replaceAll('\n', '\ndata: ')}\n\n`,
    ),
  'a stream with a priming event, pings and noise': (asked, response) =>
    void openStream(response).end(
      `id: p\ndata:\n\nevent: ping\ndata: {}\n\ndata: not a message\n\n${event(resultOf(asked, 'ok'))}`,
    ),
};

for (const [name, answer] of Object.entries(bodies)) {
  test(`reads an answer that is ${name}`, async (t) => {
    const { answer: got, client } = await callAnsweredBy(t, answer);
    t.is(got.result?.content?.[0]?.text, 'ok', JSON.stringify(got));
    t.false(client.receivedBytes.some((bytes) => bytes.includes(0x0a) || bytes.includes(0x0d)));
  });
}

test('takes an array apart in its order', async (t) => {
  const { client } = await callAnsweredBy(t, (asked, response) => {
    const messages = [notification('notifications/a'), notification('notifications/b'), resultOf(asked, 'ok')];
    openStream(response).end(event(messages));
  });
  t.deepEqual(
    client.received.slice(1).map(({ method }) => method),
    ['notifications/a', 'notifications/b', undefined],
  );
});

test('a stream cut in the middle of a character loses nothing', async (t) => {
  const { answer } = await callAnsweredBy(t, async (asked, response) => {
    openStream(response);
    const bytes = Buffer.from(event(resultOf(asked, 'ä€😀')));
    for (const byte of bytes) await new Promise((resolve) => response.write(Buffer.of(byte), resolve));
    response.end();
  });
  t.is(answer.result?.content?.[0]?.text, 'ä€😀');
});

test('a server that keeps its streams open after the answer does not keep all connections', async (t) => {
  const server = await listenScripted({
    'tools/call': (asked, response) => void openStream(response).write(event(resultOf(asked, 'ok'))),
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  for (let count = 0; count < 40; count += 1) await client.request('tools/call', { name: 'x' });
  await waitFor(() => server.open.size <= 20);
  t.true(server.open.size >= 10, 'the latest may still have something to say');
});

test('nor what it was sent: of large requests fewer streams stay open', async (t) => {
  const server = await listenScripted({
    'tools/call': (asked, response) => void openStream(response).write(event(resultOf(asked, 'ok'))),
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  const text = 'x'.repeat(LINGERING_LIMITS.bytes / 2 - 200);
  const idle = server.open.size;
  for (let count = 0; count < 5; count += 1) await client.request('tools/call', { name: 'x', arguments: { text } });
  await waitFor(() => server.open.size <= idle + 2);
  await client.request('tools/call', { name: 'x', arguments: { text: text + text + text } });
  await waitFor(() => server.open.size <= idle);
  t.pass();
});

test('a message after the answer on the same stream still arrives', async (t) => {
  const { client } = await callAnsweredBy(t, (asked, response) => {
    openStream(response).write(event(resultOf(asked, 'ok')));
    setTimeout(() => response.end(event(notification('notifications/late'))), 20);
  });
  await waitFor(() => client.notifications('notifications/late').length === 1);
  t.pass();
});

test('a late answer to a withdrawn call goes nowhere', async (t) => {
  let finish: (() => void) | undefined;
  const server = await listenScripted({
    'tools/call': (asked, response) => {
      finish = () => response.end(JSON.stringify(resultOf(asked, 'late')));
    },
    'notifications/cancelled': (_, response) => {
      finish?.();
      response.writeHead(202).end();
    },
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  const id = client.start('tools/call', { name: 'x' });
  await waitFor(() => finish !== undefined);
  client.notify('notifications/cancelled', { requestId: id });
  await waitFor(() => server.order.includes('notifications/cancelled'));
  await client.request('tools/list');
  t.false(client.received.some((message) => message.id === id));
  t.is(client.ended, undefined);
});

test('the response stream of a withdrawn call is let go once the withdrawal has arrived', async (t) => {
  let isLetGo = false;
  const server = await listenScripted({
    'tools/call': (_, response) => {
      openStream(response).write(': working\n\n');
      response.on('close', () => {
        isLetGo = true;
      });
    },
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  const id = client.start('tools/call', { name: 'x' });
  await waitFor(() => server.order.includes('tools/call'));
  client.notify('notifications/cancelled', { requestId: id, reason: 'enough' });
  await waitFor(() => isLetGo, { message: 'the stream to be let go' });
  t.true(server.order.includes('notifications/cancelled'));
});
