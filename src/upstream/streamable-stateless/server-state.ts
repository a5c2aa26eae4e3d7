import type { Deps } from '../../deps.ts';
import type { Exchange } from '../../relay/exchange.ts';
import { ToolHeaders } from './tool-headers.ts';

/**
 * Limit of open subscriptions at one server for all clients together. Each is a connection as long as its client lives.
 */
const MAX_SUBSCRIPTIONS = 1024;
/** Limit of principals whose tools are remembered. The least recently used is dropped. */
const MAX_PRINCIPALS = 256;

type Doubted = (exchange: Exchange | undefined) => void;

/** State shared by all links to one server. */
export class StatelessServer {
  /**
   * Call this when the server rejects a client's request in a way that no modern server does, before the rejection is
   * passed on.
   */
  readonly doubted: Doubted;
  readonly #deps: Pick<Deps, 'clock' | 'log'>;
  /** Headers of tools by principal, least recently used first. */
  readonly #tools = new Map<string, ToolHeaders>();
  #lastId = 0;
  #subscriptions = 0;

  constructor(deps: Pick<Deps, 'clock' | 'log'>, doubted: Doubted) {
    this.#deps = deps;
    this.doubted = doubted;
  }

  /** Returns the known tools of a principal, since a server may offer different tools to each. */
  toolsOf(principal: string | undefined): ToolHeaders {
    const known = principal === undefined ? undefined : this.#tools.get(principal);
    const tools = known ?? new ToolHeaders(this.#deps.clock, this.#deps.log);
    if (principal === undefined) return tools;
    this.#tools.delete(principal);
    this.#tools.set(principal, tools);
    const [oldest] = this.#tools.keys();
    if (this.#tools.size > MAX_PRINCIPALS && oldest !== undefined) this.#tools.delete(oldest);
    return tools;
  }

  /** Returns an id for a request, which is never used twice. */
  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  /** Returns a random number from 0 to 1. */
  random(): number {
    return Math.random();
  }

  /**
   * Counts a new subscription. Returns false if the server has as many as are allowed. Each counted one has to be
   * removed.
   */
  addSubscription(): boolean {
    if (this.#subscriptions >= MAX_SUBSCRIPTIONS) return false;
    this.#subscriptions += 1;
    return true;
  }

  removeSubscription(): void {
    this.#subscriptions -= 1;
  }
}
