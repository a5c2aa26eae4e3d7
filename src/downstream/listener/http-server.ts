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
  principalOf,
  type Verdict,
} from '../../http/auth/callers.ts';
import type { AccessPolicy } from '../../http/server/access-policy.ts';
import type { CertificatePair } from '../../http/server/certificate-files.ts';
import { explainListenError, HTTP_OPTIONS, type Listening, listenAt } from '../../http/server/listen.ts';
import { boundAddress } from '../../http/server/listen-addresses.ts';
import { refusalOf, respondEmpty, respondError } from '../../http/server/respond.ts';
import { handleUpgrades } from '../../http/server/upgrades.ts';
import { showRequestTarget } from '../../http/shown-url.ts';
import { METHOD_HEADER, mergeEqualCopies } from '../../mcp/vocabulary/headers.ts';
import { LISTEN } from '../../mcp/vocabulary/methods.ts';
import { drained } from '../../relay/exchanges.ts';
import { passedCallerOf } from '../cluster/hops.ts';
import type { OwnerLinks } from '../cluster/link/owner-links.ts';
import { LINK_PROTOCOL } from '../cluster/link/upgrade.ts';
import { AdmittedStreams } from './admitted-streams.ts';
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
  readonly addresses: readonly ListenAddress[];
  /** For ports; undefined: plain http, as it always is over a socket. */
  readonly certificate: CertificateSource | undefined;
  /** Tells browsers which pages may read what is answered. */
  readonly cors: Pick<AccessPolicy, 'writeCors'>;
  readonly admission: Admission;
  /** Judges those who come over a Unix socket or a named pipe. */
  readonly socketAdmission: Admission;
  readonly router: Router;
  /** On which other replicas pass requests on; undefined: there are none. */
  readonly links: OwnerLinks | undefined;
  /** Is told of every request that was refused, and of connections; undefined: nobody wants to know. */
  readonly onRefused: OnRefused | undefined;
  readonly deps: Deps;
  readonly socketLimits?: SocketLimits;
}

export type OnRefused = (reason: ErrorCode | 'connections') => void;

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

/** One of the addresses that are listened on. */
interface ListeningServer {
  readonly address: ListenAddress;
  readonly server: Server;
}

/** How a request came: who judges it, and which connections its own is among; undefined: it has come on a link. */
interface Arrival {
  readonly admission: Admission;
  readonly connections: OpenConnections | undefined;
}

/** The HTTP server of the bridge: the same paths at every address. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #servers: readonly ListeningServer[];
  readonly #connections: OpenConnections;
  /** Connections whose requests came to somebody else's server. */
  readonly #hostConnections: OpenConnections;
  readonly #admitted: AdmittedStreams;
  /** Those that other replicas have passed on included. */
  #openPosts = 0;
  #listening: readonly Listening[] = [];
  #droppedAtMs = Number.NEGATIVE_INFINITY;
  /** Whoever asks is told that its connection ends with the answer. */
  #announcesEnd = false;
  /** Resolves when a listening socket itself breaks. */
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
      // Where a header that must come once comes twice, Node would take the first, and a proxy before it may have taken
      // the last. Joined, the two are nobody's name, token or type. [RFC 9110 5.3, RFC 9112 3.2]
      joinDuplicateHeaders: true,
    };
    // Whoever floods one address leaves the others their part.
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
      handleUpgrades(server, options.links === undefined ? ['websocket'] : ['websocket', LINK_PROTOCOL], handle);
      server.maxConnections = maxConnections;
      // Their bytes are limited. By number Node would drop what comes after the first thousand without a word: what a
      // proxy has added, and the second of what must come once.
      server.maxHeadersCount = 0;
      server.on('drop', () => this.#dropped(maxConnections));
      return { address, server };
    });
    // No listener for 'clientError': Node answers what is no HTTP itself, unless a response has begun, and ends the connection.
    this.failed = new Promise((resolve) => {
      for (const { address, server } of this.#servers) {
        server.on('error', (error) => {
          if (server.listening) resolve(explainListenError(error, address, HTTP_OPTIONS));
        });
      }
    });
  }

  /**
   * Resolves once connections are accepted, with the addresses as they have become. Rejects with ERR_CONFIG_LISTEN, and
   * then listens nowhere.
   */
  async listen(): Promise<readonly BoundAddress[]> {
    try {
      for (const { address, server } of this.#servers) {
        this.#listening = [...this.#listening, await listenAt(server, address, HTTP_OPTIONS)];
      }
    } catch (error) {
      this.close();
      throw error;
    }
    this.#connections.watch();
    return this.#listening.map(({ bound }) => bound);
  }

  /** Serves a request that came to somebody else's server, which keeps its connections. */
  handleOfHost(request: IncomingMessage, response: ServerResponse): void {
    this.#hostConnections.watch();
    this.#handle(request, response, { admission: this.#options.admission, connections: this.#hostConnections });
  }

  /**
   * From now on no connection is used for a further request. One that is closed while nothing is under way may be just about
   * to bring the next request, of which nobody knows then whether it was served.
   */
  announceEnd(): void {
    this.#announcesEnd = true;
  }

  #handle(request: IncomingMessage, response: ServerResponse, arrival: Arrival): void {
    this.#contain(response, () => this.#serve(request, response, arrival));
  }

  /** A fault of the bridge itself is the end of one request, and of nobody else's. */
  #contain(response: ServerResponse, serve: () => void): void {
    try {
      serve();
    } catch (thrown) {
      const error = toBridgeError(thrown);
      this.#options.deps.log.error({ err: error.cause ?? error }, 'a request could not be served');
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
    // What another replica passes on comes on no connection of its own.
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

  #answerLink(links: OwnerLinks, request: IncomingMessage, response: ServerResponse): void {
    const { admission, socketLimits = SOCKET_LIMITS } = this.#options;
    const serve: RequestListener = (passed, answered) =>
      this.#handle(passed, answered, { admission, connections: undefined });
    links.answer({ request, response, maxHeaderBytes: socketLimits.maxHeaderBytes, serve });
  }

  /** Connections that have had a request. */
  get connections(): number {
    return this.#connections.size;
  }

  #dropped(maxConnections: number): void {
    this.#options.onRefused?.('connections');
    const nowMs = this.#options.deps.clock.now();
    if (nowMs - this.#droppedAtMs < DROP_LOG_PAUSE_MS) return;
    this.#droppedAtMs = nowMs;
    this.#options.deps.log.warn({ maxConnections }, 'connections are refused: as many as there may be are open');
  }

  #watch(request: IncomingMessage, response: ServerResponse, connections: OpenConnections | undefined): void {
    const { onRefused, deps } = this.#options;
    const { socket } = request;
    connections?.begin(socket, response);
    const isAwaited = endsWithAResponse(request);
    if (isAwaited) this.#openPosts += 1;
    // Comes once. To take the listener away again would cost more than all it does.
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

  /** Stops accepting; connections that carry nothing are closed, the others when their last answer is out. */
  stopAccepting(): void {
    // Before they close: as long as they are open, no other file can have got the number of ours.
    this.removeSocketFiles();
    // Not http's own close: that one cuts connections whose answer is complete but not sent yet.
    for (const { server } of this.#servers) NetServer.prototype.close.call(server);
    this.#connections.stop();
    this.#hostConnections.stop();
  }

  /** Cuts what is still connected. */
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

  /** Synchronous, for the end of the process, too. May be called twice. */
  removeSocketFiles(): void {
    for (const { file } of this.#listening) file?.remove();
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

/**
 * Asks for the body of a request when its response is the next on the connection. Node would write that at once, and behind
 * other responses it comes between the head and the body of this one.
 */
function continueInTurn(response: ServerResponse): void {
  if (response.socket !== null) return response.writeContinue();
  response.once('socket', () => {
    if (!response.headersSent) response.writeContinue();
  });
}

/** A subscription does not: its response lasts for as long as its client listens. */
function endsWithAResponse({ method, headers }: IncomingMessage): boolean {
  return method === 'POST' && headers[METHOD_HEADER] !== LISTEN;
}

/** A stream, a WebSocket and a subscription do not. */
function endsSoon(request: IncomingMessage): boolean {
  return request.method === 'DELETE' || endsWithAResponse(request);
}

function logWhenClosed(request: IncomingMessage, response: ServerResponse, { log, clock }: Deps): void {
  const startedMs = clock.now();
  response.on('close', () => {
    // Without the query: it may hold a session id.
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
