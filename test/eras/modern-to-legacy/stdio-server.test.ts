import test from 'ava';
import { waitFor } from '../../support/wait-for.ts';
import { Conversations, dialProgram } from './modern-conversations.ts';

const SERVER = '../../fixtures/contract-server/server.js';

test('a process killed while clients listen is followed by one that is subscribed to again', async (t) => {
  const client = new Conversations(t, dialProgram(SERVER));
  const listening = client.open();
  await listening.listen({ toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ['a:b'] }, 'l');
  const other = client.open();
  await other.listen({ resourceSubscriptions: ['a:b'] }, 'o');
  const state = async () => JSON.parse(String(await client.tool('state')));
  const { pid } = await state();
  process.kill(pid, 'SIGKILL');
  const heard = (method: string) => listening.notifications(`notifications/${method}`).length;
  await waitFor(() => heard('tools/list_changed') > 0 && heard('resources/updated') > 0);
  await waitFor(() => other.notifications('notifications/resources/updated').length > 0);
  const after = await state();
  t.not(after.pid, pid);
  t.deepEqual(after.subscriptions, ['a:b']);
  t.deepEqual([heard('tools/list_changed'), heard('resources/list_changed'), heard('resources/updated')], [1, 1, 1]);
  t.deepEqual(
    other.received.map(({ method }) => method),
    ['notifications/subscriptions/acknowledged', 'notifications/resources/updated'],
  );
  await client.tool('touch', { uri: 'a:b' });
  await waitFor(() => heard('resources/updated') === 2, { message: 'a change told by the new process' });
});

test('a process that ends in the middle of a call fails it, and the next call gets another process', async (t) => {
  const client = new Conversations(t, dialProgram(SERVER));
  const { pid } = JSON.parse(String(await client.tool('state')));
  const waiting = client.open();
  const id = waiting.start('tools/call', { name: 'wait' });
  await client.tool('state');
  process.kill(pid, 'SIGKILL');
  const { error } = await waiting.answer(id);
  t.like(error, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_EXITED' } } });
  t.not(JSON.parse(String(await client.tool('state'))).pid, pid);
});

for (const [name, reason, program] of [
  ['ends before the handshake', 'ERR_UPSTREAM_EXITED', '../../fixtures/servers/exits-before-initialize.js'],
  ['does not answer the handshake', 'ERR_UPSTREAM_TIMEOUT', '../../fixtures/servers/never-answers.js'],
  ['refuses the handshake', 'ERR_UPSTREAM_PROTOCOL', '../../fixtures/servers/modern-only.js'],
] as const) {
  test(`a process that ${name} fails discover with ${reason}`, async (t) => {
    const options = reason === 'ERR_UPSTREAM_TIMEOUT' ? { handshakeTimeoutMs: 300 } : {};
    const client = new Conversations(t, dialProgram(program), options);
    const { error } = await client.request('server/discover');
    t.like(error, { code: -32603, data: { bridge: { reason } } });
  });
}
