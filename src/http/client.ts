import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../deps.ts';
import type { BridgeError } from '../errors.ts';
import { Agents, type TlsFiles } from './agents.ts';
import { BearerTokenFile } from './bearer-token.ts';
import type { SessionCookies } from './cookies.ts';
import type { CredentialRenewal, Credentials } from './credentials.ts';
import { HttpExchange } from './http-exchange.ts';
import type { CallTimeouts } from './phase-timer.ts';
import type { ProxyEnvironment } from './proxy.ts';
import { isConfigurable, isForwardable, pickHeaders } from './request-headers.ts';

export interface HttpClientOptions {
  /** Sent with every request; names that belong to HTTP framing or MCP are left out. */
  readonly headers: ReadonlyMap<string, string>;
  readonly bearerTokenFile: string | undefined;
  /** In place of a token file. Shared between clients, so never closed here. */
  readonly credentials?: Credentials | undefined;
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
  readonly #credentials: Credentials | undefined;

  /** Throws BridgeError ERR_CONFIG_OPTION when a certificate file cannot be used. */
  constructor(options: HttpClientOptions) {
    this.clock = options.clock;
    this.agents = new Agents(options.tls, options.proxyEnv);
    const { bearerTokenFile, credentials } = options;
    this.#credentials = bearerTokenFile === undefined ? credentials : new BearerTokenFile(bearerTokenFile);
    this.#baseHeaders = {
      // Compressing a stream of small events costs latency, and a server may hold events back for it.
      'accept-encoding': 'identity',
      'user-agent': options.userAgent,
      ...pickHeaders(options.headers, isConfigurable),
    };
  }

  /** For credentials that can be got again. */
  get renewal(): CredentialRenewal | undefined {
    return this.#credentials?.renewal;
  }

  /** A time limit for the server. While a user logs in it does not run, and begins anew afterwards. */
  afterLimit(limitMs: number, run: () => void): () => void {
    let cancel = (): void => {};
    const wait = (): void => {
      cancel = this.clock.after(limitMs, () => (this.renewal?.isUnderWay === true ? wait() : run()));
    };
    wait();
    return () => cancel();
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
    const authorization = this.#credentials?.authorization();
    if (authorization !== undefined) all.authorization = authorization;
    const cookie = cookies.headerFor(url);
    if (cookie !== undefined) all.cookie = all.cookie === undefined ? cookie : `${all.cookie}; ${cookie}`;
    return all;
  }

  /** Closes all connections, those in use included. */
  close(): void {
    this.agents.destroy();
  }
}
