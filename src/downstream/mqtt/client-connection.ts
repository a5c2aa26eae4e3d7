import { findSubscriptionId } from '../../mcp/classify/correlators.ts';
import { INITIALIZE, isListChanged } from '../../mcp/vocabulary/methods.ts';
import type { MqttConnection, Settlement } from '../../mqtt/connection.ts';
import { rpcTopic, type ServerAddress, type UserProperties } from '../../mqtt/mcp-topics.ts';
import { SeenRequests } from '../../mqtt/seen-requests.ts';
import { Frame } from '../../wire/frame.ts';
import type { OversizedLine } from '../../wire/ndjson.ts';
import { EnvelopeScanner } from '../../wire/scan-envelope.ts';
import { MAX_AHEAD_BYTES } from '../duplex/connection-peer.ts';
import type { ConnectionListener, MessageConnection } from '../duplex/message-connection.ts';

/** Messages of a client that is held back count as at least this, since a shorter one costs about as much. */
const MIN_MESSAGE_BYTES = 1024;
/** Longest notification that is examined for where it goes. A list of what has changed is not in it. */
const MAX_CHANGE_BYTES = 4096;
const LIST_CHANGED = Buffer.from('list_changed');

export interface MqttClientOptions {
  readonly connection: Pick<MqttConnection, 'publish'>;
  readonly clientId: string;
  readonly address: ServerAddress;
  readonly properties: UserProperties;
  /** Publishes for all clients of the instance that a list has changed. Returns false if the connection is full. */
  readonly tellAll: (method: string, notification: Buffer) => boolean;
  /** Called with the result of the request that has opened the session. */
  readonly onOpened: (result: Frame) => void;
}

/**
 * - `opening`: the first request was not answered, so that a second `initialize` is the same once more.
 * - `open`: messages are exchanged.
 * - `over`: nothing is passed on in either direction.
 */
type State = 'opening' | 'open' | 'over';

/** One client at a broker, which shares the bridge's connection there with others. Each piece is one message. */
export class MqttClientConnection implements MessageConnection {
  readonly unit = 'message';
  readonly #options: MqttClientOptions;
  readonly #listener: ConnectionListener;
  readonly #topic: string;
  readonly #scanner = new EnvelopeScanner();
  readonly #seen = new SeenRequests();
  /** Bytes that were read and not taken. */
  #aheadBytes = 0;
  #isPaused = false;
  #waitingBytes = 0;
  #isFull = false;
  #flushed: (() => void)[] = [];
  #state: State = 'opening';

  constructor(options: MqttClientOptions, listener: ConnectionListener) {
    this.#options = options;
    this.#listener = listener;
    this.#topic = rpcTopic(options.clientId, options.address);
  }

  get isOpening(): boolean {
    return this.#state === 'opening';
  }

  // ---- from the client

  /** Takes a message that the client has sent. QoS 1 is at least once, so a request may come again. */
  receive(payload: Buffer): void {
    if (this.#state === 'over') return;
    const envelope = this.#scanner.scan(payload);
    // A repeated initialize comes at another topic, where the endpoint recognizes it.
    const mayBeRepeated = envelope !== undefined && envelope.method !== INITIALIZE;
    if (mayBeRepeated && this.#seen.isRepeated(envelope)) return;
    this.#aheadBytes += sizeOf(payload);
    // Others share the connection, so it cannot be left unread for one of them.
    if (this.#isPaused && this.#aheadBytes > 2 * MAX_AHEAD_BYTES) return this.#listener.crowded();
    this.#listener.read(payload);
  }

  receiveOversized(message: OversizedLine): void {
    if (this.#state !== 'over') this.#listener.oversized(message);
  }

  /** The client has left, or must not be told anything anymore. */
  left(): void {
    this.#state = 'over';
    for (const flushed of this.#flushed) flushed();
    this.#flushed = [];
    this.#listener.readerGone();
  }

  /** Called when the connection that all clients share has capacity again. */
  drained(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#listener.drained();
  }

  // ---- from the endpoint

  take(payload: Buffer): undefined {
    this.#aheadBytes -= sizeOf(payload);
    this.#listener.message(payload);
    return undefined;
  }

  takeRest(): void {}

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
  }

  send(message: Buffer): boolean {
    if (this.#state === 'over') return true;
    if (message.length <= MAX_CHANGE_BYTES && message.includes(LIST_CHANGED)) {
      const envelope = this.#scanner.scan(message);
      if (envelope?.method !== undefined && envelope.id === undefined && isListChanged(envelope.method)) {
        // A change that names a subscription is for the client that has it.
        const isForAll = findSubscriptionId(new Frame(message, envelope)) === undefined;
        if (isForAll) return this.#noteCapacity(this.#options.tellAll(envelope.method, message));
      }
    }
    if (this.#state === 'opening') this.#noteAnswer(message);
    const { connection, properties } = this.#options;
    this.#waitingBytes += message.length;
    const settled = (settlement: Settlement): void => this.#settled(settlement, message.length);
    return this.#noteCapacity(connection.publish({ topic: this.#topic, payload: message, properties }, settled));
  }

  /** A message that finds capacity again does not replace `drained`, which those are waiting for that found none. */
  #noteCapacity(hasCapacity: boolean): boolean {
    if (!hasCapacity) this.#isFull = true;
    return hasCapacity;
  }

  #noteAnswer(message: Buffer): void {
    const envelope = this.#scanner.scan(message);
    if (envelope === undefined || (envelope.kind !== 'result' && envelope.kind !== 'error')) return;
    this.#state = 'open';
    if (envelope.kind === 'result') this.#options.onOpened(new Frame(message, envelope));
  }

  #settled(settlement: Settlement, byteLength: number): void {
    this.#waitingBytes -= byteLength;
    if (this.#waitingBytes === 0) {
      for (const flushed of this.#flushed) flushed();
      this.#flushed = [];
    }
    // The broker knows of no subscription of this client, so it has left without a word.
    if (settlement.kind === 'nobody' && this.#state === 'open') this.left();
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  flush(): Promise<void> {
    if (this.#waitingBytes === 0 || this.#state === 'over') return Promise.resolve();
    return new Promise((resolve) => this.#flushed.push(resolve));
  }

  cut(): void {
    this.left();
  }
}

function sizeOf({ length }: Buffer): number {
  return Math.max(length, MIN_MESSAGE_BYTES);
}
