import type { Socket } from 'node:net';
import { ByteQueue } from '../collections/bounded-collections.ts';
import type { Clock } from '../deps.ts';
import { decodePacket, type Packet, writePacket } from './codec.ts';
import type { MqttEnd } from './end-error.ts';
import type { UserProperties } from './mcp-topics.ts';
import type { BrokerSocket } from './open-socket.ts';
import { type OversizedPacket, PacketSplitter } from './packet-splitter.ts';
import { FIRST_FAILURE, REASONS } from './reason-codes.ts';

/** Silence after which the broker considers a client gone. A ping is sent after half of it. */
export const KEEP_ALIVE_S = 60;
/**
 * Messages of QoS 1 that the broker may have sent us without an acknowledgment. Those of a paused connection are acknowledged
 * when they are taken, so this limits what waits here; the broker keeps the others.
 */
export const RECEIVE_MAXIMUM = 64;
/** Most messages of ours without an acknowledgment, if the broker allows as many. */
const MAX_IN_FLIGHT = 1024;
/** Bytes of a paused connection that are read ahead. From then on the socket is not read, and no acknowledgment either. */
const MAX_AHEAD = { maxItems: RECEIVE_MAXIMUM, maxBytes: 1024 * 1024 };
/** Unsent bytes from which the connection is full. Not below Node's own mark, whose `drain` event ends the wait. */
const HIGH_WATER_BYTES = 64 * 1024;
/** Time for the broker to close its side after DISCONNECT. */
const CLOSE_GRACE_MS = 1000;
/** Room in a packet beside topic and payload: lengths, id, and the properties that are sent here. */
const PACKET_OVERHEAD_BYTES = 512;
const MAX_PACKET_ID = 0xffff;
/** Most subscriptions and ends of subscriptions that the broker has not acknowledged: some for each client of a bridge. */
const MAX_SUBSCRIBING = 4096;

export interface Will {
  readonly topic: string;
  readonly payload: Buffer;
  readonly retain: boolean;
}

export interface MqttConnectionOptions {
  readonly broker: BrokerSocket;
  readonly clientId: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly will: Will;
  readonly properties: UserProperties;
  /** Longer payloads are dropped, and reported by their ends. */
  readonly maxMessageBytes: number;
  /** Time limit for name resolution, TCP, TLS and the broker's acceptance together; 0 means no limit. */
  readonly connectTimeoutMs: number;
  readonly clock: Clock;
}

/** The limits that a broker has set when it accepted the connection. */
export interface BrokerTerms {
  readonly maximumQoS: 0 | 1;
  readonly hasRetain: boolean;
  readonly hasWildcards: boolean;
  readonly maximumPacketSize: number;
  /** The properties by which the broker suggests something. */
  readonly properties: UserProperties;
}

export interface ReceivedMessage {
  readonly topic: string;
  readonly payload: Buffer;
  /** True for a message that was retained before this subscription. */
  readonly isRetained: boolean;
  readonly properties: UserProperties;
}

/** A message that was too long. Its payload is the beginning only. */
export interface OversizedMessage extends ReceivedMessage {
  readonly tail: Buffer;
  readonly payloadBytes: number;
}

/** Told of what happens. Nothing is told within a call of the connection's methods, except by `settled`. */
export interface MqttListener {
  connected(terms: BrokerTerms): void;
  received(message: ReceivedMessage): void;
  oversized(message: OversizedMessage): void;
  /** There is capacity again, after `publish` has returned false. */
  drained(): void;
  /** Told once, and last. Not after `close` or `destroy`. */
  ended(end: MqttEnd): void;
}

export interface Publication {
  readonly topic: string;
  readonly payload: Buffer;
  readonly properties: UserProperties;
  readonly retain?: boolean;
}

/**
 * What became of a message.
 * - `taken`: the broker has it; at QoS 0, the socket.
 * - `nobody`: the broker says that nobody is subscribed to the topic.
 * - `refused`: the broker has refused it with this reason code.
 * - `too-large`: the broker takes no packets of this size, so it was not sent.
 */
export type Settlement =
  | { readonly kind: 'taken' | 'nobody' }
  | { readonly kind: 'refused'; readonly reasonCode: number }
  | { readonly kind: 'too-large'; readonly maxBytes: number };

interface Outgoing extends Publication {
  readonly settled: ((settlement: Settlement) => void) | undefined;
}

/** No Local: the server and the client of a session share the topic, and neither needs its own messages. */
export interface Subscription {
  readonly filter: string;
  /** False if messages that were retained before are of no use. */
  readonly wantsRetained: boolean;
}

type Answered = (reasonCodes: readonly number[]) => void;

/**
 * - `connecting`: the socket, TLS, and the acceptance of the broker are awaited.
 * - `open`: messages are exchanged.
 * - `over`: the connection was closed here, or has ended.
 */
type State =
  | { readonly kind: 'connecting'; readonly cancel: () => void }
  | { readonly kind: 'open'; readonly terms: BrokerTerms; readonly window: number; readonly cancel: () => void }
  | { readonly kind: 'over' };

/**
 * One network connection to a broker of MQTT 5, with a clean session that ends with it: nothing is sent again, and nothing is
 * kept for a later connection.
 *
 * `publish` accepts each message, and returns false when the socket or the window of unacknowledged messages is full; the
 * caller pauses its source until `drained`. Messages beyond the window wait here. A paused connection acknowledges nothing that
 * waits, so that a broker with messages of QoS 1 keeps the rest.
 */
export class MqttConnection {
  readonly #options: MqttConnectionOptions;
  readonly #listener: MqttListener;
  readonly #socket: Socket;
  readonly #splitter: PacketSplitter;
  readonly #ahead = new ByteQueue<Extract<Packet, { cmd: 'publish' }> | OversizedPublish>(MAX_AHEAD, sizeOf);
  /** Messages that wait for the window. */
  readonly #pending = new ByteQueue<Outgoing>(NO_LIMITS, ({ payload }) => payload.length);
  readonly #inFlight = new Map<number, Outgoing>();
  readonly #subscribing = new Map<number, { readonly kind: 'suback' | 'unsuback'; readonly answered: Answered }>();
  #pingsOut: (() => void)[] = [];
  #lastPacketId = 0;
  #isPaused = false;
  #owesDrain = false;
  /** True if anything was received since the last ping. */
  #hasHeard = true;
  #cause: unknown;
  #cancelGrace = (): void => {};
  #state: State;
  /** Resolves when the socket is closed. */
  readonly gone: Promise<void>;

  constructor(options: MqttConnectionOptions, listener: MqttListener) {
    const { broker, maxMessageBytes, connectTimeoutMs, clock } = options;
    const { socket, connectedEvent } = broker;
    this.#options = options;
    this.#listener = listener;
    this.#socket = socket;
    const cancel =
      connectTimeoutMs > 0
        ? clock.after(connectTimeoutMs, () => this.#end({ kind: 'slow', afterMs: connectTimeoutMs }))
        : () => {};
    this.#state = { kind: 'connecting', cancel };
    this.#splitter = new PacketSplitter(
      {
        packet: (bytes) => this.#packet(bytes),
        oversized: (packet) => this.#oversized(packet),
        malformed: (problem) => this.#malformed(problem),
      },
      maxMessageBytes,
    );
    socket.once(connectedEvent, () => this.#hello());
    socket.on('data', (chunk: Buffer) => {
      if (this.#state.kind !== 'over') this.#splitter.push(chunk);
    });
    socket.on('drain', () => this.#tellDrained());
    socket.on('end', () => this.#lost());
    socket.on('error', (error) => {
      this.#cause = error;
    });
    this.gone = new Promise((resolve) => {
      socket.once('close', () => {
        this.#lost();
        this.#cancelGrace();
        resolve();
      });
    });
  }

  // ---- from the owner

  /** The limits of the broker; undefined: it has not accepted the connection, or the connection is over. */
  get terms(): BrokerTerms | undefined {
    return this.#state.kind === 'open' ? this.#state.terms : undefined;
  }

  /** True if a further message would have to wait. */
  get isFull(): boolean {
    if (this.#state.kind !== 'open') return false;
    return this.#socket.writableLength >= HIGH_WATER_BYTES || this.#inFlight.size >= this.#state.window;
  }

  /** Bytes of messages that the broker has not taken. */
  get waitingBytes(): number {
    return this.#pending.bytes + this.#socket.writableLength;
  }

  /**
   * Sends a message on an open connection. False: the message was accepted, but the connection is full, and `drained` follows.
   * @param settled told what became of it, if the connection lives until then
   */
  publish(publication: Publication, settled?: (settlement: Settlement) => void): boolean {
    const state = this.#state;
    if (state.kind !== 'open') return true;
    const { maximumPacketSize } = state.terms;
    const bytes = publication.payload.length + Buffer.byteLength(publication.topic) + PACKET_OVERHEAD_BYTES;
    if (bytes > maximumPacketSize) {
      settled?.({ kind: 'too-large', maxBytes: Math.max(0, maximumPacketSize - (bytes - publication.payload.length)) });
      return true;
    }
    const outgoing = { ...publication, settled };
    if (state.terms.maximumQoS === 0) this.#writeUnacknowledged(outgoing);
    else if (this.#inFlight.size < state.window && this.#pending.length === 0) this.#writeAcknowledged(outgoing);
    else this.#pending.add(outgoing);
    if (!this.isFull) return true;
    this.#owesDrain = true;
    return false;
  }

  /** @param answered gets a reason code for each subscription, in their order */
  subscribe(subscriptions: readonly Subscription[], answered: Answered): void {
    const messageId = this.#awaitAnswer('suback', answered);
    if (messageId === undefined) return;
    this.#write({
      cmd: 'subscribe',
      messageId,
      subscriptions: subscriptions.map(({ filter, wantsRetained }) => ({
        topic: filter,
        qos: 1,
        nl: true,
        rap: false,
        rh: wantsRetained ? 0 : 2,
      })),
    });
  }

  unsubscribe(filters: readonly string[]): void {
    const messageId = this.#awaitAnswer('unsuback', () => {});
    if (messageId !== undefined) this.#write({ cmd: 'unsubscribe', messageId, unsubscriptions: [...filters] });
  }

  #awaitAnswer(kind: 'suback' | 'unsuback', answered: Answered): number | undefined {
    if (this.#state.kind !== 'open') return undefined;
    if (this.#subscribing.size >= MAX_SUBSCRIBING) {
      queueMicrotask(() => this.#malformed('no answer to thousands of subscriptions'));
      return undefined;
    }
    const messageId = this.#nextPacketId();
    this.#subscribing.set(messageId, { kind, answered });
    return messageId;
  }

  /** Asks for a sign of life. What the broker has sent before its answer has been received before `answered`. */
  ping(answered: () => void): void {
    if (this.#state.kind !== 'open') return;
    this.#pingsOut.push(answered);
    this.#write({ cmd: 'pingreq' });
  }

  /** Delivers no more messages. Acknowledgments are still read, until what waits has reached its limit. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    while (!this.#isPaused) {
      const packet = this.#ahead.shift();
      if (packet === undefined) break;
      this.#deliver(packet);
    }
    if (!this.#ahead.isFull) this.#socket.resume();
  }

  /** Sends what waits, and ends the connection. The broker does not publish the will. */
  close(): void {
    if (this.#state.kind === 'open') {
      for (const outgoing of this.#pending.takeAll()) this.#writeUnacknowledged(outgoing);
      this.#write({ cmd: 'disconnect', reasonCode: REASONS.normal });
      this.#leave();
      this.#letGo();
    } else if (this.#state.kind === 'connecting') this.destroy();
  }

  /** Ends the connection at once. Unsent messages are lost, and the broker publishes the will. */
  destroy(): void {
    this.#leave();
    this.#socket.destroy();
  }

  // ---- what is written

  #hello(): void {
    if (this.#state.kind !== 'connecting') return;
    const { clientId, username, password, will, properties } = this.#options;
    this.#write({
      cmd: 'connect',
      protocolId: 'MQTT',
      protocolVersion: 5,
      clientId,
      clean: true,
      keepalive: KEEP_ALIVE_S,
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password: Buffer.from(password) }),
      will: { topic: will.topic, payload: will.payload, qos: 0, retain: will.retain },
      properties: { sessionExpiryInterval: 0, receiveMaximum: RECEIVE_MAXIMUM, ...propertiesOf(properties) },
    });
  }

  #writeUnacknowledged(outgoing: Outgoing): void {
    this.#writePublish(outgoing, undefined);
    outgoing.settled?.({ kind: 'taken' });
  }

  #writeAcknowledged(outgoing: Outgoing): void {
    const messageId = this.#nextPacketId();
    this.#inFlight.set(messageId, outgoing);
    this.#writePublish(outgoing, messageId);
  }

  #writePublish({ topic, payload, properties, retain = false }: Publication, messageId: number | undefined): void {
    const about = { topic, payload, retain, dup: false, properties: propertiesOf(properties) };
    if (messageId === undefined) this.#write({ cmd: 'publish', qos: 0, ...about });
    else this.#write({ cmd: 'publish', qos: 1, messageId, ...about });
  }

  #nextPacketId(): number {
    do this.#lastPacketId = (this.#lastPacketId % MAX_PACKET_ID) + 1;
    while (this.#inFlight.has(this.#lastPacketId) || this.#subscribing.has(this.#lastPacketId));
    return this.#lastPacketId;
  }

  #write(packet: Packet): void {
    if (this.#socket.writable) writePacket(packet, this.#socket);
  }

  #tellDrained(): void {
    if (!this.#owesDrain || this.isFull) return;
    this.#owesDrain = false;
    this.#listener.drained();
  }

  // ---- what is read

  #packet(bytes: Buffer): void {
    if (this.#state.kind === 'over') return;
    const packet = decodePacket(bytes);
    if (packet === undefined) return this.#malformed('a packet that is not valid');
    this.#hasHeard = true;
    const isFirst = this.#state.kind === 'connecting';
    if (isFirst !== (packet.cmd === 'connack'))
      return this.#malformed(`${packet.cmd.toUpperCase()} at a time when it may not`);
    switch (packet.cmd) {
      case 'connack':
        return this.#accepted(packet);
      case 'publish':
        return this.#publish(packet);
      case 'puback':
        return this.#acknowledged(packet.messageId, packet.reasonCode ?? 0);
      case 'suback':
      case 'unsuback':
        return this.#subscribed(packet);
      case 'pingresp': {
        const answered = this.#pingsOut.shift();
        return answered === undefined ? this.#malformed('an answer to a ping that was not sent') : answered();
      }
      case 'disconnect':
        return this.#end({
          kind: 'dismissed',
          reasonCode: packet.reasonCode ?? 0,
          reason: packet.properties?.reasonString,
        });
      default:
        return this.#malformed(`${packet.cmd.toUpperCase()}, which was not asked for`);
    }
  }

  #accepted(packet: Extract<Packet, { cmd: 'connack' }>): void {
    const { properties = {}, reasonCode = 0 } = packet;
    if (reasonCode !== 0) return this.#end({ kind: 'refused', reasonCode, reason: properties.reasonString });
    if (this.#state.kind === 'connecting') this.#state.cancel();
    const terms: BrokerTerms = {
      maximumQoS: properties.maximumQoS === 0 ? 0 : 1,
      hasRetain: properties.retainAvailable !== false,
      hasWildcards: properties.wildcardSubscriptionAvailable !== false,
      maximumPacketSize: properties.maximumPacketSize ?? Number.POSITIVE_INFINITY,
      properties: properties.userProperties ?? {},
    };
    const keepAliveMs = (properties.serverKeepAlive ?? KEEP_ALIVE_S) * 1000;
    const cancel =
      keepAliveMs > 0 ? this.#options.clock.every(keepAliveMs / 2, () => this.#keepAlive(keepAliveMs / 2)) : () => {};
    const window = Math.min(properties.receiveMaximum ?? MAX_IN_FLIGHT, MAX_IN_FLIGHT);
    this.#state = { kind: 'open', terms, window, cancel };
    this.#listener.connected(terms);
  }

  #keepAlive(afterMs: number): void {
    // What a connection that is not read has heard is not known.
    if (!this.#hasHeard && !this.#socket.isPaused()) return this.#end({ kind: 'silent', afterMs });
    this.#hasHeard = false;
    this.ping(() => {});
  }

  #publish(packet: Extract<Packet, { cmd: 'publish' }>): void {
    if (packet.qos > 1) return this.#malformed('a message of QoS 2, which was not subscribed to');
    if (packet.topic === '') return this.#malformed('a message without a topic');
    this.#deliverOrKeep(packet);
  }

  #oversized({ start, tail, payloadBytes }: OversizedPacket): void {
    if (this.#state.kind !== 'open') return this.#malformed('a message before it has accepted the connection');
    const packet = decodePacket(start);
    if (packet?.cmd !== 'publish' || packet.qos > 1) return this.#malformed('a message whose header is not valid');
    this.#hasHeard = true;
    this.#deliverOrKeep({ ...packet, tail, payloadBytes });
  }

  #deliverOrKeep(packet: Extract<Packet, { cmd: 'publish' }> | OversizedPublish): void {
    if (!this.#isPaused && this.#ahead.length === 0) return this.#deliver(packet);
    this.#ahead.add(packet);
    if (this.#ahead.isFull) this.#socket.pause();
  }

  #deliver(packet: Extract<Packet, { cmd: 'publish' }> | OversizedPublish): void {
    const { topic, payload, retain, properties, qos, messageId } = packet;
    const message: ReceivedMessage = {
      topic,
      payload: Buffer.isBuffer(payload) ? payload : Buffer.from(payload),
      isRetained: retain,
      properties: properties?.userProperties ?? {},
    };
    if (qos > 0 && messageId !== undefined) this.#write({ cmd: 'puback', messageId, reasonCode: REASONS.normal });
    if ('tail' in packet)
      this.#listener.oversized({ ...message, tail: packet.tail, payloadBytes: packet.payloadBytes });
    else this.#listener.received(message);
  }

  #acknowledged(messageId: number | undefined, reasonCode: number): void {
    const outgoing = messageId === undefined ? undefined : this.#inFlight.get(messageId);
    if (messageId === undefined || outgoing === undefined)
      return this.#malformed('an acknowledgment of nothing that was sent');
    this.#inFlight.delete(messageId);
    const next = this.#pending.shift();
    if (next !== undefined) this.#writeAcknowledged(next);
    outgoing.settled?.(settlementOf(reasonCode));
    this.#tellDrained();
  }

  #subscribed(packet: Extract<Packet, { cmd: 'suback' | 'unsuback' }>): void {
    const { messageId = 0, granted, cmd } = packet;
    const subscribing = this.#subscribing.get(messageId);
    if (subscribing?.kind !== cmd) return this.#malformed('an acknowledgment of nothing that was sent');
    this.#subscribing.delete(messageId);
    subscribing.answered(granted.map(Number));
  }

  // ---- the end

  #malformed(problem: string): void {
    if (this.#state.kind === 'open') this.#write({ cmd: 'disconnect', reasonCode: REASONS.protocolError });
    this.#end({ kind: 'malformed', problem });
  }

  #lost(): void {
    const { kind } = this.#state;
    if (kind !== 'over') this.#end({ kind: kind === 'connecting' ? 'unreachable' : 'broken', cause: this.#cause });
  }

  #end(end: MqttEnd): void {
    if (this.#state.kind === 'over') return;
    this.#leave();
    this.#letGo();
    this.#listener.ended(end);
  }

  #leave(): void {
    if (this.#state.kind !== 'over') this.#state.cancel();
    this.#state = { kind: 'over' };
    this.#ahead.takeAll();
    this.#pending.takeAll();
    this.#inFlight.clear();
    this.#subscribing.clear();
    this.#pingsOut = [];
  }

  /** What arrives is discarded, but has to be read for the end of the other side to be noticed. */
  #letGo(): void {
    if (this.#socket.destroyed) return;
    this.#socket.end();
    this.#socket.resume();
    this.#cancelGrace = this.#options.clock.after(CLOSE_GRACE_MS, () => this.#socket.destroy());
  }
}

/** Whoever publishes stops when the connection is full, and limits what it adds meanwhile. */
const NO_LIMITS = { maxItems: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };

type OversizedPublish = Extract<Packet, { cmd: 'publish' }> & { readonly tail: Buffer; readonly payloadBytes: number };

/** A message counts with its topic and properties, which are larger than those of most messages. */
function sizeOf({ payload, topic }: Extract<Packet, { cmd: 'publish' }>): number {
  return payload.length + topic.length + PACKET_OVERHEAD_BYTES;
}

function settlementOf(reasonCode: number): Settlement {
  if (reasonCode === REASONS.noMatchingSubscribers) return { kind: 'nobody' };
  return reasonCode >= FIRST_FAILURE ? { kind: 'refused', reasonCode } : { kind: 'taken' };
}

/** The codec takes no empty list of user properties. */
function propertiesOf(properties: UserProperties): { userProperties?: Record<string, string | string[]> } {
  return Object.keys(properties).length === 0 ? {} : { userProperties: plain(properties) };
}

/** The codec takes its own arrays only. */
function plain(properties: UserProperties): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, value]) => [name, typeof value === 'string' ? value : [...value]]),
  );
}
