import type { SecureContext } from 'node:tls';
import type { RemoteConfig } from '../../config/remote.ts';
import type { MqttTarget } from '../../config/server.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN } from '../../errors.ts';
import { readSecureContext } from '../../http/client/secure-context.ts';
import { BRIDGE_MARK_HEADER } from '../../http/headers.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import { isAccountGiven, readAccount } from '../../mqtt/account.ts';
import { MqttConnection } from '../../mqtt/connection.ts';
import { createMqttId } from '../../mqtt/create-id.ts';
import { openBrokerSocket } from '../../mqtt/open-socket.ts';
import { showBroker, showServer } from '../../mqtt/show-address.ts';
import type { Readiness } from '../../relay/readiness.ts';
import { IdWarnings } from '../answer-ids.ts';
import type { Connection, Connector } from '../connection.ts';
import { DuplexConnection } from '../duplex/connection.ts';
import { Reachability } from '../resilience/reachability.ts';
import { tryConnection } from '../resilience/try-connection.ts';
import { MqttCarrier } from './carrier.ts';

export interface MqttConnectorOptions {
  readonly target: MqttTarget;
  /** MQTT has a place for only one of the headers, the bridge's mark. */
  readonly remote: Pick<RemoteConfig, 'account' | 'headers' | 'tls'>;
  /** See `MqttCarrierOptions`. */
  readonly connectTimeoutMs: number;
  readonly maxMessageBytes: number;
  /** The bridge's description of itself, for the broker. */
  readonly clientInfo: Implementation;
  /** Log level for a connection that fails: `debug` if the caller that dials reports the failure itself. */
  readonly failureLevel: 'warn' | 'debug';
  /** Client name for trials of a server that could not be reached. Default: only clients try it. */
  readonly trialClient?: Implementation | undefined;
  readonly deps: Deps;
}

/**
 * Creates connections to a server at a broker. Each is a session of its own, with an MQTT client id of its own.
 * @throws BridgeError ERR_CONFIG_OPTION when a file for TLS cannot be used
 */
export function createMqttConnector(options: MqttConnectorOptions): Connector {
  return new MqttConnector(options);
}

class MqttConnector implements Connector {
  readonly name: string;
  readonly #options: MqttConnectorOptions;
  readonly #secureContext: SecureContext | undefined;
  readonly #reachability: Reachability;
  readonly #idWarnings: IdWarnings;
  readonly #connections = new Set<DuplexConnection<MqttCarrier>>();
  #lastServerId: string | undefined;
  #isClosed = false;

  constructor(options: MqttConnectorOptions) {
    const { target, remote, trialClient: clientInfo, deps } = options;
    this.name = showServer(target.address, target.serverName);
    this.#options = options;
    this.#secureContext = readSecureContext(remote.tls);
    const { clock } = deps;
    const attempt =
      clientInfo &&
      ((signal: AbortSignal) => tryConnection({ connect: () => this.connect(), clientInfo, clock, signal }));
    this.#reachability = new Reachability({ name: this.name, attempt, deps });
    this.#idWarnings = new IdWarnings(this.name, deps.log);
  }

  connect(): Connection {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and makes no more connections.');
    }
    const { target, remote, connectTimeoutMs, maxMessageBytes, clientInfo, failureLevel, deps } = this.#options;
    const { clock, randomId } = deps;
    const log = deps.log.child({ address: this.name });
    const connection = new DuplexConnection({
      idWarnings: this.#idWarnings,
      log,
      carry: (connected) =>
        new MqttCarrier(
          {
            name: this.name,
            brokerName: showBroker(target.address),
            target,
            hasAccount: isAccountGiven(remote.account),
            clientId: createMqttId(randomId),
            clientInfo,
            mark: remote.headers.get(BRIDGE_MARK_HEADER),
            open: (hello, listener) => {
              const account = readAccount(remote.account);
              const broker = openBrokerSocket(target.address, this.#secureContext);
              const options = { broker, ...hello, ...account, maxMessageBytes, connectTimeoutMs, clock };
              return new MqttConnection(options, listener);
            },
            lastServerId: target.serverId === undefined ? this.#lastServerId : undefined,
            answered: (serverId) => {
              this.#lastServerId = serverId;
            },
            connectTimeoutMs,
            maxMessageBytes,
            failureLevel,
            reachable: (error) => this.#reachability.note(error),
            clock,
            log,
          },
          connected,
        ),
    });
    this.#connections.add(connection);
    void connection.carrier.gone.then(() => this.#connections.delete(connection));
    return connection;
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
