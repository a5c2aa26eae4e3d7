import { setTimeout as delay } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
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
import { Catalog, METHOD_NOT_FOUND, rpcError } from './catalog.js';
import { completionOf, EXTENSIONS, INSTRUCTIONS, isOwnMethod, TEMPLATES } from './content.js';

const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  logging: {},
  completions: {},
  experimental: { 'example.com/matrix': { yes: true } },
  extensions: EXTENSIONS,
};

const RECORD = 'test/record';

const LEVELS = LoggingLevelSchema.options;

/** The SDK's client forgets whom progress belongs to when it reads the answer in the same chunk. */
const BEFORE_ANSWER_MS = 20;

/** Of a resource that is not there, in this era. */
const RESOURCE_NOT_FOUND = -32002;

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
  #catalog = new Catalog();

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

  /** Between calls. @param {string} method @param {object} [params] */
  notify(method, params) {
    return this.server.notification({ method, params });
  }

  /** Between calls. @param {string} method @param {object} [params] */
  ask(method, params) {
    return this.#asked({ method, params });
  }

  /** @param {import('./tools.js').Question} question @param {object} [options] */
  #asked({ method, params }, options) {
    return this.server.request({ method, params }, ResultSchema, options).then(
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
    this.#catalog.grow(list, name);
    await this.notify(`notifications/${list}/list_changed`);
  }

  // ---- what clients ask

  #answerTools() {
    const { server } = this;
    server.setRequestHandler(ListToolsRequestSchema, ({ params }) => this.#catalog.page('tools', params?.cursor));
    server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) =>
      this.#catalog.tool(params.name)(params.arguments ?? {}, this.#call(params._meta, extra)),
    );
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
      ask: (/** @type {readonly import('./tools.js').Question[]} */ questions, timeout = 30_000) =>
        Promise.all(questions.map((question) => this.#asked(question, { ...related, timeout }))),
      loggedLevels: () => LEVELS.slice(this.#minimumLevel),
      session: this,
    };
  }

  #answerResources() {
    const { server } = this;
    server.setRequestHandler(ListResourcesRequestSchema, ({ params }) =>
      this.#catalog.page('resources', params?.cursor),
    );
    server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: TEMPLATES }));
    server.setRequestHandler(ReadResourceRequestSchema, ({ params }) =>
      this.#catalog.read(params.uri, RESOURCE_NOT_FOUND),
    );
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
    server.setRequestHandler(ListPromptsRequestSchema, ({ params }) => this.#catalog.page('prompts', params?.cursor));
    server.setRequestHandler(GetPromptRequestSchema, ({ params }) =>
      this.#catalog.prompt(params.name, params.arguments),
    );
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
      if (isOwnMethod(method)) return { method, params: params ?? null, _meta: { 'example.com/custom': true } };
      throw rpcError(METHOD_NOT_FOUND, `no method ${method}`, { method });
    };
  }

  /** @param {Record<string, unknown> | undefined} params */
  #recordSince(params) {
    const { name, record } = this.#options;
    const since = Number(params?.since ?? 0);
    return { session: name, next: record.entries.length, entries: record.entries.slice(since) };
  }
}
