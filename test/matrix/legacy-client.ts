import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  type LoggingLevel,
  ResultSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { textOf } from '../real-peers/text-of.ts';
import {
  type Answerer,
  type CallOptions,
  type ConnectOptions,
  HOST_EXTENSIONS,
  type ListName,
  type MatrixClient,
  type Page,
  type ToolResult,
  type Traced,
  type TracedMessage,
} from './matrix-client.ts';

/** More than any call here may take, so that a hanging one fails with the title of its scenario. */
const CALL_TIMEOUT_MS = 60_000;

const CAPABILITIES: NonNullable<ConnectOptions['capabilities']> = {
  sampling: {},
  elicitation: {},
  roots: { listChanged: true },
  experimental: { 'example.com/x': {} },
  extensions: HOST_EXTENSIONS,
};

/** Questions the SDK knows are checked by it on both ends; any other goes to its fallback. */
const KNOWN_QUESTIONS = {
  'sampling/createMessage': CreateMessageRequestSchema,
  'elicitation/create': ElicitRequestSchema,
  'roots/list': ListRootsRequestSchema,
} as const;

/** A client made with the SDK v1. */
export class LegacyClient implements MatrixClient {
  readonly trace: Traced[] = [];
  readonly faults: Error[] = [];
  readonly era = 'legacy';
  readonly #client: Client;
  readonly #leave: (client: Client) => Promise<void>;
  readonly #answerers = new Map<string, Answerer>();

  private constructor({ name, capabilities = CAPABILITIES }: ConnectOptions, leave: (client: Client) => Promise<void>) {
    this.#client = new Client({ name, version: '4.5.6' }, { capabilities });
    this.#leave = leave;
    this.#client.onerror = (error) => {
      // The SDK handles an answer before the progress that came ahead of it in the same chunk, and then knows no token.
      if (!error.message.startsWith('Received a progress notification for an unknown token')) this.faults.push(error);
    };
    this.#client.fallbackRequestHandler = async ({ method, params }) => {
      const answerer = this.#answerers.get(method);
      if (answerer === undefined) throw Object.assign(new Error(`no answer to ${method}`), { code: -32601 });
      return answerer(params ?? {});
    };
  }

  /**
   * @param transport one of the SDK's own, not started yet; they do not satisfy its interface under
   *   exactOptionalPropertyTypes
   * @param leave what a polite client does to go
   */
  static async connect(
    transport: object,
    { leave, ...options }: ConnectOptions & { readonly leave?: () => Promise<unknown> },
  ): Promise<LegacyClient> {
    const connected = new LegacyClient(options, async (client) => {
      await leave?.();
      await client.close();
    });
    await connected.#connect(transport as Transport);
    return connected;
  }

  #connect(transport: Transport): Promise<void> {
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      this.trace.push({ from: 'client', message: message as TracedMessage });
      return send(message, options);
    };
    transport.onmessage = (message) => void this.trace.push({ from: 'server', message: message as TracedMessage });
    return this.#client.connect(transport);
  }

  serverInfo(): Readonly<Record<string, unknown>> {
    return {
      ...this.#client.getServerVersion(),
      instructions: this.#client.getInstructions(),
      capabilities: this.#client.getServerCapabilities(),
    };
  }

  async callTool(name: string, args = {}, { signal, onProgress, meta }: CallOptions = {}): Promise<ToolResult> {
    const call = { name, arguments: args, ...(meta && { _meta: meta }) };
    const result = await this.#client.callTool(call, undefined, {
      timeout: CALL_TIMEOUT_MS,
      ...(signal && { signal }),
      ...(onProgress && { onprogress: ({ message }) => onProgress(message) }),
    });
    return {
      text: textOf(result),
      isError: result.isError === true,
      structured: result.structuredContent,
      meta: result._meta,
    };
  }

  async list(list: ListName, cursor?: string): Promise<Page<{ readonly name: string }>> {
    const params = cursor === undefined ? {} : { cursor };
    switch (list) {
      case 'tools': {
        const { tools, nextCursor } = await this.#client.listTools(params);
        return { items: tools, nextCursor };
      }
      case 'resources': {
        const { resources, nextCursor } = await this.#client.listResources(params);
        return { items: resources, nextCursor };
      }
      case 'prompts': {
        const { prompts, nextCursor } = await this.#client.listPrompts(params);
        return { items: prompts, nextCursor };
      }
    }
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

  async complete(params: Readonly<Record<string, unknown>>): Promise<readonly string[]> {
    const { completion } = await this.#client.complete(params as Parameters<Client['complete']>[0]);
    return completion.values;
  }

  async ping(): Promise<void> {
    await this.#client.ping();
  }

  async setLevel(level: string): Promise<void> {
    await this.#client.setLoggingLevel(level as LoggingLevel);
  }

  /** It is told without asking. */
  async watchLists(): Promise<void> {}

  async subscribe(uri: string): Promise<void> {
    await this.#client.subscribeResource({ uri });
  }

  async unsubscribe(uri: string): Promise<void> {
    await this.#client.unsubscribeResource({ uri });
  }

  rootsChanged(): Promise<void> {
    return this.#client.sendRootsListChanged();
  }

  request(method: string, params = {}): Promise<Readonly<Record<string, unknown>>> {
    return this.#client.request({ method, params }, ResultSchema, { timeout: CALL_TIMEOUT_MS });
  }

  notify(method: string, params = {}): Promise<void> {
    return this.#client.notification({ method, params } as Parameters<Client['notification']>[0]);
  }

  answer(method: string, answerer: Answerer): void {
    const schema = (
      KNOWN_QUESTIONS as Readonly<Record<string, (typeof KNOWN_QUESTIONS)[keyof typeof KNOWN_QUESTIONS]>>
    )[method];
    if (schema === undefined) this.#answerers.set(method, answerer);
    else this.#client.setRequestHandler(schema, ({ params }) => answerer(params ?? {}) as never);
  }

  close(): Promise<void> {
    return this.#leave(this.#client);
  }
}
