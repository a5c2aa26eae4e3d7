import type { Clock } from '../../deps.ts';
import { isConfigurable, isForwardTarget, pickHeaders } from '../headers.ts';
import { Agents, type AgentsOptions } from './agents.ts';
import type { CallerCredentials } from './caller-credentials.ts';
import { BearerTokenFile, type CredentialRenewal, type Credentials } from './credentials.ts';
import type { HttpCall, HttpExchangeHost, HttpHandler, HttpRequest, RequestHeaders } from './http-call.ts';
import { HttpExchange } from './http-exchange.ts';
import { type WebSocketOpener, WebSocketOpening, type WebSocketRequest } from './open-websocket.ts';

export interface HttpClientOptions extends AgentsOptions {
  /** Sent with every request; names that belong to HTTP framing or MCP are left out. */
  readonly headers: ReadonlyMap<string, string>;
  readonly bearerTokenFile: string | undefined;
  /** Used in place of a token file. They are shared between clients, so they are never closed here. */
  readonly credentials: Credentials | CallerCredentials | undefined;
  readonly userAgent: string;
  readonly clock: Clock;
}

/**
 * HTTP to one server: kept connections, proxies, TLS, time limits, redirects, credentials. Callbacks, no promises: it
 * carries every message.
 */
export class HttpClient implements HttpExchangeHost {
  readonly agents: Agents;
  readonly clock: Clock;
  readonly #baseHeaders: Readonly<Record<string, string>>;
  /** Of all requests alike; undefined: there are none, or each caller has its own. */
  readonly #credentials: Credentials | undefined;
  readonly #callers: CallerCredentials | undefined;
  /** The messages of a session are posted with the same headers. */
  #latest: { readonly own: object; readonly all: Readonly<Record<string, string>> } | undefined;
  #latestList: { readonly of: object; readonly list: readonly string[] } | undefined;

  /** Throws BridgeError ERR_CONFIG_OPTION when a certificate file cannot be used. */
  constructor(options: HttpClientOptions) {
    this.clock = options.clock;
    this.agents = new Agents(options);
    const { bearerTokenFile, credentials } = options;
    const all = bearerTokenFile === undefined ? credentials : new BearerTokenFile(bearerTokenFile);
    this.#callers = all !== undefined && 'of' in all ? all : undefined;
    this.#credentials = all !== undefined && 'of' in all ? undefined : all;
    this.#baseHeaders = {
      // Compressing a stream of small events costs latency, and a server may hold events back for it.
      'accept-encoding': 'identity',
      'user-agent': options.userAgent,
      ...pickHeaders(options.headers, isConfigurable),
    };
  }

  renewalOf(forwarded: RequestHeaders['forwarded']): CredentialRenewal | undefined {
    return this.#credentialsOf(forwarded)?.renewal;
  }

  #credentialsOf(forwarded: RequestHeaders['forwarded']): Credentials | undefined {
    return this.#callers === undefined ? this.#credentials : this.#callers.of(forwarded);
  }

  /**
   * A time limit for the server, in what is done for one caller. While credentials are renewed it does not run, and begins
   * anew afterwards.
   */
  afterLimit(limitMs: number, run: () => void, forwarded?: RequestHeaders['forwarded']): () => void {
    let cancel = (): void => {};
    const wait = (ms: number): void => {
      cancel = this.clock.after(ms, () => {
        const { lastUnderWayMs = Number.NEGATIVE_INFINITY } = this.renewalOf(forwarded) ?? {};
        const leftMs = lastUnderWayMs + limitMs - this.clock.now();
        if (leftMs > 0) wait(leftMs);
        else run();
      });
    };
    wait(limitMs);
    return () => cancel();
  }

  /** Errors come through the handler only, and never before this method has returned. */
  request(request: HttpRequest, handler: HttpHandler): HttpCall {
    return new HttpExchange(this, request, handler);
  }

  /** The opener hears nothing before this method has returned. */
  openWebSocket(request: WebSocketRequest, opener: WebSocketOpener): WebSocketOpening {
    return new WebSocketOpening(this, request, opener);
  }

  headersFor(url: URL, { method, headers, forwarded, cookies }: RequestHeaders): Readonly<Record<string, string>> {
    const shown = this.#credentialsOf(forwarded)?.show(method, url);
    const cookie = cookies.headerFor(url);
    if (forwarded === undefined && shown === undefined && cookie === undefined) return this.#withBase(headers);
    const passed = forwarded === undefined ? undefined : pickHeaders(Object.entries(forwarded), isForwardTarget);
    const all: Record<string, string> = { ...passed, ...this.#baseHeaders, ...headers, ...shown };
    if (cookie !== undefined) all.cookie = all.cookie === undefined ? cookie : `${all.cookie}; ${cookie}`;
    return all;
  }

  #withBase(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    if (this.#latest?.own !== headers) this.#latest = { own: headers, all: { ...this.#baseHeaders, ...headers } };
    return this.#latest.all;
  }

  listOf(headers: Readonly<Record<string, string>>): readonly string[] {
    if (this.#latestList?.of !== headers) this.#latestList = { of: headers, list: listHeaders(headers) };
    return this.#latestList.list;
  }

  /** Closes all connections, those in use included. */
  close(): void {
    this.agents.destroy();
  }
}

/**
 * The head of a request as a list of names and values in turn. Node writes a list as it is; of an object it checks and
 * copies each header first, to have it looked up and changed, which is a sixth of what a small request costs it.
 * Each header is there once: where names differ in case alone, the last counts, as Node has it with an object.
 */
export function listHeaders(headers: Readonly<Record<string, string>>): readonly string[] {
  const named = new Map<string, readonly [string, string]>();
  for (const [name, value] of Object.entries(headers)) named.set(name.toLowerCase(), [name, value]);
  return [...named.values()].flat();
}
