import { setTimeout as delay } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  ErrorCode,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  LoggingLevelSchema,
  ReadResourceRequestSchema,
  ResultSchema,
  RootsListChangedNotificationSchema,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import {
  completionOf,
  contentsOf,
  INSTRUCTIONS,
  PROMPTS,
  pageOf,
  promptMessages,
  RESOURCES,
  TEMPLATES,
} from './content.js';
import { TOOLS } from './legacy-tools.js';

const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  logging: {},
  completions: {},
  experimental: { 'example.com/matrix': { yes: true } },
};

const RECORD = 'test/record';

const LEVELS = LoggingLevelSchema.options;

/** The SDK's client forgets whom progress belongs to when it reads the answer in the same chunk. */
const BEFORE_ANSWER_MS = 20;

/** @param {number} code @param {string} message @param {object} [data] */
const rpcError = (code, message, data) => Object.assign(new Error(message), { code, data });

/**
 * The matrix server of the legacy era: one instance a session, made with the low-level class of the SDK v1 so that
 * methods it does not know can be answered.
 */
export class LegacySession {
  server = new Server(
    { name: 'matrix-legacy', version: '1.2.3' },
    { capabilities: CAPABILITIES, instructions: INSTRUCTIONS },
  );
  #options;
  #subscriptions = new Set();
  #minimumLevel = 0;
  /** Items the session itself added, by list. @type {Record<string, string[]>} */
  #grown = { tools: [], resources: [], prompts: [] };

  /**
   * @param {object} options
   * @param {string} options.name of this session in the record
   * @param {import('./record.js').ServerRecord} options.record
   * @param {Set<LegacySession>} options.sessions those that are open in this process
   * @param {boolean} options.hasCallStreams a call's messages go with its answer; else they go on the GET stream
   */
  constructor(options) {
    this.#options = options;
    this.#answerTools();
    this.#answerResources();
    this.#answerPrompts();
    this.#answerOthers();
  }

  /** @param {import('@modelcontextprotocol/sdk/shared/transport.js').Transport} transport */
  async connect(transport) {
    transport.onmessage = (message) => {
      // Tests ask for the record again and again until something is there.
      if (!('method' in message) || message.method !== RECORD) this.note('message', message);
    };
    this.server.onclose = () => this.#closed();
    this.#options.sessions.add(this);
    this.note('opened');
    await this.server.connect(transport);
  }

  #closed() {
    if (this.#options.sessions.delete(this)) this.note('closed');
  }

  /** @param {import('./record.js').Kind} kind @param {unknown} [value] */
  note(kind, value) {
    this.#options.record.note(this.#options.name, kind, value);
  }

  // ---- what tools use

  loggedLevels() {
    return LEVELS.slice(this.#minimumLevel);
  }

  /** Between calls. @param {string} method @param {object} [params] */
  notify(method, params) {
    return this.server.notification({ method, params });
  }

  /** Between calls. @param {string} method @param {object} [params] */
  ask(method, params) {
    return this.server.request({ method, params }, ResultSchema).then(
      (result) => ({ result }),
      ({ code, message, data }) => ({ error: { code, message, data } }),
    );
  }

  /** @param {string} uri */
  async touched(uri) {
    for (const session of this.#options.sessions) {
      if (session.#subscriptions.has(uri)) await session.notify('notifications/resources/updated', { uri });
    }
  }

  /** @param {string} list @param {string} name */
  async grow(list, name) {
    this.#grown[list]?.push(name);
    await this.notify(`notifications/${list}/list_changed`);
  }

  // ---- what clients ask

  #answerTools() {
    const { server } = this;
    server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
      const own = Object.entries(TOOLS).map(([name, { definition }]) => ({
        name,
        description: `The tool ${name}`,
        inputSchema: { type: 'object' },
        ...definition,
      }));
      const grown = this.#grown.tools?.map((name) => ({ name, inputSchema: { type: 'object' } })) ?? [];
      return this.#page('tools', [...own, ...grown], params?.cursor);
    });
    server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => {
      const tool = TOOLS[params.name];
      if (tool === undefined) throw rpcError(ErrorCode.InvalidParams, `no tool ${params.name}`);
      return tool(params.arguments ?? {}, this.#call(params._meta, extra));
    });
  }

  /** @param {Record<string, unknown> | undefined} meta @param {any} extra */
  #call(meta, { requestId, signal }) {
    const related = this.#options.hasCallStreams ? { relatedRequestId: requestId } : {};
    return {
      progressToken: /** @type {string | number | undefined} */ (meta?.progressToken),
      meta,
      signal,
      pause: () => delay(BEFORE_ANSWER_MS),
      notify: (/** @type {string} */ method, /** @type {object | undefined} */ params) =>
        this.server.notification({ method, params }, related),
      ask: (/** @type {string} */ method, /** @type {object | undefined} */ params, timeout = 30_000) =>
        this.server.request({ method, params }, ResultSchema, { ...related, timeout }),
      session: this,
    };
  }

  #answerResources() {
    const { server } = this;
    server.setRequestHandler(ListResourcesRequestSchema, ({ params }) => {
      const grown = this.#grown.resources?.map((name) => ({ name, uri: `test://grown/${name}` })) ?? [];
      return this.#page('resources', [...RESOURCES, ...grown], params?.cursor);
    });
    server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: TEMPLATES }));
    server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
      const contents = contentsOf(uri);
      if (contents === undefined) throw rpcError(-32002, 'no such resource', { uri });
      return { contents: [contents] };
    });
    server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
      this.#subscriptions.add(params.uri);
      return {};
    });
    server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
      this.#subscriptions.delete(params.uri);
      return {};
    });
  }

  #answerPrompts() {
    const { server } = this;
    server.setRequestHandler(ListPromptsRequestSchema, ({ params }) => {
      const grown = this.#grown.prompts?.map((name) => ({ name })) ?? [];
      return this.#page('prompts', [...PROMPTS, ...grown], params?.cursor);
    });
    server.setRequestHandler(GetPromptRequestSchema, ({ params }) => {
      if (!PROMPTS.some(({ name }) => name === params.name)) {
        throw rpcError(ErrorCode.InvalidParams, `no prompt ${params.name}`);
      }
      return { messages: promptMessages(params.name, params.arguments ?? {}) };
    });
    server.setRequestHandler(CompleteRequestSchema, ({ params }) => ({
      completion: completionOf(params.argument.value, params.context?.arguments ?? {}),
    }));
  }

  #answerOthers() {
    const { server } = this;
    server.setRequestHandler(SetLevelRequestSchema, ({ params }) => {
      this.#minimumLevel = LEVELS.indexOf(params.level);
      return {};
    });
    server.setNotificationHandler(RootsListChangedNotificationSchema, async () => {
      this.note('answered', { marker: 'roots', answer: await this.ask('roots/list') });
    });
    server.fallbackRequestHandler = async ({ method, params }) => {
      if (method === RECORD) return this.#recordSince(params);
      if (method.startsWith('custom/'))
        return { method, params: params ?? null, _meta: { 'example.com/custom': true } };
      throw rpcError(ErrorCode.MethodNotFound, `no method ${method}`, { method });
    };
  }

  /** @param {Record<string, unknown> | undefined} params */
  #recordSince(params) {
    const { name, record } = this.#options;
    const since = Number(params?.since ?? 0);
    return { session: name, next: record.entries.length, entries: record.entries.slice(since) };
  }

  /** @param {string} list @param {readonly object[]} items @param {string | undefined} cursor */
  #page(list, items, cursor) {
    const found = pageOf(items, cursor);
    if (found === undefined) throw rpcError(ErrorCode.InvalidParams, 'not a cursor of this server', { cursor });
    const { page, nextCursor } = found;
    return { [list]: page, ...(nextCursor !== undefined && { nextCursor }) };
  }
}
