import { connect, isIP, type Socket } from 'node:net';
import { type SecureContext, connect as tlsConnect } from 'node:tls';
import type { BoundAddress } from '../../config/listener.ts';
import type { RemoteConfig } from '../../config/remote.ts';
import type { StreamAddress } from '../../config/server.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN } from '../../errors.ts';
import { leadsBack, type Reached } from '../../http/addresses.ts';
import { readSecureContext } from '../../http/client/secure-context.ts';
import { showStreamAddress } from '../../http/socket-addresses.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import type { Readiness } from '../../relay/readiness.ts';
import { IdWarnings } from '../answer-ids.ts';
import type { Connection, Connector, CreateLifeCheck } from '../connection.ts';
import { DuplexConnection } from '../duplex/connection.ts';
import { Reachability } from '../resilience/reachability.ts';
import { tryConnection } from '../resilience/try-connection.ts';
import { ByteStreamCarrier } from './carrier.ts';

/**
 * TCP keep-alive delay, after which a peer is probed that may have vanished without closing the connection (sleeping
 * laptop, unplugged cable).
 */
const TCP_KEEP_ALIVE_MS = 30_000;

export interface ByteStreamConnectorOptions {
  readonly address: StreamAddress;
  /** Trusted CAs and the client certificate, used if the address asks for TLS. */
  readonly tls: RemoteConfig['tls'];
  /** Time limit for name resolution, TCP and TLS together; 0 means no limit. */
  readonly connectTimeoutMs: number;
  readonly maxMessageBytes: number;
  /** Log level for a connection that fails: `debug` if the caller that dials reports the failure itself. */
  readonly failureLevel: 'warn' | 'debug';
  /** Addresses at which this process itself listens. Absent if it does not listen. */
  readonly bound?: () => readonly BoundAddress[];
  /** Checks the connections. Default: nothing does. */
  readonly createLifeCheck?: CreateLifeCheck | undefined;
  /** Client name for trials of a server that could not be reached. Default: only clients try it. */
  readonly trialClient?: Implementation | undefined;
  readonly deps: Deps;
}

/**
 * Creates connections to a server that exchanges lines on a byte stream. To the server each connection is a separate
 * client.
 * @throws BridgeError ERR_CONFIG_OPTION when a file for TLS cannot be used
 */
export function createByteStreamConnector(options: ByteStreamConnectorOptions): Connector {
  return new ByteStreamConnector(options);
}

class ByteStreamConnector implements Connector {
  readonly name: string;
  readonly #options: ByteStreamConnectorOptions;
  readonly #secureContext: SecureContext | undefined;
  readonly #reachability: Reachability;
  readonly #idWarnings: IdWarnings;
  readonly #connections = new Set<DuplexConnection<ByteStreamCarrier>>();
  #isClosed = false;

  constructor(options: ByteStreamConnectorOptions) {
    this.name = showStreamAddress(options.address);
    this.#options = options;
    this.#secureContext = readSecureContext(options.tls);
    const { trialClient: clientInfo, deps } = options;
    const { clock } = deps;
    const attempt =
      clientInfo &&
      ((signal: AbortSignal) => tryConnection({ connect: () => this.connect(), clientInfo, clock, signal }));
    this.#reachability = new Reachability({ name: this.name, attempt, deps });
    this.#idWarnings = new IdWarnings(this.name, options.deps.log);
  }

  connect(): Connection {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and makes no more connections.');
    }
    const { address, connectTimeoutMs, maxMessageBytes, failureLevel, deps } = this.#options;
    const { log } = deps;
    const carried = {
      name: this.name,
      socket: this.#openSocket(),
      isOwn: (socket: Socket) => leadsBack(this.#reached(socket), this.#options.bound?.() ?? []),
      connectedEvent: address.kind === 'tcp' && address.tls === 'on' ? 'secureConnect' : 'connect',
      connectTimeoutMs,
      maxMessageBytes,
      failureLevel,
      reachable: (error: BridgeError | undefined) => this.#reachability.note(error),
      clock: deps.clock,
      log,
    } as const;
    const connection = new DuplexConnection({
      idWarnings: this.#idWarnings,
      log: log.child({ address: this.name }),
      carry: (connected) => new ByteStreamCarrier(carried, connected),
    });
    connection.check = this.#options.createLifeCheck?.(connection);
    this.#connections.add(connection);
    void connection.carrier.gone.then(() => this.#connections.delete(connection));
    return connection;
  }

  #openSocket(): Socket {
    const { address } = this.#options;
    if (address.kind === 'socket') return connect({ path: address.path });
    const { host, port } = address;
    const options = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS };
    if (address.tls === 'off') return connect(options);
    const secureContext = this.#secureContext === undefined ? {} : { secureContext: this.#secureContext };
    const servername = isIP(host) === 0 ? { servername: host } : {};
    return tlsConnect({ ...options, ...secureContext, ...servername, rejectUnauthorized: true });
  }

  #reached({ localAddress = '', remoteAddress = '', remotePort = 0 }: Socket): Reached {
    const { address } = this.#options;
    if (address.kind === 'socket') return { kind: 'socket', path: address.path };
    return { kind: 'tcp', local: localAddress, remote: remoteAddress, port: remotePort };
  }

  readiness(): Readiness {
    return this.#reachability.readiness();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#reachability.close();
    const connections = [...this.#connections];
    for (const connection of connections) connection.close(SHUTTING_DOWN);
    await Promise.all(connections.map(({ carrier }) => carrier.gone));
  }

  killNow(): void {
    this.#isClosed = true;
    for (const { carrier } of this.#connections) carrier.destroy();
  }
}
