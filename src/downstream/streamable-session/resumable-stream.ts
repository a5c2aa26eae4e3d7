import type { ServerResponse } from 'node:http';
import { ListMember } from '../../collections/short-lived-values.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { encodeComment, encodeNumberedEvents, encodePriming } from '../../wire/sse-encode.ts';
import { type EventStreamOwner, EventStreamWriter } from '../http/event-stream-writer.ts';
import type { LiveStreams, Ticking } from '../http/response-writer.ts';
import { eventIdPrefix } from './event-ids.ts';
import type { ReplayBuffer } from './replay-buffer.ts';

/** How long a client should wait before it reconnects after the connection of a stream broke, in milliseconds. */
const RETRY_MS = 1000;

/** Some proxies pass the head of a response on with its first byte, and their clients wait for it. */
const OPENED = encodeComment('open');

/** The server is asked to stop when so much is held back: far less than is kept for clients that come back. */
const MAX_HELD_EVENTS = 100;
const MAX_HELD_BYTES = 256 * 1024;

export interface StreamContext {
  readonly live: LiveStreams;
  readonly replay: ReplayBuffer;
  /** The client understands an event with an id and empty data. */
  readonly priming: boolean;
  /** A connection this old is closed, and the client comes back for the rest; 0: never. */
  readonly pollAfterMs: number;
}

/** What is not sent before it is stored. */
interface HeldBack {
  /** A response on which nothing was sent; undefined: the stream had its connection before. */
  response: ServerResponse | undefined;
  /** What is kept for clients that come back may be less. */
  runs: Buffer[];
  events: number;
  bytes: number;
}

export interface StreamBeginning {
  /** Called when there is capacity again after `send` has returned false. */
  readonly onDrain: () => void;
  /** The newest event that the stream has had elsewhere; default: it begins here. */
  readonly sequence?: number | undefined;
  /** Is named by the ids of its events, for bridges that know nothing else of it; default: none. */
  readonly request?: JsonRpcId | undefined;
  /** Nothing is sent before that, so that whoever has heard anything can come back for the rest; default: at once. */
  readonly stored?: Promise<void> | undefined;
}

/**
 * One SSE stream in the sense of the specification: it outlives the connection that carries it. Events sent while
 * nobody is connected wait in the session's replay buffer. [spec 2025-11-25 transports#resumability-and-redelivery]
 */
export class ResumableStream extends ListMember implements EventStreamOwner, Ticking {
  readonly key: number;
  readonly #context: StreamContext;
  readonly #onDrain: () => void;
  #sequence: number;
  /** The latest messages, which leave together at the end of this turn. */
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

  /** Its client has heard more of it than is known here: what follows is numbered from there on. */
  advanceTo(sequence: number): void {
    this.#sequence = Math.max(this.#sequence, sequence);
  }

  /** Carries the stream on this response from now on; an earlier connection ends. */
  open(response: ServerResponse): void {
    if (this.#stored !== undefined) return this.#openWhen(this.#stored, response);
    const connection = this.#connect(response);
    connection.write(this.#context.priming ? this.#prime() : OPENED);
  }

  #openWhen(stored: Promise<void>, response: ServerResponse): void {
    this.#hold(stored, response);
    if (this.#context.priming) this.#held?.runs.push(this.#prime());
  }

  /** Nothing more is sent before that, so that whoever has heard it can come back for the rest. */
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

  /** Carries the stream on the response of a client that reconnects, after the events it missed. */
  resume(response: ServerResponse, missed: readonly Buffer[]): void {
    const connection = this.#connect(response);
    const held = this.#held;
    if (held !== undefined) {
      // What waits to be sent is among what was missed, and has another way now.
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

  /** Its connection is looked at by itself. */
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

  /** Writes what was sent in this turn now instead of at its end. */
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

  /** Ends the connection, whatever has not been read; the stream goes on. */
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
