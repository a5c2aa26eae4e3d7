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
import type { Lane } from '../../relay/call.ts';
import type { SessionRegistry } from '../../relay/sessions/session-registry.ts';
import type { ConnectionClient } from '../duplex/connection-peer.ts';
import { DuplexEndpoint } from '../duplex/endpoint.ts';
import { MAX_QUEUED_BYTES } from '../http/response-writer.ts';
import type { HttpRoute } from '../listener/http-server.ts';
import { ClientWebSocket } from './connection.ts';

/** When the bridge ends, time for clients to read the last messages and to see the close frame. */
const LAST_WORDS_MS = 1000;
/** `retryAfterMs` of a refusal because of too many connections. */
const RETRY_MS = 10_000;

export interface WebSocketEndpointOptions {
  readonly sessions: SessionRegistry;
  readonly principalOf: (request: IncomingMessage) => string;
  readonly environmentOf: (request: IncomingMessage) => ConnectionClient['environment'];
  /** The headers that pass to a remote server with every message of a connection, by the request that opened it. */
  readonly headersOf: (request: IncomingMessage) => Lane['headers'];
  readonly maxMessageBytes: number;
  readonly maxJsonDepth: number;
  /** While a client is paused, how long a server may take nothing of what waits for it; 0: no limit. */
  readonly untakenTimeoutMs: number;
  /** Shared by all messages that are being read. */
  readonly bodies: BodyBudget;
  /** Limits of connections, of all clients and of one caller. Each connection may hold a session. */
  readonly maxConnections: number;
  readonly maxConnectionsPerCaller: number;
  readonly deps: Deps;
  readonly pingMs?: number;
}

/** A connected client. */
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
 * Clients over WebSocket: each connection is one client, in both eras at once as on a pipe. A connection that breaks
 * ends its session, since the protocol has no way to resume one.
 */
export class WebSocketEndpoint {
  readonly #options: WebSocketEndpointOptions;
  readonly #served = new Set<Served>();
  /** Number of connections that wait for the WebSocket library to be loaded. */
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
      // The client may have left meanwhile, or the bridge may be ending.
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
   * Serves the client of an open connection. Resolves with the connection's end; undefined: the bridge closed it.
   * @param opened gets a function by which the caller can end the connection
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
        // The handshake and the mask keep web pages from having a browser send arbitrary bytes here. [RFC 6455 10.3]
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

  /** Answers open calls with the reason, then closes the connection. */
  #leave({ connection, endpoint }: Served, reason: BridgeError): void {
    endpoint.close(reason);
    connection.close(closeCodeOf(reason), reason.message);
  }

  // ---- the end

  /** Rejects new connections with this reason. */
  refuse(reason: BridgeError): void {
    this.#refusal ??= reason;
  }

  /** Closes all connections. Resolves when what was written to them has left, or after LAST_WORDS_MS. */
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

/** Returns true if the client violated the protocol, which is logged as a warning; other ends go to the debug level. */
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
