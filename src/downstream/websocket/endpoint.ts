import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Deps } from '../../deps.ts';
import { assertNever, BridgeError } from '../../errors.ts';
import { endsBy, type Leave } from '../../http/auth/callers.ts';
import { findHandshakeFault, WebSocketAcceptor } from '../../http/server/accept-websocket.ts';
import type { BodyBudget } from '../../http/server/read-body.ts';
import { respondError } from '../../http/server/respond.ts';
import { type Upgrade, upgradeOf } from '../../http/server/upgrades.ts';
import { CLOSE_CODES, closeCodeOf } from '../../http/websocket/close-codes.ts';
import type { ConnectionEnd, WebSocketConnectionOptions } from '../../http/websocket/connection.ts';
import type { Lane } from '../../relay/exchange.ts';
import type { SessionRegistry } from '../../relay/sessions/session-registry.ts';
import type { ConnectionClient } from '../duplex/connection-peer.ts';
import { DuplexEndpoint } from '../duplex/endpoint.ts';
import { MAX_QUEUED_BYTES } from '../http/response-writer.ts';
import type { HttpRoute } from '../listener/http-server.ts';
import { ClientWebSocket } from './connection.ts';

/** What clients get to read that was said last, and to see the end by, when the bridge ends. */
const LAST_WORDS_MS = 1000;
/** Who is refused may come again after this. */
const RETRY_MS = 10_000;

export interface WebSocketEndpointOptions {
  readonly sessions: SessionRegistry;
  readonly principalOf: (request: IncomingMessage) => string;
  readonly environmentOf: (request: IncomingMessage) => ConnectionClient['environment'];
  /** The headers that pass to a remote server with every message of a connection, by the request that opened it. */
  readonly headersOf: (request: IncomingMessage) => Lane['headers'];
  readonly maxMessageBytes: number;
  readonly maxJsonDepth: number;
  /** How long a server may take nothing of what a client has said that is not read meanwhile; 0: as long as it takes. */
  readonly untakenTimeoutMs: number;
  /** Shared by all messages that are being read. */
  readonly bodies: BodyBudget;
  /** Connections of all clients, and of one caller: each may hold a session. */
  readonly maxConnections: number;
  readonly maxConnectionsPerCaller: number;
  readonly deps: Deps;
  readonly pingMs?: number;
}

/** One client that is connected. */
class Served {
  readonly callerName: string;
  readonly connection: ClientWebSocket;
  readonly endpoint: DuplexEndpoint;

  constructor(callerName: string, connection: ClientWebSocket, endpoint: DuplexEndpoint) {
    this.callerName = callerName;
    this.connection = connection;
    this.endpoint = endpoint;
  }
}

/**
 * Clients over WebSocket: one connection is one client, in both eras at once as on a pipe. A connection that breaks is the
 * end of its session, since the protocol knows no way to resume one.
 */
export class WebSocketEndpoint {
  readonly #options: WebSocketEndpointOptions;
  readonly #served = new Set<Served>();
  /** Connections for which the library is being loaded. */
  #opening = 0;
  #acceptor: WebSocketAcceptor | undefined;
  #loading: Promise<WebSocketAcceptor> | undefined;
  #refusal: BridgeError | undefined;

  constructor(options: WebSocketEndpointOptions) {
    this.#options = options;
  }

  readonly route: HttpRoute = (request, response) => {
    const upgrade = upgradeOf(request);
    const fault = findHandshakeFault(request, upgrade);
    if (fault !== undefined) return respondError(response, fault.error, undefined, fault.headers);
    const refusal = this.#refusalFor(this.#options.principalOf(request));
    if (refusal !== undefined) return respondError(response, refusal);
    if (upgrade === undefined) return;
    if (this.#acceptor !== undefined) return this.#accept(this.#acceptor, request, response, upgrade);
    this.#opening += 1;
    this.#loading ??= WebSocketAcceptor.load(this.#options.maxMessageBytes);
    void this.#loading.then((acceptor) => {
      this.#opening -= 1;
      this.#acceptor = acceptor;
      // The client may have left meanwhile, or the bridge be ending.
      if (response.destroyed) return;
      if (this.#refusal !== undefined) return respondError(response, this.#refusal);
      this.#accept(acceptor, request, response, upgrade);
    });
  };

  #refusalFor(callerName: string): BridgeError | undefined {
    if (this.#refusal !== undefined) return this.#refusal;
    const { maxConnections, maxConnectionsPerCaller } = this.#options;
    if (maxConnectionsPerCaller < maxConnections && this.#countOf(callerName) >= maxConnectionsPerCaller) {
      return tooMany(`This caller has ${maxConnectionsPerCaller} connections`, '--max-caller-sessions');
    }
    if (this.#served.size + this.#opening < maxConnections) return undefined;
    return tooMany(`All ${maxConnections} connections are taken`, '--max-sessions');
  }

  #countOf(callerName: string): number {
    let count = 0;
    for (const served of this.#served) if (served.callerName === callerName) count += 1;
    return count;
  }

  #accept(acceptor: WebSocketAcceptor, request: IncomingMessage, response: ServerResponse, upgrade: Upgrade): void {
    const { principalOf, environmentOf, headersOf } = this.#options;
    const callerName = principalOf(request);
    const client: ConnectionClient = {
      transport: 'websocket',
      principal: callerName,
      environment: environmentOf(request),
      callerName,
      headers: headersOf(request),
    };
    response.statusCode = 101;
    acceptor.accept(request, upgrade, (socket) => {
      void this.serve({ socket, stream: upgrade.socket }, client, (leave) => endsBy(request, leave));
    });
  }

  /**
   * Serves whoever is at the other end of an open connection. Resolves with its end; undefined: it was ended from here.
   * @param opened is given what ends it from here
   */
  serve(
    open: Pick<WebSocketConnectionOptions, 'socket' | 'stream'>,
    client: ConnectionClient,
    opened?: (leave: Leave) => void,
  ): Promise<ConnectionEnd | undefined> {
    const { sessions, maxMessageBytes, maxJsonDepth, untakenTimeoutMs, bodies, deps, pingMs } = this.#options;
    const { log, clock } = deps;
    return new Promise((resolve) => {
      let connectionEnd: ConnectionEnd | undefined;
      const onEnd = (end: ConnectionEnd): void => {
        connectionEnd = end;
        log[isFault(end) ? 'warn' : 'debug'](`WebSocket ended: ${describeEnd(end)}`);
      };
      let connection: ClientWebSocket | undefined;
      const endpoint = new DuplexEndpoint({
        openConnection: (listener) => {
          const timing = pingMs === undefined ? { clock } : { clock, pingMs };
          const arriving = bodies.forConnection(client.callerName);
          connection = new ClientWebSocket({ ...open, ...timing, onEnd, arriving }, listener);
          return connection;
        },
        client,
        sessions,
        maxMessageBytes,
        maxJsonDepth,
        maxWaitingBytes: MAX_QUEUED_BYTES,
        heldTimeoutMs: untakenTimeoutMs,
        // No page has a browser send here what it likes: the handshake and the mask see to that. [RFC 6455 10.3]
        unreadable: 'is-skipped',
        deps,
      });
      if (connection === undefined) return;
      const served = new Served(client.callerName, connection, endpoint);
      this.#served.add(served);
      opened?.((reason) => this.#leave(served, reason));
      log.debug({ open: this.#served.size }, 'WebSocket opened');
      void endpoint.ended.then((end) => {
        switch (end.kind) {
          case 'output':
          case 'input':
            endpoint.close(CLIENT_GONE);
            break;
          case 'untaken': {
            const reason = untaken(end.bytes);
            log.warn({ code: reason.code }, `${reason.message} Its connection was closed.`);
            this.#leave(served, reason);
            break;
          }
          case 'server':
          case 'unreadable':
          case 'crowded':
            this.#leave(served, end.reason);
            break;
          default:
            assertNever(end);
        }
        this.#served.delete(served);
        resolve(connectionEnd);
      });
    });
  }

  /** Open calls are answered first. */
  #leave({ connection, endpoint }: Served, reason: BridgeError): void {
    endpoint.close(reason);
    connection.close(closeCodeOf(reason), reason.message);
  }

  // ---- the end

  /** Takes no new connections, for this reason. */
  refuse(reason: BridgeError): void {
    this.#refusal ??= reason;
  }

  /** Ends what is open. Resolves when it is, or after a moment. */
  close(reason: BridgeError): Promise<void> {
    this.refuse(reason);
    const all = [...this.#served];
    for (const served of all) this.#leave(served, reason);
    return Promise.race([
      Promise.all(all.map(({ connection }) => connection.flush())).then(() => {}),
      new Promise<void>((resolve) => void this.#options.deps.clock.after(LAST_WORDS_MS, resolve)),
    ]);
  }
}

const CLIENT_GONE = new BridgeError('ERR_SESSION_CLOSED', 'The client has ended its connection.');

function untaken(bytes: number): BridgeError {
  return new BridgeError(
    'ERR_UPSTREAM_TIMEOUT',
    `The server reads none of the ${bytes} bytes that the client has sent.`,
  );
}

function tooMany(what: string, option: string): BridgeError {
  const message = `${what}, the most allowed; close one, try again later, or raise ${option}.`;
  return new BridgeError('ERR_SESSION_LIMIT', message, { retryAfterMs: RETRY_MS });
}

/** What a client leaves with is not worth a line; what it did wrong is. */
function isFault({ kind }: ConnectionEnd): boolean {
  return kind === 'refused';
}

function describeEnd(end: ConnectionEnd): string {
  switch (end.kind) {
    case 'closed':
      return end.code === CLOSE_CODES.noStatus ? 'the client closed it' : `the client closed it (${end.code})`;
    case 'refused':
      return `the client sent ${end.problem} (${end.code})`;
    case 'silent':
      return 'the client answered no pings and was given up';
    case 'stalled':
      return `the client took nothing of what was sent to it for ${end.forMs} ms`;
    case 'lost':
      return 'the connection broke';
    case 'cut':
      return 'the client took too little of what was sent to it';
    default:
      return assertNever(end);
  }
}
