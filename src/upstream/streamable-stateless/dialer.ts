import { BridgeError, SHUTTING_DOWN } from '../../errors.ts';
import { SessionCookies } from '../../http/client/cookies.ts';
import { showUrl } from '../../http/shown-url.ts';
import type { Exchange } from '../../relay/exchange.ts';
import type { CallContext, Readiness, ServerListener, UpstreamDialer, UpstreamLink } from '../../relay/ports.ts';
import { IdWarnings } from '../answer-ids.ts';
import { Reachability, type RemoteDialerOptions } from '../remote/remote-environment.ts';
import { StatelessLink, type StatelessServer } from './link.ts';
import { ToolHeaders } from './tool-headers.ts';

/**
 * Limit of open subscriptions at one server for all clients together. Each is a connection as long as its client lives.
 */
const MAX_SUBSCRIPTIONS = 1024;
/** Limit of principals whose tools are remembered. The least recently used is dropped. */
const MAX_PRINCIPALS = 256;

export interface StatelessDialerOptions extends RemoteDialerOptions {
  /**
   * Called when the server rejects a request in a way that no modern server does, which may mean that the server has
   * been replaced. Called before the rejection is passed on.
   */
  readonly doubted: (exchange: Exchange | undefined) => void;
}

/** Creates links to a modern server over Streamable HTTP, which has no sessions. */
export function createStatelessDialer(options: StatelessDialerOptions): UpstreamDialer {
  return new StatelessDialer(options);
}

class StatelessDialer implements UpstreamDialer, StatelessServer {
  readonly name: string;
  readonly #options: StatelessDialerOptions;
  readonly #reachability: Reachability;
  readonly #idWarnings: IdWarnings;
  readonly #links = new Set<UpstreamLink>();
  /** Headers of tools by principal, least recently used first. */
  readonly #tools = new Map<string, ToolHeaders>();
  #lastId = 0;
  #subscriptions = 0;
  #isClosed = false;

  constructor(options: StatelessDialerOptions) {
    this.name = showUrl(options.url);
    this.#options = options;
    this.#reachability = new Reachability(options.deps.clock);
    this.#idWarnings = new IdWarnings(this.name, options.deps.log);
  }

  /** Opens a link for a translation between the eras, about whose callers nothing is known. */
  dial(listener: ServerListener): UpstreamLink {
    return this.#open(listener, undefined, new ToolHeaders(this.#options.deps.clock, this.#options.deps.log));
  }

  dialCalls(listener: ServerListener, { principal, headers }: CallContext): UpstreamLink {
    return this.#open(listener, headers, this.#toolsOf(principal));
  }

  #open(listener: ServerListener, forwarded: CallContext['headers'], tools: ToolHeaders): UpstreamLink {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and opens no more sessions.');
    }
    const { deps, ...remote } = this.#options;
    // Cookies of one client are never sent with requests of another.
    const cookies = new SessionCookies();
    const environment = { ...remote, cookies, forwarded, idWarnings: this.#idWarnings, log: deps.log };
    const link = new StatelessLink({ environment, listener, tools, server: this });
    this.#links.add(link);
    return link;
  }

  /** Returns the known tools of a principal, since a server may offer different tools to each. */
  #toolsOf(principal: string): ToolHeaders {
    const { clock, log } = this.#options.deps;
    const tools = this.#tools.get(principal) ?? new ToolHeaders(clock, log);
    this.#tools.delete(principal);
    this.#tools.set(principal, tools);
    const [oldest] = this.#tools.keys();
    if (this.#tools.size > MAX_PRINCIPALS && oldest !== undefined) this.#tools.delete(oldest);
    return tools;
  }

  // ---- from the links

  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  random(): number {
    return Math.random();
  }

  reachable(error: BridgeError | undefined): void {
    this.#reachability.note(error);
  }

  doubted(exchange: Exchange | undefined): void {
    this.#options.doubted(exchange);
  }

  addSubscription(): boolean {
    if (this.#subscriptions >= MAX_SUBSCRIPTIONS) return false;
    this.#subscriptions += 1;
    return true;
  }

  removeSubscription(): void {
    this.#subscriptions -= 1;
  }

  left(link: UpstreamLink): void {
    this.#links.delete(link);
  }

  // ---- as a dialer

  readiness(): Readiness {
    return this.#reachability.readiness();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const link of [...this.#links]) link.close(SHUTTING_DOWN);
    this.#options.http.close();
  }

  killNow(): void {
    this.#isClosed = true;
    this.#options.http.close();
  }
}
