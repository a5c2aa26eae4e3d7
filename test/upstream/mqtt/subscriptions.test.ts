/** Changes that a modern server at a broker tells its subscribers, whatever it tells all clients of the instance. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import test from 'ava';
import { connectAsync } from 'mqtt';
import { startBridge } from '../../support/bridge.ts';
import { startMosquitto, WHY_NO_MOSQUITTO } from '../../support/mosquitto.ts';
import { startAdaptedServer } from '../../support/mqtt-adapter.ts';
import { serverProgram } from '../../support/server-program.ts';
import { waitFor } from '../../support/wait-for.ts';

const mqtt = WHY_NO_MOSQUITTO === undefined ? test : test.skip;
if (WHY_NO_MOSQUITTO !== undefined) test(`no broker: ${WHY_NO_MOSQUITTO}`, (t) => t.pass());

const MODERN_SERVER = serverProgram(new URL('../../matrix/servers/modern.js', import.meta.url));
const ADDRESS = { serverId: 'one', serverName: 'a/b' };
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
/** More than the bridge counts to here. */
const MAX_ID = 30;

mqtt('each modern client hears of what it listens to, and nothing of subscriptions of others', async (t) => {
  const broker = await startMosquitto();
  t.teardown(() => broker.stop());
  const command = [process.execPath, MODERN_SERVER, 'stdio'];
  const server = await startAdaptedServer({ url: broker.url, ...ADDRESS, command });
  t.teardown(() => server.close());
  const bridge = await startBridge(['--protocol', 'modern', `${broker.url}/a/b`]);
  t.teardown(() => bridge.stop());

  const told: string[] = [];
  const open = async (name: string): Promise<Client> => {
    const client = new Client({ name, version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    const transport = new StreamableHTTPClientTransport(bridge.url);
    await client.connect(transport);
    t.teardown(() => client.close());
    const { onmessage } = transport;
    transport.onmessage = (message) => {
      if ('method' in message && message.method.endsWith('/list_changed')) {
        told.push(`${name}: ${message.method} ${message.params?._meta?.[SUBSCRIPTION_ID]}`);
      }
      onmessage?.(message);
    };
    return client;
  };
  const [one, two] = [await open('one'), await open('two')];
  await one.listen({ toolsListChanged: true });
  // Clients count their subscriptions, and these two ids are not to be the same.
  await (await two.listen({ resourcesListChanged: true })).close();
  await two.listen({ promptsListChanged: true });

  // The server tells all clients of the instance what is meant for other sessions, whose ids may be the same.
  const other = await connectAsync(broker.url, { protocolVersion: 5 });
  t.teardown(() => other.endAsync());
  const tellAll = (list: string, _meta?: object) =>
    other.publishAsync(
      '$mcp-server/capability/one/a/b',
      JSON.stringify({
        jsonrpc: '2.0',
        method: `notifications/${list}/list_changed`,
        ...(_meta && { params: { _meta } }),
      }),
      { qos: 1 },
    );
  for (let id = 0; id <= MAX_ID; id += 1) {
    for (const list of ['tools', 'resources']) await tellAll(list, { [SUBSCRIPTION_ID]: id });
  }
  let hasBegun = false;
  const onprogress = (): void => {
    hasBegun = true;
  };
  const held = one.callTool({ name: 'hold', arguments: { value: 'x' } }, { onprogress });
  await waitFor(() => hasBegun);
  // A change without a subscription is one for legacy clients.
  await tellAll('tools');
  await two.callTool({ name: 'release', arguments: { value: 'x' } });
  await held;
  t.deepEqual(told, []);

  await one.callTool({ name: 'grow', arguments: { list: 'tools', name: 'grown' } });
  await one.callTool({ name: 'grow', arguments: { list: 'prompts', name: 'grown' } });
  await waitFor(() => told.length >= 2);
  t.deepEqual([...told].sort(), [
    'one: notifications/tools/list_changed listen:0',
    'two: notifications/prompts/list_changed listen:1',
  ]);
});
