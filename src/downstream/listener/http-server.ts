import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { Server as NetServer } from 'node:net';
import type { BoundAddress, ListenAddress } from '../../config/listener.ts';
import type { Deps } from '../../deps.ts';
import { type BridgeError, type ErrorCode, toBridgeError } from '../../errors.ts';
import {
  type Admission,
  ALLOW_ANYONE,
  type Audience,
  type Authenticator,
  type AuthRefusal,
  passedCallerOf,
  principalOf,
  type Verdict,
} from '../../http/auth/callers.ts';
import type { AccessPolicy } from '../../http/server/access-policy.ts';
import type { CertificatePair } from '../../http/server/certificate-files.ts';
import { explainListenError, type Listening, type ListenOptionWords, listenAt } from '../../http/server/listen.ts';
import { boundAddress } from '../../http/server/listen-addresses.ts';
import { refusalOf, respondEmpty, respondError } from '../../http/server/respond.ts';
import { handleUpgrades } from '../../http/server/upgrades.ts';
import { showRequestTarget } from '../../http/shown-url.ts';
import { METHOD_HEADER, mergeEqualCopies } from '../../mcp/vocabulary/headers.ts';
import { LISTEN } from '../../mcp/vocabulary/methods.ts';
import { drained } from '../../relay/calls.ts';
import { AdmittedStreams } from './admitted-streams.ts';
import { OpenConnections } from './open-connections.ts';

/** Serves one path. Synchronous: slow work continues in callbacks. */
export type HttpRoute = (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => void;

/** Serves one path to everybody. It can ask if an authenticator would admit the caller. */
export type OpenRoute = (response: ServerResponse, askWhetherWelcome: AskWhetherWelcome) => void;
export type AskWhetherWelcome = (authenticator: Authenticator, told: (principal: string | undefined) => void) => void;

/** A route and the audience that may use it. */
export interface FoundRoute {
  readonly audience: Audience;
  readonly route: HttpRoute;
}

/** Finds the route of a request. */
export interface Router {
  /**
   * Returns the route if the path is open to monitors. Its requests have no Host or Origin check, since such a route
   * reveals and changes nothing.
   */
  findOpen(path: string): OpenRoute | undefined;
  /** Returns the route of any other path. Where nothing is served, it responds with an error. */
  find(request: IncomingMessage, path: string): FoundRoute;
}

export interface HttpServerOptions {
  readonly addresses: readonly ListenAddress[];
  /** Certificate for TCP ports; undefined: plain HTTP, which Unix sockets always use. */
  readonly certificate: CertificateSource | undefined;
  /** Writes the CORS headers of responses. */
  readonly cors: Pick<AccessPolicy, 'writeCors'>;
  readonly admission: Admission;
  /** Decides about requests over a Unix socket or a named pipe. */
  readonly socketAdmission: Admission;
  readonly router: Router;
  /** Links on which other replicas pass requests on; undefined: there are no other replicas. */
  readonly links: ReplicaLinks | undefined;
  /** Called for every rejected request, and for connections that were dropped at the limit. */
  readonly onRefused: OnRefused | undefined;
  readonly deps: Deps;
  readonly socketLimits?: SocketLimits;
  /** Names of the options for addresses in errors. */
  readonly words: ListenOptionWords;
}

/** Links that other replicas have opened, on which they pass requests on to this one. */
export interface ReplicaLinks {
  /** The protocol that a request for a link names in its Upgrade header. */
  readonly protocol: string;
  /** Returns true if the request asks for a link. `answer` checks that its sender is a replica. */
  isAskedFor(request: IncomingMessage): boolean;
  /** Answers a request for a link. The response stays open as long as the link. */
  answer(asked: AskedLink): void;
  /** Ends all links and the requests on them. */
  close(): void;
}

export interface AskedLink {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Largest head of a request that is passed on. */
  readonly maxHeaderBytes: number;
  /** Serves a request that was passed on like one that a client has sent to this replica. */
  readonly serve: RequestListener;
}

export type OnRefused = (reason: ErrorCode | 'connections') => void;

/** A certificate that may be renewed while it is served. */
export interface CertificateSource {
  readonly pair: CertificatePair;
  /** Returns the pair for new connections; undefined: it has not changed. */
  renewed(): CertificatePair | undefined;
}

/** Limits of connections, and of requests that are still arriving. */
export interface SocketLimits {
  /** Connections of all clients together; further ones are closed at once. */
  readonly maxConnections: number;
  /** Names, values and the request line together; Node itself responds with 431 to more. */
  readonly maxHeaderBytes: number;
  /** Time limit of the headers of each request on a connection, and of the TLS handshake before the first. */
  readonly headersTimeoutMs: number;
  /** Time limit of a whole request, its body included. */
  readonly requestTimeoutMs: number;
  /** Interval at which Node checks both time limits. */
  readonly checkIntervalMs: number;
}

/**
 * Connections: two for each possible call, plus those of open streams and monitors. Ten seconds are enough for headers
 * on any line. Five minutes are enough for a largest message from half a megabit per second on.
 */
export const SOCKET_LIMITS: SocketLimits = {
  maxConnections: 8192,
  maxHeaderBytes: 16 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 5 * 60_000,
  checkIntervalMs: 5000,
};

/** Longer than the idle timeout of common load balancers (60 s), so that they close a connection first. */
const KEEP_ALIVE_MS = 75_000;
/** At most one dropped connection is logged in this time. */
const DROP_LOG_PAUSE_MS = 60_000;
const NO_QUERY = new URLSearchParams();
/** A CORS preflight is answered by the headers that every response carries. */
const PREFLIGHT: FoundRoute = {
  audience: 'anybody',
  route: (_request, response) => respondEmpty(response, 204),
};

/** An address and the server that listens on it. */
interface ListeningServer {
  readonly address: ListenAddress;
  readonly server: Server;
}

/**
 * The arrival of a request: the admission that decides about it, and the set that its connection belongs to.
 * `connections` is undefined for a request that another replica passed on over a link.
 */
interface Arrival {
  readonly admission: Admission;
  readonly connections: OpenConnections | undefined;
}

/** The HTTP server of the bridge: the same paths at every address. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #servers: readonly ListeningServer[];
  readonly #connections: OpenConnections;
  /** Connections of the host application's server, if requests arrive there. */
  readonly #hostConnections: OpenConnections;
  readonly #admitted: AdmittedStreams;
  /** POSTs without a response, including those that other replicas have passed on. */
  #openPosts = 0;
  #listening: readonly Listening[] = [];
  #droppedAtMs = Number.NEGATIVE_INFINITY;
  /** True once responses tell clients that the connection closes (`Connection: close`). */
  #announcesEnd = false;
  /** Resolves when a listening socket fails. */
  readonly failed: Promise<BridgeError>;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#connections = new OpenConnections(options.deps.clock, 'us');
    this.#hostConnections = new OpenConnections(options.deps.clock, 'host');
    this.#admitted = new AdmittedStreams(options.deps.clock);
    const limits = options.socketLimits ?? SOCKET_LIMITS;
    const serverOptions = {
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      // If a header that must occur once occurs twice, Node would use the first value, while a proxy in front may have
      // used the last. Joined, they match no host, token or content type. [RFC 9110 5.3, RFC 9112 3.2]
      joinDuplicateHeaders: true,
    };
    // Each address gets its share, so that a flood at one of them leaves the others reachable.
    const maxConnections = Math.ceil(limits.maxConnections / Math.max(1, options.addresses.length));
    this.#servers = options.addresses.map((address) => {
      const { kind } = boundAddress(address);
      const admission = kind === 'socket' ? options.socketAdmission : options.admission;
      const arrival = { admission, connections: this.#connections };
      const handle: RequestListener = (request, response) => this.#handle(request, response, arrival);
      const server =
        options.certificate === undefined || kind === 'socket'
          ? createServer(serverOptions, handle)
          : createSecureServer(
              { ...serverOptions, handshakeTimeout: limits.headersTimeoutMs },
              options.certificate,
              handle,
            );
      server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
        continueInTurn(response);
        handle(request, response);
      });
      handleUpgrades(
        server,
        options.links === undefined ? ['websocket'] : ['websocket', options.links.protocol],
        handle,
      );
      server.maxConnections = maxConnections;
      // Headers are limited by bytes, not by number. At its default Node silently drops headers after the first
      // thousand, which could be those that a proxy has added, or the second copy of a header that must occur once.
      server.maxHeadersCount = 0;
      server.on('drop', () => this.#dropped(maxConnections));
      return { address, server };
    });
    // No listener is set for 'clientError': Node itself responds to invalid HTTP, unless a response has begun, and ends
    // the connection.
    this.failed = new Promise((resolve) => {
      for (const { address, server } of this.#servers) {
        server.on('error', (error) => {
          if (server.listening) resolve(explainListenError(error, address, options.words));
        });
      }
    });
  }

  /**
   * Starts listening. Resolves once connections are accepted, with the bound addresses. Rejects with ERR_CONFIG_LISTEN,
   * and then listens nowhere.
   */
  async listen(): Promise<readonly BoundAddress[]> {
    try {
      for (const { address, server } of this.#servers) {
        this.#listening = [...this.#listening, await listenAt(server, address, this.#options.words)];
      }
    } catch (error) {
      this.close();
      throw error;
    }
    this.#connections.watch();
    return this.#listening.map(({ bound }) => bound);
  }

  /** Serves a request that arrived at the host application's server, which keeps managing its connections. */
  handleOfHost(request: IncomingMessage, response: ServerResponse): void {
    this.#hostConnections.watch();
    this.#handle(request, response, { admission: this.#options.admission, connections: this.#hostConnections });
  }

  /**
   * From now on each response closes its connection. A connection that is closed while idle may be just about to bring
   * the next request, and its client could not tell if that was served.
   */
  announceEnd(): void {
    this.#announcesEnd = true;
  }

  #handle(request: IncomingMessage, response: ServerResponse, arrival: Arrival): void {
    this.#contain(response, () => this.#serve(request, response, arrival));
  }

  /** Turns an exception in the bridge into the failure of one request only. */
  #contain(response: ServerResponse, serve: () => void): void {
    try {
      serve();
    } catch (thrown) {
      const error = toBridgeError(thrown);
      this.#options.deps.log.error({ err: error.cause ?? error }, 'failed to serve a request');
      if (response.headersSent) response.destroy();
      else respondError(response, error);
    }
  }

  #serve(request: IncomingMessage, response: ServerResponse, { admission, connections }: Arrival): void {
    mergeEqualCopies(request.headers);
    this.#watch(request, response, connections);
    const { links } = this.#options;
    if (connections !== undefined) {
      if (links?.isAskedFor(request)) return this.#answerLink(links, request, response);
      if (this.#announcesEnd && request.headers.upgrade === undefined) response.setHeader('Connection', 'close');
    }
    const url = request.url ?? '/';
    const mark = url.indexOf('?');
    const path = mark < 0 ? url : url.slice(0, mark);
    const { router } = this.#options;
    const open = router.findOpen(path);
    if (open !== undefined) return open(response, (...asked) => askWhetherWelcome(admission, request, ...asked));
    const { audience, route } = request.method === 'OPTIONS' ? PREFLIGHT : router.find(request, path);
    // A request that another replica passes on arrives over a link and names its caller.
    const caller = connections === undefined ? passedCallerOf(request) : undefined;
    const decided = (verdict: Verdict): void => {
      // The client may have left while keys were fetched.
      if (response.destroyed) return;
      if (verdict.kind === 'foreign') return respondError(response, verdict.error);
      this.#options.cors.writeCors(request, response);
      if (verdict.kind === 'unauthenticated') return respondRefusal(response, verdict.refusal);
      const isChecked = audience !== 'anybody' && audience !== ALLOW_ANYONE && caller === undefined;
      if (isChecked && !endsSoon(request)) this.#admitted.add(request, response, audience);
      const query = mark < 0 ? NO_QUERY : new URLSearchParams(url.slice(mark + 1));
      this.#contain(response, () => route(request, response, query));
    };
    if (caller === undefined) admission.admit(request, audience, decided);
    else decided(admission.admitPassed(request, caller));
  }

  #answerLink(links: ReplicaLinks, request: IncomingMessage, response: ServerResponse): void {
    const { admission, socketLimits = SOCKET_LIMITS } = this.#options;
    const serve: RequestListener = (passed, answered) =>
      this.#handle(passed, answered, { admission, connections: undefined });
    links.answer({ request, response, maxHeaderBytes: socketLimits.maxHeaderBytes, serve });
  }

  /** Number of connections that have had a request. */
  get connections(): number {
    return this.#connections.size;
  }

  #dropped(maxConnections: number): void {
    this.#options.onRefused?.('connections');
    const nowMs = this.#options.deps.clock.now();
    if (nowMs - this.#droppedAtMs < DROP_LOG_PAUSE_MS) return;
    this.#droppedAtMs = nowMs;
    this.#options.deps.log.warn({ maxConnections }, `connection limit (${maxConnections}) reached; refusing new ones`);
  }

  #watch(request: IncomingMessage, response: ServerResponse, connections: OpenConnections | undefined): void {
    const { onRefused, deps } = this.#options;
    const { socket } = request;
    connections?.begin(socket, response);
    const isAwaited = endsWithAResponse(request);
    if (isAwaited) this.#openPosts += 1;
    // 'close' is emitted once. Removing the listener again would cost more than all it does.
    response.on('close', () => {
      connections?.end(socket, response);
      if (isAwaited) this.#openPosts -= 1;
      if (onRefused !== undefined) tellRefusal(response, onRefused);
    });
    if (deps.log.isLevelEnabled('debug')) logWhenClosed(request, response, deps);
  }

  /** Resolves when every POST has its response, or after `graceMs`. */
  answered(graceMs: number): Promise<void> {
    return drained(this.#options.deps.clock, graceMs, () => this.#openPosts > 0);
  }

  /** Stops accepting. Idle connections are closed, the others after their last response was sent. */
  stopAccepting(): void {
    // Remove the files before the servers close: while they are open, no other file can get the inode number of ours.
    this.removeSocketFiles();
    // Node's `http.Server.close` would cut connections whose response is complete but not sent yet.
    for (const { server } of this.#servers) NetServer.prototype.close.call(server);
    this.#connections.stop();
    this.#hostConnections.stop();
  }

  /** Destroys all open connections. */
  close(): void {
    this.#options.links?.close();
    this.#admitted.close();
    this.#hostConnections.close();
    this.removeSocketFiles();
    for (const { server } of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
    this.#connections.close();
  }

  /** Removes the socket files. Synchronous, so that it can also run when the process exits. May be called twice. */
  removeSocketFiles(): void {
    for (const { file } of this.#listening) file?.remove();
  }
}

/**
 * Creates a TLS server that reloads a renewed certificate. Established connections keep the certificate of their
 * handshake.
 */
function createSecureServer(options: ServerOptions, certificate: CertificateSource, handle: RequestListener): Server {
  const server = createTlsServer({ ...options, ...certificate.pair }, handle);
  // Runs before Node's own listener, which starts the handshake.
  server.prependListener('connection', () => {
    const pair = certificate.renewed();
    if (pair !== undefined) server.setSecureContext({ ...pair });
  });
  return server;
}

/**
 * Sends `100 Continue` when the response is the next on its connection. Node would write it at once, which with
 * pipelined requests puts it between the headers and the body of an earlier response.
 */
function continueInTurn(response: ServerResponse): void {
  if (response.socket !== null) return response.writeContinue();
  response.once('socket', () => {
    if (!response.headersSent) response.writeContinue();
  });
}

/**
 * Returns true for a POST that ends with its response. A subscription does not: its response lasts as long as the
 * client listens.
 */
function endsWithAResponse({ method, headers }: IncomingMessage): boolean {
  return method === 'POST' && headers[METHOD_HEADER] !== LISTEN;
}

/** Returns false for a stream, a WebSocket and a subscription, which stay open. */
function endsSoon(request: IncomingMessage): boolean {
  return request.method === 'DELETE' || endsWithAResponse(request);
}

function logWhenClosed(request: IncomingMessage, response: ServerResponse, { log, clock }: Deps): void {
  const startedMs = clock.now();
  response.on('close', () => {
    // The query is left out, since it may hold a session id.
    const path = showRequestTarget(request.url ?? '');
    const ms = Math.round(clock.now() - startedMs);
    log.debug({ method: request.method, path, status: response.statusCode, ms }, 'request');
  });
}

function tellRefusal(response: ServerResponse, onRefused: OnRefused): void {
  const reason = refusalOf(response);
  if (reason !== undefined) onRefused(reason);
}

function askWhetherWelcome(
  admission: Admission,
  request: IncomingMessage,
  ...[authenticator, told]: Parameters<AskWhetherWelcome>
): void {
  admission.admit(request, authenticator, ({ kind }) => told(kind === 'admitted' ? principalOf(request) : undefined));
}

function respondRefusal(response: ServerResponse, { error, challenge }: AuthRefusal): void {
  respondError(response, error, undefined, challenge === undefined ? {} : { 'WWW-Authenticate': challenge });
}
