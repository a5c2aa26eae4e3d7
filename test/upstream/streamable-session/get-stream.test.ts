import type { ServerResponse } from 'node:http';
import test from 'ava';
import { event, listenScripted, notification, openStream, type Script } from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { startStreamable } from '../../support/sdk-servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectClient, joinClient } from '../connect.ts';
import { dialStreamable } from '../remote-dialers.ts';

/** A server whose GET streams the test writes to. */
async function listenWithStreams(script: Script = {}) {
  const streams: ServerResponse[] = [];
  const resumedFrom: unknown[] = [];
  const server = await listenScripted({
    GET: (asked, response) => {
      resumedFrom.push(asked.headers['last-event-id']);
      streams.push(openStream(response));
      response.flushHeaders();
    },
    ...script,
  });
  return { server, streams, resumedFrom };
}

test('opens the stream once the handshake is over, and brings what it says', async (t) => {
  const { server, streams } = await listenWithStreams();
  const client = joinClient(t, server, dialStreamable(server.url));
  await client.answer(client.startInitialize());
  await client.request('tools/list');
  t.false(server.order.includes('GET'));
  client.notify('notifications/initialized');
  const stream = await waitFor(() => streams[0]);
  stream.write(event(notification('notifications/tools/list_changed')));
  stream.write(event({ jsonrpc: '2.0', id: 'q', method: 'roots/list' }));
  await waitFor(() => client.notifications('notifications/tools/list_changed').length === 1);
  const question = await waitFor(() => client.received.find(({ id }) => id === 'q'));
  t.is(question.method, 'roots/list');
  client.send({ id: 'q', result: { roots: [] } });
  await waitFor(() => server.order.includes('answer'));
  t.is(server.received.find(({ method }) => method === 'GET')?.headers.accept, 'text/event-stream');
});

test('calls leave once the stream is there, so that nothing said on it because of them is lost', async (t) => {
  let stream: ServerResponse | undefined;
  const server = await listenScripted({
    GET: (_, response) => {
      stream = response;
    },
  });
  // Without end, as far as the clock of the bridge goes.
  const clock = new FakeClock();
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  const list = client.start('tools/list');
  const late = await waitFor(() => stream);
  // Another connection would have been there long ago.
  await fetch(server.url, { method: 'DELETE' });
  t.false(server.order.includes('tools/list'));
  openStream(late).flushHeaders();
  await client.answer(list);
  t.is(server.order.at(-1), 'tools/list');
});

test('a server that does not answer for its stream does not hold up calls for long', async (t) => {
  const clock = new FakeClock();
  const server = await listenScripted({ GET: () => undefined });
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  const list = client.start('tools/list');
  await waitFor(() => server.order.includes('GET'));
  await clock.advanceInSteps(1000, 100);
  t.deepEqual((await client.answer(list)).result, {});
});

for (const status of [405, 404, 400, 501, 200, 204, 403]) {
  test(`a server that answers ${status} to GET has no stream, and is asked once`, async (t) => {
    const server = await listenScripted({ GET: (_, response) => void response.writeHead(status).end() });
    if (status === 200) {
      server.rewrite({ GET: (_, response) => void response.writeHead(200, { 'Content-Type': 'text/html' }).end('x') });
    }
    const client = await connectClient(t, server, dialStreamable(server.url));
    await waitFor(() => server.order.includes('GET'));
    for (const _ of [1, 2, 3]) t.deepEqual((await client.request('tools/list')).result, {});
    t.is(server.order.filter((name) => name === 'GET').length, 1);
    t.is(server.order.filter((name) => name === 'initialize').length, 1);
  });
}

test('a server that takes another stream for open still is asked until it has noticed that it is not', async (t) => {
  const clock = new FakeClock();
  let refusals = 0;
  const server = await listenScripted({
    GET: (_, response) => {
      refusals += 1;
      response.writeHead(409).end();
    },
  });
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  await waitFor(() => {
    clock.advance(1000);
    return refusals >= 6;
  });
  server.rewrite({ GET: (_, response) => void openStream(response).write(event(notification('notifications/one'))) });
  await waitFor(() => {
    clock.advance(1000);
    return client.notifications('notifications/one').length === 1;
  });
  t.is(client.ended, undefined);
});

test('comes back to a stream that broke, from its last event on and after the time asked for', async (t) => {
  const { server, streams, resumedFrom } = await listenWithStreams();
  const client = await connectClient(t, server, dialStreamable(server.url));
  const first = await waitFor(() => streams[0]);
  first.write('retry: 300\n');
  first.write(event(notification('notifications/one'), 'e-1'));
  await waitFor(() => client.notifications('notifications/one').length === 1);
  const brokeMs = performance.now();
  first.destroy();
  const second = await waitFor(() => streams[1]);
  t.true(performance.now() - brokeMs >= 290, 'retry is respected');
  t.deepEqual(resumedFrom, [undefined, 'e-1']);
  // A server that replays more than it was asked for.
  second.write(event(notification('notifications/one'), 'e-1'));
  second.write(event(notification('notifications/two'), 'e-2'));
  await waitFor(() => client.notifications('notifications/two').length === 1);
  t.is(client.notifications('notifications/one').length, 1, 'nothing comes twice');
});

test('a refusal to open the stream again whose end never comes is one, and the server is asked once more', async (t) => {
  const clock = new FakeClock();
  const { server, streams } = await listenWithStreams();
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  const first = await waitFor(() => streams[0]);
  let refusals = 0;
  server.rewrite({
    GET: (_, response) => {
      refusals += 1;
      response.writeHead(503, { 'Content-Length': '1000' }).write('overloaded');
    },
  });
  first.end(event(notification('notifications/one'), 'e-1'));
  await waitFor(() => client.notifications('notifications/one').length === 1);
  await waitFor(() => {
    clock.advance(1000);
    return refusals >= 2;
  });
  t.is(client.ended, undefined);
});

test('a server that ends its stream regularly is asked again, each time', async (t) => {
  const { server, streams } = await listenWithStreams();
  const client = await connectClient(t, server, dialStreamable(server.url));
  for (const round of [0, 1, 2]) {
    const stream = await waitFor(() => streams[round]);
    stream.end(`retry: 10\n${event(notification(`notifications/round-${round}`))}`);
    await waitFor(() => client.notifications(`notifications/round-${round}`).length === 1);
  }
  t.pass();
});

test('a stream refused for a token that ran out is tried until somebody has renewed it', async (t) => {
  const { server, streams } = await listenWithStreams();
  const client = await connectClient(t, server, dialStreamable(server.url));
  (await waitFor(() => streams[0])).end('retry: 0\n\n');
  let refusals = 0;
  server.rewrite({
    GET: (_, response) => {
      refusals += 1;
      if (refusals < 3) response.writeHead(401).end();
      else openStream(response).write(event(notification('notifications/x')));
    },
  });
  await waitFor(() => client.notifications('notifications/x').length === 1);
  t.is(refusals, 3);
});

for (const status of [400, 403, 409, 500]) {
  test(`a stream that broke and is refused with ${status} is asked for again later, in the session that lives`, async (t) => {
    const clock = new FakeClock();
    const { server, streams } = await listenWithStreams();
    const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
    const first = await waitFor(() => streams[0]);
    let refusals = 0;
    server.rewrite({
      GET: (_, response) => {
        refusals += 1;
        if (refusals < 4) return void response.writeHead(status).end('session already exists');
        openStream(response).write(event(notification('notifications/x')));
      },
    });
    first.destroy();
    await waitFor(() => {
      clock.advance(1000);
      return client.notifications('notifications/x').length === 1;
    });
    t.is(server.order.filter((name) => name === 'initialize').length, 1);
    t.true(server.order.filter((name) => name === 'ping').length <= 1, 'the server is asked for the session once');
  });
}

test('a server whose stream leads round in a circle has no stream, and is asked for it once', async (t) => {
  const server = await listenScripted({
    GET: (_, response) => void response.writeHead(307, { Location: '/mcp' }).end(),
  });
  const clock = new FakeClock();
  const client = await connectClient(t, server, dialStreamable(server.url, { client: { clock } }));
  const gets = (): number => server.order.filter((name) => name === 'GET').length;
  await waitFor(() => gets() === 6);
  for (const _ of [1, 2, 3]) {
    clock.advance(60_000);
    await client.request('tools/list');
  }
  t.is(gets(), 6);
});

for (const status of [307, 308]) {
  test(`a redirect with ${status} is followed by the stream and by the end of the session`, async (t) => {
    const moved: string[] = [];
    const server = await listenScripted({
      GET: ({ path }, response) => {
        if (path === '/mcp') return void response.writeHead(status, { Location: '/moved' }).end();
        openStream(response).write(event(notification('notifications/x')));
      },
      DELETE: ({ path, headers }, response) => {
        if (path === '/mcp') return void response.writeHead(status, { Location: '/moved' }).end();
        moved.push(String(headers['mcp-session-id']));
        response.writeHead(200).end();
      },
    });
    const client = await connectClient(t, server, dialStreamable(server.url));
    await waitFor(() => client.notifications('notifications/x').length === 1);
    client.close();
    await waitFor(() => moved.length > 0);
    t.deepEqual(moved, ['session-1']);
  });
}

test('a server in trouble is asked again more slowly', async (t) => {
  const { server, streams } = await listenWithStreams();
  const askedMs: number[] = [];
  await connectClient(t, server, dialStreamable(server.url));
  const refuse: Script = {
    GET: (_, response) => {
      askedMs.push(performance.now());
      response.writeHead(503).end();
    },
  };
  const stream = await waitFor(() => streams[0]);
  server.rewrite(refuse);
  stream.end('retry: 0\n\n');
  const [first = 0, second = 0, third = 0] = await waitFor(() => askedMs.length >= 3 && askedMs);
  t.true(second - first > 400, `${second - first} ms`);
  t.true(third - second > 2 * 400, `${third - second} ms`);
});

test('the limits on calls are not the stream’s', async (t) => {
  let open: (() => ServerResponse) | undefined;
  const server = await listenScripted({
    GET: (_, response) => {
      open = () => openStream(response);
    },
  });
  const clock = new FakeClock();
  const timeouts = { firstByteMs: 1000, callMs: 1000 };
  const client = await connectClient(t, server, dialStreamable(server.url, { timeouts, client: { clock } }));
  const begin = await waitFor(() => open);
  clock.advance(10_000);
  begin().write(event(notification('notifications/x')));
  await waitFor(() => client.notifications('notifications/x').length === 1);
  clock.advance(10_000);
  await client.request('tools/list');
  t.is(server.order.filter((name) => name === 'GET').length, 1);
});

test('an event over the limit is dropped, its request refused, and the stream goes on', async (t) => {
  const { server, streams } = await listenWithStreams();
  const client = await connectClient(t, server, dialStreamable(server.url, { maxMessageBytes: 10_000 }));
  const stream = await waitFor(() => streams[0]);
  const padding = 'x'.repeat(50_000);
  stream.write(event({ jsonrpc: '2.0', id: 'big', method: 'roots/list', params: { padding } }));
  stream.write(
    event(`{"params":{"padding":"${padding}"},"method":"roots/list","id":"big at the end","jsonrpc":"2.0"}`),
  );
  stream.write(event(notification('notifications/after')));
  await waitFor(() => client.notifications('notifications/after').length === 1);
  const refusals = await waitFor(() => {
    const answers = server.messages.filter(({ message }) => message.error !== undefined);
    return answers.length === 2 && answers;
  });
  t.deepEqual(
    refusals.map(({ message }) => message.id),
    ['big', 'big at the end'],
  );
  t.false(client.received.some(({ method }) => method === 'roots/list'));
});

test('the stream of an SDK server survives a broken connection without losing anything', async (t) => {
  const server = await startStreamable({ hasEventStore: true, retryMs: 50 });
  const client = await connectClient(t, server, dialStreamable(server.url));
  const changes = (): number => client.notifications('notifications/tools/list_changed').length;
  // Said again only when nobody listened yet: what comes late would be counted with what follows.
  await waitFor(async () => {
    await client.call('announce');
    return waitFor(() => changes() > 0, { timeoutMs: 10_000 }).catch(() => false);
  });
  const before = changes();
  server.cut();
  await client.request('ping');
  const announced = [await client.call('announce'), await client.call('announce')].length;
  await waitFor(() => changes() === before + announced);
  t.pass();
});
