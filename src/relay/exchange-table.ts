import { CellMap } from '../collections/cell-map.ts';
import { BridgeError } from '../errors.ts';
import { INITIALIZE, isInteractive } from '../mcp/vocabulary/methods.ts';
import type { JsonRpcId } from '../wire/frame.ts';
import type { Exchange } from './exchange.ts';

/** Calls one client may have open at once; a client that exceeds it is not waiting for answers. */
export const MAX_OPEN_EXCHANGES = 1024;
/** Some ways to a server keep an `initialize` as long as its session. Clients say who they are in some hundred bytes. */
export const MAX_INITIALIZE_BYTES = 1024 * 1024;

export const INITIALIZE_TOO_LARGE = new BridgeError(
  'ERR_WIRE_FRAME_TOO_LARGE',
  `An initialize has ${MAX_INITIALIZE_BYTES} bytes at most: it is kept with its session. Leave out of it what no server needs.`,
);

/** The open exchanges of one client: found by id, by progress token, or by what a server's message most likely means. */
export class ExchangeTable {
  readonly #maxOpen: number;
  /** The exchanges in the order they were opened. */
  readonly #byId = new CellMap<JsonRpcId, Exchange>();
  readonly #byToken = new CellMap<JsonRpcId, Exchange>();

  constructor(maxOpen = MAX_OPEN_EXCHANGES) {
    this.#maxOpen = maxOpen;
  }

  get size(): number {
    return this.#byId.size;
  }

  has(id: JsonRpcId): boolean {
    return this.#byId.has(id);
  }

  /** Why this one cannot be added; undefined: it can. */
  refusalOf({ id, method, requestBytes }: Exchange): BridgeError | undefined {
    if (this.has(id)) {
      const message = `Request id ${JSON.stringify(id)} is already in use by a call that has not been answered; use a new id for each request.`;
      return new BridgeError('ERR_WIRE_MESSAGE', message);
    }
    if (this.size >= this.#maxOpen) {
      const message = `This session has ${this.#maxOpen} unanswered calls, the most allowed; wait for answers before sending more.`;
      return new BridgeError('ERR_SESSION_BUSY', message);
    }
    return method === INITIALIZE && requestBytes > MAX_INITIALIZE_BYTES ? INITIALIZE_TOO_LARGE : undefined;
  }

  add(exchange: Exchange): void {
    this.#byId.set(exchange.id, exchange);
    if (exchange.progressToken !== undefined) this.#byToken.set(exchange.progressToken, exchange);
  }

  find(id: JsonRpcId): Exchange | undefined {
    return this.#byId.get(id);
  }

  findByToken(token: JsonRpcId): Exchange | undefined {
    return this.#byToken.get(token);
  }

  remove(exchange: Exchange): void {
    this.#byId.delete(exchange.id);
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
