import { waitFor } from '../../support/wait-for.ts';
import { fromServer, type ListName, type MatrixClient } from '../matrix-client.ts';
import type { Scenario } from '../scenario.ts';
import { namesIn } from './lists.ts';

const UPDATED = 'notifications/resources/updated';
const LISTS: readonly ListName[] = ['tools', 'resources', 'prompts'];

export const updatesOf = (client: MatrixClient): readonly unknown[] =>
  fromServer(client, UPDATED).map(({ params }) => params?.uri);

let fences = 0;

/** Whatever the server was to send between calls before this has arrived when it resolves. */
export async function fence(client: MatrixClient): Promise<void> {
  fences += 1;
  const uri = `test://fence/${fences}`;
  await client.subscribe(uri);
  await client.callTool('touch', { uri });
  await waitFor(() => updatesOf(client).includes(uri), { message: uri });
  await client.unsubscribe(uri);
}

/** Without those of fences. */
const ownUpdatesOf = (client: MatrixClient): readonly unknown[] =>
  updatesOf(client).filter((uri) => !String(uri).startsWith('test://fence/'));

export const BETWEEN_CALLS: readonly Scenario[] = [
  {
    title: 'updates arrive for what is subscribed, as long as it is',
    needs: ['betweenCalls'],
    async run(t, cell) {
      const client = await cell.main();
      const [one, other] = ['test://numbered/1', 'test://made/caf%C3%A9'];
      await client.subscribe(one);
      await client.subscribe(other);
      await client.callTool('touch', { uri: one });
      await client.callTool('touch', { uri: 'test://numbered/2' });
      await waitFor(() => ownUpdatesOf(client).length > 0, { message: 'an update' });
      await fence(client);
      t.deepEqual(ownUpdatesOf(client), [one]);
      await client.callTool('touch', { uri: other });
      await waitFor(() => ownUpdatesOf(client).length > 1, { message: 'another update' });
      await client.unsubscribe(one);
      // Over HTTP a stream ends with its connection, and the server may take a call on another connection before it notices.
      await fence(client);
      await client.callTool('touch', { uri: one });
      await fence(client);
      t.deepEqual(ownUpdatesOf(client), [one, other]);
      await client.unsubscribe(other);
    },
  },
  ...LISTS.map(
    (list): Scenario => ({
      title: `a change of the list of ${list} is told when no call runs`,
      needs: ['betweenCalls'],
      async run(t, cell) {
        const client = await cell.main();
        await client.watchLists();
        const method = `notifications/${list}/list_changed`;
        t.false((await namesIn(client, list)).flat().includes('grown'));
        const before = fromServer(client, method).length;
        await client.callTool('grow', { list, name: 'grown' });
        await waitFor(() => fromServer(client, method).length > before, { message: method });
        t.true((await namesIn(client, list)).flat().includes('grown'));
      },
    }),
  ),
  {
    title: 'what a request leaves at the server is there for the next one',
    needs: ['session'],
    async run(t, cell) {
      const client = await cell.main();
      await client.callTool('grow', { list: 'tools', name: 'left behind' });
      await waitFor(async () => (await namesIn(client, 'tools')).flat().includes('left behind'), {
        message: 'the new tool',
      });
      t.pass();
    },
  },
  {
    title: 'a notification nobody knows reaches the client when no call runs',
    needs: ['ownNotificationsBetween'],
    async run(t, cell) {
      const client = await cell.main();
      const method = 'notifications/custom/between';
      const params = { deep: [1, { two: null }], _meta: { 'example.com/n': 'ü' } };
      await client.callTool('notifyLater', { method, params });
      await waitFor(() => fromServer(client, method).length > 0, { message: 'the notification' });
      t.deepEqual(fromServer(client, method)[0]?.params, params);
    },
  },
  {
    title: 'a notification nobody knows does not get through when no call runs, and nothing waits for it',
    needs: ['calls'],
    without: 'ownNotificationsBetween',
    async run(t, cell) {
      const client = await cell.main();
      const method = 'notifications/custom/between';
      await client.callTool('notifyLater', { method, params: {} });
      t.is((await client.callTool('later', { value: 'still there', ms: 30 })).text, 'still there');
      // Unless a call runs by chance: nobody can tell that it does not belong to that one.
      t.true(fromServer(client, method).length <= 1);
    },
  },
  {
    title: 'what a server says between calls is lost as it would be without a bridge, and nothing waits for it',
    needs: ['calls'],
    without: 'betweenCalls',
    async run(t, cell) {
      const client = await cell.main();
      // A modern client is told beforehand that it will hear nothing; a legacy one finds out.
      await client.subscribe('test://numbered/1');
      await client.callTool('touch', { uri: 'test://numbered/1' });
      await client.callTool('grow', { list: 'tools', name: 'grown' });
      t.is((await client.callTool('echo', { value: 'still there' })).text, 'still there');
      t.deepEqual(updatesOf(client), []);
    },
  },
];
