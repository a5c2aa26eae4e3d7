import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import test, { type ExecutionContext } from 'ava';
import { connectAsync } from 'mqtt';
import { type Bridge, startBridge } from '../../support/bridge.ts';
import {
  FOLDER,
  type Mosquitto,
  type MosquittoOptions,
  startMosquitto,
  WHY_NO_MOSQUITTO,
} from '../../support/mosquitto.ts';
import { MqttClientTransport } from '../../support/mqtt-client-transport.ts';
import { startTestClient, type TestClient, type TestClientOptions } from '../../support/mqtt-peers.ts';
import { type ScriptedBroker, startScriptedBroker } from '../../support/scripted-broker.ts';
import { serverProgram } from '../../support/server-program.ts';
import { waitFor } from '../../support/wait-for.ts';

const mqtt = WHY_NO_MOSQUITTO === undefined ? test : test.skip;
if (WHY_NO_MOSQUITTO !== undefined) test(`no broker: ${WHY_NO_MOSQUITTO}`, (t) => t.pass());

const SERVER = serverProgram(new URL('../../fixtures/contract-server/server.js', import.meta.url));
const MODERN_SERVER = serverProgram(new URL('../../matrix/servers/modern.js', import.meta.url));
const NAME = 'demo/echo';

async function broker(t: ExecutionContext, options?: MosquittoOptions): Promise<Mosquitto> {
  const started = await startMosquitto(options);
  t.teardown(() => started.stop());
  return started;
}

async function offer(t: ExecutionContext, url: string, ...args: readonly string[]): Promise<Bridge> {
  const bridge = await startBridge(['--dial', `${url}/${NAME}`, ...args, '--', process.execPath, SERVER]);
  t.teardown(() => bridge.stop());
  return bridge;
}

async function join(
  t: ExecutionContext,
  { url }: { url: string },
  options: Partial<TestClientOptions> = {},
): Promise<TestClient> {
  const client = await startTestClient({ url, clientId: 'c1', ...options });
  t.teardown(() => client.end());
  return client;
}

/** A broker with a server that a client has initialized. */
async function session(t: ExecutionContext, ...args: readonly string[]) {
  const at = await broker(t);
  const bridge = await offer(t, at.url, ...args);
  const client = await join(t, at);
  const serverId = await client.find(NAME);
  const answer = await client.initialize(serverId, NAME);
  return { at, bridge, client, serverId, answer };
}

const echo = (client: TestClient, value: string, id?: unknown) =>
  client.request('tools/call', { name: 'echo', arguments: { value } }, id);
const said = (value: string) => ({ result: { content: [{ type: 'text', text: value }] } });

async function sessionsOf(bridge: Bridge): Promise<number> {
  const response = await fetch(new URL('/status.json', bridge.url));
  const { servers } = (await response.json()) as { servers: readonly { sessions: number }[] };
  return servers[0]?.sessions ?? -1;
}

mqtt('says that it is online, serves a client, and says that it leaves', async (t) => {
  const { bridge, client, serverId, answer } = await session(t);
  t.regex(serverId, /^[0-9a-f]{32}$/);
  t.like(answer, { result: { serverInfo: { name: 'contract-server' } } });
  t.like(await echo(client, 'hello', 0), said('hello'));
  t.like(await echo(client, 'hello', 'x'), said('hello'));
  const presence = client.received.find(({ topic }) => topic.startsWith('$mcp-server/presence/'));
  t.like(presence?.message, { method: 'notifications/server/online', params: { server_name: NAME } });
  for (const { packet } of client.received) {
    t.deepEqual(
      { ...packet.properties?.userProperties },
      {
        'MCP-COMPONENT-TYPE': 'mcp-server',
        'MCP-MQTT-CLIENT-ID': serverId,
      },
    );
  }
  await bridge.stop();
  await client.next(({ method }) => method === 'notifications/disconnected');
  await waitFor(() =>
    client.received.some(
      ({ topic, packet }) => topic.startsWith('$mcp-server/presence/') && packet.payload.length === 0,
    ),
  );
});

mqtt('describes the server in its presence as it has described itself', async (t) => {
  const { client } = await session(t);
  const described = await client.next(
    ({ method, params }) =>
      method === 'notifications/server/online' &&
      (params as { description?: string }).description === 'contract-server',
  );
  t.truthy(described);
});

mqtt('a client at QoS 0 is served, too', async (t) => {
  const at = await broker(t);
  await offer(t, at.url);
  const client = await join(t, at, { qos: 0 });
  await client.initialize(await client.find(NAME), NAME);
  t.like(await echo(client, 'a'), said('a'));
});

for (const [how, leave] of [
  [
    'says so at its presence',
    (client: TestClient) =>
      client.publish('$mcp-client/presence/c1', '{"jsonrpc":"2.0","method":"notifications/disconnected"}'),
  ],
  [
    'says so at the RPC topic',
    (client: TestClient) => client.say({ jsonrpc: '2.0', method: 'notifications/disconnected' }),
  ],
  ['clears its presence', (client: TestClient) => client.publish('$mcp-client/presence/c1', '')],
  ['vanishes', async (client: TestClient) => void client.client.stream.destroy()],
] as const) {
  mqtt(`the session of a client that ${how} ends`, async (t) => {
    const { bridge, client } = await session(t, '--status');
    t.is(await sessionsOf(bridge), 1);
    await leave(client);
    await waitFor(async () => (await sessionsOf(bridge)) === 0);
    t.pass();
  });
}

mqtt('a request that is delivered again is not run again, nor is an initialize that is not answered yet', async (t) => {
  const at = await broker(t);
  const bridge = await offer(t, at.url, '--status');
  const client = await join(t, at);
  const serverId = await client.find(NAME);
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } };
  const initialize = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const again = client.publish(`$mcp-server/${serverId}/${NAME}`, initialize);
  await client.initialize(serverId, NAME);
  await again;
  await echo(client, 'a', 7);
  await client.say({
    jsonrpc: '2.0',
    id: 7,
    method: 'tools/call',
    params: { name: 'echo', arguments: { value: 'b' } },
  });
  await echo(client, 'c', 8);
  t.is(client.received.filter(({ message }) => message?.id === 7).length, 1);
  t.is(await sessionsOf(bridge), 1);
});

mqtt('a client that initializes again gets a new session, and nothing of the old one', async (t) => {
  const { bridge, client, serverId } = await session(t, '--status');
  await echo(client, 'a', 7);
  await client.initialize(serverId, NAME);
  // The same id may come again in another session.
  t.like(await echo(client, 'b', 7), said('b'));
  await waitFor(async () => (await sessionsOf(bridge)) === 1);
  t.false(client.received.some(({ message }) => message?.method === 'notifications/disconnected'));
});

mqtt('an initialize beyond the limit of sessions is answered with an error', async (t) => {
  const { at, serverId } = await session(t, '--max-sessions', '1');
  const other = await join(t, at, { clientId: 'c2' });
  const answer = await other.initialize(serverId, NAME);
  t.regex((answer.error as { message: string }).message, /--max-sessions/);
});

mqtt('a modern bridge beyond the limit of sessions is served by its next call once there is room', async (t) => {
  const { at, bridge, client } = await session(t, '--max-sessions', '1', '--status');
  const other = await startBridge(['--protocol', 'modern', `${at.url}/${NAME}`]);
  t.teardown(() => other.stop());
  const connect = async (): Promise<Client> => {
    const modern = new Client({ name: 'm', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    await modern.connect(new StreamableHTTPClientTransport(other.url));
    t.teardown(() => modern.close());
    return modern;
  };
  await t.throwsAsync(connect(), { message: /503/ });
  await client.end();
  await waitFor(async () => (await sessionsOf(bridge)) === 0);
  const { tools } = await (await connect()).listTools();
  t.true(tools.length > 0);
});

mqtt(
  'each modern client is told of the changes that it listens to, in its own subscription, and of no others',
  async (t) => {
    const at = await broker(t);
    const bridge = await startBridge(['--dial', `${at.url}/${NAME}`, '--', process.execPath, MODERN_SERVER, 'stdio']);
    t.teardown(() => bridge.stop());
    const told: string[] = [];
    const open = async (name: string): Promise<Client> => {
      const client = new Client({ name, version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
      const transport = new MqttClientTransport(new URL(`${at.url}/${NAME}`));
      await client.connect(transport as Transport);
      t.teardown(() => client.close());
      const { onmessage } = transport;
      transport.onmessage = (message) => {
        const id = /"io.modelcontextprotocol\/subscriptionId":"([^"]*)"/.exec(JSON.stringify(message))?.[1];
        const list = /^notifications\/(.*)\/list_changed$/.exec(message.method ?? '')?.[1];
        if (list !== undefined) told.push(`${name}: ${list} ${id}`);
        onmessage?.(message);
      };
      return client;
    };
    const [one, two, three] = [await open('one'), await open('two'), await open('three')];
    await one.listen({ toolsListChanged: true });
    await three.listen({ promptsListChanged: true });
    // Clients count their subscriptions, and these two ids are not to be the same.
    await (await two.listen({ promptsListChanged: true })).close();
    await two.listen({ toolsListChanged: true });
    await one.callTool({ name: 'grow', arguments: { list: 'tools', name: 'grown' } });
    await waitFor(() => told.length >= 2);
    await one.callTool({ name: 'grow', arguments: { list: 'prompts', name: 'grown' } });
    await waitFor(() => told.length >= 3);
    t.deepEqual([...told].sort(), ['one: tools listen:0', 'three: prompts listen:0', 'two: tools listen:1']);
  },
);

mqtt('a changed list goes to the capability topic, the change of a resource to its subscriber', async (t) => {
  const { client, serverId } = await session(t);
  const topicOf = (name: string) => client.received.find(({ message }) => message?.method === name)?.topic;
  await client.request('tools/call', { name: 'announce', arguments: {} });
  await waitFor(() => topicOf('notifications/tools/list_changed'));
  t.is(topicOf('notifications/tools/list_changed'), `$mcp-server/capability/${serverId}/${NAME}`);
  await client.request('resources/subscribe', { uri: 'test://a' });
  await client.request('tools/call', { name: 'touch', arguments: { uri: 'test://a' } });
  await waitFor(() => topicOf('notifications/resources/updated'));
  t.is(topicOf('notifications/resources/updated'), `$mcp-rpc/c1/${serverId}/${NAME}`);
});

mqtt('is offered again when the broker is back', async (t) => {
  const { at, bridge, client, serverId } = await session(t, '--status');
  await at.end();
  await waitFor(() => bridge.logs.some(({ msg }) => /calling again in/.test(String(msg))));
  await at.restart();
  const after = await join(t, at, { clientId: 'c2' });
  t.is(await after.find(NAME), serverId);
  await after.initialize(serverId, NAME);
  t.like(await echo(after, 'again'), said('again'));
  await waitFor(async () => (await sessionsOf(bridge)) === 1);
  await client.end();
});

mqtt('readiness and status know the broker', async (t) => {
  const at = await broker(t);
  const bridge = await offer(t, at.url, '--status');
  await waitFor(() => bridge.logs.some(({ msg }) => /^connected to mqtt:/.test(String(msg))));
  const ready = (await (await fetch(new URL('/readyz', bridge.url))).json()) as Record<string, unknown>;
  t.is(ready.hubs, 'connected');
  const status = (await (await fetch(new URL('/status.json', bridge.url))).json()) as {
    servers: { hubs: unknown[] }[];
  };
  t.like(status.servers[0]?.hubs[0], { url: `${at.url}/${NAME}`, state: 'connected' });
});

mqtt('credentials that the broker refuses are a problem that is told, and not shown', async (t) => {
  const at = await broker(t, {
    settings: ['allow_anonymous false', `password_file ${FOLDER}/passwords`],
    files: { passwords: '' },
  });
  const env = { BROKER_URL: `mqtt://me:sesame@127.0.0.1:${at.port}/${NAME}` };
  const bridge = await startBridge(['--dial', 'env:BROKER_URL', '--', process.execPath, SERVER], { env });
  t.teardown(() => bridge.stop());
  const line = await waitFor(() => bridge.logs.find(({ msg }) => /refused the connection/.test(String(msg))));
  t.regex(String(line.msg), /not authorized/);
  t.false(JSON.stringify(bridge.logs).includes('sesame'));
});

// ---- what others at the broker may do

mqtt('nothing is opened for ids that cannot be, for retained messages, or for what opens no session', async (t) => {
  const { at, bridge, client, serverId } = await session(t, '--status');
  const control = `$mcp-server/${serverId}/${NAME}`;
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } };
  const initialize = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  for (const as of ['a/b', '+', '#', 'x'.repeat(129), '']) await client.publish(control, initialize, { as });
  await client.publish(control, initialize, { as: 'c9', retain: true });
  const anonymous = await connectAsync(at.url, { protocolVersion: 5 });
  t.teardown(() => anonymous.endAsync(true));
  await anonymous.publishAsync(control, initialize, { qos: 1 });
  await client.publish(control, 'no json', { as: 'c8' });
  await client.publish(control, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', { as: 'c8' });
  t.like(await echo(client, 'a'), said('a'));
  // A message that is retained is new to those that are subscribed already.
  t.true((await sessionsOf(bridge)) <= 2);
});

mqtt('others cannot speak or leave in the name of a client, if the broker lets them name themselves', async (t) => {
  const { at, client, serverId } = await session(t);
  const liar = await join(t, at, { clientId: 'liar' });
  const farewell = '{"jsonrpc":"2.0","method":"notifications/disconnected"}';
  await liar.publish('$mcp-client/presence/c1', farewell);
  await liar.publish(`$mcp-rpc/c1/${serverId}/${NAME}`, farewell);
  await liar.publish('$mcp-client/presence/c1', '');
  await liar.publish(
    `$mcp-rpc/c1/${serverId}/${NAME}`,
    JSON.stringify({
      jsonrpc: '2.0',
      id: 77,
      method: 'tools/call',
      params: { name: 'echo', arguments: { value: 'x' } },
    }),
  );
  t.like(await echo(client, 'a'), said('a'));
  t.false(client.received.some(({ message }) => message?.id === 77 && message.method === undefined));
});

mqtt('a message that is no JSON, and one over the limit, cost their sender no session', async (t) => {
  const { client, serverId } = await session(t, '--max-message-bytes', '100k');
  await client.publish(`$mcp-rpc/c1/${serverId}/${NAME}`, 'no json');
  const value = 'x'.repeat(200_000);
  t.regex(((await echo(client, value, 5)) as { error: { message: string } }).error.message, /larger than the 102400/);
  t.like(await echo(client, 'a'), said('a'));
});

// ---- brokers with a will of their own

test('takes the name that the broker suggests, also for its will', async (t) => {
  const userProperties = { 'MCP-SERVER-NAME': 'given/name' };
  const at: ScriptedBroker = await startScriptedBroker(t, { connack: { properties: { userProperties } } });
  await offer(t, at.url);
  const presence = await waitFor(() =>
    at.connections[1]?.packets.find((packet) => packet.cmd === 'publish' && packet.topic.endsWith('/given/name')),
  );
  t.is(presence.cmd, 'publish');
  const [connect] = at.connections[1]?.packets ?? [];
  t.true(connect?.cmd === 'connect' && connect.will?.topic.endsWith('/given/name'));
  t.true(connect?.cmd === 'connect' && connect.will?.retain && connect.will.payload.length === 0);
});

test('a broker that keeps no messages gets a presence that is not retained, and a warning', async (t) => {
  const at = await startScriptedBroker(t, { connack: { properties: { retainAvailable: false } } });
  const bridge = await offer(t, at.url);
  const presence = await waitFor(() => at.connections[0]?.packets.find(({ cmd }) => cmd === 'publish'));
  t.like(presence, { retain: false });
  t.true(bridge.logs.some(({ msg }) => /keeps no messages/.test(String(msg))));
});

test('a broker that does not let it subscribe is told as a refusal', async (t) => {
  const at = await startScriptedBroker(t, {
    handle: (packet, { send }) => {
      if (packet.cmd !== 'subscribe') return false;
      send({ cmd: 'suback', messageId: packet.messageId ?? 0, granted: packet.subscriptions.map(() => 0x87) });
      return true;
    },
  });
  const bridge = await offer(t, at.url);
  const line = await waitFor(() => bridge.logs.find(({ msg }) => /does not let this bridge/.test(String(msg))));
  t.regex(String(line.msg), /not authorized \(135\)/);
});
