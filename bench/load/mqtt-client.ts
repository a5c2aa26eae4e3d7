/** A client over MQTT, of the library `mqtt`: it shares a broker with the bridge, and has topics of its own. */
import type { Socket } from 'node:net';
import { connectAsync } from 'mqtt';
import type { Client, Identity } from './client.ts';
import { Mailbox } from './mailbox.ts';
import { openMessageClient } from './message-client.ts';

const DISCONNECTED = '{"jsonrpc":"2.0","method":"notifications/disconnected"}';

/** @param serverName of the one server with this name at the broker */
export async function openMqttClient(port: number, serverName: string, identity: Identity): Promise<Client> {
  // Marks of clients differ, and a broker gives the name of one to the next.
  const clientId = identity.name;
  const client = await connectAsync(`mqtt://127.0.0.1:${port}`, { protocolVersion: 5, clientId, reconnectPeriod: 0 });
  // Otherwise the system holds a call back until the broker has received the acknowledgment before it.
  (client.stream as Socket).setNoDelay();
  const presence = new Promise<string>((resolve) => client.once('message', (topic) => resolve(topic)));
  await client.subscribeAsync(`$mcp-server/presence/+/${serverName}`, { qos: 1 });
  const [, , serverId = ''] = (await presence).split('/');
  await client.unsubscribeAsync(`$mcp-server/presence/+/${serverName}`);
  const rpc = `$mcp-rpc/${clientId}/${serverId}/${serverName}`;
  await client.subscribeAsync([rpc, `$mcp-server/capability/${serverId}/${serverName}`], { qos: 1, nl: true });
  const mailbox = new Mailbox();
  client.on('error', (error) => mailbox.fail(error));
  client.on('close', () => mailbox.fail(new Error('the broker closed the connection')));
  /** The server listens at the other topic from its first answer on. */
  let topic = `$mcp-server/${serverId}/${serverName}`;
  client.on('message', (from, payload) => {
    if (from !== rpc) return;
    topic = rpc;
    mailbox.deliver(payload);
  });
  const userProperties = { 'MCP-COMPONENT-TYPE': 'mcp-client', 'MCP-MQTT-CLIENT-ID': clientId };
  const publish = (to: string, payload: Buffer | string): void => {
    client.publish(to, payload, { qos: 1, properties: { userProperties } }, (error) => {
      if (error) mailbox.fail(error);
    });
  };
  const way = {
    head: () => '',
    tail: '',
    // The next call changes the bytes of this one, and the system may not have taken them yet.
    write: (bytes: Buffer) => publish(topic, Buffer.from(bytes)),
    close: async () => {
      publish(`$mcp-client/presence/${clientId}`, DISCONNECTED);
      await client.endAsync();
    },
  };
  return openMessageClient(way, mailbox, identity);
}
