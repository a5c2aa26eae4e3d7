import type { Clock } from '../../deps.ts';
import { isConfigurable, isForwardTarget, pickHeaders } from '../headers.ts';
import { Agents, type AgentsOptions } from './agents.ts';
import type { CallerCredentials } from './caller-credentials.ts';
import { BearerTokenFile, type CredentialRenewal, type Credentials } from './credentials.ts';
import type { HttpCall, HttpExchangeHost, HttpHandler, HttpRequest, RequestHeaders } from './http-call.ts';
import { HttpExchange } from './http-exchange.ts';
import { type WebSocketOpener, WebSocketOpening, type WebSocketRequest } from './open-websocket.ts';

export interface HttpClientOptions extends AgentsOptions {
  /** Sent with every request. Names that belong to HTTP framing or MCP are left out. */
  readonly headers: ReadonlyMap<string, string>;
  readonly bearerTokenFile: string | undefined;
  /** Used if there is no token file. Other clients share these credentials, so this client never closes them. */
  readonly credentials: Credentials | CallerCredentials | undefined;
  readonly userAgent: string;
  readonly clock: Clock;
}

/**
 * An HTTP client for one server, with keep-alive connections, proxies, TLS, time limits, redirects and credentials. It
 * carries every message, so it uses callbacks instead of promises.
 */
export class HttpClient implements HttpExchangeHost {
  readonly agents: Agents;
  readonly clock: Clock;
  readonly #baseHeaders: Readonly<Record<string, string>>;
  /** The credentials of all requests. Undefined if there are none, or if each caller has its own. */
  readonly #credentials: Credentials | undefined;
  readonly #callers: CallerCredentials | undefined;
  /** The merged headers of the latest request. A session posts its messages with the same headers object. */
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
      // Compressing a stream of small events costs latency, and a server may delay events to compress them.
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
   * Runs a function when a time limit for the server expires, on behalf of one caller. The limit is suspended while
   * that caller's credentials are renewed, and starts anew afterward. Returns a function that cancels it.
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

  /** Sends a request. The handler gets all errors, and is not called before this method has returned. */
  request(request: HttpRequest, handler: HttpHandler): HttpCall {
    return new HttpExchange(this, request, handler);
  }

  /** Opens a WebSocket. The opener is not called before this method has returned. */
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
 * Returns the headers as a list in which names and values alternate. Node writes a list as it is; it checks and copies
 * each header of an object first, which takes a sixth of the time of a small request. Each header appears once: if
 * names differ only in case, the last one counts, as Node does with an object.
 */
export function listHeaders(headers: Readonly<Record<string, string>>): readonly string[] {
  const named = new Map<string, readonly [string, string]>();
  for (const [name, value] of Object.entries(headers)) named.set(name.toLowerCase(), [name, value]);
  return [...named.values()].flat();
}
