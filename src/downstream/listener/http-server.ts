import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { type AddressInfo, Server as NetServer } from 'node:net';
import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { Authenticator, AuthRefusal } from '../../http/auth/authenticator.ts';
import { principalOf } from '../../http/auth/callers.ts';
import type { AccessPolicy } from '../../http/server/access-policy.ts';
import type { CertificatePair } from '../../http/server/certificate-files.ts';
import { respondEmpty, respondError } from '../../http/server/respond.ts';
import { showRequestTarget } from '../../http/shown-url.ts';
import { type Hops, NOT_HERE_HEADER } from '../cluster/hops.ts';
import type { Admission, Audience } from './admission.ts';
import { OpenConnections } from './open-connections.ts';

/** Serves one path. Synchronous: whatever takes time goes on by callbacks. */
export type HttpRoute = (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => void;

/** Serves one path to everybody. Whether whoever asks would be let in by an authenticator is told when it is asked for. */
export type OpenRoute = (response: ServerResponse, askWhetherWelcome: AskWhetherWelcome) => void;
export type AskWhetherWelcome = (authenticator: Authenticator, told: (principal: string | undefined) => void) => void;

/** What serves a request, and for whom. */
export interface FoundRoute {
  readonly audience: Audience;
  readonly route: HttpRoute;
}

/** Knows what is served where. */
export interface Router {
  /** What is open to monitors: no Host or Origin check, it shows nothing and changes nothing. */
  findOpen(path: string): OpenRoute | undefined;
  /** Everything else; where nothing is served, something that says so. */
  find(request: IncomingMessage, path: string): FoundRoute;
}

export interface HttpServerOptions {
  readonly host: string;
  readonly port: number;
  /** Undefined: plain http. */
  readonly certificate: CertificateSource | undefined;
  /** Tells browsers which pages may read what is answered. */
  readonly cors: Pick<AccessPolicy, 'writeCors'>;
  readonly admission: Admission;
  readonly router: Router;
  /** Knows what other replicas pass on; undefined: there are none. */
  readonly hops: Hops | undefined;
  readonly deps: Deps;
  readonly socketLimits?: SocketLimits;
}

/** A certificate that may be renewed while it is served. */
export interface CertificateSource {
  readonly pair: CertificatePair;
  /** The pair for connections from now on; undefined: as before. */
  renewed(): CertificatePair | undefined;
}

/** What a connection may cost before it has brought a request. */
export interface SocketLimits {
  /** Limits the connections of all clients together; further ones are closed at once. */
  readonly maxConnections: number;
  /** Names, values and the request line together; more is answered 431 by Node itself. */
  readonly maxHeaderBytes: number;
  /** A head takes no longer, neither the first of a connection nor the next; nor does the handshake of TLS before it. */
  readonly headersTimeoutMs: number;
  /** A whole request takes no longer, its body included. */
  readonly requestTimeoutMs: number;
  /** How often both are looked for. */
  readonly checkIntervalMs: number;
}

/**
 * Connections: two for each call there may be, and what open streams and monitors need. Ten seconds are enough for a head on any
 * line; a largest message gets through in five minutes from half a megabit per second.
 */
export const SOCKET_LIMITS: SocketLimits = {
  maxConnections: 8192,
  maxHeaderBytes: 16 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 5 * 60_000,
  checkIntervalMs: 5000,
};

/** Longer than the idle time of common load balancers (60 s), so that they close a connection first, not we. */
const KEEP_ALIVE_MS = 75_000;
/** One line for all that are refused meanwhile. */
const DROP_LOG_PAUSE_MS = 60_000;
const NO_QUERY = new URLSearchParams();
/** Browsers that ask beforehand are told by the headers of every answer. */
const PREFLIGHT: FoundRoute = {
  audience: 'anybody',
  route: (_request, response) => respondEmpty(response, 204),
};

/** The HTTP server of the bridge: one listening socket, with every path on it. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #server: Server;
  readonly #connections: OpenConnections;
  #droppedAtMs = Number.NEGATIVE_INFINITY;
  /** Resolves when the listening socket itself breaks. */
  readonly failed: Promise<BridgeError>;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#connections = new OpenConnections(options.deps.clock);
    const limits = options.socketLimits ?? SOCKET_LIMITS;
    const serverOptions = {
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      // Where a header that must come once comes twice, Node would take the first, and a proxy before it may have taken
      // the last. Joined, the two are nobody's name, token or type. [RFC 9110 5.3, RFC 9112 3.2]
      joinDuplicateHeaders: true,
    };
    const handle: RequestListener = (request, response) => this.#handle(request, response);
    this.#server =
      options.certificate === undefined
        ? createServer(serverOptions, handle)
        : createSecureServer(
            { ...serverOptions, handshakeTimeout: limits.headersTimeoutMs },
            options.certificate,
            handle,
          );
    this.#server.maxConnections = limits.maxConnections;
    // Their bytes are limited. By number Node would drop what comes after the first thousand without a word: what a
    // proxy has added, and the second of what must come once.
    this.#server.maxHeadersCount = 0;
    this.#server.on('drop', () => this.#dropped());
    // No listener for 'clientError': Node answers what is no HTTP itself, unless a response is under way.
    this.failed = new Promise((resolve) => {
      this.#server.on('error', (error) => {
        if (this.#server.listening) resolve(listenError(error, options.host, options.port));
      });
    });
  }

  /** Resolves with the port once connections are accepted; rejects with ERR_CONFIG_LISTEN. */
  listen(): Promise<number> {
    const { host, port } = this.#options;
    return new Promise((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
      this.#server.listen(port, host, () => {
        this.#connections.watch();
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    this.#watch(request, response);
    const url = request.url ?? '/';
    const mark = url.indexOf('?');
    const path = mark < 0 ? url : url.slice(0, mark);
    const { router } = this.#options;
    const open = router.findOpen(path);
    if (open !== undefined) return open(response, (...asked) => this.#askWhetherWelcome(request, ...asked));
    const { audience, route } = request.method === 'OPTIONS' ? PREFLIGHT : router.find(request, path);
    // Who the caller is was found out where the request came in.
    const teller = this.#options.hops?.audienceOf(request) ?? audience;
    this.#options.admission.admit(request, teller, (verdict) => {
      // The client may have left while keys were fetched.
      if (response.destroyed) return;
      if (verdict.kind === 'foreign') return respondError(response, verdict.error);
      this.#options.cors.writeCors(request, response);
      if (verdict.kind === 'unauthenticated') return respondRefusal(response, verdict.refusal);
      route(request, response, mark < 0 ? NO_QUERY : new URLSearchParams(url.slice(mark + 1)));
    });
  }

  #askWhetherWelcome(request: IncomingMessage, ...[authenticator, told]: Parameters<AskWhetherWelcome>): void {
    this.#options.admission.admit(request, authenticator, ({ kind }) =>
      told(kind === 'admitted' ? principalOf(request) : undefined),
    );
  }

  #dropped(): void {
    const nowMs = this.#options.deps.clock.now();
    if (nowMs - this.#droppedAtMs < DROP_LOG_PAUSE_MS) return;
    this.#droppedAtMs = nowMs;
    const { maxConnections } = this.#server;
    this.#options.deps.log.warn({ maxConnections }, 'connections are refused: as many as there may be are open');
  }

  #watch(request: IncomingMessage, response: ServerResponse): void {
    const { log, clock } = this.#options.deps;
    const startedMs = clock.now();
    this.#connections.begin(request.socket, response);
    response.once('close', () => {
      this.#connections.end(request.socket, response);
      if (!log.isLevelEnabled('debug')) return;
      // Without the query: it may hold a session id.
      const path = showRequestTarget(request.url ?? '');
      const ms = Math.round(clock.now() - startedMs);
      log.debug({ method: request.method, path, status: response.statusCode, ms }, 'request');
    });
  }

  /** Stops accepting; connections that carry nothing are closed, the others when their last answer is out. */
  stopAccepting(): void {
    // Not http's own close: that one cuts connections whose answer is complete but not sent yet.
    NetServer.prototype.close.call(this.#server);
    this.#connections.stop();
  }

  /** Cuts what is still connected. */
  close(): void {
    this.#connections.close();
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Connections that are established go on with the certificate that they have begun with. */
function createSecureServer(options: ServerOptions, certificate: CertificateSource, handle: RequestListener): Server {
  const server = createTlsServer({ ...options, ...certificate.pair }, handle);
  // Before the listener of Node, which begins the handshake.
  server.prependListener('connection', () => {
    const pair = certificate.renewed();
    if (pair !== undefined) server.setSecureContext({ ...pair });
  });
  return server;
}

function respondRefusal(response: ServerResponse, { error, challenge }: AuthRefusal): void {
  // A replica that takes another for an earlier run of this one is told to look elsewhere.
  const headers = error.code === 'ERR_CLUSTER_HOP' ? { [NOT_HERE_HEADER]: '1' } : {};
  respondError(response, error, undefined, {
    ...headers,
    ...(challenge !== undefined && { 'WWW-Authenticate': challenge }),
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): BridgeError {
  const where = `${host}:${port}`;
  const cause = { cause: error };
  switch (error.code) {
    case 'EADDRINUSE':
      return new BridgeError(
        'ERR_CONFIG_LISTEN',
        `Port ${port} on ${host} is in use by another program; choose another with --port, or --port 0 for any free one.`,
        cause,
      );
    case 'EACCES':
      return new BridgeError(
        'ERR_CONFIG_LISTEN',
        `Not allowed to listen on ${where}; ports below 1024 need privileges, choose a higher one with --port.`,
        cause,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new BridgeError(
        'ERR_CONFIG_LISTEN',
        `${host} is no address of this machine; use --host 127.0.0.1, or 0.0.0.0 for every interface.`,
        cause,
      );
    default:
      return new BridgeError('ERR_CONFIG_LISTEN', `Cannot listen on ${where}: ${error.message}.`, cause);
  }
}
