/** Joins a server that is a program with a broker, as the SDKs for MQTT do: a process for each client that opens a session. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { connectAsync } from 'mqtt';

/** Those of MCP. What an extension calls so belongs to a call or session, as all else that it sends. */
const LIST_CHANGED = /^notifications\/(?:tools|prompts|resources)\/list_changed$/;

export interface AdaptedServerOptions {
  readonly url: string;
  readonly serverId: string;
  readonly serverName: string;
  readonly command: readonly string[];
}

export interface AdaptedServer {
  /** The connection breaks, and with it all processes end. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

export async function startAdaptedServer({
  url,
  serverId,
  serverName,
  command,
}: AdaptedServerOptions): Promise<AdaptedServer> {
  const presence = `$mcp-server/presence/${serverId}/${serverName}`;
  const control = `$mcp-server/${serverId}/${serverName}`;
  const client = await connectAsync(url, {
    protocolVersion: 5,
    clientId: serverId,
    reconnectPeriod: 0,
    will: { topic: presence, payload: Buffer.alloc(0), retain: true, qos: 1 },
  });
  client.on('error', () => {});
  const properties = { userProperties: { 'MCP-COMPONENT-TYPE': 'mcp-server', 'MCP-MQTT-CLIENT-ID': serverId } };
  const publish = (topic: string, payload: string, retain = false): void => {
    client.publishAsync(topic, payload, { qos: 1, retain, properties }).catch(() => {});
  };
  const processes = new Map<string, ChildProcess>();
  const topicsOf = (clientId: string): string[] => [
    `$mcp-rpc/${clientId}/${serverId}/${serverName}`,
    `$mcp-client/presence/${clientId}`,
    `$mcp-client/capability/${clientId}`,
  ];
  const open = async (clientId: string): Promise<ChildProcess> => {
    const [program = '', ...args] = command;
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'] });
    processes.get(clientId)?.kill();
    processes.set(clientId, child);
    const [rpc = ''] = topicsOf(clientId);
    await client.subscribeAsync(topicsOf(clientId), { qos: 1, nl: true });
    child.stdin.on('error', () => {});
    onLine(child.stdout, (line) => {
      // Modern changes are those of one subscription, which its client alone knows.
      const isChange = LIST_CHANGED.test(methodOf(line)) && !line.includes('/subscriptionId"');
      publish(isChange ? `$mcp-server/capability/${serverId}/${serverName}` : rpc, line);
    });
    child.once('exit', () => {
      if (processes.get(clientId) !== child) return;
      processes.delete(clientId);
      publish(rpc, '{"jsonrpc":"2.0","method":"notifications/disconnected"}');
    });
    return child;
  };
  const leave = (clientId: string): void => {
    processes.get(clientId)?.stdin?.end();
    client.unsubscribeAsync(topicsOf(clientId)).catch(() => {});
  };
  client.on('message', (topic, payload, packet) => {
    const line = `${payload.toString()}\n`;
    if (topic === control) {
      const clientId = packet.properties?.userProperties?.['MCP-MQTT-CLIENT-ID'];
      const known = typeof clientId === 'string' ? processes.get(clientId) : undefined;
      // A modern client sends all here until it has an answer.
      if (known !== undefined && methodOf(line) !== 'initialize') known.stdin?.write(line);
      else if (typeof clientId === 'string')
        void open(clientId).then(
          ({ stdin }) => stdin?.write(line),
          () => {},
        );
      return;
    }
    const clientId = topic.split('/')[topic.startsWith('$mcp-rpc/') ? 1 : 2] ?? '';
    if (payload.length === 0 || line.includes('"notifications/disconnected"')) leave(clientId);
    else processes.get(clientId)?.stdin?.write(line);
  });
  await client.subscribeAsync(control, { qos: 1 });
  const online = {
    jsonrpc: '2.0',
    method: 'notifications/server/online',
    params: { server_name: serverName, description: '-' },
  };
  await client.publishAsync(presence, JSON.stringify(online), { qos: 1, retain: true, properties });
  const end = async (): Promise<void> => {
    for (const child of processes.values()) child.kill('SIGKILL');
    await client.endAsync(true);
  };
  return {
    async kill() {
      client.stream.destroy();
      await end();
    },
    async close() {
      if (client.connected) publish(presence, '', true);
      await end();
    },
  };
}

/** Lines end with a line feed alone; since Node 24, `readline` ends them with U+2028 and U+2029, too, which JSON may contain. */
function onLine(stream: Readable, take: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    lines.forEach(take);
  });
}

/** Answers may contain messages, and what they contain is not what they are. */
function methodOf(line: string): string {
  const { method } = JSON.parse(line) as { readonly method?: unknown };
  return typeof method === 'string' ? method : '';
}
