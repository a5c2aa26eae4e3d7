/** A broker that says what a test wants it to say. Its codec is the one that both sides use; what it does with it is its own. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';
import { generate, type IConnackPacket, type Packet, parser } from 'mqtt-packet';

const VERSION = { protocolVersion: 5 } as const;

export interface BrokerConnection {
  readonly socket: Socket;
  readonly packets: readonly Packet[];
  send(packet: Packet): void;
}

export interface ScriptedBroker {
  readonly port: number;
  readonly url: string;
  readonly connections: readonly BrokerConnection[];
}

export interface ScriptedBrokerOptions {
  /** The answer to CONNECT; undefined: none. */
  readonly connack?: Partial<IConnackPacket> | undefined;
  /** Called with each further packet. Returns true if it was handled; otherwise it gets the usual answer. */
  readonly handle?: (packet: Packet, connection: BrokerConnection) => boolean;
  /** Called with each new socket before anything is read. Returns true if nothing else is to be done with it. */
  readonly accept?: (socket: Socket) => boolean;
}

export async function startScriptedBroker(
  t: ExecutionContext,
  options: ScriptedBrokerOptions = {},
): Promise<ScriptedBroker> {
  const connections: BrokerConnection[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    if (options.accept?.(socket) === true) return;
    const packets: Packet[] = [];
    const connection: BrokerConnection = {
      socket,
      packets,
      send: (packet) => void socket.write(generate(packet, VERSION)),
    };
    connections.push(connection);
    const reader = parser(VERSION);
    reader.on('packet', (packet: Packet) => {
      packets.push(packet);
      if (options.handle?.(packet, connection) === true) return;
      answer(packet, connection, 'connack' in options ? options.connack : {});
    });
    socket.on('data', (chunk: Buffer) => void reader.parse(chunk));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `mqtt://127.0.0.1:${port}`, connections };
}

function answer(packet: Packet, { send }: BrokerConnection, connack: Partial<IConnackPacket> | undefined): void {
  const { messageId = 0 } = packet;
  switch (packet.cmd) {
    case 'connect':
      if (connack !== undefined) send({ cmd: 'connack', sessionPresent: false, reasonCode: 0, ...connack });
      return;
    case 'subscribe':
      return send({ cmd: 'suback', messageId, granted: packet.subscriptions.map(() => 1) });
    case 'unsubscribe':
      return send({ cmd: 'unsuback', messageId, granted: packet.unsubscriptions.map(() => 0) });
    case 'publish':
      if (packet.qos === 1) send({ cmd: 'puback', messageId, reasonCode: 0 });
      return;
    case 'pingreq':
      return send({ cmd: 'pingresp' });
    default:
      return;
  }
}
