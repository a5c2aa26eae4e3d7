import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { EVENT_STREAM_TYPE } from '../http/content-type.ts';
import { encodeComment } from '../wire/sse-encode.ts';
import type { LiveStreams, Ticking } from './live-streams.ts';

/** A comment after this much silence keeps proxies and clients from giving the connection up. */
export const KEEP_ALIVE_MS = 15_000;
/** Bytes waiting for the client above which the stream counts as full. */
export const FULL_BYTES = 256 * 1024;
/** A client that has read nothing for this long while bytes wait is let go. */
export const STALL_MS = 30_000;
/** So is one that lets this much pile up where its sender cannot be stopped (it is one of several on a link). */
export const MAX_QUEUED_BYTES = 8 * 1024 * 1024;

export interface EventStreamOwner {
  /** The stream has room again. */
  streamDrained(): void;
  /** The connection is gone or was ended; called once. */
  streamClosed(stream: EventStream): void;
}

const KEEP_ALIVE = encodeComment('keep-alive');

/** One HTTP response that carries server-sent events. Events of one turn of the event loop leave in one write. */
export class EventStream implements Ticking {
  readonly #response: ServerResponse;
  readonly #live: LiveStreams;
  readonly #owner: EventStreamOwner;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #lastWriteMs: number;
  /** When the stream became full; undefined: it has room. */
  #fullSinceMs: number | undefined;
  #state: 'open' | 'ending' | 'closed' = 'open';

  constructor(response: ServerResponse, live: LiveStreams, owner: EventStreamOwner, headers: OutgoingHttpHeaders = {}) {
    this.#response = response;
    this.#live = live;
    this.#owner = owner;
    this.#lastWriteMs = live.nowMs;
    response.writeHead(200, {
      'Content-Type': EVENT_STREAM_TYPE,
      'Cache-Control': 'no-cache, no-transform',
      // Tells nginx and its kin not to hold events back.
      'X-Accel-Buffering': 'no',
      ...headers,
    });
    response.flushHeaders();
    response.on('drain', () => this.#drained());
    response.on('close', () => this.#close());
    live.add(this);
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  get isFull(): boolean {
    return this.#fullSinceMs !== undefined;
  }

  /** Takes one encoded event. False: full, `streamDrained` follows. */
  write(event: Buffer): boolean {
    if (this.#state !== 'open') return true;
    if (this.#pending.length === 0) process.nextTick(() => this.#flush());
    this.#pending.push(event);
    this.#pendingBytes += event.length;
    const queued = this.#pendingBytes + this.#response.writableLength;
    if (queued > MAX_QUEUED_BYTES + event.length) {
      this.#response.destroy();
      return true;
    }
    if (queued >= FULL_BYTES) this.#fullSinceMs ??= this.#live.nowMs;
    return this.#fullSinceMs === undefined;
  }

  /** Ends the response after what was written. */
  end(): void {
    if (this.#state !== 'open') return;
    this.#flush();
    this.#state = 'ending';
    this.#response.end();
    // Still watched: a client that does not read must not hold these bytes for ever.
    if (this.#response.writableLength >= FULL_BYTES) this.#fullSinceMs ??= this.#live.nowMs;
  }

  tick(nowMs: number): void {
    if (this.#fullSinceMs !== undefined) {
      if (nowMs - this.#fullSinceMs >= STALL_MS) this.#response.destroy();
    } else if (nowMs - this.#lastWriteMs >= KEEP_ALIVE_MS) {
      this.write(KEEP_ALIVE);
    }
  }

  #flush(): void {
    const { length } = this.#pending;
    if (length === 0 || this.#state !== 'open') return;
    const [first] = this.#pending;
    const bytes = length === 1 && first !== undefined ? first : Buffer.concat(this.#pending, this.#pendingBytes);
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#lastWriteMs = this.#live.nowMs;
    // Everything went to the kernel at once: no 'drain' will come.
    if (this.#response.write(bytes) && this.#fullSinceMs !== undefined) this.#drained();
  }

  #drained(): void {
    if (this.#fullSinceMs === undefined || this.#pendingBytes > 0) return;
    this.#fullSinceMs = undefined;
    this.#owner.streamDrained();
  }

  #close(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#live.delete(this);
    const wasFull = this.#fullSinceMs !== undefined;
    this.#fullSinceMs = undefined;
    this.#owner.streamClosed(this);
    if (wasFull) this.#owner.streamDrained();
  }
}
