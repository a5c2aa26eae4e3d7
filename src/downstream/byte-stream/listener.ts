import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { BoundAddress } from '../../config/listener.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { CertificatePair } from '../../http/server/certificate-files.ts';
import { explainListenError, type Listening, type ListenOptionWords, listenAt } from '../../http/server/listen.ts';
import type { CertificateSource } from '../listener/http-server.ts';
import { type StreamReach, sayOnSocket } from './endpoint.ts';

/**
 * Connections at one address. The limit exceeds that of sessions, since a client may reconnect before its previous
 * connection has closed.
 */
export const MAX_CONNECTIONS = 512;
/**
 * Number of refused connections that may be told the reason at the same time. Connections beyond those are closed
 * without a message.
 */
const MAX_REFUSED_AT_ONCE = 64;
/** A peer that is told why its connection ends has this long to close its side. */
const REFUSED_MS = 1000;
/** Time limit of a TLS handshake. */
const HANDSHAKE_MS = 10_000;
/** TCP keep-alive interval, which detects a peer that vanished without closing (laptop asleep, cable unplugged). */
const TCP_KEEP_ALIVE_MS = 30_000;
/** At most one refusal is logged in this time. */
const REFUSAL_LOG_PAUSE_MS = 60_000;

/** An address with the handler of its connections. */
export interface StreamPlace {
  readonly address: BoundAddress;
  /** Called with a socket of which nothing has been read. */
  readonly accept: (socket: Socket, reach: StreamReach) => void;
}

export interface StreamListenerOptions {
  readonly places: readonly StreamPlace[];
  /** Certificate for TCP ports; undefined: connections are not encrypted. */
  readonly certificate: CertificateSource | undefined;
  readonly deps: Deps;
  /** Names of the options for addresses in errors. */
  readonly words: ListenOptionWords;
}

interface ListeningServer extends StreamPlace {
  readonly server: Server;
  readonly sockets: Set<Socket>;
}

/** Listens for clients on byte streams. */
export class StreamListener {
  readonly #options: StreamListenerOptions;
  readonly #servers: readonly ListeningServer[];
  #listening: readonly Listening[] = [];
  #refusalToldAtMs = Number.NEGATIVE_INFINITY;
  /** Resolves when a listening socket fails. */
  readonly failed: Promise<BridgeError>;

  constructor(options: StreamListenerOptions) {
    this.#options = options;
    this.#servers = options.places.map((place) => this.#create(place));
    this.failed = new Promise((resolve) => {
      for (const { address, server } of this.#servers) {
        server.on('error', (error) => {
          if (server.listening) resolve(explainListenError(error, address, options.words));
        });
      }
    });
  }

  #create(place: StreamPlace): ListeningServer {
    const { certificate } = this.#options;
    const sockets = new Set<Socket>();
    const keepAlive = { noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS };
    // A client that has ended its input still gets its answers.
    const options = { ...keepAlive, allowHalfOpen: true };
    const reach: StreamReach = place.address.kind === 'tcp' ? 'network' : 'file';
    const take = (socket: Socket): void => this.#take(socket, sockets, () => place.accept(socket, reach));
    const server =
      certificate === undefined || reach === 'file'
        ? createServer(options, take)
        : createSecureServer(options, certificate, take);
    server.maxConnections = MAX_CONNECTIONS + MAX_REFUSED_AT_ONCE;
    server.on('drop', () => this.#tellRefused());
    return { ...place, server, sockets };
  }

  #take(socket: Socket, sockets: Set<Socket>, accept: () => void): void {
    // Only logged here: after an error the socket closes, and the endpoint reacts to that.
    socket.on('error', (error) => this.#options.deps.log.debug({ err: error }, 'a byte stream broke'));
    if (sockets.size >= MAX_CONNECTIONS) {
      this.#tellRefused();
      return refuseSocket(socket, TOO_MANY, this.#options.deps);
    }
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    accept();
  }

  #tellRefused(): void {
    const { clock, log } = this.#options.deps;
    const nowMs = clock.now();
    if (nowMs - this.#refusalToldAtMs < REFUSAL_LOG_PAUSE_MS) return;
    this.#refusalToldAtMs = nowMs;
    log.warn({ maxConnections: MAX_CONNECTIONS }, 'the limit of byte streams is reached; refusing new ones');
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
    return this.#listening.map(({ bound }) => bound);
  }

  stopAccepting(): void {
    for (const { server } of this.#servers) server.close();
    this.removeSocketFiles();
  }

  /** Stops accepting and destroys all open connections. */
  close(): void {
    this.stopAccepting();
    for (const { sockets } of this.#servers) for (const socket of sockets) socket.destroy();
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
function createSecureServer(
  options: { readonly keepAlive: boolean; readonly allowHalfOpen: boolean },
  certificate: CertificateSource,
  take: (socket: Socket) => void,
): Server {
  let used: CertificatePair = certificate.pair;
  const handshake = { ...options, ...used, handshakeTimeout: HANDSHAKE_MS };
  const server = createTlsServer(handshake, take);
  // Runs before Node's own listener, which starts the handshake.
  server.prependListener('connection', () => {
    certificate.renewed();
    if (certificate.pair === used) return;
    used = certificate.pair;
    server.setSecureContext({ ...used });
  });
  return server;
}

/** Sends a refused client the reason before the connection is closed. */
export function refuseSocket(socket: Socket, reason: BridgeError, { clock }: Deps): void {
  const cancel = clock.after(REFUSED_MS, () => socket.destroy());
  socket.once('close', cancel);
  sayOnSocket(socket, reason);
  socket.end();
  socket.resume();
}

const TOO_MANY = new BridgeError(
  'ERR_SESSION_LIMIT',
  `There are ${MAX_CONNECTIONS} connections at this address, the most allowed; close one, or try again later.`,
  { retryAfterMs: 1000 },
);
