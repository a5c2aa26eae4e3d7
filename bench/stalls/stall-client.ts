/** A client that sends what it is given, and reads no more of the answer than its beginning. */
import { Agent, request } from 'node:http';
import type { Era } from '../load/workload.ts';

const MODERN_META =
  '"_meta":{"progressToken":"t","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"stalls","version":"1"}}';
const LEGACY_META = '"_meta":{"progressToken":"t"}';

export class StallClient {
  readonly meta: string;
  readonly #port: number;
  readonly #era: Era;
  readonly #agent = new Agent({ keepAlive: true });
  #session: Record<string, string> = {};
  #id = 1;

  private constructor(port: number, era: Era) {
    this.#port = port;
    this.#era = era;
    this.meta = era === 'modern' ? MODERN_META : LEGACY_META;
  }

  static async open(port: number, era: Era): Promise<StallClient> {
    const client = new StallClient(port, era);
    if (era === 'legacy') await client.#initialize();
    // The bridge has found out what it serves, and knows the tools.
    for (const [method, params] of [
      ['tools/list', ''],
      ['tools/call', '"name":"absorb","arguments":{},'],
    ]) {
      await client.send(
        `{"jsonrpc":"2.0","id":${client.nextId()},"method":"${method}","params":{${params}${client.meta}}}`,
      );
    }
    return client;
  }

  nextId(): number {
    this.#id += 1;
    return this.#id;
  }

  close(): void {
    this.#agent.destroy();
  }

  async #initialize(): Promise<void> {
    const params = '"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"stalls","version":"1"}';
    const session = await this.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{${params}}}`);
    this.#session = { 'Mcp-Session-Id': session ?? '' };
    await this.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  }

  /** Resolves when the response has ended, or its connection; with the session it opened. */
  send(message: string): Promise<string | undefined> {
    const body = Buffer.from(message);
    const ends = body.toString('latin1', 0, 300) + body.toString('latin1', Math.max(300, body.length - 600));
    const [, method = ''] = /"method":"([^"]*)"/.exec(ends) ?? [];
    const [, name = ''] = /"name":"([^"]*)","arguments"|"name":"(absorb)"/.exec(ends) ?? [];
    const modern = {
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...(method === 'tools/call' && { 'Mcp-Name': name || 'absorb' }),
    };
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': body.length,
      Accept: 'application/json, text/event-stream',
      ...(this.#era === 'modern' ? modern : this.#session),
    };
    return new Promise((resolve, reject) => {
      const options = {
        port: this.#port,
        host: '127.0.0.1',
        path: '/mcp',
        method: 'POST',
        agent: this.#agent,
        headers,
      };
      const posted = request(options, (response) => {
        response.resume();
        // A subscription goes on; its acknowledgment is all that is waited for.
        if (method === 'subscriptions/listen') response.once('data', () => response.destroy());
        response.on('close', () => resolve(response.headers['mcp-session-id'] as string | undefined));
      });
      posted.on('error', reject);
      posted.end(body);
    });
  }
}
