import type { ServerResponse } from 'node:http';
import { pino } from 'pino';
import { subscriptionOf } from '../../contract/modern-client.ts';
import {
  type Act,
  type AskedMessage,
  event,
  notification,
  openStream,
  type Script,
} from '../../fixtures/http-servers/scripted.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { waitFor } from '../../support/wait-for.ts';
import { askedFor, connectScripted, refuseWith, testBothWays } from './connect-modern.ts';

const KEY = 'io.modelcontextprotocol/subscriptionId';
const TOOLS = 'notifications/tools/list_changed';
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** A stream of a subscription, seen from the server. */
interface Stream {
  readonly response: ServerResponse;
  readonly id: unknown;
  say(method: string, params?: object): void;
}

/** A server that takes subscriptions; `refusal` answers in its place as long as it is set. */
class Listened {
  readonly streams: Stream[] = [];
  refusal: Act | undefined;
  /** Answer with the acknowledgment. */
  acknowledges = true;

  readonly script: Script = {
    'subscriptions/listen': (asked, response) => {
      if (this.refusal !== undefined) return this.refusal(asked, response);
      const stream = this.#open(asked, response);
      this.streams.push(stream);
      const { notifications } = asked.message.params ?? {};
      if (this.acknowledges) stream.say(ACKNOWLEDGED, { notifications });
    },
  };

  #open({ message: { id } }: AskedMessage, response: ServerResponse): Stream {
    openStream(response).write(': hello\n\n');
    const say = (method: string, params = {}): void =>
      void response.write(event(notification(method, { ...params, _meta: { [KEY]: id } })));
    return { response, id, say };
  }

  get latest(): Stream {
    const latest = this.streams.at(-1);
    if (latest === undefined) throw new Error('nobody has subscribed');
    return latest;
  }
}

async function subscribe(t: Parameters<typeof connectScripted>[0], filter: object = { toolsListChanged: true }) {
  const clock = new FakeClock();
  const listened = new Listened();
  let interruptions = 0;
  const write = (line: string): void => {
    if (line.includes('interrupted')) interruptions += 1;
  };
  const connection = await connectScripted(t, listened.script, { clock, log: pino({ level: 'debug' }, { write }) });
  await connection.client.listen(filter, 'sub');
  let seen = 0;
  /** The link has noticed, and waits to open the stream again. */
  const interrupted = async (): Promise<void> => {
    seen += 1;
    await waitFor(() => interruptions === seen, { message: `interruption ${seen}, at ${interruptions}` });
  };
  return { ...connection, clock, listened, interrupted };
}

for (const id of [0, 'x', '1', 'ä"\\']) {
  testBothWays(`a subscription opened under ${JSON.stringify(id)} is told of under that id`, async (t) => {
    const listened = new Listened();
    const { client } = await connectScripted(t, listened.script);
    await client.listen({ toolsListChanged: true }, id);
    listened.latest.say(TOOLS);
    const result = { resultType: 'complete', _meta: { [KEY]: listened.latest.id } };
    listened.latest.response.end(event({ jsonrpc: '2.0', id: listened.latest.id, result }));
    const answer = await client.answer(id);
    t.deepEqual(answer.result, { resultType: 'complete', _meta: { [KEY]: id } });
    t.deepEqual(
      client.received.map((message) => [message.method, subscriptionOf(message)]),
      [
        [ACKNOWLEDGED, id],
        [TOOLS, id],
        [undefined, id],
      ],
    );
    t.is(typeof listened.latest.id, 'number');
  });
}

testBothWays('subscriptions of two clients under one id have streams of their own', async (t) => {
  const listened = new Listened();
  const { client, connect } = await connectScripted(t, listened.script);
  const other = connect();
  await client.listen({ toolsListChanged: true }, 1);
  await other.listen({ toolsListChanged: true }, 1);
  listened.latest.say(TOOLS);
  await waitFor(() => other.notifications(TOOLS).length === 1);
  t.is(client.notifications(TOOLS).length, 0);
  t.not(listened.streams[0]?.id, listened.streams[1]?.id);
});

testBothWays('a server that ends a subscription by notifications/cancelled ends it as if by a result', async (t) => {
  const { client, listened, server } = await subscribe(t);
  const { response, id } = listened.latest;
  response.write(event(notification('notifications/cancelled', { requestId: 999 })));
  response.write(event(notification('notifications/cancelled', { requestId: id })));
  t.deepEqual((await client.answer('sub')).result, { resultType: 'complete', _meta: { [KEY]: 'sub' } });
  await waitFor(() => server.open.size === 0, { message: 'the stream to be let go' });
});

testBothWays('a client that closes its subscription closes the stream', async (t) => {
  const { client, listened, server } = await subscribe(t);
  client.cancel('sub');
  await waitFor(() => listened.latest.response.destroyed);
  t.deepEqual(server.order, ['subscriptions/listen']);
});

testBothWays('a stream that breaks is opened again, and the client is told to look again', async (t) => {
  const filter = { toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ['file:///a'] };
  const { client, listened, server, clock, interrupted } = await subscribe(t, filter);
  listened.latest.response.destroy();
  await interrupted();
  clock.advance(1250);
  await waitFor(() => client.received.length === 4);
  t.deepEqual(
    client.received.slice(1).map((message) => [message.method, subscriptionOf(message), message.params?.uri]),
    [
      [TOOLS, 'sub', undefined],
      ['notifications/resources/list_changed', 'sub', undefined],
      ['notifications/resources/updated', 'sub', 'file:///a'],
    ],
  );
  const [first, second] = askedFor(server, 'subscriptions/listen');
  t.not(first?.message.id, second?.message.id);
  t.deepEqual(first?.message.params, second?.message.params);
  t.is(second?.headers['last-event-id'], undefined);
  listened.latest.say(TOOLS);
  await waitFor(() => client.notifications(TOOLS).length === 2);
  t.is(client.notifications(ACKNOWLEDGED).length, 1, 'it was told once');
});

testBothWays('so is a stream that the server ends without a word', async (t) => {
  const { client, listened, clock, interrupted } = await subscribe(t);
  listened.latest.response.end();
  await interrupted();
  clock.advance(1250);
  await waitFor(() => client.notifications(TOOLS).length === 1);
  t.is(listened.streams.length, 2);
});

testBothWays('it is tried again as long as the server is only out of order, ever more slowly', async (t) => {
  const { client, listened, clock, server, interrupted } = await subscribe(t);
  const refusals: Act[] = [
    // A connection that is kept would be given a second try at once.
    (_, response) => void response.writeHead(503, { Connection: 'close' }).end(),
    (_, response) => void response.destroy(),
    (_, response) => void response.writeHead(401).end(),
    (_, response) => void response.writeHead(502).end(),
  ];
  listened.refusal = (asked, response) => refusals.shift()?.(asked, response);
  listened.latest.response.destroy();
  for (const [attempt, pauseMs] of [1000, 2000, 4000, 8000].entries()) {
    await interrupted();
    clock.advance(pauseMs - 1);
    t.is(server.order.length, 1 + attempt);
    clock.advance(1 + pauseMs / 4);
    await waitFor(() => server.order.length === 2 + attempt);
  }
  listened.refusal = undefined;
  await interrupted();
  clock.advance(20_000);
  await waitFor(() => client.notifications(TOOLS).length === 1);
  t.is(client.received.length, 2);
});

for (const [title, act, code] of [
  ['takes no subscriptions anymore', refuseWith(404, -32601), -32601],
  ['is another one', ((_, response) => void response.writeHead(404).end()) satisfies Act, -32603],
  ['has enough of them', refuseWith(200, -32603), -32603],
] as const) {
  testBothWays(`a server that ${title} ends the subscription`, async (t) => {
    const { client, listened, clock, interrupted } = await subscribe(t);
    listened.refusal = act;
    listened.latest.response.destroy();
    await interrupted();
    clock.advance(1250);
    t.is((await client.answer('sub')).error?.code, code);
    t.is(clock.pendingTimers, 0);
  });
}

testBothWays('a subscription that was never acknowledged fails like a call', async (t) => {
  const listened = new Listened();
  listened.acknowledges = false;
  const { client, server } = await connectScripted(t, listened.script);
  const id = client.start('subscriptions/listen', { notifications: {} });
  await waitFor(() => listened.streams.length === 1);
  listened.latest.response.end();
  t.like((await client.answer(id)).error?.data, { bridge: { reason: 'ERR_UPSTREAM_DELIVERY' } });
  t.deepEqual(server.order, ['subscriptions/listen']);
});

testBothWays('one that waits to be opened again is closed at once', async (t) => {
  for (const close of ['cancel', 'close'] as const) {
    const { client, listened, clock, server, interrupted } = await subscribe(t);
    listened.latest.response.destroy();
    await interrupted();
    if (close === 'cancel') client.cancel('sub');
    else client.close();
    t.is(clock.pendingTimers, 0);
    t.is(server.order.length, 1);
  }
});

testBothWays('streams that break at once are not opened ever faster', async (t) => {
  const { listened, clock, interrupted } = await subscribe(t);
  for (const pauseMs of [1000, 2000, 4000]) {
    const { length } = listened.streams;
    listened.latest.response.destroy();
    await interrupted();
    clock.advance(pauseMs * 1.25);
    await waitFor(() => listened.streams.length === length + 1);
  }
  t.pass();
});

testBothWays(
  'the limit on whole calls is none for subscriptions, nor is a message over the limit their end',
  async (t) => {
    const clock = new FakeClock();
    const listened = new Listened();
    const options = { clock, timeouts: { callMs: 1000 }, maxMessageBytes: 10_000 };
    const { client } = await connectScripted(t, listened.script, options);
    await client.listen({ toolsListChanged: true }, 'sub');
    clock.advance(3_600_000);
    listened.latest.say('notifications/vendor', { text: 'x'.repeat(20_000) });
    listened.latest.say(TOOLS);
    await waitFor(() => client.notifications(TOOLS).length === 1);
    t.is(client.received.length, 2);
  },
);

testBothWays('a server takes a limited number of subscriptions; closing one allows another', async (t) => {
  const listened = new Listened();
  const { connect } = await connectScripted(t, listened.script);
  const clients = Array.from({ length: 5 }, () => connect());
  for (let n = 0; n < 1024; n += 1) clients[n % 4]?.start('subscriptions/listen', { notifications: {} }, `s${n}`);
  const late = clients[4];
  const refused = late?.start('subscriptions/listen', { notifications: {} }, 'refused');
  t.like((await late?.answer(refused ?? ''))?.error?.data, { bridge: { reason: 'ERR_SESSION_BUSY' } });
  clients[0]?.close();
  await late?.listen({}, 'taken');
  t.pass();
});
