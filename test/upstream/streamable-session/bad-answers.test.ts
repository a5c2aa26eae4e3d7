import type { ServerResponse } from 'node:http';
import test from 'ava';
import {
  type AskedMessage,
  event,
  listenScripted,
  openStream,
  resultOf,
} from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
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
      /\(401\)\. It describes how to get it at https:\/\/s\.example\/\.well-known\/x\. Give it a token with MCP_PORTAGE_BEARER_TOKEN, --bearer/,
  },
  'a proxy’s demand for authorization': {
    answer: (_, response) => void response.writeHead(407).end(),
    reason: 'ERR_UPSTREAM_AUTH',
    message: /proxy on the way.*\(407\)\. Put user and password into its URL/,
  },
  'a refusal of the authorization': {
    answer: (_, response) => void response.writeHead(403).end('no'),
    reason: 'ERR_UPSTREAM_AUTH',
    message: /\(403\)\. It says: "no"\. Give it a token/,
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

test('a refusal whose end never comes is told all the same', async (t) => {
  const clock = new FakeClock();
  const server = await listenScripted({
    'tools/call': (_, response) => void response.writeHead(503, { 'Content-Length': '1000' }).write('overloaded'),
  });
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  const id = client.start('tools/call', { name: 'x' });
  await waitFor(() => server.order.includes('tools/call'));
  await waitFor(() => {
    clock.advance(1000);
    return client.received.some((message) => message.id === id);
  });
  t.regex((await client.answer(id)).error?.message ?? '', /503 Service Unavailable: overloaded/);
});

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
  const server = await listenScripted({
    'tools/call': (asked, response) => {
      if (asked.message.params?.name === 'other') return;
      response
        .writeHead(200, { 'Content-Type': 'application/json' })
        .end('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot read"}}');
    },
  });
  const client = await connectClient(t, server, dialStreamable(server.url));
  client.start('tools/call', { name: 'other' });
  t.is((await client.request('tools/call', { name: 'x' })).error?.code, -32700);
});

for (const [what, body] of [
  ['an error without id', '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}'],
  ['a result without id', '{"jsonrpc":"2.0","result":{}}'],
]) {
  test(`${what} on the answer to a notification is no answer to the open call`, async (t) => {
    const server = await listenScripted({
      'tools/call': ({ message }, response) => {
        if (message.params?.name === 'held') return;
        response
          .writeHead(200, { 'Content-Type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: {} }));
      },
      'notifications/roots/list_changed': (_, response) =>
        void response.writeHead(200, { 'Content-Type': 'application/json' }).end(body),
    });
    const client = await connectClient(t, server, dialStreamable(server.url));
    const held = client.start('tools/call', { name: 'held' });
    await waitFor(() => server.order.includes('tools/call'));
    client.notify('notifications/roots/list_changed');
    client.notify('notifications/x');
    // Notifications leave one after the other, so the first has been answered.
    await waitFor(() => server.order.includes('notifications/x'));
    t.false(client.received.some(({ id }) => id === held || id === null));
  });
}

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
    t.is(got.error?.code, -32603);
    t.regex(got.error?.message ?? '', /up to 100000 are allowed.*--max-message-bytes/);
    t.deepEqual((await client.request('tools/list')).result, {});
  });
}

const asides = {
  request: { id: 'q', method: 'sampling/createMessage' },
  notification: { method: 'notifications/message' },
};

for (const [kind, aside] of Object.entries(asides)) {
  test(`a ${kind} over the limit on the stream of an answer is not the answer, which is waited for`, async (t) => {
    const params = { text: 'x'.repeat(200_000) };
    const { answer, server } = await callAnsweredBy(
      t,
      (asked, response) => {
        openStream(response).write(event({ jsonrpc: '2.0', ...aside, params }));
        response.end(event(resultOf(asked, 'ok')));
      },
      { maxMessageBytes: 100_000 },
    );
    t.like(answer.result, { content: [{ text: 'ok' }] });
    if (kind === 'notification') return;
    const refusal = await waitFor(() => server.messages.find(({ message }) => message.id === 'q'));
    t.like(refusal.message.error, { code: -32600, data: { bridge: { reason: 'ERR_WIRE_FRAME_TOO_LARGE' } } });
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
