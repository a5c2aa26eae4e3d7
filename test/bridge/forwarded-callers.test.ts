/** Modern clients whose headers pass to a legacy server, through the built program. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import test from 'ava';
import type { WebSocket } from 'ws';
import { modern, postModern } from '../downstream/streamable-stateless/modern-posts.ts';
import { answerResult, listenScripted, openStream } from '../fixtures/http-servers/scripted.ts';
import { startBridge } from '../support/bridge.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWebSocketServer } from '../support/websocket-server.ts';

const KEY = 'x-api-key';

async function connect(url: URL, key: string): Promise<Client> {
  const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { [KEY]: key } } }));
  return client;
}

/** The option, and the header that the server is shown. */
const NAMINGS: readonly (readonly [option: string, shownAs: string])[] = [
  ['X-Api-Key', KEY],
  ['X-Api-Key: Authorization', 'authorization'],
];

for (const [option, shownAs] of NAMINGS) {
  test(`callers that show different values have sessions of their own, and all of a session shows its caller’s: ${option}`, async (t) => {
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
    const bridge = await startBridge(['--forward-header', option, '--log-level', 'trace', server.url.href]);
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
      keysOf.set(session, (keysOf.get(session) ?? new Set()).add(headers[shownAs]));
    }
    // What carries no session id opens one, or asks what the server is.
    t.deepEqual([...(keysOf.get(undefined) ?? [])].sort(), keys);
    keysOf.delete(undefined);
    t.deepEqual([...keysOf.values()].flatMap((shown) => [...shown]).sort(), keys);
    t.is(server.order.filter((name) => name === 'DELETE').length, 2);
    t.notRegex(JSON.stringify(bridge.logs), /secret-of/);
  });
}

const DISCOVERY = {
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  serverInfo: { name: 's', version: '1' },
  ttlMs: 0,
  cacheScope: 'public',
};

/** Of the modern era; its one tool tells what the handshake of its connection showed. */
function answerWith(key: unknown, socket: WebSocket): void {
  socket.on('message', (data) => {
    const { id, method } = JSON.parse(String(data)) as { readonly id?: number; readonly method: string };
    if (id === undefined) return;
    const content = { content: [{ type: 'text', text: String(key) }] };
    const results: Readonly<Record<string, object>> = { 'server/discover': DISCOVERY, 'tools/call': content };
    const result = results[method];
    const answer =
      result === undefined
        ? { error: { code: -32601, message: 'no such method' } }
        : { result: { resultType: 'complete', ...result } };
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  });
}

test('each call over WebSocket has a connection that shows its own caller’s, from the first one on', async (t) => {
  const server = await startWebSocketServer({
    refuse: ({ headers }) => (headers[KEY] === undefined ? { status: 401 } : undefined),
    connected: (socket, { headers }) => answerWith(headers[KEY], socket),
  });
  t.teardown(() => server.stop());
  const bridge = await startBridge(['--forward-header', 'X-Api-Key', server.url.href]);
  t.teardown(() => bridge.stop());
  const call = async (key: string) => {
    const params = { name: 'x', arguments: {} };
    const answer = await postModern({ port: Number(bridge.url.port) }, modern(1, 'tools/call', params), { [KEY]: key });
    return JSON.parse(await answer.text()).result?.content[0].text;
  };
  const keys = ['secret-of-ada', 'secret-of-bob', 'secret-of-ada'];
  t.deepEqual(await Promise.all(keys.map(call)), keys);
  t.deepEqual(await Promise.all(keys.map(call)), keys);
  await waitFor(() => server.open.size === 0, { message: 'no connection to be left' });
  await bridge.stop();
  t.notRegex(JSON.stringify(bridge.logs), /secret-of/);
});
