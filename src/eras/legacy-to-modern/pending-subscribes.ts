import { INVALID_PARAMS } from '../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { ServerListener } from '../../relay/ports.ts';
import { errorFrame, resultFrame } from '../../wire/write-message.ts';

const REFUSED: RpcError = { code: INVALID_PARAMS, message: 'The server does not report changes of this resource.' };

/** Requests of the client that wait until the server has said whether it reports changes of a resource. */
export class PendingSubscribes {
  readonly #listener: ServerListener;
  readonly #waiting = new Map<string, Exchange[]>();

  constructor(listener: ServerListener) {
    this.#listener = listener;
  }

  add(uri: string, exchange: Exchange): void {
    const waiting = this.#waiting.get(uri);
    if (waiting === undefined) this.#waiting.set(uri, [exchange]);
    else waiting.push(exchange);
  }

  /** The URI nobody waits for any more now that this request is withdrawn. */
  withdraw(exchange: Exchange): string | undefined {
    for (const [uri, waiting] of this.#waiting) {
      const index = waiting.indexOf(exchange);
      if (index === -1) continue;
      waiting.splice(index, 1);
      if (waiting.length > 0) return undefined;
      this.#waiting.delete(uri);
      return uri;
    }
    return undefined;
  }

  grant(uri: string): void {
    for (const exchange of this.#take(uri)) this.#listener.fromServer(resultFrame(exchange.id, {}), exchange);
  }

  refuse(uri: string, error: RpcError = REFUSED): void {
    for (const exchange of this.#take(uri)) this.#listener.fromServer(errorFrame(exchange.id, error), exchange);
  }

  has(uri: string): boolean {
    return this.#waiting.has(uri);
  }

  #take(uri: string): readonly Exchange[] {
    const waiting = this.#waiting.get(uri) ?? [];
    this.#waiting.delete(uri);
    return waiting;
  }
}
