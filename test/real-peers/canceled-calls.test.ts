/** A call that its client has canceled, and what tools ask after it. */
import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import test, { type ExecutionContext } from 'ava';
import { BRIDGE_COMMAND, startBridge } from '../support/bridge.ts';
import { startHttpSse, startStreamable } from '../support/sdk-servers.ts';
import { serverProgram } from '../support/server-program.ts';
import { textOf } from './text-of.ts';

/** A server made with the SDK v1. It does not answer what is canceled. */
const CONTRACT_SERVER = serverProgram(new URL('../fixtures/contract-server/server.js', import.meta.url));

const SERVERS: Readonly<Record<string, (t: ExecutionContext) => Promise<readonly string[]>>> = {
  stdio: async () => ['--', process.execPath, CONTRACT_SERVER],
  'HTTP+SSE': async (t) => {
    const server = await startHttpSse();
    t.teardown(() => server.close());
    return [server.url.href];
  },
};

const CLIENTS = {
  stdio: async (_: ExecutionContext, server: readonly string[]): Promise<Transport> => {
    const [command, ...args] = BRIDGE_COMMAND;
    return new StdioClientTransport({ command, args: [...args, 'connect', ...server], stderr: 'ignore' });
  },
  HTTP: async (t: ExecutionContext, server: readonly string[]): Promise<Transport> => {
    const bridge = await startBridge(server);
    t.teardown(() => bridge.stop());
    return new StreamableHTTPClientTransport(bridge.url);
  },
};

/** The official client of the modern era, whose user answers what it is asked. */
async function connect(t: ExecutionContext, transport: Transport): Promise<Client> {
  const client = new Client(
    { name: 'cancels', version: '1.0.0' },
    { capabilities: { sampling: {} }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('sampling/createMessage', async () => ({
    role: 'assistant',
    model: 'm',
    content: { type: 'text', text: 'me' },
  }));
  await client.connect(transport);
  t.teardown(() => client.close());
  return client;
}

/** Has the server begun with a call that it never answers, and cancels it. */
async function cancelCall(t: ExecutionContext, client: Client): Promise<void> {
  const canceling = new AbortController();
  const { signal } = canceling;
  const canceled = client.callTool({ name: 'wait', arguments: {} }, { signal, onprogress: () => canceling.abort() });
  await t.throwsAsync(canceled);
  t.true(signal.aborted);
}

for (const [front, open] of Object.entries(CLIENTS)) {
  for (const [back, serve] of Object.entries(SERVERS)) {
    test(`a client on ${front} is asked by a server on ${back} after it has canceled a call, however often`, async (t) => {
      const client = await connect(t, await open(t, await serve(t)));
      for (let times = 0; times < 3; times += 1) {
        await cancelCall(t, client);
        const asked = await client.callTool({ name: 'ask', arguments: { prompt: 'who?' } });
        t.is(textOf(asked), 'me');
      }
    });
  }
}

test('a server over Streamable HTTP, which names the call that it asks in, keeps its session after a canceled call', async (t) => {
  const server = await startStreamable();
  t.teardown(() => server.close());
  const client = await connect(t, await CLIENTS.HTTP(t, [server.url.href]));
  for (let times = 0; times < 2; times += 1) {
    await cancelCall(t, client);
    t.is(textOf(await client.callTool({ name: 'ask', arguments: { prompt: 'who?' } })), 'me');
  }
  t.is(server.sessions.size, 1);
});
