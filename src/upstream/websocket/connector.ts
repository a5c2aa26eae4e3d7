import { showUrl } from '../../http/shown-url.ts';
import { MAX_MISSED_PINGS, PING_MS } from '../../http/websocket/connection.ts';
import { EnvelopeScanner } from '../../wire/scan-envelope.ts';
import type { Connector } from '../connection.ts';
import { createHttpClient, type RemoteOptions } from '../detect/url-sessions.ts';
import type { CarrierListener } from '../duplex/carrier.ts';
import { DuplexConnection } from '../duplex/connection.ts';
import { RemoteConnector } from '../remote/remote-connector.ts';
import type { RemoteConnectorOptions } from '../remote/remote-environment.ts';
import { Reachability } from '../resilience/reachability.ts';
import { tryConnection } from '../resilience/try-connection.ts';
import { WebSocketCarrier } from './carrier.ts';

export interface WebSocketConnectorOptions extends RemoteConnectorOptions {
  /** Silence after which the connection is pinged. Defaults to that of all WebSockets. */
  readonly pingMs?: number;
}

export type RemoteWebSocketOptions = Pick<
  RemoteOptions,
  'target' | 'remote' | 'maxMessageBytes' | 'clientInfo' | 'credentials' | 'createLifeCheck' | 'trialClient' | 'deps'
>;

/**
 * Creates the dialer for a server from the user's configuration.
 * @throws BridgeError ERR_CONFIG_OPTION when a certificate file cannot be used
 */
export function createRemoteWebSocketConnector(options: RemoteWebSocketOptions): Connector {
  const { target, remote, maxMessageBytes, trialClient: clientInfo, deps } = options;
  const { timeouts } = remote;
  // All pings have to fit into the user's limit on silence.
  const allowed = timeouts.idleMs > 0 ? Math.ceil(timeouts.idleMs / (MAX_MISSED_PINGS + 1)) : PING_MS;
  const pingMs = Math.min(PING_MS, allowed);
  const { clock } = deps;
  const attempt =
    clientInfo &&
    ((signal: AbortSignal) => tryConnection({ connect: () => connector.connect(), clientInfo, clock, signal }));
  const reachability = new Reachability({ name: showUrl(target.url), attempt, deps });
  const connector = createWebSocketConnector({
    url: target.url,
    http: createHttpClient(options),
    timeouts,
    maxMessageBytes,
    pingMs,
    // Messages carry their trace in `_meta`. The handshake belongs to no trace.
    tracing: 'off',
    scanner: new EnvelopeScanner(),
    credentials: options.credentials,
    createLifeCheck: options.createLifeCheck,
    reachability,
    deps,
  });
  return connector;
}

/** Creates connections to a server over WebSocket. Each carries messages of either era. */
export function createWebSocketConnector({ pingMs, ...options }: WebSocketConnectorOptions): Connector {
  return new RemoteConnector(options, (shared) => {
    const { idWarnings, log } = shared.environment;
    const carry = (connected: CarrierListener) => new WebSocketCarrier({ ...shared, pingMs }, connected);
    return new DuplexConnection({ idWarnings, log, carry });
  });
}
