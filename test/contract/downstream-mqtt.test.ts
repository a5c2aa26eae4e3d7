import test from 'ava';
import { connectAsync } from 'mqtt';
import { createSystemDeps } from '../../src/cli/system-deps.ts';
import { MqttEndpoint } from '../../src/downstream/mqtt/endpoint.ts';
import { BridgeError } from '../../src/errors.ts';
import { BodyCapacity } from '../../src/http/server/read-body.ts';
import { MqttConnection } from '../../src/mqtt/connection.ts';
import { openBrokerSocket } from '../../src/mqtt/open-socket.ts';
import { collectLog } from '../process/collected-log.ts';
import { type HttpHarness, startHttpHarness } from '../support/http-harness.ts';
import { initialize, textOf } from '../support/legacy-clients.ts';
import { type Mosquitto, PATIENT_BROKER, startMosquitto, WHY_NO_MOSQUITTO } from '../support/mosquitto.ts';
import { type ContractClient, testDownstreamContract } from './downstream-contract.ts';
import { Inbox } from './inbox.ts';

const ADDRESS = { serverId: 'one', serverName: 'a/b' };
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

/** The server of a harness, offered at a broker. */
async function offer({ sessions, clock }: HttpHarness, { port }: Mosquitto): Promise<MqttEndpoint> {
  const deps = { ...createSystemDeps(collectLog().log), clock };
  const gone = new BridgeError('ERR_UPSTREAM_CLOSED', 'The broker has not accepted the connection.');
  return new Promise((resolve, reject) => {
    let endpoint: MqttEndpoint | undefined;
    const connection = new MqttConnection(
      {
        broker: openBrokerSocket({ host: '127.0.0.1', port, tls: 'off' }, undefined),
        clientId: ADDRESS.serverId,
        username: undefined,
        password: undefined,
        will: { topic: 'gone', payload: Buffer.alloc(0), retain: false },
        properties: {},
        maxMessageBytes: MAX_MESSAGE_BYTES,
        connectTimeoutMs: 0,
        clock,
      },
      {
        connected: (terms) => {
          const offered = new MqttEndpoint({
            sessions,
            maxMessageBytes: MAX_MESSAGE_BYTES,
            maxJsonDepth: 100,
            untakenTimeoutMs: 0,
            bodies: new BodyCapacity(MAX_MESSAGE_BYTES).share(undefined),
            maxClients: 100,
            ownMarks: () => [],
            connection,
            terms,
            address: ADDRESS,
            brokerName: 'mqtt://broker',
            principal: 'hub:broker',
            description: '-',
            onOffered: () => resolve(offered),
            deps,
          });
          endpoint = offered;
        },
        received: (message) => endpoint?.received(message),
        oversized: (message) => endpoint?.oversized(message),
        drained: () => endpoint?.drained(),
        ended: () => {
          endpoint?.lost();
          reject(gone);
        },
      },
    );
  });
}

let clients = 0;

async function connect({ server }: HttpHarness, { url }: Mosquitto): Promise<ContractClient> {
  clients += 1;
  const clientId = `client${clients}`;
  const client = await connectAsync(url, { protocolVersion: 5, clientId, reconnectPeriod: 0 });
  client.on('error', () => {});
  const inbox = new Inbox();
  const rpc = `$mcp-rpc/${clientId}/${ADDRESS.serverId}/${ADDRESS.serverName}`;
  let isOver = (): void => {};
  const over = new Promise<void>((resolve) => {
    isOver = resolve;
  });
  client.on('message', (_topic, payload) => {
    const text = payload.toString();
    if (text.includes('"notifications/disconnected"')) isOver();
    else inbox.put(text);
  });
  await client.subscribeAsync([rpc, `$mcp-server/capability/${ADDRESS.serverId}/${ADDRESS.serverName}`], {
    qos: 1,
    nl: true,
  });
  const properties = { userProperties: { 'MCP-COMPONENT-TYPE': 'mcp-client', 'MCP-MQTT-CLIENT-ID': clientId } };
  const publish = (topic: string, message: object | string): void => {
    client.publishAsync(topic, textOf(message), { qos: 1, properties }).catch(() => {});
  };
  publish(`$mcp-server/${ADDRESS.serverId}/${ADDRESS.serverName}`, initialize());
  await inbox.next();
  return {
    connection: server.latest,
    send: (message) => publish(rpc, message),
    next: () => inbox.next(),
    pause: () => void client.stream.pause(),
    resume: () => void client.stream.resume(),
    leave: () => {
      publish(`$mcp-client/presence/${clientId}`, '{"jsonrpc":"2.0","method":"notifications/disconnected"}');
      void client.endAsync();
    },
    over,
  };
}

if (WHY_NO_MOSQUITTO !== undefined) test(`no broker: ${WHY_NO_MOSQUITTO}`, (t) => t.pass());
else {
  testDownstreamContract(test, {
    name: 'MQTT',
    // test/downstream/mqtt/endpoint.test.ts shows that it is not run again.
    usedIds: 'dropped',
    async start(t) {
      const harness = await startHttpHarness(t);
      const broker = await startMosquitto(PATIENT_BROKER);
      const endpoint = await offer(harness, broker);
      t.teardown(async () => {
        await endpoint.close(new BridgeError('ERR_SESSION_CLOSED', 'The test is over.')).catch(() => {});
        await broker.stop();
      });
      return { clock: harness.clock, sessions: harness.sessions, connect: () => connect(harness, broker) };
    },
  });
}
