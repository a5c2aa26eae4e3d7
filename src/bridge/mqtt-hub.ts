import type { SecureContext } from 'node:tls';
import type { MqttHubConfig } from '../config/server.ts';
import type { Deps } from '../deps.ts';
import { MqttEndpoint, type ServedAtBroker } from '../downstream/mqtt/endpoint.ts';
import type { BridgeError } from '../errors.ts';
import { readSecureContext } from '../http/client/secure-context.ts';
import { isAccountGiven, readAccount } from '../mqtt/account.ts';
import { type BrokerTerms, MqttConnection, type MqttListener } from '../mqtt/connection.ts';
import { createMqttId } from '../mqtt/create-id.ts';
import { endError, type OptionNames } from '../mqtt/end-error.ts';
import { connectionProperties, presenceTopic, suggestedName } from '../mqtt/mcp-topics.ts';
import { openBrokerSocket } from '../mqtt/open-socket.ts';
import { showBroker, showServer } from '../mqtt/show-address.ts';
import { CLIENT_INFO } from '../version.ts';
import type { Hub, HubAttempt, HubEvents } from './hub-call.ts';
import type { ServedServer } from './served-server.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** How the options are called that say how a broker is connected to. */
const OPTION_NAMES: OptionNames = {
  account: 'in the URL of --dial',
  ca: '--dial-ca',
  clientCertificate: undefined,
  connectTimeout: undefined,
};

export interface MqttHubOptions {
  readonly hub: MqttHubConfig;
  /** What is said of the server before its first session. */
  readonly description: string;
  /** Returns the server that is offered. Rejects with a BridgeError if it cannot be served now. */
  readonly server: () => Promise<{ readonly clients: ServedAtBroker } & Pick<ServedServer, 'adopt'>>;
  readonly deps: Deps;
}

/** A broker at which the server is offered under a name. */
export class MqttHub implements Hub {
  readonly name: string;
  readonly #options: MqttHubOptions;
  readonly #secureContext: SecureContext | undefined;
  /** Fresh for each start of the bridge, and the same for all of its connections. */
  readonly #serverId: string;
  #serverName: string;

  /** Throws BridgeError ERR_CONFIG_OPTION when the certificate file cannot be used. */
  constructor(options: MqttHubOptions) {
    const { hub, deps } = options;
    this.#options = options;
    this.name = showServer(hub.address, hub.serverName);
    this.#secureContext = readSecureContext({ caFile: hub.caFile, certFile: undefined, keyFile: undefined });
    this.#serverId = createMqttId(deps.randomId);
    this.#serverName = hub.serverName;
  }

  async open(events: HubEvents): Promise<HubAttempt> {
    const server = await this.#options.server();
    return this.#connect(server, events);
  }

  #connect(server: Awaited<ReturnType<MqttHubOptions['server']>>, events: HubEvents): HubAttempt {
    const { hub, deps } = this.#options;
    const address = { serverId: this.#serverId, serverName: this.#serverName };
    let endpoint: MqttEndpoint | undefined;
    let isOffered = false;
    let next: HubAttempt | undefined;
    const listener: MqttListener = {
      connected: (terms) => {
        const suggested = suggestedName(terms.properties);
        if (suggested !== undefined && suggested !== this.#serverName) {
          // The will, which names the server, can only be changed in a new connection.
          deps.log.info(`the broker at ${showBroker(hub.address)} names the server "${suggested}"`);
          this.#serverName = suggested;
          connection.close();
          next = this.#connect(server, events);
          return;
        }
        endpoint = this.#offer(server.clients, connection, terms, (refusal) => {
          if (refusal === undefined) {
            isOffered = true;
            return events.opened();
          }
          void endpoint?.close(refusal);
          events.failed(refusal);
        });
        server.adopt(endpoint, connection.gone);
      },
      received: (message) => endpoint?.received(message),
      oversized: (message) => endpoint?.oversized(message),
      drained: () => endpoint?.drained(),
      ended: (end) => {
        endpoint?.lost();
        const { address, account } = hub;
        const approach = { tls: address.tls, hasAccount: isAccountGiven(account), options: OPTION_NAMES };
        const error = endError(showBroker(address), end, approach);
        if (isOffered) events.ended(error.message.replace(/\.$/, ''));
        else events.failed(error);
      },
    };
    const connection = new MqttConnection(
      {
        broker: openBrokerSocket(hub.address, this.#secureContext),
        clientId: this.#serverId,
        ...readAccount(hub.account),
        will: { topic: presenceTopic(address), payload: Buffer.alloc(0), retain: true },
        properties: connectionProperties('mcp-server', CLIENT_INFO),
        maxMessageBytes: server.clients.maxMessageBytes,
        connectTimeoutMs: CONNECT_TIMEOUT_MS,
        clock: deps.clock,
      },
      listener,
    );
    return {
      abort: () => {
        next?.abort();
        if (!isOffered) connection.destroy();
      },
    };
  }

  #offer(
    clients: ServedAtBroker,
    connection: MqttConnection,
    terms: BrokerTerms,
    onOffered: (refusal: BridgeError | undefined) => void,
  ): MqttEndpoint {
    const { hub, description, deps } = this.#options;
    return new MqttEndpoint({
      ...clients,
      connection,
      terms,
      address: { serverId: this.#serverId, serverName: this.#serverName },
      brokerName: showBroker(hub.address),
      principal: `hub:${hub.address.host}`,
      description,
      onOffered,
      deps,
    });
  }

  close(): void {}
}
