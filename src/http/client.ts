import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../deps.ts';
import type { BridgeError } from '../errors.ts';
import { Agents, type TlsFiles } from './agents.ts';
import { BearerTokenFile } from './bearer-token.ts';
import type { SessionCookies } from './cookies.ts';
import { HttpExchange } from './http-exchange.ts';
import type { CallTimeouts } from './phase-timer.ts';
import type { ProxyEnvironment } from './proxy.ts';
import { isConfigurable, isForwardable, pickHeaders } from './request-headers.ts';

export interface HttpClientOptions {
  /** Sent with every request; names that belong to HTTP framing or MCP are left out. */
  readonly headers: ReadonlyMap<string, string>;
  readonly bearerTokenFile: string | undefined;
  readonly tls: TlsFiles;
  readonly proxyEnv: ProxyEnvironment;
  readonly userAgent: string;
  readonly clock: Clock;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: URL;
  /** What the transport itself has to say; wins over everything else. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers of a client's own request; those that may not pass are left out, configured ones win over them. */
  readonly forwarded: Readonly<Record<string, string>> | undefined;
  readonly body: Buffer | undefined;
  readonly timeouts: CallTimeouts;
  readonly cookies: SessionCookies;
  /** Processing it twice does no harm. Only such a request is repeated when nobody knows whether it arrived. */
  readonly isRepeatable: boolean;
}

export interface ResponseHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Where it came from, after redirects. */
  readonly url: URL;
}

/** Whoever makes a request hears, in this order: `sent`, `response`, any number of `data`, then `end` or `error`. */
export interface HttpHandler {
  /** The whole request was handed to the system; not called when the answer came first. */
  sent(): void;
  response(head: ResponseHead): void;
  /** The receiver owns the bytes. */
  data(chunk: Buffer): void;
  end(): void;
  /** Ends the call instead of whatever would have followed; called once. */
  error(error: BridgeError): void;
}

/** A request under way. */
export interface HttpCall {
  /** Nothing more is said to the handler. May be called at any time, and twice. */
  abort(): void;
  /** Stop and go on reading the response; before it has come, too. */
  pause(): void;
  resume(): void;
}

/**
 * HTTP to one server: kept connections, proxies, TLS, time limits, redirects, credentials. Callbacks, no promises: it
 * carries every message.
 */
export class HttpClient {
  readonly agents: Agents;
  readonly clock: Clock;
  readonly #baseHeaders: Readonly<Record<string, string>>;
  readonly #token: BearerTokenFile | undefined;

  /** Throws BridgeError ERR_CONFIG_OPTION when a certificate file cannot be used. */
  constructor(options: HttpClientOptions) {
    this.clock = options.clock;
    this.agents = new Agents(options.tls, options.proxyEnv);
    this.#token = options.bearerTokenFile === undefined ? undefined : new BearerTokenFile(options.bearerTokenFile);
    this.#baseHeaders = {
      // Compressing a stream of small events costs latency, and a server may hold events back for it.
      'accept-encoding': 'identity',
      'user-agent': options.userAgent,
      ...pickHeaders(options.headers, isConfigurable),
    };
  }

  /** Faults come through the handler, never from here, and never before this has returned. */
  request(request: HttpRequest, handler: HttpHandler): HttpCall {
    return new HttpExchange(this, request, handler);
  }

  /** Everything that goes into the head of a request. Throws BridgeError ERR_UPSTREAM_AUTH without a usable token. */
  headersFor(
    url: URL,
    { headers, forwarded, cookies }: Pick<HttpRequest, 'headers' | 'forwarded' | 'cookies'>,
  ): Record<string, string> {
    const passed = forwarded === undefined ? undefined : pickHeaders(Object.entries(forwarded), isForwardable);
    const all: Record<string, string> = { ...passed, ...this.#baseHeaders, ...headers };
    if (this.#token !== undefined) all.authorization = `Bearer ${this.#token.current()}`;
    const cookie = cookies.headerFor(url);
    if (cookie !== undefined) all.cookie = all.cookie === undefined ? cookie : `${all.cookie}; ${cookie}`;
    return all;
  }

  /** Closes all connections, those in use included. */
  close(): void {
    this.agents.destroy();
  }
}
