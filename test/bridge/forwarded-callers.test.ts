/** Modern clients whose headers pass to a legacy server, through the built program. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import test from 'ava';
import { answerResult, listenScripted, openStream } from '../fixtures/http-servers/scripted.ts';
import { startBridge } from '../support/bridge.ts';
import { waitFor } from '../support/wait-for.ts';

const KEY = 'x-api-key';

async function connect(url: URL, key: string): Promise<Client> {
  const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { [KEY]: key } } }));
  return client;
}

test('callers that show different values have sessions of their own, and all of a session shows its caller’s', async (t) => {
  const server = await listenScripted(
    {
      'server/discover': (_, response) => void response.writeHead(404).end(),
      'tools/call': (asked, response) =>
        answerResult(asked, response, { content: [{ type: 'text', text: String(asked.headers['mcp-session-id']) }] }),
      GET: (_, response) => openStream(response).flushHeaders(),
    },
    { capabilities: { tools: {} } },
  );
  t.teardown(() => server.close());
  const bridge = await startBridge(['--forward-header', 'X-Api-Key', '--log-level', 'trace', server.url.href]);
  t.teardown(() => bridge.stop());
  const keys = ['secret-of-ada', 'secret-of-bob'];
  const clients = await Promise.all(keys.map((key) => connect(bridge.url, key)));
  t.teardown(() => Promise.all(clients.map((client) => client.close())));
  const sessions: string[] = [];
  for (const client of [...clients, ...clients]) {
    const { content } = await client.callTool({ name: 'x', arguments: {} });
    sessions.push(JSON.stringify(content));
  }
  t.is(new Set(sessions).size, 2);
  t.deepEqual(sessions.slice(0, 2), sessions.slice(2));
  await waitFor(() => server.order.filter((name) => name === 'GET').length === 2);
  await bridge.stop();
  const keysOf = new Map<unknown, Set<unknown>>();
  for (const { headers } of server.received) {
    const session = headers['mcp-session-id'];
    keysOf.set(session, (keysOf.get(session) ?? new Set()).add(headers[KEY]));
  }
  // What carries no session id opens one, or asks what the server is.
  t.deepEqual([...(keysOf.get(undefined) ?? [])].sort(), keys);
  keysOf.delete(undefined);
  t.deepEqual([...keysOf.values()].flatMap((shown) => [...shown]).sort(), keys);
  t.is(server.order.filter((name) => name === 'DELETE').length, 2);
  t.notRegex(JSON.stringify(bridge.logs), /secret-of/);
});
