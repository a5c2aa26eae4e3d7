import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { connectAsync, type MqttClient } from 'mqtt';

/** What both SDKs have in common of a message. */
interface Message {
  readonly id?: unknown;
  readonly method?: string;
}

const DISCONNECTED = '{"jsonrpc":"2.0","method":"notifications/disconnected"}';

/** Neither SDK has a transport over MQTT; this one is made of the library `mqtt`, for the newest server of a name. */
export class MqttClientTransport {
  onmessage: ((message: Message) => void) | undefined;
  onclose: (() => void) | undefined;
  onerror: ((error: Error) => void) | undefined;
  readonly #url: URL;
  readonly #clientId = randomUUID();
  #client: MqttClient | undefined;
  #serverTopic = '';
  /** The server listens at the other topic from its first answer on. */
  #isOpen = false;

  /** @param url `mqtt://host:port/<server name>` */
  constructor(url: URL) {
    this.#url = url;
  }

  async start(): Promise<void> {
    const { host, pathname } = this.#url;
    const serverName = decodeURIComponent(pathname.slice(1));
    const client = await connectAsync(`mqtt://${host}`, {
      protocolVersion: 5,
      clientId: this.#clientId,
      reconnectPeriod: 0,
      will: { topic: this.#presenceTopic, payload: Buffer.from(DISCONNECTED), qos: 1 },
    });
    this.#client = client;
    client.on('error', (error) => this.onerror?.(error));
    client.on('close', () => this.onclose?.());
    const presence = new Promise<string>((resolve) => client.on('message', (topic) => resolve(topic)));
    await client.subscribeAsync(`$mcp-server/presence/+/${serverName}`, { qos: 1 });
    const [, , serverId = ''] = (await presence).split('/');
    await client.unsubscribeAsync(`$mcp-server/presence/+/${serverName}`);
    this.#serverTopic = `${serverId}/${serverName}`;
    client.on('message', (topic, payload) => this.#received(topic, payload.toString()));
    const filters = [this.rpcTopic, `$mcp-server/capability/${this.#serverTopic}`];
    await client.subscribeAsync(filters, { qos: 1, nl: true });
  }

  /** What carries its connection to the broker. */
  get socket(): Socket {
    if (this.#client === undefined) throw new Error('it has not been started');
    return this.#client.stream as Socket;
  }

  get #presenceTopic(): string {
    return `$mcp-client/presence/${this.#clientId}`;
  }

  /** Where both sides speak once the server has answered. */
  get rpcTopic(): string {
    return `$mcp-rpc/${this.#clientId}/${this.#serverTopic}`;
  }

  #received(topic: string, text: string): void {
    // A presence that comes late is nobody's message.
    if (topic !== this.rpcTopic && !topic.startsWith('$mcp-server/capability/')) return;
    this.#isOpen = true;
    if (text === DISCONNECTED) this.#client?.end();
    else this.onmessage?.(JSON.parse(text) as Message);
  }

  async send(message: Message): Promise<void> {
    const topic = this.#isOpen ? this.rpcTopic : `$mcp-server/${this.#serverTopic}`;
    const isAboutRoots = message.method === 'notifications/roots/list_changed';
    await this.#publish(isAboutRoots ? `$mcp-client/capability/${this.#clientId}` : topic, JSON.stringify(message));
  }

  async #publish(topic: string, payload: string): Promise<void> {
    const userProperties = { 'MCP-COMPONENT-TYPE': 'mcp-client', 'MCP-MQTT-CLIENT-ID': this.#clientId };
    await this.#client?.publishAsync(topic, payload, { qos: 1, properties: { userProperties } });
  }

  async close(): Promise<void> {
    if (this.#client?.connected !== true) return;
    await this.#publish(this.#presenceTopic, DISCONNECTED);
    await this.#client.endAsync();
  }
}
