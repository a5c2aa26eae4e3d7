import type { MessageFacts } from '../../src/recording/recorded-message.ts';

/** Writes the server's side of a recording, message by message. */
export class RecordingScript {
  readonly #lines: string[] = [];
  readonly #common: Partial<MessageFacts>;
  #seq = 0;
  #atMs = Date.UTC(2026, 10, 28);

  constructor(common: Partial<MessageFacts> = {}) {
    this.#common = common;
  }

  /** Time that passes before the next message. */
  after(ms: number): this {
    this.#atMs += ms;
    return this;
  }

  /** A message of the bridge to the server. */
  sent(message: object | string, facts: Partial<MessageFacts> = {}): this {
    return this.#add(message, { direction: 'out', ...facts });
  }

  /** A message of the server to the bridge. */
  received(message: object | string, facts: Partial<MessageFacts> = {}): this {
    return this.#add(message, { direction: 'in', ...facts });
  }

  /** A request and its answer. */
  exchange(
    id: number,
    method: string,
    params: object | undefined,
    result: object,
    facts: Partial<MessageFacts> = {},
  ): this {
    this.sent(request(id, method, params), facts);
    return this.received({ jsonrpc: '2.0', id, result }, facts);
  }

  /** The handshake of a legacy server with tools. */
  handshake(id = 0, revision = '2025-11-25'): this {
    const clientInfo = { name: 'recorded', version: '1' };
    const capabilities = { tools: { listChanged: true }, prompts: {}, resources: { subscribe: true } };
    const result = { protocolVersion: revision, capabilities, serverInfo: { name: 'recorded-server', version: '7' } };
    this.exchange(id, 'initialize', { protocolVersion: revision, capabilities: {}, clientInfo }, result);
    return this.sent({ jsonrpc: '2.0', method: 'notifications/initialized' });
  }

  /** The discovery of a modern server with tools. */
  discovery(id = 0): this {
    const result = {
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: { listChanged: true } },
      ttlMs: 0,
      cacheScope: 'private',
    };
    return this.exchange(id, 'server/discover', { _meta: META }, result, { era: 'modern' });
  }

  /** A line as it is. */
  raw(line: string): this {
    this.#lines.push(line);
    return this;
  }

  get text(): string {
    return this.#lines.map((line) => `${line}\n`).join('');
  }

  #add(message: object | string, facts: Partial<MessageFacts>): this {
    const text = typeof message === 'string' ? message : JSON.stringify(message);
    this.#seq += 1;
    const known = {
      at: new Date(this.#atMs).toISOString(),
      seq: this.#seq,
      side: 'server',
      direction: 'in',
      server: 'demo',
      session: 'c1',
      carrier: 'stdio',
      era: 'legacy',
      bytes: text.length,
    } as const;
    return this.raw(`${JSON.stringify({ ...known, ...this.#common, ...facts }).slice(0, -1)},"message":${text}}`);
  }
}

/** The `_meta` of a modern request. */
export const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, sampling: {} },
};

export function request(id: number | string, method: string, params?: object): object {
  return { jsonrpc: '2.0', id, method, ...(params && { params }) };
}

export function toolCall(id: number | string, name: string, args: object = {}, meta?: object): object {
  return request(id, 'tools/call', { name, arguments: args, ...(meta && { _meta: meta }) });
}

export function result(id: number | string, text: string): object {
  return { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } };
}

/** The same of a modern server. */
export function modernResult(id: number | string, members: object): object {
  return { jsonrpc: '2.0', id, result: { resultType: 'complete', ...members } };
}

export function notification(method: string, params?: object): object {
  return { jsonrpc: '2.0', method, ...(params && { params }) };
}
