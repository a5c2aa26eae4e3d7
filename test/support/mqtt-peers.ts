/**
 * Servers and clients of MCP at a broker, on an implementation of MQTT that is not ours, with the habits of the SDKs in the
 * field.
 */
import { connectAsync, type IClientOptions, type IPublishPacket, type MqttClient } from 'mqtt';
import { waitFor } from './wait-for.ts';

export type Message = Readonly<Record<string, unknown>>;

/** How the servers of an SDK behave. */
export interface ServerHabits {
  readonly qos: 0 | 1;
  /** User properties on messages. */
  readonly properties: 'sent' | 'missing';
  /** The parameters of the presence. */
  readonly presence: Message;
  /** A will that is not retained leaves a presence behind. */
  readonly will: 'retained' | 'not-retained';
  readonly revision: string;
  /** What is said to methods that are not known, and to pings. */
  readonly unknown: 'error' | 'silence';
  /** Ids of requests that are taken for missing. */
  readonly ignoredIds: readonly unknown[];
}

/** The SDKs whose servers are in the field. */
export const HABITS = {
  typescript: {
    qos: 1,
    properties: 'sent',
    presence: { server_name: '', description: 'a test server' },
    will: 'retained',
    revision: '2024-11-05',
    unknown: 'error',
    ignoredIds: [0, ''],
  },
  python: {
    qos: 0,
    properties: 'sent',
    presence: { description: 'a test server' },
    will: 'retained',
    revision: '2025-11-25',
    unknown: 'error',
    ignoredIds: [],
  },
  esp32: {
    qos: 0,
    properties: 'missing',
    presence: { server_name: '', description: 'ESP32' },
    will: 'not-retained',
    revision: '2024-11-05',
    unknown: 'silence',
    ignoredIds: [],
  },
  erlang: {
    qos: 0,
    properties: 'sent',
    presence: { server_name: '', description: 'a test server', meta: { rbac: { roles: [] } } },
    will: 'retained',
    revision: '2025-03-26',
    unknown: 'error',
    ignoredIds: [],
  },
} as const satisfies Readonly<Record<string, ServerHabits>>;

/** A result: it is said by other means, or never. */
export const LATER = Symbol('later');

export type Answer = (message: Message, session: TestSession) => unknown;

export interface TestServerOptions {
  readonly url: string;
  readonly serverId: string;
  readonly serverName: string;
  readonly habits?: ServerHabits;
  readonly connect?: IClientOptions;
  /** The result of a request; undefined: it is not known. Rejections and errors become errors. */
  readonly answer?: Answer;
  /** `mute`: it subscribes and says that it is online, but answers nothing. */
  readonly manner?: 'usual' | 'mute';
}

/** A session of a test server. */
export interface TestSession {
  readonly clientId: string;
  /** An object as a message, a text in the place of one. */
  say(message: object | string): void;
}

export interface TestServer {
  readonly client: MqttClient;
  /** Everything that it has received, in order. */
  readonly received: readonly {
    readonly topic: string;
    readonly message: Message | undefined;
    readonly packet: IPublishPacket;
  }[];
  readonly sessions: ReadonlyMap<string, TestSession>;
  publish(topic: string, payload: string | Buffer, options?: { retain?: boolean; as?: string }): Promise<void>;
  /** Says that it leaves, and does. */
  leave(): Promise<void>;
  /** Goes without a word, as if its power were cut. */
  vanish(): Promise<void>;
}

export async function startTestServer({
  url,
  serverId,
  serverName,
  habits = HABITS.typescript,
  connect = {},
  answer = answerSimply,
  manner = 'usual',
}: TestServerOptions): Promise<TestServer> {
  const presenceTopic = `$mcp-server/presence/${serverId}/${serverName}`;
  const controlTopic = `$mcp-server/${serverId}/${serverName}`;
  const client = await connectAsync(url, {
    protocolVersion: 5,
    clientId: serverId,
    reconnectPeriod: 0,
    will: { topic: presenceTopic, payload: Buffer.alloc(0), retain: habits.will === 'retained', qos: habits.qos },
    ...connect,
  });
  client.on('error', () => {});
  const received: { topic: string; message: Message | undefined; packet: IPublishPacket }[] = [];
  const sessions = new Map<string, TestSession>();
  const publish = async (
    topic: string,
    payload: string | Buffer,
    { retain = false, as = serverId }: { retain?: boolean; as?: string } = {},
  ): Promise<void> => {
    const userProperties = { 'MCP-COMPONENT-TYPE': 'mcp-server', 'MCP-MQTT-CLIENT-ID': as };
    const properties = habits.properties === 'sent' ? { userProperties } : {};
    await client.publishAsync(topic, payload, { qos: habits.qos, retain, properties });
  };
  const open = async (clientId: string): Promise<TestSession> => {
    const topic = `$mcp-rpc/${clientId}/${serverId}/${serverName}`;
    const session: TestSession = {
      clientId,
      say: (message) =>
        void publish(topic, typeof message === 'string' ? message : JSON.stringify(message)).catch(() => {}),
    };
    sessions.set(clientId, session);
    await client.subscribeAsync(topic, { qos: habits.qos, nl: true });
    await client.subscribeAsync(`$mcp-client/presence/${clientId}`, { qos: habits.qos });
    await client.subscribeAsync(`$mcp-client/capability/${clientId}`, { qos: habits.qos });
    return session;
  };
  const handle = async (message: Message, session: TestSession): Promise<void> => {
    const { id, method } = message;
    if (manner === 'mute' || id === undefined || method === undefined || habits.ignoredIds.includes(id as never))
      return;
    if (method === 'initialize') {
      const capabilities = { tools: { listChanged: true }, resources: { subscribe: true } };
      const serverInfo = { name: serverId, version: '1' };
      return session.say({
        jsonrpc: '2.0',
        id,
        result: { protocolVersion: habits.revision, capabilities, serverInfo },
      });
    }
    try {
      const result = method === 'ping' && habits.unknown === 'silence' ? undefined : await answer(message, session);
      if (result === LATER) return;
      if (result !== undefined) return session.say({ jsonrpc: '2.0', id, result });
      if (habits.unknown === 'error') session.say({ jsonrpc: '2.0', id, error: { code: -32601, message: 'unknown' } });
    } catch (error) {
      session.say({ jsonrpc: '2.0', id, error: { code: -32603, message: String(error) } });
    }
  };
  client.on('message', (topic, payload, packet) => {
    const message = parse(payload);
    received.push({ topic, message, packet });
    if (message === undefined) return;
    const clientId =
      topic === controlTopic ? packet.properties?.userProperties?.['MCP-MQTT-CLIENT-ID'] : topic.split('/')[1];
    if (typeof clientId !== 'string' || topic.startsWith('$mcp-client/')) return;
    const session = sessions.get(clientId);
    if (topic === controlTopic && message.method === 'initialize') {
      void open(clientId)
        .then((opened) => handle(message, opened))
        .catch(() => {});
    } else if (session !== undefined) void handle(message, session);
  });
  await client.subscribeAsync(controlTopic, { qos: habits.qos });
  const params = 'server_name' in habits.presence ? { ...habits.presence, server_name: serverName } : habits.presence;
  const online = { jsonrpc: '2.0', method: 'notifications/server/online', params };
  await publish(presenceTopic, JSON.stringify(online), { retain: true });
  return {
    client,
    received,
    sessions,
    publish,
    async leave() {
      await publish(presenceTopic, '', { retain: true });
      await client.endAsync();
    },
    async vanish() {
      client.stream.destroy();
      await client.endAsync(true);
    },
  };
}

/** Echoes what `tools/call` is called with, and lists one tool. */
function answerSimply({ method, params }: Message): unknown {
  if (method === 'tools/list') return { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] };
  if (method === 'tools/call') return { content: [{ type: 'text', text: JSON.stringify(params) }] };
  if (method === 'resources/subscribe' || method === 'resources/unsubscribe') return {};
  return undefined;
}

export interface TestClient {
  readonly client: MqttClient;
  readonly clientId: string;
  readonly received: readonly {
    readonly topic: string;
    readonly message: Message | undefined;
    readonly packet: IPublishPacket;
  }[];
  publish(
    topic: string,
    payload: string | Buffer,
    options?: { retain?: boolean; as?: string | undefined },
  ): Promise<void>;
  /** The newest instance that says that it serves this name. */
  find(serverName: string): Promise<string>;
  /** Subscribes to what an instance may say, and initializes. Resolves with the answer. */
  initialize(serverId: string, serverName: string, params?: Message): Promise<Message>;
  /** Sends a request to the instance that was initialized. Resolves with the answer. */
  request(method: string, params?: Message, id?: unknown): Promise<Message>;
  say(message: Message): Promise<void>;
  /** The first message that fits and was not returned before. */
  next(fits: (message: Message) => boolean): Promise<Message>;
  end(): Promise<void>;
}

export interface TestClientOptions {
  readonly url: string;
  readonly clientId: string;
  readonly qos?: 0 | 1;
  readonly connect?: IClientOptions;
}

export async function startTestClient({
  url,
  clientId,
  qos = 1,
  connect = {},
}: TestClientOptions): Promise<TestClient> {
  const farewell = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/disconnected' });
  const client = await connectAsync(url, {
    protocolVersion: 5,
    clientId,
    reconnectPeriod: 0,
    will: { topic: `$mcp-client/presence/${clientId}`, payload: Buffer.from(farewell), qos: 0 },
    ...connect,
  });
  client.on('error', () => {});
  const received: { topic: string; message: Message | undefined; packet: IPublishPacket }[] = [];
  client.on('message', (topic, payload, packet) => void received.push({ topic, message: parse(payload), packet }));
  const publish = async (
    topic: string,
    payload: string | Buffer,
    { retain = false, as = clientId }: { retain?: boolean; as?: string | undefined } = {},
  ): Promise<void> => {
    const userProperties = { 'MCP-COMPONENT-TYPE': 'mcp-client', 'MCP-MQTT-CLIENT-ID': as };
    await client.publishAsync(topic, payload, { qos, retain, properties: { userProperties } });
  };
  const returned = new Set<unknown>();
  const next = (fits: (message: Message) => boolean): Promise<Message> =>
    waitFor(() => {
      const found = received.find(({ message }) => message !== undefined && !returned.has(message) && fits(message));
      if (found?.message !== undefined) returned.add(found.message);
      return found?.message;
    });
  let rpc = '';
  let lastId = 100;
  return {
    client,
    clientId,
    received,
    publish,
    next,
    async find(serverName) {
      const prefix = '$mcp-server/presence/';
      await client.subscribeAsync(`${prefix}+/${serverName}`, { qos });
      const found = await waitFor(() => received.find(({ topic, message }) => topic.startsWith(prefix) && message));
      return found.topic.split('/')[2] ?? '';
    },
    async initialize(serverId, serverName, params = {}) {
      rpc = `$mcp-rpc/${clientId}/${serverId}/${serverName}`;
      await client.subscribeAsync(rpc, { qos, nl: true });
      await client.subscribeAsync(`$mcp-server/capability/${serverId}/${serverName}`, { qos });
      const clientInfo = { name: 'test', version: '1' };
      const message = {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo, ...params },
      };
      await publish(`$mcp-server/${serverId}/${serverName}`, JSON.stringify(message));
      const answer = await next(({ id, method }) => id === 1 && method === undefined);
      await publish(rpc, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }));
      return answer;
    },
    async request(method, params = {}, id = ++lastId) {
      await publish(rpc, JSON.stringify({ jsonrpc: '2.0', id, method, params }));
      return next((message) => message.id === id && message.method === undefined);
    },
    say: (message) => publish(rpc, JSON.stringify(message)),
    async end() {
      await client.endAsync(true);
    },
  };
}

function parse(payload: Buffer): Message | undefined {
  try {
    const value: unknown = JSON.parse(payload.toString());
    return typeof value === 'object' && value !== null ? (value as Message) : undefined;
  } catch {
    return undefined;
  }
}
