import type { ServerResponse } from 'node:http';
import { ListMember } from '../../collections/short-lived-values.ts';
import { EVENT_STREAM_TYPE } from '../../http/headers.ts';
import { encodeComment, encodeEvents } from '../../wire/sse-encode.ts';
import { type LiveStreams, ResponseWriter, type Ticking } from './response-writer.ts';

/** A comment after this much silence keeps proxies and clients from giving the connection up. */
export const KEEP_ALIVE_MS = 15_000;
export interface EventStreamOwner {
  /** The stream has capacity again. */
  streamDrained(): void;
  /** The connection is gone or was ended; called once. */
  streamClosed(stream: EventStreamWriter): void;
}

/** Messages of one turn are encoded together up to this size. */
const MAX_SENT_BYTES = 64 * 1024;
const KEEP_ALIVE = encodeComment('keep-alive');

/** One HTTP response that carries server-sent events. */
export class EventStreamWriter extends ListMember implements Ticking {
  readonly #owner: EventStreamOwner;
  readonly #writer: ResponseWriter;
  /** When it was last looked at, and whether something has been written since: a clock is read once a tick, not an event. */
  #lastTickMs: number;
  #hasWritten = false;
  /** Not before this. */
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
      // Tells nginx and its kin not to hold events back.
      'X-Accel-Buffering': 'no',
    });
    response.flushHeaders();
    response.on('close', () => this.#close());
    live.add(this);
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** False: full, `streamDrained` follows. One that is over swallows everything. */
  get hasCapacity(): boolean {
    return this.#state !== 'open' || !this.#writer.isFull;
  }

  /** Takes a message, which becomes an event of the type `message` without an id. False: full, `streamDrained` follows. */
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

  /** Takes encoded events. False: full, `streamDrained` follows. */
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

  /** Ends the connection, whatever has not been read. */
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
    // What was waiting waits no longer.
    if (this.#writer.isFull) this.#owner.streamDrained();
  }
}
