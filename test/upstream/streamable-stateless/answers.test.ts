import { type Act, event, notification, openStream, resultOf } from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';
import { askedFor, type ConnectOptions, connectScripted, testBothWays } from './connect-modern.ts';

async function callAnsweredBy(
  t: Parameters<typeof connectScripted>[0],
  answer: Act,
  { params = {}, ...options }: ConnectOptions & { readonly params?: object } = {},
) {
  const connection = await connectScripted(t, { 'prompts/get': answer }, options);
  const id = connection.client.start('prompts/get', { name: 'x', ...params }, 'own id');
  return { ...connection, answer: await connection.client.answer(id) };
}

const bodies: Record<string, Act> = {
  JSON: (asked, response) =>
    void response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(resultOf(asked, 'ok'))),
  'JSON without a content type': (asked, response) => void response.end(JSON.stringify(resultOf(asked, 'ok'))),
  'printed JSON with a byte order mark': (asked, response) =>
    void response
      .writeHead(200, { 'Content-Type': 'application/json' })
      .end(`\ufeff${JSON.stringify(resultOf(asked, 'ok'), null, 2)}\r\n`),
  'a stream': (asked, response) => void openStream(response).end(event(resultOf(asked, 'ok'))),
  'a stream without a content type': (asked, response) => void response.end(`: hello\n${event(resultOf(asked, 'ok'))}`),
  'a stream in small pieces with comments': async (asked, response) => {
    openStream(response);
    const bytes = Buffer.from(`:x\r\nevent: message\r\n${event(resultOf(asked, 'ok')).replaceAll('\n', '\r\n')}`);
    for (const byte of bytes) await new Promise((resolve) => response.write(Buffer.of(byte), resolve));
    response.end();
  },
  'a stream that never ends': (asked, response) => void openStream(response).write(event(resultOf(asked, 'ok'))),
};

for (const [name, answer] of Object.entries(bodies)) {
  testBothWays(`reads an answer that is ${name}`, async (t) => {
    const { answer: got, client } = await callAnsweredBy(t, answer);
    t.is(got.result?.content?.[0]?.text, 'ok', JSON.stringify(got));
    t.is(got.id, 'own id');
    t.false(client.receivedBytes.some((bytes) => bytes.includes(0x0a) || bytes.includes(0x0d)));
  });
}

testBothWays(
  'a request has an integer of the bridge for its id and its token; the client gets its own back, to the byte',
  async (t) => {
    const { server, client } = await connectScripted(t, {
      'prompts/get': ({ message, body }, response) => {
        const { id } = message;
        openStream(response).end(
          event(
            `{"jsonrpc":"2.0","method":"notifications/progress","params":{ "progressToken" : ${id},"progress":1.0}}`,
          ) + event(`{"result":{"n":1.50,"asked":${JSON.stringify(body)}} ,"id": ${id}, "jsonrpc":"2.0"}`),
        );
      },
    });
    const text = (id: string, token: string) =>
      `{ "params" : {"n":1.0e+2, "_meta":{"x":1, "progressToken" : ${token}}} ,"method":"prompts/get", "id" : ${id} ,"jsonrpc":"2.0"}`;
    client.send(text('"a\\/"', '"\\u00e9"'));
    client.send(text('2', '"t"'));
    await waitFor(() => client.received.length === 4);
    const [first, second] = askedFor(server, 'prompts/get');
    t.is(typeof first?.message.id, 'number');
    t.not(first?.message.id, second?.message.id);
    t.is(first?.body, text(String(first?.message.id), String(first?.message.id)));
    const texts = client.receivedBytes.map(String);
    t.true(
      texts.includes(
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{ "progressToken" : "\\u00e9","progress":1.0}}',
      ),
    );
    t.true(
      texts.some((got) => got.endsWith(',"id": "a\\/", "jsonrpc":"2.0"}') && got.startsWith('{"result":{"n":1.50,')),
    );
  },
);

testBothWays('what comes before the answer belongs to the call; of progress only its own', async (t) => {
  const { client, answer } = await callAnsweredBy(
    t,
    (asked, response) => {
      const progress = (progressToken: unknown) =>
        notification('notifications/progress', { progressToken, progress: 1 });
      openStream(response).end(
        [
          notification('notifications/message', { level: 'info', data: 'x' }),
          progress('t'),
          progress(0),
          progress(asked.message.id),
          notification('notifications/cancelled', { requestId: asked.message.id }),
          notification('notifications/vendor'),
          resultOf(asked, 'ok'),
        ]
          .map((message) => event(message))
          .join(''),
      );
    },
    { params: { _meta: { progressToken: 't' } } },
  );
  t.truthy(answer.result);
  t.deepEqual(
    client.received.map(({ method, params }) => [method, params?.progressToken]),
    [
      ['notifications/message', undefined],
      ['notifications/progress', 't'],
      ['notifications/vendor', undefined],
      [undefined, undefined],
    ],
  );
  for (const { call, frame } of client.peer.sent) t.is(call?.id, 'own id', frame.method);
});

testBothWays('progress nobody asked for goes nowhere', async (t) => {
  const { client } = await callAnsweredBy(t, (asked, response) => {
    const params = { progressToken: asked.message.id, progress: 1 };
    openStream(response).end(event(notification('notifications/progress', params)) + event(resultOf(asked, 'ok')));
  });
  t.is(client.received.length, 1);
});

testBothWays('a request of the server is ignored, and so is an answer to something else', async (t) => {
  const { client, server } = await callAnsweredBy(t, (asked, response) => {
    openStream(response).end(
      event({ jsonrpc: '2.0', id: 1, method: 'sampling/createMessage', params: {} }) +
        event({ jsonrpc: '2.0', id: 'own id', result: {} }) +
        event({ jsonrpc: '2.0', id: 1e6, result: {} }) +
        event('not a message') +
        event(resultOf(asked, 'ok')),
    );
  });
  t.is(client.received.length, 1);
  t.deepEqual(server.order, ['prompts/get']);
});

testBothWays('what follows the answer is not read', async (t) => {
  const { client } = await callAnsweredBy(t, (asked, response) => {
    openStream(response).end(event(resultOf(asked, 'ok')) + event(notification('notifications/late')));
  });
  await client.request('prompts/get', { name: 'y' });
  t.is(client.received.length, 2);
});

testBothWays('a server that does not end its streams after the answer is left after a moment', async (t) => {
  let isLeft = false;
  await callAnsweredBy(t, (asked, response) => {
    openStream(response).write(event(resultOf(asked, 'ok')));
    response.on('close', () => {
      isLeft = true;
    });
  });
  t.false(isLeft, 'it may be about to end');
  await waitFor(() => isLeft);
  t.pass();
});

testBothWays('one that does keeps its connection', async (t) => {
  // Time stands still, so that nothing is left for having taken a moment.
  const clock = new FakeClock();
  let end = (): void => {};
  const act: Act = (asked, response) => {
    openStream(response).write(event(resultOf(asked, 'ok')));
    end = () => void response.end();
  };
  const { server, client } = await callAnsweredBy(t, act, { clock });
  end();
  await waitFor(() => clock.pendingTimers === 0, { message: 'the end of the stream to be noticed' });
  await client.request('prompts/list');
  t.deepEqual(
    server.messages.map(({ connection }) => connection),
    [1, 1],
  );
});

testBothWays('an input_required result and its state pass untouched', async (t) => {
  const { answer, client, server } = await callAnsweredBy(t, ({ message, body }, response) => {
    const result = '{"resultType":"input_required","requestState":"a\\/b","inputRequests":{}}';
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(`{"jsonrpc":"2.0","id":${message.id},"result":${body.includes('requestState') ? '{}' : result}}`);
  });
  t.is(answer.result?.requestState, 'a/b');
  client.send('{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"requestState":"a\\/b","inputResponses":{}}}');
  await client.answer(3);
  t.regex(server.messages.at(-1)?.body ?? '', /"requestState":"a\\\/b"/);
});
