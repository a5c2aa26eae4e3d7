import test from 'ava';
import { type Answer, listen } from '../../fixtures/http-servers/listen.ts';
import { ENDPOINT, listenOld } from '../../fixtures/http-servers/old-server.ts';
import { event, notification, openStream } from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectClient, joinClient } from '../connect.ts';
import { dialHttpSse } from '../remote-dialers.ts';

for (const [announced, path] of [
  ['/messages', '/messages'],
  ['messages?x=1', '/messages?x=1'],
  ['?session=2', '/sse?session=2'],
  ['ABSOLUTE/a/b', '/a/b'],
] as const) {
  test(`an endpoint "${announced}" is resolved against the stream's URL`, async (t) => {
    const { server, posted } = await listenOld({
      get: (_, response) => {
        const data = announced.replace('ABSOLUTE', server.url.origin);
        openStream(response).write(`event: endpoint\ndata: ${data}\n\n`);
      },
    });
    const client = joinClient(t, server, dialHttpSse(server.url));
    client.startInitialize();
    t.is((await waitFor(() => posted[0])).path, path);
  });
}

test('a relative endpoint counts from where the stream was found after a redirect', async (t) => {
  const { server, posted } = await listenOld({
    get: ({ path }, response) => {
      if (path === '/sse') return void response.writeHead(307, { Location: '/v1/sse/' }).end();
      openStream(response).write('event: endpoint\ndata: messages\n\n');
    },
  });
  const client = joinClient(t, server, dialHttpSse(server.url));
  client.startInitialize();
  t.is((await waitFor(() => posted[0])).path, '/v1/sse/messages');
});

for (const foreign of [
  '//evil.example/messages',
  'http://evil.example/',
  'https://127.0.0.1/x',
  'OTHERPORT',
  'http://[',
  'javascript:alert(1)',
]) {
  test(`an endpoint elsewhere (${foreign}) is refused before anything is posted`, async (t) => {
    const other = await listen(() => {});
    t.teardown(() => other.close());
    const data = foreign.replace('OTHERPORT', other.url.href);
    const { server, posted } = await listenOld({ opening: `event: endpoint\ndata: ${data}\n\n` });
    const client = joinClient(t, server, dialHttpSse(server.url));
    const { error } = await client.answer(client.startInitialize());
    t.regex(error?.message ?? '', /another origin|not a URL/);
    t.is(client.ended?.code, 'ERR_UPSTREAM_PROTOCOL');
    t.is(posted.length + other.received.length, 0);
  });
}

const wrongStarts: Record<string, { get: Answer; message: RegExp }> = {
  'another event first': {
    get: (_, response) => void openStream(response).write(event(notification('notifications/x')) + ENDPOINT),
    message: /event other than "endpoint"/,
  },
  'an event of an unknown type first': {
    get: (_, response) => void openStream(response).write(`event: welcome\ndata: hi\n\n${ENDPOINT}`),
    message: /event other than "endpoint"/,
  },
  'a web page': {
    get: (_, response) => void response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>'),
    message: /answered with text\/html instead of an event stream/,
  },
  'a refusal': { get: (_, response) => void response.writeHead(405).end(), message: /answered 405/ },
  'a demand for authorization': {
    get: (_, response) => void response.writeHead(401).end(),
    message: /\(401\)\. Give it a token/,
  },
  'trouble of its own': {
    get: (_, response) => void response.writeHead(503).end('starting'),
    message: /503.*starting/,
  },
  'an end': { get: (_, response) => void openStream(response).end(), message: /ended its event stream/ },
};

for (const [name, { get, message }] of Object.entries(wrongStarts)) {
  test(`a server that begins with ${name} ends the session, with everything that waited`, async (t) => {
    const { server, posted } = await listenOld({ get });
    const client = joinClient(t, server, dialHttpSse(server.url));
    const { error } = await client.answer(client.startInitialize());
    t.is(error?.code, -32603);
    t.regex(error?.message ?? '', message);
    t.truthy(client.ended);
    t.is(posted.length, 0);
    t.is(server.received.length, 1, 'nothing is tried again behind the client’s back');
  });
}

test('comments before the endpoint are no events', async (t) => {
  const { server } = await listenOld({ opening: `: welcome\n\n: ping\n\nretry: 1\n\n${ENDPOINT}` });
  const client = await connectClient(t, server, dialHttpSse(server.url));
  t.truthy((await client.request('tools/list')).result);
});

test('a server that never says where to post is given up after ten seconds', async (t) => {
  const { server } = await listenOld({ opening: ': nothing\n\n' });
  const clock = new FakeClock();
  const dialer = dialHttpSse(server.url, { client: { clock } });
  const client = joinClient(t, server, dialer);
  client.startInitialize();
  await waitFor(() => server.received.length === 1);
  clock.advance(9999);
  t.is(client.ended, undefined);
  clock.advance(1);
  t.is(client.ended?.code, 'ERR_UPSTREAM_TIMEOUT');
  t.like(client.ended?.data, { phase: 'endpoint' });
  t.is(dialer.readiness().state, 'failing');
});
