/** Processes that are started ahead of their clients, with clients of the official SDK before a real server. */
import test from 'ava';
import { startBridge } from '../support/bridge.ts';
import { connectStreamable, type SdkClient } from '../support/sdk-client.ts';
import { serverProgram } from '../support/server-program.ts';
import { waitFor } from '../support/wait-for.ts';

const SERVER = [process.execPath, serverProgram(new URL('../fixtures/contract-server/server.js', import.meta.url))];
const PREWARMED = 3;

test('clients of the same and of another kind get processes of their own, whatever was sent to these ahead', async (t) => {
  const bridge = await startBridge(['--prewarm', `${PREWARMED}`, '--', ...SERVER]);
  t.teardown(() => bridge.stop());
  const clients: SdkClient[] = [];
  t.teardown(() => Promise.all(clients.map((client) => client.close())));
  const processes = new Set<number>();
  for (const name of ['usual', 'usual', 'usual', 'another', 'usual', 'usual']) {
    const waiting = clients.length + PREWARMED;
    await waitFor(() => bridge.children().length === waiting, { message: `${waiting} processes` });
    const client = await connectStreamable(bridge.url, { name });
    clients.push(client);
    const value = `${name} ${clients.length}`;
    const { content } = await client.client.callTool({ name: 'echo', arguments: { value } });
    t.regex(JSON.stringify(content), new RegExp(value));
    t.is(client.client.getServerVersion()?.name, clients[0]?.client.getServerVersion()?.name);
    for (const pid of bridge.children()) processes.add(pid);
  }
  await waitFor(() => bridge.children().length === clients.length + PREWARMED);
  for (const pid of bridge.children()) processes.add(pid);
  t.is(processes.size, clients.length + PREWARMED, 'no process was started in vain');
});
