import { waitFor } from '../../support/wait-for.ts';
import { fromServer, type ListName, type MatrixClient } from '../matrix-client.ts';
import type { Scenario } from '../scenario.ts';
import { namesIn } from './lists.ts';

const UPDATED = 'notifications/resources/updated';
const LISTS: readonly ListName[] = ['tools', 'resources', 'prompts'];

export const updatesOf = (client: MatrixClient): readonly unknown[] =>
  fromServer(client, UPDATED).map(({ params }) => params?.uri);

let fences = 0;

/** Whatever the server sent between calls before this has arrived when it resolves. */
export async function fence(client: MatrixClient): Promise<void> {
  fences += 1;
  const method = `notifications/custom/fence-${fences}`;
  await client.callTool('notifyLater', { method, params: {} });
  await waitFor(() => fromServer(client, method).length > 0, { message: method });
}

export const BETWEEN_CALLS: readonly Scenario[] = [
  {
    title: 'updates arrive for what is subscribed, as long as it is',
    needs: ['session', 'between-calls'],
    async run(t, cell) {
      const client = await cell.main();
      const [one, other] = ['test://numbered/1', 'test://made/caf%C3%A9'];
      await client.subscribe(one);
      await client.subscribe(other);
      await client.callTool('touch', { uri: one });
      await client.callTool('touch', { uri: 'test://numbered/2' });
      await fence(client);
      t.deepEqual(updatesOf(client), [one]);
      await client.callTool('touch', { uri: other });
      await client.unsubscribe(one);
      await client.callTool('touch', { uri: one });
      await fence(client);
      t.deepEqual(updatesOf(client), [one, other]);
      await client.unsubscribe(other);
    },
  },
  ...LISTS.map(
    (list): Scenario => ({
      title: `a change of the list of ${list} is told when no call runs`,
      needs: ['session', 'between-calls'],
      async run(t, cell) {
        const client = await cell.main();
        const method = `notifications/${list}/list_changed`;
        t.false((await namesIn(client, list)).flat().includes('grown'));
        t.is(fromServer(client, method).length, 0);
        await client.callTool('grow', { list, name: 'grown' });
        await waitFor(() => fromServer(client, method).length > 0, { message: method });
        t.true((await namesIn(client, list)).flat().includes('grown'));
      },
    }),
  ),
  {
    title: 'what a server says between calls is lost as it would be without a bridge, and nothing waits for it',
    without: 'between-calls',
    async run(t, cell) {
      const client = await cell.main();
      await client.subscribe('test://numbered/1');
      await client.callTool('touch', { uri: 'test://numbered/1' });
      await client.callTool('grow', { list: 'tools', name: 'grown' });
      t.is((await client.callTool('echo', { value: 'still there' })).text, 'still there');
      t.deepEqual(updatesOf(client), []);
    },
  },
];
