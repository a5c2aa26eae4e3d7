import { BridgeError, SHUTTING_DOWN } from '../../errors.ts';
import { SessionCookies } from '../../http/client/cookies.ts';
import type { Credentials } from '../../http/client/credentials.ts';
import { showUrl } from '../../http/shown-url.ts';
import { MAX_MISSED_PINGS, PING_MS } from '../../http/websocket/connection.ts';
import type { Readiness } from '../../relay/ports.ts';
import { EnvelopeScanner } from '../../wire/scan-envelope.ts';
import { IdWarnings } from '../answer-ids.ts';
import type { Connection, Connector } from '../connection.ts';
import { createHttpClient, type RemoteOptions } from '../detect/url-sessions.ts';
import { DuplexConnection } from '../duplex/connection.ts';
import { CallerHeaders, Reachability, type RemoteDialerOptions } from '../remote/remote-environment.ts';
import { WebSocketCarrier } from './carrier.ts';

/** Time for the close frame to be sent at the end. */
const LAST_WORDS_MS = 1000;

export interface WebSocketDialerOptions extends RemoteDialerOptions {
  /** Silence after which the connection is pinged. Defaults to that of all WebSockets. */
  readonly pingMs?: number;
  /** Closed with the dialer. */
  readonly credentials?: Pick<Credentials, 'close'> | undefined;
}

export type RemoteWebSocketOptions = Pick<
  RemoteOptions,
  'target' | 'remote' | 'maxMessageBytes' | 'clientInfo' | 'credentials' | 'deps'
>;

/**
 * Creates the dialer for a server from the user's configuration.
 * @throws BridgeError ERR_CONFIG_OPTION when a certificate file cannot be used
 */
export function createRemoteWebSocketDialer(options: RemoteWebSocketOptions): Connector {
  const { target, remote, maxMessageBytes, deps } = options;
  const { timeouts } = remote;
  // All pings have to fit into the user's limit on silence.
  const allowed = timeouts.idleMs > 0 ? Math.ceil(timeouts.idleMs / (MAX_MISSED_PINGS + 1)) : PING_MS;
  const pingMs = Math.min(PING_MS, allowed);
  return createWebSocketDialer({
    url: target.url,
    http: createHttpClient(options),
    timeouts,
    maxMessageBytes,
    pingMs,
    // Messages carry their trace in `_meta`. The handshake belongs to no trace.
    tracing: 'off',
    scanner: new EnvelopeScanner(),
    credentials: options.credentials,
    deps,
  });
}

/** Creates connections to a server over WebSocket. Each carries messages of either era. */
export function createWebSocketDialer(options: WebSocketDialerOptions): Connector {
  return new WebSocketDialer(options);
}

class WebSocketDialer implements Connector {
  readonly name: string;
  readonly #options: WebSocketDialerOptions;
  readonly #reachability: Reachability;
  readonly #idWarnings: IdWarnings;
  readonly #connections = new Set<DuplexConnection<WebSocketCarrier>>();
  #isClosed = false;

  constructor(options: WebSocketDialerOptions) {
    this.name = showUrl(options.url);
    this.#options = options;
    this.#reachability = new Reachability(options.deps.clock);
    this.#idWarnings = new IdWarnings(this.name, options.deps.log);
  }

  connect(): Connection {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and opens no more connections.');
    }
    const { deps, pingMs, credentials: _, ...remote } = this.#options;
    const { log } = deps;
    const idWarnings = this.#idWarnings;
    const carried = {
      environment: { ...remote, cookies: new SessionCookies(), caller: new CallerHeaders(), idWarnings, log },
      pingMs,
      reachable: (error: BridgeError | undefined) => this.#reachability.note(error),
      left: () => this.#connections.delete(connection),
    };
    const connection: DuplexConnection<WebSocketCarrier> = new DuplexConnection({
      idWarnings,
      log,
      carry: (connected) => new WebSocketCarrier(carried, connected),
    });
    this.#connections.add(connection);
    return connection;
  }

  readiness(): Readiness {
    return this.#reachability.readiness();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#options.credentials?.close();
    const connections = [...this.#connections];
    for (const connection of connections) connection.close(SHUTTING_DOWN);
    await Promise.race([
      Promise.all(connections.map(({ carrier }) => carrier.flush())),
      new Promise<void>((resolve) => void this.#options.deps.clock.after(LAST_WORDS_MS, resolve)),
    ]);
    this.#options.http.close();
  }

  killNow(): void {
    this.#isClosed = true;
    this.#options.credentials?.close();
    this.#options.http.close();
  }
}
