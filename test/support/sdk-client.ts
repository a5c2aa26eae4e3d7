import { Client, type ClientOptions } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { ClientCapabilities, JSONRPCMessage, Notification, Progress } from '@modelcontextprotocol/sdk/types.js';

export interface ConnectOptions {
  readonly name?: string;
  readonly capabilities?: ClientCapabilities;
  /** Called before the connection is made: sets the handlers for what the server asks. */
  readonly handlers?: (client: Client) => void;
  /** Sent with every request, over Streamable HTTP. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** An official SDK client, connected. */
export interface SdkClient {
  readonly client: Client;
  /** Notifications for which no handler was set, in order of arrival. */
  readonly notifications: readonly Notification[];
  /**
   * All progress so far, in order of arrival. The SDK handles an answer before the progress that came ahead of it in the
   * same chunk, and then drops that: how much of it `onprogress` hears of is a matter of time.
   */
  readonly progress: readonly Progress[];
  close(): Promise<void>;
}

export interface StreamableClient extends SdkClient {
  readonly transport: StreamableHTTPClientTransport;
}

export async function connectStreamable(url: URL, options: ConnectOptions = {}): Promise<StreamableClient> {
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers: options.headers ?? {} } });
  const connected = await connectClient(transport, options);
  return { ...connected, transport, close: () => endSession(transport, connected) };
}

export async function connectSse(url: URL, options: ConnectOptions = {}): Promise<SdkClient> {
  return connectClient(new SSEClientTransport(url), options);
}

/** On a transport of the SDK that is not started yet. */
export async function connectClient(
  transport: object,
  { name = 'sdk-client', capabilities, handlers }: ConnectOptions = {},
): Promise<SdkClient> {
  const clientOptions: ClientOptions = capabilities === undefined ? {} : { capabilities };
  const client = new Client({ name, version: '1.0.0' }, clientOptions);
  const notifications: Notification[] = [];
  client.fallbackNotificationHandler = async (notification) => void notifications.push(notification);
  handlers?.(client);
  // The SDK's own transports do not satisfy its interface under exactOptionalPropertyTypes.
  const own = transport as Transport;
  const progress: Progress[] = [];
  own.onmessage = (message: JSONRPCMessage) => {
    if ('method' in message && message.method === 'notifications/progress') progress.push(message.params as Progress);
  };
  await client.connect(own);
  return { client, notifications, progress, close: () => client.close() };
}

/** What a polite client does: DELETE, then close. A session that is gone already is as good. */
async function endSession(transport: StreamableHTTPClientTransport, { client }: SdkClient): Promise<void> {
  await transport.terminateSession().catch(() => undefined);
  await client.close();
}
