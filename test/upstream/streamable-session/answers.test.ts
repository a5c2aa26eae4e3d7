import type { ServerResponse } from 'node:http';
import test from 'ava';
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

test('a stream that ends in the middle of an event fails the call, and says that it may have been carried out', async (t) => {
  const { answer, client, server } = await callAnsweredBy(t, (asked, response) => {
    openStream(response).write(event(resultOf(asked, 'ok')).slice(0, 30));
    setTimeout(() => response.destroy(), 20);
  });
  t.is(answer.error?.code, -32603);
  t.regex(answer.error?.message ?? '', /broke the stream off before the answer to tools\/call.*no event id/);
  t.like(answer.error?.data, { bridge: { reason: 'ERR_UPSTREAM_CLOSED' } });
  await waitFor(() => server.order.includes('notifications/cancelled'));
  t.deepEqual((await client.request('tools/list')).result, {}, 'the session goes on');
});

const failures: Record<string, { answer: Answer; reason: string; message: RegExp }> = {
  'a web page': {
    answer: (_, response) => void response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>'),
    reason: 'ERR_UPSTREAM_PROTOCOL',
    message: /200 and text\/html instead of JSON.*URL of the MCP endpoint/,
  },
  nothing: {
    answer: (_, response) => void response.writeHead(202).end(),
    reason: 'ERR_UPSTREAM_PROTOCOL',
    message: /without an answer in it/,
  },
  'broken JSON': {
    answer: (_, response) => void response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"jsonrpc":'),
    reason: 'ERR_UPSTREAM_PROTOCOL',
    message: /without an answer in it/,
  },
  'an empty stream': {
    answer: (_, response) => void openStream(response).end(),
    reason: 'ERR_UPSTREAM_CLOSED',
    message: /before the answer/,
  },
  'half a body': {
    answer: (_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '1000' }).write('{"jsonrpc"');
      setTimeout(() => response.destroy(), 20);
    },
    reason: 'ERR_UPSTREAM_CLOSED',
    message: /broke in the middle of an answer/,
  },
  'an error page': {
    answer: (_, response) =>
      void response
        .writeHead(500, { 'Content-Type': 'text/html' })
        .end('<!doctype html><html><title>Oh \x1b[31mno</title><body>secret stack</body></html>'),
    reason: 'ERR_UPSTREAM_HTTP',
    message: /answered 500 Internal Server Error: Oh no\.$/,
  },
  'an error in plain text': {
    answer: (_, response) => void response.writeHead(503, { 'Retry-After': '7' }).end('overloaded'),
    reason: 'ERR_UPSTREAM_HTTP',
    message: /answered 503 Service Unavailable: overloaded\.$/,
  },
  'an error about no message in particular': {
    answer: (_, response) =>
      void response
        .writeHead(406, { 'Content-Type': 'application/json' })
        .end('{"jsonrpc":"2.0","error":{"code":-32000,"message":"Not Acceptable: try harder"},"id":null}'),
    reason: 'ERR_UPSTREAM_HTTP',
    message: /answered 406 Not Acceptable: Not Acceptable: try harder\.$/,
  },
  'a request for authorization': {
    answer: (_, response) =>
      void response
        .writeHead(401, {
          'WWW-Authenticate': 'Bearer error="invalid_token", resource_metadata="https://s.example/.well-known/x?k=v"',
        })
        .end(),
    reason: 'ERR_UPSTREAM_AUTH',
    message:
      /\(401\)\. It describes how to get it at https:\/\/s\.example\/\.well-known\/x\. Give a token with --bearer/,
  },
  'a refusal of the authorization': {
    answer: (_, response) => void response.writeHead(403).end('no'),
    reason: 'ERR_UPSTREAM_AUTH',
    message: /\(403\)\. Give a token/,
  },
};

for (const [name, { answer, reason, message }] of Object.entries(failures)) {
  test(`an answer that is ${name} fails the call alone, in plain words`, async (t) => {
    const { answer: got, client } = await callAnsweredBy(t, answer);
    t.is(got.error?.code, -32603);
    t.like(got.error?.data, { bridge: { reason } });
    t.regex(got.error?.message ?? '', message);
    t.notRegex(got.error?.message ?? '', /secret|31m/);
    t.deepEqual((await client.request('tools/list')).result, {}, 'the session goes on');
  });
}

test('a JSON-RPC error with an HTTP error status is the server’s answer and passes untouched', async (t) => {
  const { client, answer } = await callAnsweredBy(t, ({ message }, response) => {
    const error = { code: -32001, message: 'custom', data: { a: 1 } };
    response
      .writeHead(400, { 'Content-Type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error }));
  });
  t.deepEqual(answer.error, { code: -32001, message: 'custom', data: { a: 1 } });
  t.is(client.ended, undefined);
});

test('an error without id on the answer to a request is that request’s', async (t) => {
  const { answer } = await callAnsweredBy(t, (_, response) => {
    response
      .writeHead(200, { 'Content-Type': 'application/json' })
      .end('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot read"}}');
  });
  t.is(answer.error?.code, -32700);
});

const tooLong: Record<string, Answer> = {
  JSON: (asked, response) =>
    void response
      .writeHead(200, { 'Content-Type': 'application/json' })
      .end(JSON.stringify(resultOf(asked, 'x'.repeat(200_000)))),
  'an event': (asked, response) => void openStream(response).end(event(resultOf(asked, 'x'.repeat(200_000)))),
};

for (const [form, answer] of Object.entries(tooLong)) {
  test(`an answer over the limit (${form}) fails its call, and the session goes on`, async (t) => {
    const { answer: got, client } = await callAnsweredBy(t, answer, { maxMessageBytes: 100_000 });
    t.is(got.error?.code, -32600);
    t.regex(got.error?.message ?? '', /up to 100000 are allowed.*--max-message-bytes/);
    t.deepEqual((await client.request('tools/list')).result, {});
  });
}

test('an answer without end is cut off at the limit', async (t) => {
  let written = 0;
  const { answer } = await callAnsweredBy(
    t,
    (_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      const timer = setInterval(() => {
        written += 64 * 1024;
        response.write(Buffer.alloc(64 * 1024, 0x20));
      }, 1);
      response.on('close', () => clearInterval(timer));
    },
    { maxMessageBytes: 1_000_000 },
  );
  t.regex(answer.error?.message ?? '', /up to 1000000 are allowed/);
  t.true(written < 50_000_000);
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
