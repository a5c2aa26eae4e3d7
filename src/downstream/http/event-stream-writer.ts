import type { ServerResponse } from 'node:http';
import { ListMember } from '../../collections/short-lived-values.ts';
import { EVENT_STREAM_TYPE } from '../../http/headers.ts';
import { encodeComment, encodeEvents } from '../../wire/sse-encode.ts';
import { type LiveStreams, ResponseWriter, type Ticking } from './response-writer.ts';

/** After this much silence a comment is sent, so that proxies and clients keep the connection open. */
export const KEEP_ALIVE_MS = 15_000;
export interface EventStreamOwner {
  /** The stream has capacity again. */
  streamDrained(): void;
  /** The connection is closed, by either side. Called once. */
  streamClosed(stream: EventStreamWriter): void;
}

/** Messages of one turn of the event loop are encoded together up to this size. */
const MAX_SENT_BYTES = 64 * 1024;
const KEEP_ALIVE = encodeComment('keep-alive');

/** An HTTP response that carries server-sent events. */
export class EventStreamWriter extends ListMember implements Ticking {
  readonly #owner: EventStreamOwner;
  readonly #writer: ResponseWriter;
  /**
   * Time of the latest tick, and whether anything was written since: the clock is read once per tick, not once per
   * event.
   */
  #lastTickMs: number;
  #hasWritten = false;
  /** Lower bound of the time of the latest write. */
  #lastWriteMs: number;
  /** Messages that leave at the end of this turn. */
  #sent: Buffer[] = [];
  #sentBytes = 0;
  #state: 'open' | 'ending' | 'closed' = 'open';

  constructor(response: ServerResponse, live: LiveStreams, owner: EventStreamOwner) {
    super();
    this.#owner = owner;
    this.#writer = new ResponseWriter(response, live.nowMs, () => owner.streamDrained());
    this.#lastTickMs = live.nowMs;
    this.#lastWriteMs = this.#lastTickMs;
    response.writeHead(200, {
      'Content-Type': EVENT_STREAM_TYPE,
      'Cache-Control': 'no-cache, no-transform',
      // Keeps nginx and similar proxies from buffering the events.
      'X-Accel-Buffering': 'no',
    });
    response.flushHeaders();
    response.on('close', () => this.#close());
    live.add(this);
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** False: full, and `streamDrained` follows. Always true once the stream has ended, since writes are then dropped. */
  get hasCapacity(): boolean {
    return this.#state !== 'open' || !this.#writer.isFull;
  }

  /** Sends a message as an event of type `message` without an id. False: full, and `streamDrained` follows. */
  send(message: Buffer): boolean {
    if (this.#state !== 'open') return true;
    if (this.#sent.length === 0) process.nextTick(() => this.#flush());
    this.#sent.push(message);
    this.#sentBytes += message.length;
    if (this.#sentBytes >= MAX_SENT_BYTES) this.#flush();
    return this.hasCapacity;
  }

  #flush(): void {
    if (this.#sent.length === 0) return;
    const sent = this.#sent;
    this.#sent = [];
    this.#sentBytes = 0;
    this.write(encodeEvents(sent));
  }

  /** Writes encoded events. False: full, and `streamDrained` follows. */
  write(events: Buffer): boolean {
    if (this.#state !== 'open') return true;
    this.#hasWritten = true;
    return this.#writer.write(events);
  }

  /** Ends the response after what was written. */
  end(): void {
    if (this.#state !== 'open') return;
    this.#flush();
    this.#state = 'ending';
    this.#writer.end();
  }

  /** Ends the connection at once and drops what is unsent. */
  cut(): void {
    this.#writer.cut();
  }

  get unsentBytes(): number {
    return this.#writer.queuedBytes + this.#sentBytes;
  }

  tick(nowMs: number): void {
    this.#writer.tick(nowMs);
    if (this.#hasWritten) this.#lastWriteMs = this.#lastTickMs;
    this.#hasWritten = false;
    this.#lastTickMs = nowMs;
    if (nowMs - this.#lastWriteMs >= KEEP_ALIVE_MS && this.#writer.queuedBytes === 0) this.write(KEEP_ALIVE);
  }

  #close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.unlink();
    this.#owner.streamClosed(this);
    // Sources that were paused for this stream have to be resumed, as their messages are dropped from now on.
    if (this.#writer.isFull) this.#owner.streamDrained();
  }
}
