import { setTimeout as delay } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/server';
import { Catalog, INVALID_PARAMS, METHOD_NOT_FOUND, rpcError } from './catalog.js';
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
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

/** As in the legacy server. */
const BEFORE_ANSWER_MS = 20;

/** A state must come back as it was, whatever is in it. */
const STATE_PREFIX = 'state é"\\\u2028=&% ';

/**
 * What a server of the modern era has in common for all its requests: it has no sessions, so what grows grows for
 * everybody.
 */
export class ModernHost {
  #record;
  #name;
  #publish;
  catalog = new Catalog();

  /**
   * @param {object} options
   * @param {import('./record.js').ServerRecord} options.record
   * @param {(change: string) => void} options.publish tells the subscribers: a URI, or the name of a list
   */
  constructor({ record, publish }) {
    this.#record = record;
    this.#name = `process ${process.pid}`;
    this.#publish = publish;
  }

  /** @param {import('./record.js').Kind} kind @param {unknown} [value] */
  note(kind, value) {
    // Tests ask for the record again and again until something is there.
    const isQuestion = kind === 'message' && /** @type {{method?: string}} */ (value).method === RECORD;
    if (!isQuestion) this.#record.note(this.#name, kind, value);
  }

  /** @param {Record<string, unknown> | undefined} params */
  recordSince(params) {
    const { entries } = this.#record;
    return { session: this.#name, next: entries.length, entries: entries.slice(Number(params?.since ?? 0)) };
  }

  /** @param {string} uri */
  async touched(uri) {
    this.#publish(uri);
  }

  /** @param {string} list @param {string} name */
  async grow(list, name) {
    this.catalog.grow(list, name);
    this.#publish(list);
  }

  async notify() {
    throw new Error('this era has no notifications between calls but those of a subscription');
  }

  async ask() {
    throw new Error('this era has no questions between calls');
  }
}

/** Ends a call that is to be made again with what the client answers. */
class InputNeeded extends Error {
  /** @param {object} result */
  constructor(result) {
    super('input needed');
    this.result = result;
  }
}

/**
 * One server of the SDK v2, as its entries want it for each connection or request; made with the low-level class so that
 * methods it does not know can be answered.
 * @param {ModernHost} host
 */
export function createModernServer(host) {
  const info = { name: 'matrix-modern', version: '1.2.3' };
  const server = new Server(info, { capabilities: CAPABILITIES, instructions: INSTRUCTIONS });
  const { catalog } = host;

  server.setRequestHandler('tools/list', ({ params }) => catalog.page('tools', params?.cursor));
  server.setRequestHandler('tools/call', async ({ params }, ctx) => {
    try {
      return await catalog.tool(params.name)(params.arguments ?? {}, callOf(ctx, host));
    } catch (error) {
      if (error instanceof InputNeeded) return error.result;
      throw error;
    }
  });
  server.setRequestHandler('resources/list', ({ params }) => catalog.page('resources', params?.cursor));
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: TEMPLATES }));
  server.setRequestHandler('resources/read', ({ params }) => catalog.read(params.uri, INVALID_PARAMS));
  server.setRequestHandler('prompts/list', ({ params }) => catalog.page('prompts', params?.cursor));
  server.setRequestHandler('prompts/get', ({ params }) => catalog.prompt(params.name, params.arguments));
  server.setRequestHandler('completion/complete', ({ params }) => ({
    completion: completionOf(params.argument.value, params.context?.arguments ?? {}),
  }));
  server.fallbackRequestHandler = async ({ method, params }) => {
    if (method === RECORD) return host.recordSince(params);
    if (isOwnMethod(method)) return { method, params: params ?? null, _meta: { 'example.com/custom': true } };
    throw rpcError(METHOD_NOT_FOUND, `no method ${method}`, { method });
  };
  return server;
}

/** @param {any} ctx @param {ModernHost} host @returns {import('./tools.js').Call} */
function callOf({ mcpReq }, host) {
  const { _meta: meta, envelope, signal } = mcpReq;
  const level = LEVELS.indexOf(envelope?.[LOG_LEVEL]);
  return {
    progressToken: meta?.progressToken,
    meta,
    signal,
    pause: () => delay(BEFORE_ANSWER_MS),
    notify: (method, params) => mcpReq.notify({ method, params }),
    loggedLevels: () => (level === -1 ? [] : LEVELS.slice(level)),
    ask: rememberingAnswers(mcpReq),
    session: host,
  };
}

/**
 * Answers come with the repeated call, those of earlier rounds in its state; so a tool that asks runs from its beginning
 * each time, and meets the answers it was given before.
 * @param {any} mcpReq
 */
function rememberingAnswers({ inputResponses = {}, requestState }) {
  const answers = { ...readState(requestState()), ...inputResponses };
  let asked = 0;
  return async (/** @type {readonly import('./tools.js').Question[]} */ questions) => {
    const keyed = questions.map((question) => ({ key: `question ${asked++}`, question }));
    const open = keyed.filter(({ key }) => !Object.hasOwn(answers, key));
    if (open.length === 0) return keyed.map(({ key }) => ({ result: answers[key] }));
    throw new InputNeeded({
      resultType: 'input_required',
      inputRequests: Object.fromEntries(open.map(({ key, question }) => [key, question])),
      requestState: STATE_PREFIX + JSON.stringify(answers),
    });
  };
}

/** @param {string | undefined} state @returns {Record<string, unknown>} */
function readState(state) {
  if (state === undefined) return {};
  if (!state.startsWith(STATE_PREFIX)) throw rpcError(INVALID_PARAMS, 'not a state of this server');
  return JSON.parse(state.slice(STATE_PREFIX.length));
}
