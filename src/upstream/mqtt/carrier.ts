import type { Logger } from 'pino';
import { ByteQueue, frameBytes } from '../../collections/bounded-collections.ts';
import type { MqttTarget } from '../../config/server.ts';
import type { Clock } from '../../deps.ts';
import { assertNever, BridgeError } from '../../errors.ts';
import { claimsModern } from '../../mcp/classify/route-era.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import {
  CANCELED,
  DISCOVER,
  INITIALIZE,
  PING,
  RESOURCE_UPDATED,
  ROOTS_CHANGED,
  SUBSCRIBE,
  UNSUBSCRIBE,
} from '../../mcp/vocabulary/methods.ts';
import { readField } from '../../mcp/vocabulary/payload.ts';
import { SubscribedUris } from '../../mcp/vocabulary/subscribed-uris.ts';
import type {
  BrokerTerms,
  MqttConnection,
  MqttConnectionOptions,
  MqttListener,
  OversizedMessage,
  Publication,
  ReceivedMessage,
  Settlement,
} from '../../mqtt/connection.ts';
import { endError, type MqttEnd, type OptionNames } from '../../mqtt/end-error.ts';
import {
  capabilityTopic,
  clientCapabilityTopic,
  clientPresenceTopic,
  connectionProperties,
  controlTopic,
  DISCONNECTED,
  disconnectedMessage,
  markedProperties,
  mayBeFrom,
  messageProperties,
  presenceFilter,
  presenceTopic,
  rpcTopic,
  suggestedFilters,
  type UserProperties,
} from '../../mqtt/mcp-topics.ts';
import { filterMatches } from '../../mqtt/names.ts';
import { describeReason, FIRST_FAILURE, isAboutCredentials } from '../../mqtt/reason-codes.ts';
import { SeenRequests } from '../../mqtt/seen-requests.ts';
import type { Call, ClientMessage } from '../../relay/call.ts';
import type { Frame } from '../../wire/frame.ts';
import { EnvelopeScanner, recoverEnvelope } from '../../wire/scan-envelope.ts';
import { resultFrame } from '../../wire/write-message.ts';
import type { Carrier, CarrierListener } from '../duplex/carrier.ts';
import { oversizedError, takeMessages } from '../server-messages.ts';
import { EmptyIds } from './empty-ids.ts';
import { Instances } from './instances.ts';

/** Limits of messages that wait for a session. Clients send little before their first response. */
const WAITING_LIMITS = { maxItems: 1024, maxBytes: 1024 * 1024 };
/** Time for an instance to answer the first request before another one is asked, if there is another. */
export const ANSWER_MS = 5000;
/** Time for all instances together to answer the first request. */
export const ALL_ANSWERS_MS = 30_000;

/** How the options are called that say how a broker is connected to. */
const OPTION_NAMES: OptionNames = {
  account: 'with --user and --password',
  ca: '--ca',
  clientCertificate: '--client-cert and --client-key',
  connectTimeout: '--connect-timeout',
};

export interface MqttCarrierOptions {
  /** The server's address, as it may be shown. */
  readonly name: string;
  /** The broker's address, as it may be shown. */
  readonly brokerName: string;
  readonly target: MqttTarget;
  /** True if an account is shown to the broker. */
  readonly hasAccount: boolean;
  readonly clientId: string;
  readonly clientInfo: Implementation;
  /** The bridge's mark, which stands on what may open a session; undefined for a bridge that does not listen. */
  readonly mark: string | undefined;
  /** Opens the connection. Throws a BridgeError when it cannot be tried. */
  readonly open: (
    hello: Pick<MqttConnectionOptions, 'clientId' | 'will' | 'properties'>,
    listener: MqttListener,
  ) => MqttConnection;
  /** The instance that has answered last, on any connection. It is asked even if no presence names it. */
  readonly lastServerId: string | undefined;
  /** Told which instance has answered. */
  readonly answered: (serverId: string) => void;
  /** Time for name resolution, TCP, TLS and the broker together, and then for a presence; 0 means no limit. */
  readonly connectTimeoutMs: number;
  readonly maxMessageBytes: number;
  readonly failureLevel: 'warn' | 'debug';
  /** Called with undefined when a server has answered, otherwise with the reason why it could not be reached. */
  readonly reachable: (error: BridgeError | undefined) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Asking {
  readonly kind: 'asking';
  readonly serverId: string;
  readonly cancel: () => void;
  /** True if it has not answered in time, so that any other instance is asked instead. */
  isLate: boolean;
  /** True if the broker has taken the first request for it. */
  isHeard: boolean;
}

/**
 * - `fresh`: nothing has been sent, and there is no connection.
 * - `connecting`: the broker has not accepted the connection. Messages wait, here and until the state is `open`.
 * - `seeking`: no instance is being asked. A presence is awaited, for a limited time.
 * - `asking`: an instance is sent the first request.
 * - `open`: messages are exchanged with this instance.
 * - `closed`: the connection has closed the carrier, or has been told of the end.
 */
type CarrierState =
  | { readonly kind: 'fresh' | 'connecting' | 'closed' }
  | { readonly kind: 'seeking' }
  | Asking
  | { readonly kind: 'open'; readonly serverId: string };

/** The topic and the properties with which a message is published. */
type Place = Pick<Publication, 'topic' | 'properties'>;

/**
 * A session with one instance of a server at a broker, on a connection of its own: the MQTT client id is the session's id. The
 * first message opens the connection, finds an instance, and is sent to its control topic. Everything else goes to the RPC
 * topic once the instance has answered.
 */
export class MqttCarrier implements Carrier, MqttListener {
  readonly process = undefined;
  readonly #options: MqttCarrierOptions;
  readonly #listener: CarrierListener;
  readonly #properties: UserProperties;
  /** Properties of what goes to a control topic. */
  readonly #openingProperties: UserProperties;
  readonly #instances: Instances;
  readonly #waiting = new ByteQueue<ClientMessage>(WAITING_LIMITS, frameBytes);
  readonly #scanner = new EnvelopeScanner();
  readonly #emptyIds = new EmptyIds();
  readonly #seen = new SeenRequests();
  /** The resources whose changes this session wants to know. Other sessions may share the topic. */
  readonly #subscribed = new SubscribedUris();
  #connection: MqttConnection | undefined;
  /** The request that opens the session. Undefined before it was sent. */
  #first: Frame | undefined;
  #isModern = false;
  /** True once the broker has sent the presences that it had kept. */
  #knowsPresences = false;
  /** True once no further presence is awaited. */
  #isTooLate = false;
  #isPaused = false;
  #hasWarned = false;
  #owesDrain = false;
  #cancelSeeking = (): void => {};
  #cancelAsking = (): void => {};
  #state: CarrierState = { kind: 'fresh' };
  #resolveGone: () => void = () => {};
  /** Resolves when there is no connection anymore. */
  readonly gone: Promise<void>;

  constructor(options: MqttCarrierOptions, listener: CarrierListener) {
    this.#options = options;
    this.#listener = listener;
    this.#properties = messageProperties('mcp-client', options.clientId);
    this.#openingProperties = markedProperties(this.#properties, options.mark);
    this.#instances = new Instances(options.target.serverName);
    this.gone = new Promise((resolve) => {
      this.#resolveGone = resolve;
    });
  }

  // ---- from the owner

  get isFull(): boolean {
    return this.#state.kind === 'open' ? this.#connection?.isFull === true : this.#waiting.isFull;
  }

  send(frame: Frame, call: Call | undefined): boolean {
    if (frame.method === PING && frame.kind === 'request' && !claimsModern(frame)) return this.#answerPing(frame);
    const state = this.#state;
    switch (state.kind) {
      case 'closed':
        return true;
      case 'fresh':
        return this.#begin(frame, call);
      case 'connecting':
      case 'seeking':
        return this.#wait(frame, call);
      case 'asking':
        // The server may need this answer before it answers the first request.
        if (frame.isResponse || (this.#isModern && state.isHeard)) return this.#sendTo(state.serverId, frame);
        return this.#wait(frame, call);
      case 'open':
        return this.#sendTo(state.serverId, frame);
      default:
        return assertNever(state);
    }
  }

  /**
   * Answers a ping in place of the server. Some servers do not answer any, and clients would take them for dead; the broker and
   * the server's presence tell if it lives.
   */
  #answerPing({ id }: Frame): boolean {
    if (id !== undefined) queueMicrotask(() => this.#listener.received(resultFrame(id, {})));
    return true;
  }

  #begin(frame: Frame, call: Call | undefined): boolean {
    const { id, kind, method } = frame;
    this.#isModern = claimsModern(frame);
    if (!this.#isModern && method !== INITIALIZE) {
      if (kind === 'request') this.#fail(frame, NOT_INITIALIZED);
      else this.#options.log.debug({ kind, id }, 'message dropped: no session is open');
      return true;
    }
    const { clientId, clientInfo, open } = this.#options;
    this.#state = { kind: 'connecting' };
    this.#wait(frame, call);
    try {
      const will = { topic: clientPresenceTopic(clientId), payload: disconnectedMessage(), retain: false };
      this.#connection = open({ clientId, will, properties: connectionProperties('mcp-client', clientInfo) }, this);
      void this.#connection.gone.then(() => this.#resolveGone());
    } catch (thrown) {
      const error = thrown instanceof BridgeError ? thrown : undefined;
      if (error === undefined) throw thrown;
      queueMicrotask(() => this.#lost(error));
    }
    return true;
  }

  /** A cancellation whose request still waits removes that request, and neither is sent. */
  #wait(frame: Frame, call: Call | undefined): boolean {
    const isWithdrawal = frame.method === CANCELED && call !== undefined;
    if (isWithdrawal && this.#waiting.removeFirst((other) => other.call === call) !== undefined) return true;
    this.#waiting.add({ frame, call });
    if (!this.#waiting.isFull) return true;
    this.#owesDrain = true;
    return false;
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#state.kind === 'open') this.#connection?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#connection?.resume();
  }

  close(reason: BridgeError): void {
    this.#options.log.debug({ code: reason.code }, 'link closed, ending the session at the broker');
    this.#leave();
  }

  /** Ends the connection at once. Unsent messages are lost; the broker publishes that the client has left. */
  destroy(): void {
    this.#state = { kind: 'closed' };
    this.#cancelTimers();
    this.#connection?.destroy();
  }

  // ---- messages for the server

  #sendTo(serverId: string, frame: Frame): boolean {
    if (frame.method === SUBSCRIBE || frame.method === UNSUBSCRIBE) this.#noteSubscription(frame);
    const sent = this.#emptyIds.sent(frame);
    return this.#publish(this.#placeOf(serverId, frame), sent, (settlement) => this.#settled(settlement, frame));
  }

  #publish(place: Place, { bytes: payload }: Frame, settled: (settlement: Settlement) => void): boolean {
    return this.#connection?.publish({ ...place, payload }, settled) ?? true;
  }

  /** A server listens at its RPC topic from its first answer on. A modern server hears further requests before that. */
  #placeOf(serverId: string, { method }: Frame): Place {
    const { target, clientId } = this.#options;
    const address = { serverId, serverName: target.serverName };
    const isFirst = method === INITIALIZE || (this.#isModern && this.#state.kind === 'asking');
    if (isFirst) return { topic: controlTopic(address), properties: this.#openingProperties };
    const topic = method === ROOTS_CHANGED ? clientCapabilityTopic(clientId) : rpcTopic(clientId, address);
    return { topic, properties: this.#properties };
  }

  #noteSubscription(frame: Frame): void {
    const uri = readField(frame, 'uri');
    if (typeof uri !== 'string') return;
    if (frame.method === SUBSCRIBE) this.#subscribed.add(uri);
    else this.#subscribed.delete(uri);
  }

  /** Fails the call of a message that the broker did not take. A notification that nobody wants is no failure. */
  #settled(settlement: Settlement, frame: Frame): void {
    const { brokerName, log } = this.#options;
    switch (settlement.kind) {
      case 'taken':
        return;
      case 'nobody':
        if (frame.kind === 'request' && this.#state.kind === 'open') this.#unheard();
        return;
      case 'refused': {
        const said = describeReason(settlement.reasonCode);
        const message = `The broker at ${brokerName} did not take a message for the server: ${said}. Check what it lets this user publish.`;
        return this.#fail(frame, new BridgeError('ERR_UPSTREAM_DELIVERY', message));
      }
      case 'too-large': {
        const message = `A message of ${frame.bytes.length} bytes was not sent: the broker at ${brokerName} takes up to ${settlement.maxBytes}. Send less, or raise the limit of the broker.`;
        log.debug({ method: frame.method }, message);
        return this.#fail(frame, new BridgeError('ERR_WIRE_FRAME_TOO_LARGE', message));
      }
      default:
        assertNever(settlement);
    }
  }

  /** The server has forgotten the session, and nothing has told so: it had no presence, or this user may not read it. */
  #unheard(): void {
    const message = `The server at ${this.#options.name} does not listen to this session anymore, so the call did not reach it. Try again, in a new session.`;
    this.#end(new BridgeError('ERR_UPSTREAM_CLOSED', message));
  }

  #fail({ kind, id }: Frame, error: BridgeError): void {
    if (kind === 'request') queueMicrotask(() => this.#listener.faulted({ error, kind: 'error', id }));
    else this.#options.log.warn({ code: error.code }, error.message);
  }

  // ---- finding an instance

  connected(terms: BrokerTerms): void {
    const { target, name, connectTimeoutMs, clock, log } = this.#options;
    log.debug({ address: name }, 'the broker has accepted the connection');
    const { serverId, serverName } = target;
    const filters = serverId === undefined ? this.#presenceFilters(terms) : [presenceTopic({ serverId, serverName })];
    if (filters === undefined) return;
    this.#state = { kind: 'seeking' };
    if (connectTimeoutMs > 0) this.#cancelSeeking = clock.after(connectTimeoutMs, () => this.#stopSeeking());
    this.#cancelAsking = clock.after(ALL_ANSWERS_MS, () => this.#noAnswer());
    if (serverId !== undefined) this.#instances.add(serverId, 'new');
    const subscriptions = filters.map((filter) => ({ filter, wantsRetained: true }));
    this.#connection?.subscribe(subscriptions, (codes) => this.#watching(codes));
  }

  /** Where presences of the server are; undefined: it cannot be found out, and the client is told. */
  #presenceFilters({ properties, hasWildcards }: BrokerTerms): readonly string[] | undefined {
    const { target, brokerName } = this.#options;
    const { serverName } = target;
    if (!hasWildcards) {
      const message = `The broker at ${brokerName} does not allow wildcards in subscriptions, so servers cannot be found by their presence; name the server's id with ?server-id=.`;
      this.#lost(new BridgeError('ERR_UPSTREAM_CONNECT', message));
      return undefined;
    }
    const suggested = suggestedFilters(properties);
    if (suggested === undefined) return [presenceFilter(serverName)];
    if (suggested.some((filter) => filterMatches(filter, serverName))) return suggested.map(presenceFilter);
    const message = `The broker at ${brokerName} lets this client use other servers, but not "${serverName}". Check the name, or what the broker lets this user do.`;
    this.#lost(new BridgeError('ERR_UPSTREAM_AUTH', message));
    return undefined;
  }

  #watching(codes: readonly number[]): void {
    const { target } = this.#options;
    const refused = codes.find((code) => code >= FIRST_FAILURE);
    // With an id, the presence would only tell when the server leaves.
    if (refused !== undefined && target.serverId === undefined && codes.every((code) => code >= FIRST_FAILURE)) {
      return this.#lost(this.#notAllowed('look for servers', refused));
    }
    // Brokers send kept messages at once. Those of a broker that sends them later are asked in the order of their arrival.
    this.#connection?.ping(() => {
      this.#knowsPresences = true;
      if (this.#state.kind === 'seeking') this.#askNext();
    });
  }

  #notAllowed(deed: string, reasonCode: number): BridgeError {
    const { brokerName } = this.#options;
    const message = `The broker at ${brokerName} does not let this client ${deed}: ${describeReason(reasonCode)}. Check --user and --password, and what the broker lets this user do.`;
    const code = isAboutCredentials(reasonCode) ? 'ERR_UPSTREAM_AUTH' : 'ERR_UPSTREAM_CONNECT';
    return new BridgeError(code, message, { data: { reasonCode } });
  }

  #presence(message: ReceivedMessage): void {
    const news = this.#instances.note(message);
    const state = this.#state;
    if (news.kind === 'nothing') return;
    const isOurs = (state.kind === 'open' || state.kind === 'asking') && state.serverId === news.serverId;
    if (news.kind === 'left' && isOurs) return this.#instanceLeft(news.serverId, 'has left the broker');
    if (news.kind === 'left' || !this.#knowsPresences) return;
    if (state.kind === 'seeking' || (state.kind === 'asking' && state.isLate)) this.#askNext();
  }

  #instanceLeft(serverId: string, how: string): void {
    if (this.#state.kind === 'asking' && (!this.#state.isHeard || this.#mayAskSeveral)) {
      return this.#askAnother(serverId);
    }
    const message = `The server at ${this.#options.name} ${how}. Calls that it had not answered may have run.`;
    this.#end(new BridgeError('ERR_UPSTREAM_CLOSED', message));
  }

  /** Asks the newest instance that was not asked. If there is none, one may still come. */
  #askNext(): void {
    const serverId = this.#instances.next();
    if (serverId !== undefined) return this.#ask(serverId);
    if (this.#state.kind === 'asking') return;
    if (this.#isTooLate) this.#nobodyThere();
    else this.#state = { kind: 'seeking' };
  }

  #askAnother(serverId: string): void {
    if (this.#state.kind !== 'asking' || this.#state.serverId !== serverId) return;
    this.#forsake(serverId);
    this.#state = { kind: 'seeking' };
    this.#askNext();
  }

  /** Tells an instance that it is not wanted anymore, in case it only was slow. */
  #forsake(serverId: string): void {
    const { target, clientId } = this.#options;
    if (this.#state.kind === 'asking') this.#state.cancel();
    const address = { serverId, serverName: target.serverName };
    const topic = rpcTopic(clientId, address);
    this.#connection?.publish({ topic, payload: disconnectedMessage(), properties: this.#properties });
    this.#connection?.unsubscribe(this.#topicsOf(serverId));
  }

  #ask(serverId: string): void {
    const { clock } = this.#options;
    const connection = this.#connection;
    if (this.#state.kind === 'asking') this.#forsake(this.#state.serverId);
    const cancel = clock.after(ANSWER_MS, () => this.#late(serverId));
    const asking: Asking = { kind: 'asking', serverId, cancel, isLate: false, isHeard: false };
    this.#state = asking;
    const subscriptions = this.#topicsOf(serverId).map((filter) => ({ filter, wantsRetained: false }));
    connection?.subscribe(subscriptions, ([ofRpc = 0]) => {
      if (this.#state !== asking) return;
      if (ofRpc >= FIRST_FAILURE) return this.#lost(this.#notAllowed('hear the answers of this server', ofRpc));
      this.#sendFirst(asking);
    });
  }

  /**
   * Returns the topics at which an instance speaks to this session. A modern server tells changes to the subscriptions that have asked for them, whose
   * ids only their own session knows: what it tells all sessions at once at the capability topic is for legacy clients.
   */
  #topicsOf(serverId: string): readonly string[] {
    const { target, clientId } = this.#options;
    const address = { serverId, serverName: target.serverName };
    const topic = rpcTopic(clientId, address);
    return this.#isModern ? [topic] : [topic, capabilityTopic(address)];
  }

  #sendFirst(asking: Asking): void {
    const { serverId } = asking;
    const first = this.#first ?? this.#waiting.shift()?.frame;
    if (first === undefined) return;
    this.#first = first;
    this.#publish(this.#placeOf(serverId, first), this.#emptyIds.sent(first), (settlement) => {
      if (settlement.kind === 'nobody') return this.#askAnother(serverId);
      if (settlement.kind === 'refused') {
        return this.#lost(this.#notAllowed('send something to this server', settlement.reasonCode));
      }
      this.#settled(settlement, first);
      if (this.#state !== asking) return;
      asking.isHeard = true;
      if (this.#isModern) this.#sendWaiting(serverId);
    });
  }

  #sendWaiting(serverId: string): void {
    for (const { frame } of this.#waiting.takeAll()) this.#sendTo(serverId, frame);
    this.#tellDrained();
  }

  /** True if the first request may be answered by several instances; a call may not run at several. */
  get #mayAskSeveral(): boolean {
    const method = this.#first?.method;
    return method === INITIALIZE || method === DISCOVER;
  }

  /** Asks another instance, if the first request is one that may be answered by several. */
  #late(serverId: string): void {
    const state = this.#state;
    if (state.kind !== 'asking' || state.serverId !== serverId || !this.#mayAskSeveral) return;
    state.isLate = true;
    if (this.#instances.hasNext) this.#askNext();
  }

  /** No presence has come in time. The instance that has answered last may only have lost its presence. */
  #stopSeeking(): void {
    this.#isTooLate = true;
    if (this.#state.kind !== 'seeking') return;
    const { lastServerId } = this.#options;
    if (lastServerId !== undefined && this.#instances.size === 0) this.#instances.add(lastServerId, 'new');
    this.#askNext();
  }

  #nobodyThere(): void {
    const { target, brokerName } = this.#options;
    const { serverName, serverId } = target;
    const isStale = this.#instances.size > 0;
    const [what, wayOut] =
      serverId !== undefined
        ? [`Nobody listens as "${serverId}" for "${serverName}"`, 'Check the id and the name']
        : isStale
          ? [`All that claim to serve "${serverName}" are gone`, 'Start the server']
          : [
              `No server named "${serverName}" is online`,
              'Check the name, that the server is running, and that the broker lets this user read its presence; a server that lost its presence can be named with ?server-id=',
            ];
    this.#lost(new BridgeError('ERR_UPSTREAM_CONNECT', `${what} at the broker ${brokerName}. ${wayOut}.`));
  }

  #noAnswer(): void {
    if (this.#state.kind === 'open' || this.#state.kind === 'closed') return;
    if (this.#state.kind === 'seeking') return this.#nobodyThere();
    // A call may take as long as its client waits.
    if (!this.#mayAskSeveral) return;
    const method = this.#first?.method;
    const { name } = this.#options;
    const message = `The server at ${name} did not answer ${method} within ${ALL_ANSWERS_MS / 1000} s. Check that it is running; if it had to start first, try again.`;
    this.#lost(
      new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'connect', timeoutMs: ALL_ANSWERS_MS } }),
    );
  }

  // ---- messages of the server

  received(message: ReceivedMessage): void {
    const state = this.#state;
    if (state.kind === 'closed') return;
    const isSession = state.kind === 'open' || state.kind === 'asking';
    if (isSession && this.#topicsOf(state.serverId).includes(message.topic)) {
      return this.#fromServer(state.serverId, message);
    }
    this.#presence(message);
  }

  #fromServer(serverId: string, { payload, isRetained, properties }: ReceivedMessage): void {
    if (isRetained || !mayBeFrom(properties, 'mcp-server', serverId)) {
      this.#options.log.debug('a message that is not of this server was dropped');
      return;
    }
    if (takeMessages(payload, this.#scanner, (frame) => this.#message(serverId, frame))) return;
    const level = this.#hasWarned ? 'debug' : 'warn';
    this.#hasWarned = true;
    this.#options.log[level](`The server at ${this.#options.name} sent something that is not a message; skipping it`);
  }

  #message(serverId: string, frame: Frame): void {
    if (this.#state.kind === 'closed') return;
    if (frame.method === DISCONNECTED && frame.kind === 'notification')
      return this.#instanceLeft(serverId, 'has ended the session');
    if (frame.method === RESOURCE_UPDATED && !this.#isModern && !this.#wants(frame)) return;
    if (this.#seen.isRepeated(frame)) return;
    const received = this.#emptyIds.received(frame);
    if (this.#state.kind === 'asking' && (this.#isModern || (frame.isResponse && received.id === this.#first?.id))) {
      this.#answered(serverId);
    }
    this.#listener.received(received);
  }

  #wants(updated: Frame): boolean {
    const uri = readField(updated, 'uri');
    return typeof uri === 'string' && this.#subscribed.has(uri);
  }

  #answered(serverId: string): void {
    const { answered, reachable } = this.#options;
    this.#cancelTimers();
    this.#state = { kind: 'open', serverId };
    answered(serverId);
    reachable(undefined);
    if (this.#isPaused) this.#connection?.pause();
    this.#sendWaiting(serverId);
  }

  #tellDrained(): void {
    if (!this.#owesDrain || this.isFull) return;
    this.#owesDrain = false;
    this.#listener.drained();
  }

  oversized({ topic, payload, tail, payloadBytes, properties }: OversizedMessage): void {
    const state = this.#state;
    const { target, clientId, name, maxMessageBytes } = this.#options;
    if (state.kind !== 'open' && state.kind !== 'asking') return;
    const { serverId } = state;
    if (topic !== rpcTopic(clientId, { serverId, serverName: target.serverName })) return;
    if (!mayBeFrom(properties, 'mcp-server', serverId)) return;
    const { kind, id } = recoverEnvelope(payload, tail);
    const sender = `The server at ${name}`;
    const error = oversizedError({ sender, bytes: `${payloadBytes}`, maxMessageBytes, kind });
    this.#listener.faulted({ error, kind, id: id === undefined ? undefined : this.#emptyIds.original(id) });
  }

  drained(): void {
    this.#owesDrain = false;
    this.#listener.drained();
  }

  // ---- the end

  ended(end: MqttEnd): void {
    const { brokerName, target, hasAccount } = this.#options;
    const error = endError(brokerName, end, { tls: target.address.tls, hasAccount, options: OPTION_NAMES });
    if (this.#state.kind === 'open') this.#end(error);
    else this.#lost(error);
  }

  #end(error: BridgeError): void {
    const { failureLevel, log } = this.#options;
    log[failureLevel]({ code: error.code }, error.message);
    this.#leave();
    this.#listener.ended(error);
  }

  /** Reports that no session could be opened. */
  #lost(error: BridgeError): void {
    if (this.#state.kind === 'closed') return;
    this.#options.reachable(error);
    this.#end(error);
  }

  #leave(): void {
    const state = this.#state;
    if (state.kind === 'closed') return;
    const { clientId } = this.#options;
    this.#cancelTimers();
    this.#state = { kind: 'closed' };
    this.#waiting.takeAll();
    const connection = this.#connection;
    if (connection === undefined) return this.#resolveGone();
    if (state.kind === 'open' || state.kind === 'asking') {
      const topic = clientPresenceTopic(clientId);
      connection.publish({ topic, payload: disconnectedMessage(), properties: this.#properties });
    }
    connection.resume();
    connection.close();
  }

  #cancelTimers(): void {
    if (this.#state.kind === 'asking') this.#state.cancel();
    this.#cancelSeeking();
    this.#cancelAsking();
  }
}

const NOT_INITIALIZED = new BridgeError(
  'ERR_SESSION_MISSING',
  'The first request of a session is initialize; send that before others.',
);
