import test, { type ExecutionContext } from 'ava';
import { SharedModernServer } from '../../../../src/relay/shared/modern/modern-era.ts';
import { META, ModernClient, type ModernClientOptions, subscriptionOf } from '../../../contract/modern-client.ts';
import { createTestDeps } from '../../../process/collected-log.ts';
import { dialScript } from '../../../support/dialers.ts';
import { serverProgram } from '../../../support/server-program.ts';
import { waitFor } from '../../../support/wait-for.ts';

const SERVER = serverProgram(new URL('../../../fixtures/modern-server/stdio.js', import.meta.url));

/** Clients of one process of a server made with the official SDK v2. */
function shareServer(t: ExecutionContext) {
  const { deps } = createTestDeps();
  const dialer = dialScript(SERVER, { deps });
  const server = new SharedModernServer({ dialer, deps, prewarm: false });
  t.teardown(() => server.close());
  return (options: ModernClientOptions = {}) => new ModernClient(server, options);
}

test('calls of several clients, all under the same id, each get their own answer, progress and no logs of others', async (t) => {
  const connect = shareServer(t);
  const clients = Array.from({ length: 4 }, (_, n) => ({ client: connect(), name: `client ${n}` }));
  for (const { client, name } of clients) {
    client.start('tools/call', { name: 'work', arguments: { steps: 5, name }, _meta: { progressToken: 0 } }, 0);
  }
  for (const { client, name } of clients) {
    t.is((await client.answer(0)).result?.content?.[0]?.text, name);
    const progress = client.notifications('notifications/progress').map(({ params }) => params);
    t.deepEqual(
      progress,
      [1, 2, 3, 4, 5].map((step) => ({ progressToken: 0, progress: step, message: name })),
    );
    t.is(client.notifications('notifications/message').length, 0);
  }
});

test('the only call that asks for logs gets them', async (t) => {
  const connect = shareServer(t);
  const [quiet, curious] = [connect(), connect()];
  quiet.start('tools/call', { name: 'work', arguments: { steps: 3, name: 'quiet' } }, 1);
  const _meta = { [`${META}logLevel`]: 'info' };
  curious.start('tools/call', { name: 'work', arguments: { steps: 3, name: 'curious' }, _meta }, 1);
  await Promise.all([quiet.answer(1), curious.answer(1)]);
  t.deepEqual(
    curious.notifications('notifications/message').map(({ params }) => params?.data),
    ['curious 1', 'curious 2', 'curious 3'],
  );
  t.is(quiet.notifications('notifications/message').length, 0);
});

test('a server that needs input asks in its result, and takes it with the repeated call', async (t) => {
  const client = shareServer(t)({ capabilities: { elicitation: { form: {} } } });
  const { result } = await client.request('tools/call', { name: 'ask' });
  t.is(result?.resultType, 'input_required');
  const inputResponses = { name: { action: 'accept', content: { name: 'Bo' } } };
  const again = await client.request('tools/call', { name: 'ask', inputResponses });
  t.is(again.result?.content?.[0]?.text, 'hello Bo');
});

test('a call is withdrawn by its client, and by a client that leaves', async (t) => {
  const connect = shareServer(t);
  const [first, second, third] = [connect(), connect(), connect()];
  first.start('tools/call', { name: 'wait', arguments: { name: 'first' } }, 7);
  second.start('tools/call', { name: 'wait', arguments: { name: 'second' } }, 7);
  await third.call('echo', { text: 'after them' });
  first.cancel(7);
  second.close();
  await waitFor(async () => (await third.call('withdrawn')) === 'first,second');
  t.false(
    first.received.some(({ id }) => id === 7),
    'nothing more is said of it',
  );
});

test('two clients that listen under one id hear of what each has asked for', async (t) => {
  const connect = shareServer(t);
  const [a, b] = [connect(), connect()];
  await a.listen({ toolsListChanged: true }, 100);
  await b.listen({ resourceSubscriptions: ['test://b'] }, 100);
  await a.call('change', { kind: 'test://b' });
  await b.call('change', { kind: 'tools' });
  await waitFor(() => a.notifications('notifications/tools/list_changed').length === 1);
  await waitFor(() => b.notifications('notifications/resources/updated').length === 1);
  for (const client of [a, b]) {
    for (const message of client.received.filter(({ id, method }) => id === undefined && method !== undefined)) {
      t.is(subscriptionOf(message), 100);
    }
  }
  t.is(a.notifications('notifications/resources/updated').length, 0);
});

test('a process that dies takes its calls with it; the next one serves, and subscriptions go on', async (t) => {
  const connect = shareServer(t);
  const [listener, caller] = [connect(), connect()];
  await listener.listen({ toolsListChanged: true }, 'sub');
  const { error } = await caller.request('tools/call', { name: 'exit' });
  t.like(error?.data, { bridge: { reason: 'ERR_UPSTREAM_EXITED' } });
  t.is(await caller.call('echo', { text: 'again' }), 'again');
  const changes = () => listener.notifications('notifications/tools/list_changed');
  await waitFor(() => changes().length === 1, { message: 'the news that something may have changed' });
  await caller.call('change', { kind: 'tools' });
  await waitFor(() => changes().length === 2);
  t.deepEqual(changes().map(subscriptionOf), ['sub', 'sub']);
  t.is(listener.notifications('notifications/subscriptions/acknowledged').length, 1);
});
