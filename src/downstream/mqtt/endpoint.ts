import type { Deps } from '../../deps.ts';
import { assertNever, BridgeError, OWN_SERVER } from '../../errors.ts';
import type { BodyBudget } from '../../http/server/read-body.ts';
import { claimsModern } from '../../mcp/classify/route-era.ts';
import { INITIALIZE, ROOTS_CHANGED } from '../../mcp/vocabulary/methods.ts';
import { asFields, readFields } from '../../mcp/vocabulary/payload.ts';
import { rpcErrorOf } from '../../mcp/vocabulary/rpc-errors.ts';
import type { BrokerTerms, MqttConnection, OversizedMessage, ReceivedMessage } from '../../mqtt/connection.ts';
import {
  capabilityTopic,
  clientCapabilityTopic,
  clientPresenceTopic,
  controlTopic,
  DISCONNECTED,
  disconnectedMessage,
  markOf,
  mayBeFrom,
  messageProperties,
  onlineMessage,
  presenceTopic,
  rpcTopic,
  type ServerAddress,
  senderOf,
  type UserProperties,
} from '../../mqtt/mcp-topics.ts';
import { isMqttId } from '../../mqtt/names.ts';
import { describeReason, FIRST_FAILURE, isAboutCredentials } from '../../mqtt/reason-codes.ts';
import { toPrintable } from '../../printable.ts';
import type { SessionRegistry } from '../../relay/sessions/session-registry.ts';
import { Frame } from '../../wire/frame.ts';
import { scanEnvelope } from '../../wire/scan-envelope.ts';
import { errorFrame } from '../../wire/write-message.ts';
import { type ClientEnd, DuplexEndpoint } from '../duplex/endpoint.ts';
import { MAX_QUEUED_BYTES } from '../http/response-writer.ts';
import { MqttClientConnection } from './client-connection.ts';

/** Interval at which clients without a session are looked for, and a lost presence is published again. */
const CHECK_MS = 30_000;
/** Longest description in a presence. */
const MAX_DESCRIPTION_LENGTH = 200;
/** Room in a packet beside the message: the topic with two ids and the server name, and the properties. */
const MESSAGE_OVERHEAD_BYTES = 4096;
/** `retryAfterMs` of a refusal because of too many clients. */
const RETRY_MS = 10_000;

/** The server that is offered, and its limits for clients. */
export interface ServedAtBroker {
  readonly sessions: SessionRegistry;
  readonly maxMessageBytes: number;
  readonly maxJsonDepth: number;
  /** While a client is held back, how long a server may take nothing of what waits for it; 0: no limit. */
  readonly untakenTimeoutMs: number;
  readonly bodies: BodyBudget;
  /** Clients at a time. Each may have a session. */
  readonly maxClients: number;
  /** Marks of this bridge and its replicas, by which they recognize themselves as clients. */
  readonly ownMarks: () => readonly string[];
}

export interface MqttEndpointOptions extends ServedAtBroker {
  readonly connection: MqttConnection;
  readonly terms: BrokerTerms;
  readonly address: ServerAddress;
  /** The broker's address, as it may be shown. */
  readonly brokerName: string;
  /** The name of all clients at this broker, as callers. */
  readonly principal: string;
  /** What is said of the server before its first session. */
  readonly description: string;
  /** Called once the server is offered, or with the reason why it cannot be. */
  readonly onOffered: (refusal: BridgeError | undefined) => void;
  readonly deps: Deps;
}

/** A client with its connection. `idle` counts the checks at which it had no session. */
interface Served {
  readonly clientId: string;
  readonly connection: MqttClientConnection;
  readonly endpoint: DuplexEndpoint;
  idle: number;
}

/**
 * Offers a server at a broker, over one connection: says in a presence that it is online, and serves each client that
 * initializes at its control topic, in both eras as on a pipe.
 */
export class MqttEndpoint {
  readonly #options: MqttEndpointOptions;
  readonly #properties: UserProperties;
  readonly #clients = new Map<string, Served>();
  readonly #changed = new Set<string>();
  readonly #cancelChecks: () => void;
  #description: string;
  #isPresent = false;
  /** True if somebody else has published to the presence topic. */
  #isPresenceLost = false;
  #refusal: BridgeError | undefined;

  constructor(options: MqttEndpointOptions) {
    const { address, connection, terms, brokerName, deps } = options;
    this.#options = options;
    this.#properties = messageProperties('mcp-server', address.serverId);
    this.#description = options.description;
    this.#cancelChecks = deps.clock.every(CHECK_MS, () => this.#check());
    if (!terms.hasRetain) {
      deps.log.warn(
        `The broker at ${brokerName} keeps no messages, so only clients that are connected now, or know the id ${address.serverId}, will find the server`,
      );
    }
    const filters = [controlTopic(address), presenceTopic(address)];
    const subscriptions = filters.map((filter) => ({ filter, wantsRetained: false }));
    connection.subscribe(subscriptions, ([code = 0]) => {
      if (code >= FIRST_FAILURE) return options.onOffered(this.#notAllowed('offer this server', code));
      this.#setPresence('online');
      options.onOffered(undefined);
    });
  }

  #notAllowed(deed: string, reasonCode: number): BridgeError {
    const message = `The broker at ${this.#options.brokerName} does not let this bridge ${deed}: ${describeReason(reasonCode)}. Check the account in the URL of --dial, and what the broker lets it do.`;
    return new BridgeError(isAboutCredentials(reasonCode) ? 'ERR_UPSTREAM_AUTH' : 'ERR_UPSTREAM_CONNECT', message);
  }

  // ---- the presence

  #setPresence(presence: 'online' | 'offline'): void {
    const { connection, address, deps } = this.#options;
    this.#isPresent = presence === 'online';
    this.#isPresenceLost = false;
    const payload = presence === 'online' ? onlineMessage(address.serverName, this.#description) : NOTHING;
    const { hasRetain } = this.#options.terms;
    const publication = { topic: presenceTopic(address), payload, properties: this.#properties, retain: hasRetain };
    connection.publish(publication, (settlement) => {
      if (settlement.kind !== 'refused') return;
      const { message } = this.#notAllowed('say that the server is online', settlement.reasonCode);
      deps.log.warn({ code: 'ERR_UPSTREAM_AUTH' }, message);
    });
  }

  /** Describes the server as it has described itself to its first client. */
  #describe(result: Frame): void {
    const { instructions, serverInfo } = readFields(result, ['instructions', 'serverInfo']);
    const { title, name } = asFields(serverInfo) ?? {};
    const text = [instructions, title, name].find((said) => typeof said === 'string' && said.trim() !== '');
    if (typeof text !== 'string') return;
    const [line = ''] = text.trim().split(/[\r\n]/, 1);
    const description = toPrintable(line, MAX_DESCRIPTION_LENGTH - 1);
    if (description === '' || description === this.#description) return;
    this.#description = description;
    if (this.#isPresent) this.#setPresence('online');
  }

  #check(): void {
    if (this.#isPresenceLost && this.#isPresent) this.#setPresence('online');
    for (const served of [...this.#clients.values()]) {
      const isIdle = !served.endpoint.isJoined && served.endpoint.openCalls === 0 && !served.connection.isOpening;
      served.idle = isIdle ? served.idle + 1 : 0;
      if (served.idle > 1) this.#dismiss(served, CLIENT_GONE);
    }
  }

  // ---- what clients say

  received(message: ReceivedMessage): void {
    const { topic, payload, properties, isRetained } = message;
    const { address } = this.#options;
    if (topic === controlTopic(address)) return this.#control(message);
    if (topic === presenceTopic(address)) {
      this.#isPresenceLost = true;
      return;
    }
    const served = this.#clientOf(topic);
    if (served === undefined || isRetained || !mayBeFrom(properties, 'mcp-client', served.clientId)) return;
    const { clientId, connection } = served;
    const method = payload.length <= MAX_NOTICE_BYTES ? scanEnvelope(payload)?.method : undefined;
    if (topic === clientPresenceTopic(clientId)) {
      if (payload.length === 0 || method === DISCONNECTED) this.#left(served);
      return;
    }
    if (topic === clientCapabilityTopic(clientId)) {
      if (method === ROOTS_CHANGED) connection.receive(payload);
      return;
    }
    if (method === DISCONNECTED) this.#left(served);
    else connection.receive(payload);
  }

  /** The client that a topic belongs to; undefined: it is nobody's here. */
  #clientOf(topic: string): Served | undefined {
    const [kind, second = '', third = ''] = topic.split('/', 3);
    const served = this.#clients.get(kind === '$mcp-rpc' ? second : third);
    return served !== undefined && this.#topicsOf(served.clientId).includes(topic) ? served : undefined;
  }

  #topicsOf(clientId: string): readonly string[] {
    return [rpcTopic(clientId, this.#options.address), clientPresenceTopic(clientId), clientCapabilityTopic(clientId)];
  }

  oversized({ topic, payload, tail, payloadBytes, properties, isRetained }: OversizedMessage): void {
    const served = this.#clientOf(topic);
    if (served === undefined || isRetained || !mayBeFrom(properties, 'mcp-client', served.clientId)) return;
    if (topic !== rpcTopic(served.clientId, this.#options.address)) return;
    served.connection.receiveOversized({ head: payload, tail, byteLength: payloadBytes });
  }

  /** Only the properties tell whose message it is, since all clients publish to the same topic. */
  #control({ payload, properties, isRetained }: ReceivedMessage): void {
    const { log } = this.#options.deps;
    const clientId = senderOf(properties);
    if (isRetained || clientId === undefined || !isMqttId(clientId) || !mayBeFrom(properties, 'mcp-client', clientId)) {
      return log.debug('a message at the control topic that names no client was dropped');
    }
    const envelope = scanEnvelope(payload);
    const frame = envelope && new Frame(payload, envelope);
    const served = this.#clients.get(clientId);
    const isModern = frame !== undefined && claimsModern(frame);
    if (isModern && served !== undefined) return served.connection.receive(payload);
    if (frame?.kind !== 'request' || !(isModern || frame.method === INITIALIZE)) {
      return log.debug('a message at the control topic that opens no session was dropped');
    }
    if (served?.connection.isOpening === true) return log.debug('a repeated initialize was dropped');
    const mark = markOf(properties);
    if (mark !== undefined && this.#options.ownMarks().includes(mark)) return this.#refuse(clientId, frame, OWN_SERVER);
    // Some clients begin anew without a farewell. What the old session has to say would be taken for the new one's.
    if (served !== undefined) this.#forget(served);
    this.#admit(clientId, frame);
  }

  #admit(clientId: string, first: Frame): void {
    const { maxClients, connection, deps } = this.#options;
    const refusal = this.#refusal ?? (this.#clients.size >= maxClients ? tooMany(maxClients) : undefined);
    if (refusal !== undefined) return this.#refuse(clientId, first, refusal);
    const served = this.#open(clientId);
    if (served === undefined) return;
    this.#clients.set(clientId, served);
    const subscriptions = this.#topicsOf(clientId).map((filter) => ({ filter, wantsRetained: false }));
    connection.subscribe(subscriptions, ([ofRpc = 0]) => {
      if (this.#clients.get(clientId) !== served) return;
      if (ofRpc < FIRST_FAILURE) return served.connection.receive(first.bytes);
      deps.log.warn({ code: 'ERR_UPSTREAM_AUTH' }, this.#notAllowed('hear a client', ofRpc).message);
      this.#forget(served);
    });
  }

  #refuse(clientId: string, first: Frame, refusal: BridgeError): void {
    const { connection, address, sessions } = this.#options;
    sessions.refuse({ transport: 'mqtt', principal: this.#options.principal }, refusal);
    const topic = rpcTopic(clientId, address);
    const payload = errorFrame(first.id, rpcErrorOf(refusal)).bytes;
    connection.publish({ topic, payload, properties: this.#properties });
    // A modern client takes any answer for the beginning of a session, and would send the next call where nobody listens.
    if (claimsModern(first))
      connection.publish({ topic, payload: disconnectedMessage(), properties: this.#properties });
  }

  #open(clientId: string): Served | undefined {
    const { principal, address, terms, deps, untakenTimeoutMs } = this.#options;
    const { log } = deps;
    let connection: MqttClientConnection | undefined;
    const endpoint = new DuplexEndpoint({
      ...this.#options,
      client: {
        transport: 'mqtt',
        principal,
        environment: undefined,
        callerName: `${principal} ${clientId}`,
        headers: undefined,
      },
      unreadable: 'is-skipped',
      maxWaitingBytes: MAX_QUEUED_BYTES,
      maxSentBytes: terms.maximumPacketSize - MESSAGE_OVERHEAD_BYTES,
      heldTimeoutMs: untakenTimeoutMs,
      openConnection: (listener) => {
        connection = new MqttClientConnection(
          {
            connection: this.#options.connection,
            clientId,
            address,
            properties: this.#properties,
            tellAll: (method, notification) => this.#tellAll(method, notification),
            onOpened: (result) => this.#describe(result),
          },
          listener,
        );
        return connection;
      },
    });
    if (connection === undefined) return undefined;
    const served: Served = { clientId, connection, endpoint, idle: 0 };
    void endpoint.ended.then((end) => this.#ended(served, end));
    log.debug({ clients: this.#clients.size + 1 }, 'a client at the broker opens a session');
    return served;
  }

  // ---- what clients are told

  /** All sessions of a server say at once that a list has changed, and all clients hear the same topic. */
  #tellAll(method: string, payload: Buffer): boolean {
    const { connection, address } = this.#options;
    if (this.#changed.has(method)) return true;
    this.#changed.add(method);
    queueMicrotask(() => this.#changed.delete(method));
    return connection.publish({ topic: capabilityTopic(address), payload, properties: this.#properties });
  }

  drained(): void {
    for (const { connection } of [...this.#clients.values()]) connection.drained();
  }

  // ---- the end of a client

  #left(served: Served): void {
    served.connection.left();
    served.endpoint.close(CLIENT_GONE);
    this.#forget(served);
  }

  #ended(served: Served, end: ClientEnd): void {
    const { log } = this.#options.deps;
    switch (end.kind) {
      case 'input':
      case 'output':
        served.endpoint.close(CLIENT_GONE);
        return this.#forget(served);
      case 'untaken': {
        const reason = untaken(end.bytes);
        log.warn({ code: reason.code }, `${reason.message} Its session was ended.`);
        return this.#dismiss(served, reason);
      }
      case 'crowded':
        log.warn('a client at the broker sent more than its server takes; its session was ended');
        return this.#dismiss(served, end.reason);
      case 'server':
      case 'unreadable':
        return this.#dismiss(served, end.reason);
      default:
        return assertNever(end);
    }
  }

  /** Answers the open calls of a client with the reason, and tells it that the server has ended its session. */
  #dismiss(served: Served, reason: BridgeError): void {
    const { connection, address } = this.#options;
    if (this.#clients.get(served.clientId) !== served) return;
    served.endpoint.close(reason);
    const topic = rpcTopic(served.clientId, address);
    connection.publish({ topic, payload: disconnectedMessage(), properties: this.#properties });
    this.#forget(served);
  }

  #forget(served: Served): void {
    if (this.#clients.get(served.clientId) !== served) return;
    this.#clients.delete(served.clientId);
    served.connection.left();
    served.endpoint.close(CLIENT_GONE);
    this.#options.connection.unsubscribe(this.#topicsOf(served.clientId));
  }

  // ---- the end

  /** Answers new clients with this reason, and does not offer the server anymore. */
  refuse(reason: BridgeError): void {
    if (this.#refusal !== undefined) return;
    this.#refusal = reason;
    this.#setPresence('offline');
  }

  /** Ends all sessions, and then the connection. Resolves when that is closed. */
  close(reason: BridgeError): Promise<void> {
    this.refuse(reason);
    this.#cancelChecks();
    for (const served of [...this.#clients.values()]) this.#dismiss(served, reason);
    this.#options.connection.close();
    return this.#options.connection.gone;
  }

  /** The connection has ended. */
  lost(): void {
    this.#cancelChecks();
    for (const served of [...this.#clients.values()]) this.#left(served);
  }
}

const NOTHING = Buffer.alloc(0);
/** Longest message that is examined for what it says about the client itself. */
const MAX_NOTICE_BYTES = 4096;
const CLIENT_GONE = new BridgeError('ERR_SESSION_CLOSED', 'The client has left the broker.');

function untaken(bytes: number): BridgeError {
  return new BridgeError(
    'ERR_UPSTREAM_TIMEOUT',
    `The server reads none of the ${bytes} bytes that a client at the broker has sent.`,
  );
}

function tooMany(maxClients: number): BridgeError {
  const message = `All ${maxClients} sessions at this server are taken, the most allowed; try again later, or raise --max-sessions.`;
  return new BridgeError('ERR_SESSION_LIMIT', message, { retryAfterMs: RETRY_MS });
}
