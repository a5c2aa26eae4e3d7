/** Clients of every revision at one mcp-portage at the same moment, each in its own era. */
import test, { type ExecutionContext } from 'ava';
import { startBridge } from '../support/bridge.ts';
import { waitFor } from '../support/wait-for.ts';
import { CLIENTS } from './clients.ts';
import { fromServer, type MatrixClient } from './matrix-client.ts';
import { samplingOf, spoken } from './scenarios/questions.ts';
import { SERVERS, type ServerName } from './servers.ts';

/** Servers that can do everything, of each era and transport. */
const SERVER_NAMES = ['stdio', 'httpSse', 'stateful', 'modernStdio', 'modernHttp'] as const satisfies ServerName[];
/** All of one bridge: the transports of 2024, 2025 and 2026. */
const CLIENT_NAMES = ['httpSse', 'streamable', 'modernHttp'] as const;

interface Caller {
  readonly name: string;
  readonly client: MatrixClient;
}

/** Everything is gone when the test ends. */
async function startCallers(t: ExecutionContext, name: ServerName): Promise<readonly Caller[]> {
  const server = await SERVERS[name].start();
  t.teardown(server.stop);
  const bridge = await startBridge(server.target);
  t.teardown(() => bridge.stop());
  return Promise.all(
    CLIENT_NAMES.map(async (client) => {
      const { connect, over } = CLIENTS[client];
      const url = over === 'httpSse' ? bridge.sseUrl : bridge.url;
      const connected = await connect({ kind: 'url', url }, { name: client });
      t.teardown(() => connected.close());
      return { name: client, client: connected };
    }),
  );
}

/** What one of them does while the others do the same. */
async function work(t: ExecutionContext, { name, client }: Caller): Promise<void> {
  const values = Array.from({ length: 10 }, (_, index) => `for ${name}: ${index}`);
  const answers = await Promise.all(values.map((value) => client.callTool('later', { value, ms: 10 })));
  t.deepEqual(
    answers.map(({ text }) => text),
    values,
  );
  t.true((await client.list('tools')).items.length > 0);
  t.true((await client.listTemplates()).length > 0);

  await client.callTool('count', { label: `${name} counts`, to: 5 }, { onProgress: () => {} });
  const isCounted = () => fromServer(client).some(({ params }) => params?.message === `${name} counts 5`);
  await waitFor(isCounted, { message: `the progress of ${name}` });

  await client.subscribe('test://numbered/1');
  await client.callTool('touch', { uri: 'test://numbered/1' });
  const isTold = () => fromServer(client, 'notifications/resources/updated').length > 0;
  await waitFor(isTold, { message: `the update for ${name}` });
}

/** One after the other: a server with one stream does not say whose call a question is about. */
async function ask(t: ExecutionContext, { name, client }: Caller): Promise<void> {
  client.answer('sampling/createMessage', () => spoken(`${name} says so`));
  const params = samplingOf(`for ${name}`);
  const { text } = await client.callTool('ask', { method: 'sampling/createMessage', params });
  t.like(JSON.parse(text), { result: spoken(`${name} says so`) });
}

for (const name of SERVER_NAMES) {
  test(`clients of 2024, 2025 and 2026 use one ${SERVERS[name].title} server at once, each fully`, async (t) => {
    const callers = await startCallers(t, name);
    t.deepEqual(
      callers.map(({ client }) => client.era),
      ['legacy', 'legacy', 'modern'],
    );
    await Promise.all(callers.map((caller) => work(t, caller)));
    for (const caller of callers) await ask(t, caller);
    for (const { name: own, client } of callers) {
      const heard = JSON.stringify(fromServer(client));
      for (const other of CLIENT_NAMES) if (other !== own) t.false(heard.includes(`for ${other}:`), `${own}, ${other}`);
    }
  });
}
