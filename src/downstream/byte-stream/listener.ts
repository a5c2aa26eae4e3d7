import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { BoundAddress } from '../../config/listener.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import type { CertificatePair } from '../../http/server/certificate-files.ts';
import { explainListenError, type Listening, listenAt, STREAM_OPTIONS } from '../../http/server/listen.ts';
import type { CertificateSource } from '../listener/http-server.ts';
import { type StreamReach, sayOnSocket } from './endpoint.ts';

/** At one address; more than there are sessions, for a client may be about to leave while its next one comes. */
export const MAX_CONNECTIONS = 512;
/** So many more are told why they are not let in; others are closed without a word. */
const MAX_REFUSED_AT_ONCE = 64;
/** A peer that is told why its connection ends has this long to close its side. */
const REFUSED_MS = 1000;
/** A handshake of TLS takes no longer. */
const HANDSHAKE_MS = 10_000;
/** A connection is checked this often for a peer that vanished without a word (laptop asleep, cable). */
const TCP_KEEP_ALIVE_MS = 30_000;
/** One line for all that are refused meanwhile. */
const REFUSAL_LOG_PAUSE_MS = 60_000;

/** An address, and who takes the connections that are made to it. */
export interface StreamPlace {
  readonly address: BoundAddress;
  /** Called with a socket of which nothing has been read. */
  readonly accept: (socket: Socket, reach: StreamReach) => void;
}

export interface StreamListenerOptions {
  readonly places: readonly StreamPlace[];
  /** For ports; undefined: what is said there can be read on the way. */
  readonly certificate: CertificateSource | undefined;
  readonly deps: Deps;
}

interface ListeningServer extends StreamPlace {
  readonly server: Server;
  readonly sockets: Set<Socket>;
}

/** Listens for clients that speak lines on byte streams. */
export class StreamListener {
  readonly #options: StreamListenerOptions;
  readonly #servers: readonly ListeningServer[];
  #listening: readonly Listening[] = [];
  #refusalToldAtMs = Number.NEGATIVE_INFINITY;
  /** Resolves when a listening socket itself breaks. */
  readonly failed: Promise<BridgeError>;

  constructor(options: StreamListenerOptions) {
    this.#options = options;
    this.#servers = options.places.map((place) => this.#create(place));
    this.failed = new Promise((resolve) => {
      for (const { address, server } of this.#servers) {
        server.on('error', (error) => {
          if (server.listening) resolve(explainListenError(error, address, STREAM_OPTIONS));
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
    // Whoever takes it hears of errors by the end that follows.
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
    log.warn({ maxConnections: MAX_CONNECTIONS }, 'byte streams are refused: as many as there may be are open');
  }

  /**
   * Resolves once connections are accepted, with the addresses as they have become. Rejects with ERR_CONFIG_LISTEN, and
   * then listens nowhere.
   */
  async listen(): Promise<readonly BoundAddress[]> {
    try {
      for (const { address, server } of this.#servers) {
        this.#listening = [...this.#listening, await listenAt(server, address, STREAM_OPTIONS)];
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

  /** Cuts what is still connected. */
  close(): void {
    this.stopAccepting();
    for (const { sockets } of this.#servers) for (const socket of sockets) socket.destroy();
  }

  /** Synchronous, for the end of the process, too. May be called twice. */
  removeSocketFiles(): void {
    for (const { file } of this.#listening) file?.remove();
  }
}

/** Connections that are established go on with the certificate that they have begun with. */
function createSecureServer(
  options: { readonly keepAlive: boolean; readonly allowHalfOpen: boolean },
  certificate: CertificateSource,
  take: (socket: Socket) => void,
): Server {
  let used: CertificatePair = certificate.pair;
  const handshake = { ...options, ...used, handshakeTimeout: HANDSHAKE_MS };
  const server = createTlsServer(handshake, take);
  // Before the listener of Node, which begins the handshake.
  server.prependListener('connection', () => {
    certificate.renewed();
    if (certificate.pair === used) return;
    used = certificate.pair;
    server.setSecureContext({ ...used });
  });
  return server;
}

/** Says why somebody is not let in, before the connection is closed. */
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
