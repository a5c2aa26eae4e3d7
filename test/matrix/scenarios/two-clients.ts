import { waitFor } from '../../support/wait-for.ts';
import type { Cell } from '../cell.ts';
import { fromServer, type MatrixClient } from '../matrix-client.ts';
import type { Scenario } from '../scenario.ts';
import { fence, updatesOf } from './between-calls.ts';
import { namesIn } from './lists.ts';
import { samplingOf, spoken } from './questions.ts';

const NAMES = ['first', 'second'] as const;
type Name = (typeof NAMES)[number];

const otherThan = (name: Name): Name => (name === 'first' ? 'second' : 'first');

/** Two that were connected one after the other have given their requests the same ids and tokens. */
const pair = (cell: Cell) => Promise.all(NAMES.map(async (name) => ({ name, client: await cell.connected(name) })));

const forBoth = <Result>(
  clients: Awaited<ReturnType<typeof pair>>,
  run: (client: MatrixClient, name: Name) => Promise<Result>,
) => Promise.all(clients.map(({ client, name }) => run(client, name)));

const said = (client: MatrixClient): string =>
  JSON.stringify(client.trace.filter(({ from }) => from === 'server').map(({ message }) => message));

export const TWO_CLIENTS: readonly Scenario[] = [
  {
    title: 'two clients get their own answers and nothing of the other',
    needs: ['calls'],
    async run(t, cell) {
      const clients = await pair(cell);
      await forBoth(clients, async (client, name) => {
        const values = Array.from({ length: 4 }, (_, index) => `for ${name}: ${index}`);
        const answers = await Promise.all(values.map((value) => client.callTool('later', { value, ms: 20 })));
        t.deepEqual(
          answers.map(({ text }) => text),
          values,
        );
      });
      await forBoth(clients, async (client, name) => {
        t.false(said(client).includes(`for ${otherThan(name)}`));
      });
    },
  },
  {
    title: 'two clients get the progress of their own calls',
    needs: ['callMessages'],
    async run(t, cell) {
      const clients = await pair(cell);
      await forBoth(clients, async (client, name) => {
        const counted = await client.callTool('count', { label: `${name} counts`, to: 10 }, { onProgress: () => {} });
        t.is(counted.text, `${name} counts counted to 10`);
        const isComplete = () => fromServer(client).some(({ params }) => params?.message === `${name} counts 10`);
        await waitFor(isComplete, { message: 'the last progress' });
      });
      await forBoth(clients, async (client, name) => t.false(said(client).includes(`${otherThan(name)} counts`)));
    },
  },
  {
    title: 'two clients get the log messages of their own calls',
    needs: ['logging', 'manyLogging'],
    async run(t, cell) {
      const clients = await pair(cell);
      await forBoth(clients, (client) => client.setLevel('debug'));
      await forBoth(clients, async (client, name) => {
        await client.callTool('log', { marker: `${name} logs` });
        await waitFor(() => said(client).includes(`${name} logs`), { message: 'a log message' });
      });
      await forBoth(clients, async (client, name) => t.false(said(client).includes(`${otherThan(name)} logs`)));
    },
  },
  {
    title: 'log messages that may be of either of two clients go to neither',
    needs: ['logging'],
    without: 'manyLogging',
    async run(t, cell) {
      const clients = await pair(cell);
      await forBoth(clients, (client) => client.setLevel('debug'));
      await forBoth(clients, async (client, name) => {
        t.is((await client.callTool('log', { marker: `${name} logs` })).text, 'logged');
      });
      await forBoth(clients, async (client, name) => t.false(said(client).includes(`${otherThan(name)} logs`)));
    },
  },
  {
    title: 'two clients are asked what their own calls ask',
    needs: ['questions', 'manyQuestions'],
    async run(t, cell) {
      const clients = await pair(cell);
      await forBoth(clients, async (client, name) => {
        client.answer('sampling/createMessage', () => spoken(`${name} answers`));
        for (let round = 0; round < 5; round += 1) {
          const ask = { method: 'sampling/createMessage', params: samplingOf(`asked by ${name}`) };
          t.regex((await client.callTool('ask', ask)).text, new RegExp(`${name} answers`));
        }
      });
    },
  },
  {
    title: 'two clients have subscriptions of their own',
    needs: ['betweenCalls'],
    async run(t, cell) {
      const clients = await pair(cell);
      const uriOf = (name: Name) => `test://numbered/${NAMES.indexOf(name)}`;
      await forBoth(clients, (client, name) => client.subscribe(uriOf(name)));
      // A server that has both sessions tells each of them about every resource it subscribed to.
      await forBoth(clients, async (client) => {
        for (const name of NAMES) await client.callTool('touch', { uri: uriOf(name) });
        await fence(client);
      });
      await forBoth(clients, async (client, name) => {
        const own = () => updatesOf(client).filter((uri) => !String(uri).startsWith('test://fence/'));
        await waitFor(() => own().length > 0, { message: 'an update' });
        t.deepEqual([...new Set(own())], [uriOf(name)]);
      });
    },
  },
  {
    title: 'two clients have lists of their own',
    needs: ['ownSession', 'betweenCalls', 'ownChanges'],
    async run(t, cell) {
      const [first, second] = [await cell.connected('first'), await cell.connected('second')];
      await first.callTool('grow', { list: 'tools', name: 'only of the first' });
      await Promise.all([fence(first), fence(second)]);
      t.is(fromServer(first, 'notifications/tools/list_changed').length, 1);
      t.is(fromServer(second, 'notifications/tools/list_changed').length, 0);
    },
  },
  {
    title: 'two clients with the same name and capabilities meet the same session, one with another name does not',
    needs: ['session'],
    without: 'ownSession',
    async run(t, cell) {
      const { front } = await cell.running();
      const [first, second] = [await cell.connected('first'), await cell.connected('second')];
      const twin = await front.connect({ name: 'first' });
      await first.callTool('grow', { list: 'tools', name: 'of the first' });
      const seenBy = async (client: MatrixClient) => (await namesIn(client, 'tools')).flat().includes('of the first');
      // On stdio each has a bridge of its own, and at a broker each client id is a caller of its own.
      const isApart = ['modernStdio', 'autoStdio', 'modernMqtt'].includes(cell.client);
      if (isApart) t.false(await seenBy(twin));
      else await waitFor(() => seenBy(twin), { message: 'the tool' });
      t.false(await seenBy(second));
      await twin.close();
    },
  },
  {
    title: 'two clients have log levels of their own',
    needs: ['logging', 'manyLogging'],
    async run(t, cell) {
      const clients = await pair(cell);
      await forBoth(clients, (client, name) => client.setLevel(name === 'first' ? 'emergency' : 'alert'));
      await forBoth(clients, async (client, name) => {
        const marker = `level of ${name}`;
        await client.callTool('log', { marker });
        const levels = () =>
          fromServer(client, 'notifications/message')
            .filter(({ params }) => (params?.data as { readonly marker?: unknown }).marker === marker)
            .map(({ params }) => params?.level);
        await waitFor(() => levels().includes('emergency'), { message: 'the log message' });
        t.deepEqual(levels(), name === 'first' ? ['emergency'] : ['alert', 'emergency']);
      });
    },
  },
];
