import test, { type ExecutionContext } from 'ava';
import { META, ModernClient, type ModernClientOptions, subscriptionOf } from '../../contract/modern-client.ts';
import { type ModernHttpOptions, serveModern } from '../../fixtures/modern-server/http.ts';
import { waitFor } from '../../support/wait-for.ts';
import { dialStateless } from '../remote-dialers.ts';

/** Clients of a server made with the official SDK v2. */
async function reachServer(t: ExecutionContext, options: ModernHttpOptions = {}) {
  const server = await serveModern(options);
  const dialer = dialStateless(server.url);
  const clients: ModernClient[] = [];
  t.teardown(async () => {
    for (const client of clients) client.close();
    await dialer.close();
    await server.close();
  });
  const connect = (clientOptions: ModernClientOptions = {}): ModernClient => {
    const client = new ModernClient(dialer, clientOptions);
    clients.push(client);
    return client;
  };
  return { server, connect };
}

for (const responseMode of ['auto', 'sse', 'json'] as const) {
  test(`discovers, lists and calls (answers: ${responseMode})`, async (t) => {
    const { connect } = await reachServer(t, { responseMode });
    const client = connect();
    const { result } = await client.request('server/discover');
    t.deepEqual(result?.supportedVersions, ['2026-07-28']);
    t.true(((await client.request('tools/list')).result?.tools as unknown[]).length > 5);
    t.is(await client.call('echo', { text: 'hello' }), 'hello');
    t.is(await client.call('route', { region: 'Zürich' }), 'Zürich by =?base64?WsO8cmljaA==?=');
    t.is((await client.request('tools/none')).error?.code, -32601);
    t.is((await client.request('resources/read', { uri: 'test://none' })).error?.code, -32602);
  });
}

test('calls of many clients, all under the same id, each get their own answer, progress and logs', async (t) => {
  const { connect } = await reachServer(t);
  const clients = Array.from({ length: 12 }, (_, n) => ({
    client: connect({ principal: `p${n % 3}` }),
    name: `client ${n}`,
  }));
  for (const { client, name } of clients) {
    const _meta = { progressToken: 0, [`${META}logLevel`]: 'info' };
    client.start('tools/call', { name: 'work', arguments: { steps: 4, name }, _meta }, 0);
  }
  for (const { client, name } of clients) {
    t.is((await client.answer(0)).result?.content?.[0]?.text, name);
    t.deepEqual(
      client.notifications('notifications/progress').map(({ params }) => params),
      [1, 2, 3, 4].map((step) => ({ progressToken: 0, progress: step, message: name })),
    );
    t.deepEqual(
      client.notifications('notifications/message').map(({ params }) => params?.data),
      [1, 2, 3, 4].map((step) => `${name} ${step}`),
    );
    t.is(client.received.length, 9);
  }
});

test('a server that needs input asks in its result, and takes it with the repeated call', async (t) => {
  const { connect } = await reachServer(t);
  const client = connect({ capabilities: { elicitation: { form: {} } } });
  t.is((await client.request('tools/call', { name: 'ask' })).result?.resultType, 'input_required');
  const inputResponses = { name: { action: 'accept', content: { name: 'Bo' } } };
  const again = await client.request('tools/call', { name: 'ask', inputResponses });
  t.is(again.result?.content?.[0]?.text, 'hello Bo');
  const { error } = await connect().request('tools/call', { name: 'ask' });
  t.is(error?.code, -32021, 'a client that cannot be asked is told so by the server');
});

test('a call is withdrawn by its client, and by a client that leaves', async (t) => {
  const { connect, server } = await reachServer(t);
  const [first, second, third] = [connect(), connect(), connect()];
  first.start('tools/call', { name: 'wait', arguments: { name: 'first' } }, 7);
  second.start('tools/call', { name: 'wait', arguments: { name: 'second' } }, 7);
  await waitFor(() => server.asked.filter((method) => method === 'tools/call').length === 2);
  first.cancel(7);
  second.close();
  await waitFor(async () => {
    const names = (await third.call('withdrawn')).split(',');
    return names.includes('first') && names.includes('second');
  });
  t.false(first.received.some(({ id }) => id === 7));
  t.false(server.asked.includes('notifications/cancelled'));
});

test('subscriptions under one id hear what each has asked for, also after their streams broke', async (t) => {
  const { connect, server } = await reachServer(t);
  const [a, b] = [connect(), connect()];
  await a.listen({ toolsListChanged: true }, 100);
  await b.listen({ resourceSubscriptions: ['test://b'] }, 100);
  const heardByA = () => a.notifications('notifications/tools/list_changed').length;
  const heardByB = () => b.notifications('notifications/resources/updated').length;
  await a.call('change', { kind: 'test://b' });
  await b.call('change', { kind: 'tools' });
  await waitFor(() => heardByA() === 1 && heardByB() === 1);
  server.cut();
  await waitFor(() => heardByA() === 2 && heardByB() === 2, { message: 'the news that something may have changed' });
  await a.call('change', { kind: 'test://b' });
  await waitFor(() => heardByB() === 3);
  t.is(heardByA(), 2);
  for (const client of [a, b]) {
    for (const message of client.received.filter(({ id }) => id === undefined)) t.is(subscriptionOf(message), 100);
  }
});
