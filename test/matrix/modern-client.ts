import {
  Client,
  type LoggingLevel,
  type McpSubscription,
  type RequestOptions,
  SdkHttpError,
  type Transport,
} from '@modelcontextprotocol/client';
import { textOf } from '../real-peers/text-of.ts';
import {
  type Answerer,
  type CallOptions,
  type ConnectOptions,
  type Era,
  HOST_EXTENSIONS,
  type ListName,
  type MatrixClient,
  type Page,
  type ToolResult,
  type Traced,
  type TracedMessage,
} from './matrix-client.ts';

/** As of the legacy client. */
const CALL_TIMEOUT_MS = 60_000;

const CAPABILITIES: NonNullable<ConnectOptions['capabilities']> = {
  sampling: {},
  elicitation: { form: {} },
  roots: {},
  experimental: { 'example.com/x': {} },
  extensions: HOST_EXTENSIONS,
};

const RESERVED = 'io.modelcontextprotocol/';

/** `modern`: the revision 2026-07-28 or nothing. `auto`: whatever the SDK finds the server to speak. */
export type Negotiation = 'modern' | 'auto';

const MODES = { modern: { pin: '2026-07-28' }, auto: 'auto' } as const;

type Fields = Readonly<Record<string, unknown>>;

/** Lets every result pass as it is. */
const ANYTHING = {
  '~standard': { version: 1, vendor: 'matrix', validate: (value: unknown) => ({ value: value as Fields }) },
} as const;

/** A client made with the SDK v2. */
export class ModernClient implements MatrixClient {
  readonly trace: Traced[] = [];
  readonly faults: Error[] = [];
  readonly #client: Client;
  #level: string | undefined;
  readonly #subscriptions = new Map<string, McpSubscription>();

  private constructor(negotiation: Negotiation, { name, capabilities = CAPABILITIES }: ConnectOptions) {
    this.#client = new Client(
      { name, version: '4.5.6' },
      { capabilities, versionNegotiation: { mode: MODES[negotiation] } },
    );
    this.#client.onerror = (error) => {
      // As in the SDK v1: an answer is handled before the progress that came ahead of it in the same chunk.
      const isHarmless = error.message.startsWith('Received a progress notification for an unknown token');
      if (!isHarmless && errorInBody(error) === undefined) this.faults.push(error);
    };
  }

  /** @param transport one of the SDK's own, not started yet */
  static async connect(
    transport: Transport,
    { negotiation, ...options }: ConnectOptions & { readonly negotiation: Negotiation },
  ): Promise<ModernClient> {
    const connected = new ModernClient(negotiation, options);
    await connected.#connect(transport);
    return connected;
  }

  async #connect(transport: Transport): Promise<void> {
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      this.trace.push({ from: 'client', message: message as TracedMessage });
      return send(message, options);
    };
    await this.#client.connect(transport);
    // The probe had handlers of its own before.
    const { onmessage } = transport;
    transport.onmessage = (message, extra) => {
      this.trace.push({ from: 'server', message: message as TracedMessage });
      onmessage?.(message, extra);
    };
  }

  get era(): Era {
    return this.#client.getProtocolEra() ?? 'legacy';
  }

  serverInfo(): Fields {
    return {
      ...this.#client.getServerVersion(),
      instructions: this.#client.getInstructions(),
      capabilities: this.#client.getServerCapabilities(),
    };
  }

  async callTool(name: string, args = {}, { signal, onProgress, meta }: CallOptions = {}): Promise<ToolResult> {
    const level = this.#level === undefined ? undefined : { [`${RESERVED}logLevel`]: this.#level };
    const result = await this.#client.callTool(
      { name, arguments: args, ...((meta ?? level) && { _meta: { ...meta, ...level } }) },
      {
        timeout: CALL_TIMEOUT_MS,
        ...(signal && { signal }),
        ...(onProgress && { onprogress: tellProgressTo(onProgress) }),
      },
    );
    return {
      text: textOf(result),
      isError: result.isError === true,
      structured: result.structuredContent,
      meta: withoutReserved(result._meta),
    };
  }

  async list(list: ListName, cursor?: string): Promise<Page<{ readonly name: string }>> {
    // Not by the SDK's own methods, which fetch all pages at once.
    const result = await this.request(`${list}/list`, cursor === undefined ? {} : { cursor });
    return {
      items: result[list] as readonly { readonly name: string }[],
      nextCursor: result.nextCursor as string | undefined,
    };
  }

  async listTemplates(): Promise<readonly { readonly uriTemplate: string }[]> {
    return (await this.#client.listResourceTemplates()).resourceTemplates;
  }

  async readResource(uri: string): Promise<readonly { readonly text?: string; readonly blob?: string }[]> {
    return (await this.#client.readResource({ uri })).contents as readonly { text?: string; blob?: string }[];
  }

  async getPrompt(name: string, args: Readonly<Record<string, string>> = {}): Promise<readonly unknown[]> {
    return (await this.#client.getPrompt({ name, arguments: args })).messages;
  }

  async complete(params: Fields): Promise<readonly string[]> {
    const { completion } = await this.#client.complete(params as Parameters<Client['complete']>[0]);
    return completion.values;
  }

  async ping(): Promise<void> {
    await this.#client.ping();
  }

  /** In the modern era each request says what it wants to hear. */
  async setLevel(level: string): Promise<void> {
    this.#level = level;
    if (this.era === 'legacy') await this.#client.setLoggingLevel(level as LoggingLevel);
  }

  async watchLists(): Promise<void> {
    if (this.#subscriptions.has('lists')) return;
    const filter = { toolsListChanged: true, resourcesListChanged: true, promptsListChanged: true };
    this.#subscriptions.set('lists', await this.#client.listen(filter));
  }

  async subscribe(uri: string): Promise<void> {
    this.#subscriptions.set(uri, await this.#client.listen({ resourceSubscriptions: [uri] }));
  }

  async unsubscribe(uri: string): Promise<void> {
    await this.#subscriptions.get(uri)?.close();
    this.#subscriptions.delete(uri);
  }

  rootsChanged(): Promise<void> {
    return this.#client.sendRootsListChanged();
  }

  async request(method: string, params: Fields = {}): Promise<Fields> {
    const sent = this.#client.request({ method, params }, ANYTHING, { timeout: CALL_TIMEOUT_MS });
    const result = await sent.catch((error: unknown) => Promise.reject(errorInBody(error) ?? error));
    const { resultType: _, _meta, ...rest } = result as Fields;
    const meta = withoutReserved(_meta as Fields | undefined);
    return { ...rest, ...(meta && { _meta: meta }) };
  }

  notify(method: string, params: Fields = {}): Promise<void> {
    return this.#client.notification({ method, params } as Parameters<Client['notification']>[0]);
  }

  answer(method: string, answerer: Answerer): void {
    this.#client.setRequestHandler(
      method as 'sampling/createMessage',
      async ({ params }) => (await answerer({ ...params })) as never,
    );
  }

  async close(): Promise<void> {
    const subscriptions = [...this.#subscriptions.values()];
    this.#subscriptions.clear();
    await Promise.all(subscriptions.map((subscription) => subscription.close()));
    await this.#client.close();
  }
}

function tellProgressTo(onProgress: NonNullable<CallOptions['onProgress']>): NonNullable<RequestOptions['onprogress']> {
  return ({ message }) => onProgress(message);
}

/** The SDK does not read the error that comes with a status of 404, as that of an unknown method does over HTTP. */
function errorInBody(error: unknown): Error | undefined {
  if (!(error instanceof SdkHttpError) || error.status !== 404) return undefined;
  const text = (error.data as { readonly text?: unknown } | undefined)?.text;
  const body = typeof text === 'string' ? (JSON.parse(text) as TracedMessage) : {};
  return body.error && Object.assign(new Error(String(body.error.message)), body.error);
}

/** What the era puts there of its own is no part of what the server says. */
function withoutReserved(meta: Fields | undefined): Fields | undefined {
  const own = Object.entries(meta ?? {}).filter(([key]) => !key.startsWith(RESERVED));
  return own.length === 0 ? undefined : Object.fromEntries(own);
}
