import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { TcpAddress } from '../../config/listener.ts';
import type { Deps } from '../../deps.ts';
import { assertNever, type BridgeError } from '../../errors.ts';
import {
  HEALTH_CHECK_PATH,
  HEALTH_WATCH_PATH,
  isGrpc,
  SESSION_PATH,
  SESSION_SERVICE,
} from '../../grpc/session-service.ts';
import { type GrpcStatus, STATUS } from '../../grpc/status.ts';
import { type Admission, ALLOW_ANYONE, type Authenticator, type Verdict } from '../../http/auth/callers.ts';
import type { CertificatePair } from '../../http/server/certificate-files.ts';
import { explainListenError, type ListenOptionWords, listenAt } from '../../http/server/listen.ts';
import { AdmittedStreams } from '../listener/admitted-streams.ts';
import type { CertificateSource, OnRefused } from '../listener/http-server.ts';
import { GrpcCall } from './call.ts';
import { HealthService } from './health.ts';

/** Connections at one port. Many clients share one, and a client may reconnect before its previous one has closed. */
export const MAX_CONNECTIONS = 512;
/** Streams at a time on one connection. The client's own library makes further calls wait. */
export const MAX_STREAMS_PER_CONNECTION = 128;
/** Bytes of a stream that may arrive before they are read. */
const STREAM_WINDOW_BYTES = 256 * 1024;
/** Bytes of all streams of a connection that may be on their way. */
const CONNECTION_WINDOW_BYTES = 1024 * 1024;
/** Time for the first stream of a connection. Clients connect when they have something to send. */
export const FIRST_STREAM_MS = 10_000;
/** A connection without a stream is closed after this time. Clients open another one when they need it. */
export const IDLE_MS = 60_000;
/** Interval at which connections are looked at: idle ones are closed, silent ones are pinged. */
const CHECK_MS = 5000;
/** Silence after which a client is pinged, so that one that has vanished is noticed. */
export const PING_MS = 25_000;
/** After this many pings without a byte in return the client counts as gone. */
const MAX_MISSED_PINGS = 2;
/** Time limit of a TLS handshake. */
const HANDSHAKE_MS = 10_000;
/** TCP keep-alive interval. */
const TCP_KEEP_ALIVE_MS = 30_000;
/** At most one refused connection is logged in this time. */
const REFUSAL_LOG_PAUSE_MS = 60_000;

/** The server that a port leads to. */
export interface GrpcRoute {
  readonly authenticator: Authenticator;
  /** True if a session could be opened now. */
  readonly isServing: boolean;
  /** Serves a call whose caller was admitted. */
  serve(call: GrpcCall): void;
}

/** A port with the server that it leads to, which may change while the port is open. */
export interface GrpcPlace {
  readonly address: TcpAddress;
  readonly route: GrpcRoute;
}

export interface GrpcListenerOptions {
  readonly places: readonly GrpcPlace[];
  /** Undefined: connections are not encrypted. */
  readonly certificate: CertificateSource | undefined;
  readonly admission: Admission;
  /** Limit for the metadata of a call. */
  readonly maxHeaderBytes: number;
  /** Called for every call that was refused, and for connections that were dropped at the limit. */
  readonly onRefused: OnRefused | undefined;
  readonly deps: Deps;
  /** Names of the options for addresses in errors. */
  readonly words: ListenOptionWords;
}

interface Port extends GrpcPlace {
  readonly server: Http2Server | Http2SecureServer;
  readonly health: HealthService;
}

/** A connection of a client, which may have several streams. */
class ClientConnection {
  readonly session: ServerHttp2Session;
  streams = 0;
  /** Time of the connection, or of the end of its latest stream. */
  idleSinceMs: number;
  hasHadStream = false;
  bytesSeen = 0;
  heardAtMs: number;
  missedPings = 0;

  constructor(session: ServerHttp2Session, nowMs: number) {
    this.session = session;
    this.idleSinceMs = nowMs;
    this.heardAtMs = nowMs;
  }
}

/** Listens for clients that speak gRPC: sessions of MCP, and health checks. */
export class GrpcListener {
  readonly #options: GrpcListenerOptions;
  readonly #ports: readonly Port[];
  readonly #connections = new Map<Http2Session, ClientConnection>();
  readonly #admitted: AdmittedStreams;
  #stopChecking: (() => void) | undefined;
  #isEnding = false;
  #refusalToldAtMs = Number.NEGATIVE_INFINITY;
  /** Resolves when a listening socket fails. */
  readonly failed: Promise<BridgeError>;

  constructor(options: GrpcListenerOptions) {
    this.#options = options;
    this.#admitted = new AdmittedStreams(options.deps.clock);
    this.#ports = options.places.map((place) => this.#create(place));
    this.failed = new Promise((resolve) => {
      for (const { address, server } of this.#ports) {
        server.on('error', (error) => {
          if (server.listening) resolve(explainListenError(error, address, options.words));
        });
      }
    });
  }

  #create(place: GrpcPlace): Port {
    const { certificate, maxHeaderBytes, deps } = this.#options;
    const options = {
      settings: {
        enablePush: false,
        initialWindowSize: STREAM_WINDOW_BYTES,
        maxConcurrentStreams: MAX_STREAMS_PER_CONNECTION,
        maxHeaderListSize: maxHeaderBytes,
      },
      ...{ noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS },
    };
    const server = certificate === undefined ? createServer(options) : createEncryptedServer(options, certificate);
    const isServing = (): boolean => !this.#isEnding && place.route.isServing;
    const port: Port = { ...place, server, health: new HealthService({ isServing, clock: deps.clock }) };
    server.maxConnections = MAX_CONNECTIONS;
    server.on('drop', () => this.#dropped());
    server.on('session', (session) => this.#accept(session));
    const arrived = (
      stream: ServerHttp2Stream,
      headers: IncomingHttpHeaders,
      _flags: number,
      rawHeaders: readonly string[],
    ): void => this.#arrived(port, stream, headers, rawHeaders);
    server.on('stream', arrived);
    return port;
  }

  #dropped(): void {
    const { onRefused, deps } = this.#options;
    onRefused?.('connections');
    const nowMs = deps.clock.now();
    if (nowMs - this.#refusalToldAtMs < REFUSAL_LOG_PAUSE_MS) return;
    this.#refusalToldAtMs = nowMs;
    deps.log.warn({ maxConnections: MAX_CONNECTIONS }, 'the limit of gRPC connections is reached; refusing new ones');
  }

  // ---- connections

  #accept(session: ServerHttp2Session): void {
    const { clock, log } = this.#options.deps;
    // After an error the session closes, and its streams with it. Peers cause most of them.
    session.on('error', (error) => log.debug({ err: error }, 'a gRPC connection broke'));
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    this.#connections.set(session, new ClientConnection(session, clock.now()));
    this.#stopChecking ??= clock.every(CHECK_MS, () => this.#check());
    session.once('close', () => {
      this.#connections.delete(session);
      if (this.#connections.size === 0) this.#stopCheck();
    });
  }

  #check(): void {
    const nowMs = this.#options.deps.clock.now();
    for (const connection of [...this.#connections.values()]) {
      if (connection.session.destroyed) continue;
      if (connection.streams > 0) this.#checkLife(connection, nowMs);
      else if (nowMs - connection.idleSinceMs >= (connection.hasHadStream ? IDLE_MS : FIRST_STREAM_MS)) {
        // A peer that has not even sent the preface of HTTP/2 would not end its connection.
        if (connection.hasHadStream) connection.session.close();
        else connection.session.destroy();
      }
    }
  }

  #checkLife(connection: ClientConnection, nowMs: number): void {
    const { session } = connection;
    const { bytesRead } = session.socket;
    if (bytesRead !== connection.bytesSeen) {
      connection.bytesSeen = bytesRead;
      connection.heardAtMs = nowMs;
      connection.missedPings = 0;
    }
    if (nowMs - connection.heardAtMs < PING_MS * (connection.missedPings + 1)) return;
    if (connection.missedPings >= MAX_MISSED_PINGS) {
      this.#options.deps.log.debug('a gRPC client answered no pings and was given up');
      return session.destroy();
    }
    connection.missedPings += 1;
    session.ping(() => {});
  }

  #stopCheck(): void {
    this.#stopChecking?.();
    this.#stopChecking = undefined;
  }

  // ---- calls

  #arrived(port: Port, stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: readonly string[]): void {
    const { clock, log } = this.#options.deps;
    const { session } = stream;
    const connection = session === undefined ? undefined : this.#connections.get(session);
    stream.on('error', (error) => log.debug({ err: error }, 'a gRPC stream broke'));
    if (connection === undefined) return void stream.destroy();
    connection.streams += 1;
    connection.hasHadStream = true;
    stream.once('close', () => {
      connection.streams -= 1;
      connection.idleSinceMs = clock.now();
    });
    const call = new GrpcCall(stream, { headers, rawHeaders }, clock);
    if (headers[':method'] !== 'POST') return call.respond(405);
    if (!isGrpc(headers['content-type'])) return call.respond(415);
    switch (call.path) {
      case SESSION_PATH:
        return this.#admit(port, call);
      case HEALTH_CHECK_PATH:
        return port.health.check(call);
      case HEALTH_WATCH_PATH:
        return port.health.watch(call);
      default:
        return call.end(UNKNOWN_METHOD);
    }
  }

  #admit({ route }: Port, call: GrpcCall): void {
    const { authenticator } = route;
    this.#options.admission.admit(call.request, authenticator, (verdict) => {
      if (call.isOver) return;
      const refusal = refusalOf(verdict);
      if (refusal !== undefined) {
        this.#options.onRefused?.(refusal.code);
        return call.refuse(refusal);
      }
      if (authenticator !== ALLOW_ANYONE) this.#admitted.add(call.request, call.stream, authenticator);
      route.serve(call);
    });
  }

  // ---- the end

  /**
   * Starts listening. Resolves once connections are accepted, with the bound addresses. Rejects with ERR_CONFIG_LISTEN,
   * and then listens nowhere.
   */
  async listen(): Promise<readonly TcpAddress[]> {
    const bound: TcpAddress[] = [];
    try {
      for (const { address, server } of this.#ports) {
        const listening = await listenAt(server, address, this.#options.words);
        if (listening.bound.kind === 'tcp') bound.push(listening.bound);
      }
    } catch (error) {
      this.close();
      throw error;
    }
    return bound;
  }

  /** Takes no new connections, and tells watchers that the end is near. Open streams continue. */
  stopAccepting(): void {
    this.#isEnding = true;
    for (const { server, health } of this.#ports) {
      server.close();
      health.close();
    }
  }

  /** Stops accepting and destroys all open connections. */
  close(): void {
    this.stopAccepting();
    this.#admitted.close();
    this.#stopCheck();
    for (const session of [...this.#connections.keys()]) session.destroy();
  }
}

function refusalOf(verdict: Verdict): BridgeError | undefined {
  switch (verdict.kind) {
    case 'admitted':
      return undefined;
    case 'foreign':
      return verdict.error;
    case 'unauthenticated':
      return verdict.refusal.error;
    default:
      return assertNever(verdict);
  }
}

/**
 * Creates a TLS server that reloads a renewed certificate. Established connections keep the certificate of their
 * handshake.
 */
function createEncryptedServer(
  options: Parameters<typeof createServer>[0],
  certificate: CertificateSource,
): Http2SecureServer {
  let used: CertificatePair = certificate.pair;
  const server = createSecureServer({ ...options, ...used, handshakeTimeout: HANDSHAKE_MS });
  // Runs before Node's own listener, which starts the handshake.
  server.prependListener('connection', (_socket: Socket) => {
    certificate.renewed();
    if (certificate.pair === used) return;
    used = certificate.pair;
    server.setSecureContext({ ...used });
  });
  return server;
}

const UNKNOWN_METHOD: GrpcStatus = {
  code: STATUS.unimplemented,
  message: `There is no such method here; MCP is spoken by ${SESSION_SERVICE}/Session.`,
};
