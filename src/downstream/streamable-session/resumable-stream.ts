import type { ServerResponse } from 'node:http';
import { ListMember } from '../../collections/short-lived-values.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { encodeComment, encodeNumberedEvents, encodePriming } from '../../wire/sse-encode.ts';
import { type EventStreamOwner, EventStreamWriter } from '../http/event-stream-writer.ts';
import type { LiveStreams, Ticking } from '../http/response-writer.ts';
import { eventIdPrefix } from './event-ids.ts';
import type { ReplayBuffer } from './replay-buffer.ts';

/** Time that a client should wait before it reconnects after a stream's connection broke (SSE `retry`). */
const RETRY_MS = 1000;

/** Some proxies forward the headers of a response only with its first byte, and clients wait for them. */
const OPENED = encodeComment('open');

/** The server is paused when this much is held back: far less than is kept for clients that reconnect. */
const MAX_HELD_EVENTS = 100;
const MAX_HELD_BYTES = 256 * 1024;

export interface StreamContext {
  readonly live: LiveStreams;
  readonly replay: ReplayBuffer;
  /** True if the client understands an event with an id and empty data. */
  readonly priming: boolean;
  /** Age at which a connection is closed, for the client to reconnect; 0: never. */
  readonly pollAfterMs: number;
}

/** Events that are not sent until they have been stored. */
interface HeldBack {
  /** Response on which nothing was sent yet; undefined: the stream already had a connection. */
  response: ServerResponse | undefined;
  /** Kept here as well, since the replay buffer may evict them sooner. */
  runs: Buffer[];
  events: number;
  bytes: number;
}

export interface StreamBeginning {
  /** Called when there is capacity again after `send` has returned false. */
  readonly onDrain: () => void;
  /** The newest event of the stream at another replica; default: the stream begins here. */
  readonly sequence?: number | undefined;
  /** Request that the event ids name, for replicas that know nothing else of the stream; default: none. */
  readonly request?: JsonRpcId | undefined;
  /**
   * Sending starts once this has resolved, so that a client that has received anything can resume the stream at another
   * replica; default: at once.
   */
  readonly stored?: Promise<void> | undefined;
}

/**
 * An SSE stream in the sense of the specification: it outlives the connection that carries it. Events sent while no
 * client is connected wait in the session's replay buffer. [spec 2025-11-25 transports#resumability-and-redelivery]
 */
export class ResumableStream extends ListMember implements EventStreamOwner, Ticking {
  readonly key: number;
  readonly #context: StreamContext;
  readonly #onDrain: () => void;
  #sequence: number;
  /** Messages of this turn of the event loop, which leave together at its end. */
  #run: Buffer[] = [];
  #runBytes = 0;
  #connection: EventStreamWriter | undefined;
  readonly #idPrefix: string;
  #held: HeldBack | undefined;
  readonly #stored: Promise<void> | undefined;
  #isEnded = false;
  #connectedAtMs = 0;

  constructor(key: number, context: StreamContext, { onDrain, sequence = 0, request, stored }: StreamBeginning) {
    super();
    this.#sequence = sequence;
    this.key = key;
    this.#context = context;
    this.#onDrain = onDrain;
    this.#idPrefix = eventIdPrefix(key, request);
    this.#stored = stored;
  }

  get isConnected(): boolean {
    return this.#connection?.isOpen ?? this.#held?.response?.destroyed === false;
  }

  get lastSequence(): number {
    return this.#sequence;
  }

  /** Continues the numbering after an event that the client has received but that is not known here. */
  advanceTo(sequence: number): void {
    this.#sequence = Math.max(this.#sequence, sequence);
  }

  /** Continues the stream on this response; an earlier connection ends. */
  open(response: ServerResponse): void {
    if (this.#stored !== undefined) return this.#openWhen(this.#stored, response);
    const connection = this.#connect(response);
    connection.write(this.#context.priming ? this.#prime() : OPENED);
  }

  #openWhen(stored: Promise<void>, response: ServerResponse): void {
    this.#hold(stored, response);
    if (this.#context.priming) this.#held?.runs.push(this.#prime());
  }

  /**
   * Holds events back until this resolves, so that a client that receives them can resume the stream at another
   * replica.
   */
  holdUntil(stored: Promise<void>): void {
    if (this.#held === undefined) this.#hold(stored, undefined);
  }

  #hold(stored: Promise<void>, response: ServerResponse | undefined): void {
    this.#held = { response, runs: [], events: 0, bytes: 0 };
    void stored.then(() => this.#release());
  }

  #release(): void {
    const held = this.#held;
    if (held === undefined) return;
    this.flush();
    this.#held = undefined;
    const { response, runs } = held;
    const opened = response?.destroyed === false ? this.#connect(response) : undefined;
    if (runs.length === 0) opened?.write(OPENED);
    for (const run of runs) this.#connection?.write(run);
    if (this.#isEnded) this.#connection?.end();
    this.#onDrain();
  }

  /** Continues the stream on the response of a client that reconnects, after the events that it missed. */
  resume(response: ServerResponse, missed: readonly Buffer[]): void {
    const connection = this.#connect(response);
    const held = this.#held;
    if (held !== undefined) {
      // The events that were held back are among the missed ones, which are written below.
      held.runs = [];
      held.response?.destroy();
      held.response = undefined;
    }
    for (const event of missed.length === 0 ? [OPENED] : missed) connection.write(event);
  }

  #connect(response: ServerResponse): EventStreamWriter {
    this.flush();
    const previous = this.#connection;
    const connection = new EventStreamWriter(response, this.#context.live, this);
    this.#connection = connection;
    this.#connectedAtMs = this.#context.live.nowMs;
    const isPolled = this.#context.pollAfterMs > 0 && this.#context.priming;
    if (isPolled && !this.isListed) this.#context.live.add(this);
    previous?.end();
    return connection;
  }

  /** Always 0: the stream's connection reports its own unsent bytes. */
  get unsentBytes(): number {
    return 0;
  }

  /**
   * [spec 2025-11-25 transports#sending-messages-to-the-server] a server may close the connection without ending the
   * stream once the client has an event id and knows from `retry` when to come back; the priming event told it both.
   */
  tick(nowMs: number): void {
    if (nowMs - this.#connectedAtMs >= this.#context.pollAfterMs) this.disconnect();
  }

  /** Ends the connection, not the stream. */
  disconnect(): void {
    this.#release();
    this.flush();
    const connection = this.#connection;
    this.#connection = undefined;
    this.unlink();
    connection?.end();
  }

  #prime(): Buffer {
    this.#sequence += 1;
    const position = { stream: this.key, sequence: this.#sequence };
    const event = encodePriming(`${this.#idPrefix}${this.#sequence}`, RETRY_MS);
    this.#context.replay.add(position, event);
    return event;
  }

  /** False: the connection is full. */
  send(frame: Frame): boolean {
    if (this.#run.length === 0) process.nextTick(() => this.flush());
    this.#sequence += 1;
    this.#run.push(frame.bytes);
    this.#runBytes += frame.bytes.length;
    if (this.#runBytes >= this.#context.replay.maxRunBytes) this.flush();
    const held = this.#held;
    if (held === undefined) return this.#connection?.hasCapacity ?? true;
    held.events += 1;
    held.bytes += frame.bytes.length;
    return held.events < MAX_HELD_EVENTS && held.bytes < MAX_HELD_BYTES;
  }

  /** Writes the messages of this turn now instead of at its end. */
  flush(): void {
    if (this.#run.length === 0) return;
    const { key: stream } = this;
    const run = this.#run;
    const sequence = this.#sequence + 1 - run.length;
    this.#run = [];
    this.#runBytes = 0;
    const events = encodeNumberedEvents(this.#idPrefix, sequence, run);
    this.#context.replay.add({ stream, sequence }, events, run.length);
    if (this.#held === undefined) this.#connection?.write(events);
    else this.#held.runs.push(events);
  }

  end(): void {
    this.flush();
    this.#context.replay.log?.ended(this.key, this.isConnected ? 'sent' : 'unsent');
    this.#isEnded = true;
    if (this.#held === undefined) this.#connection?.end();
  }

  /** Ends the connection at once and drops what is unsent; the stream continues. */
  cut(): void {
    this.#held?.response?.destroy();
    this.#connection?.cut();
  }

  streamDrained(): void {
    this.#onDrain();
  }

  streamClosed(stream: EventStreamWriter): void {
    if (this.#connection !== stream) return;
    this.#connection = undefined;
    this.unlink();
  }
}
