import { CellMap } from '../collections/cell-map.ts';
import { isInteractive } from '../mcp/methods.ts';
import type { JsonRpcId } from '../wire/frame.ts';
import type { Exchange } from './exchange.ts';
import { OpenCalls } from './open-calls.ts';

/** The open exchanges of one client: found by id, by progress token, or by what a server's message most likely means. */
export class ExchangeTable {
  readonly #openCalls: OpenCalls;
  /** In the order they were opened. */
  readonly #byId = new CellMap<JsonRpcId, Exchange>();
  readonly #byToken = new CellMap<JsonRpcId, Exchange>();

  /** `openCalls` counts them together with those of other clients. */
  constructor(openCalls = new OpenCalls()) {
    this.#openCalls = openCalls;
  }

  get size(): number {
    return this.#byId.size;
  }

  has(id: JsonRpcId): boolean {
    return this.#byId.has(id);
  }

  add(exchange: Exchange): void {
    this.#byId.set(exchange.id, exchange);
    this.#openCalls.opened();
    if (exchange.progressToken !== undefined) this.#byToken.set(exchange.progressToken, exchange);
  }

  find(id: JsonRpcId): Exchange | undefined {
    return this.#byId.get(id);
  }

  findByToken(token: JsonRpcId): Exchange | undefined {
    return this.#byToken.get(token);
  }

  remove(exchange: Exchange): void {
    if (!this.#byId.delete(exchange.id)) return;
    this.#openCalls.closed();
    // A client that uses one token twice keeps the later call reachable.
    if (exchange.progressToken !== undefined && this.#byToken.get(exchange.progressToken) === exchange) {
      this.#byToken.delete(exchange.progressToken);
    }
  }

  /** The only open exchange, if there is exactly one. */
  sole(): Exchange | undefined {
    if (this.#byId.size !== 1) return undefined;
    for (const exchange of this.#byId.values()) return exchange;
    return undefined;
  }

  /**
   * The exchange that a request of the server most likely belongs to: stdio carries no such link. Interactive calls
   * first, of those the latest that is not already waiting for the client.
   */
  likelyAsker(): Exchange | undefined {
    let best: Exchange | undefined;
    let bestRank = -1;
    for (const exchange of this.#byId.values()) {
      const rank = (isInteractive(exchange.method) ? 2 : 0) + (exchange.openQuestions === 0 ? 1 : 0);
      if (rank >= bestRank) {
        best = exchange;
        bestRank = rank;
      }
    }
    return best;
  }

  /** A copy: callers remove while they walk. */
  all(): readonly Exchange[] {
    return [...this.#byId.values()];
  }
}
