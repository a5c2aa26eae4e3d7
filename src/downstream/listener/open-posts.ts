import type { IncomingMessage, ServerResponse } from 'node:http';
import { METHOD_HEADER } from '../../mcp/vocabulary/headers.ts';
import { LISTEN } from '../../mcp/vocabulary/methods.ts';

/**
 * POSTs whose responses are not complete. A subscription is none of them: its response lasts for as long as its client
 * listens.
 */
export class OpenPosts {
  #size = 0;

  get size(): number {
    return this.#size;
  }

  begin({ method, headers }: IncomingMessage, response: ServerResponse): void {
    if (method !== 'POST' || headers[METHOD_HEADER] === LISTEN) return;
    this.#size += 1;
    response.on('close', () => {
      this.#size -= 1;
    });
  }
}
